"""Forecasts that people asked for, each in a process of its own."""

import sys

import pytest
from builders import SEC, T0

from facho.adapters.clock import SystemClock
from facho.apps.coordinator.models import Forecast
from facho.runtime.forecasting import ForecastRuns, arguments

pytestmark = pytest.mark.django_db(transaction=True)

WISH = {"olts": 3, "pollers": 2, "hours": 1, "dead": 0, "seed": 1, "jobs": []}


class Inline:
    """Stands in for a `DbThread`: does the work at once, on the connection of the test."""

    async def run(self, work):
        return work()


@pytest.fixture(autouse=True)
def _database_in_a_coroutine(monkeypatch):
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


def runs(script=None, time_limit=60.0):
    """Return what runs forecasts: really, or by a Python script instead of `facho`."""
    command = (sys.executable, "-m", "facho.runtime.cli") if script is None else (sys.executable, "-c", script)
    return ForecastRuns(thread=Inline(), clock=SystemClock(), command=command, time_limit=time_limit)


async def test_a_forecast_is_run_and_its_result_kept():
    Forecast.objects.create(params=WISH)

    await runs().step(T0)

    done = Forecast.objects.get()
    assert (done.status, done.error, done.started_at) == ("DONE", "", T0)
    assert (done.result["olts"], done.result["compliance"]) == (3, 100.0)


async def test_the_one_that_waits_longest_is_run_and_no_other():
    first, second = (Forecast.objects.create(params=WISH) for _ in range(2))

    await runs("print('{}')").step(T0)

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("DONE", "PENDING")


async def test_the_progress_is_stored_while_it_runs():
    Forecast.objects.create(params=WISH)

    await runs("import sys; sys.stderr.write('progress: 40\\nprogress: 41\\n'); print('{}')").step(T0)

    assert (Forecast.objects.get().status, Forecast.objects.get().progress) == ("DONE", 41)


async def test_one_that_fails_says_why():
    Forecast.objects.create(
        params={**WISH, "jobs": [{"name": "x", "interval_seconds": 1, "seconds": 1, "priority": 1}]}
    )

    await runs().step(T0)

    failed = Forecast.objects.get()
    assert (failed.status, failed.result) == ("FAILED", None)
    assert "at least 10 seconds" in failed.error
    assert not failed.error.startswith("facho: ")


async def test_people_are_told_the_last_line_of_a_traceback_and_the_log_has_all_of_it(caplog):
    Forecast.objects.create(params=WISH)

    await runs("def plan():\n    raise ValueError('no plan')\nplan()").step(T0)

    assert Forecast.objects.get().error == "ValueError: no plan"
    assert "Traceback" in caplog.text


async def test_one_that_takes_too_long_is_given_up(tmp_path):
    Forecast.objects.create(params=WISH)
    script = "import os, sys, time; sys.stderr.write(str(os.getpid())); time.sleep(60)"

    await runs(script, time_limit=0.5).step(T0)

    failed = Forecast.objects.get()
    assert failed.status == "FAILED"
    assert failed.error.startswith("The forecast was stopped after 0.5 s.")


async def test_one_that_a_dead_engine_left_running_has_failed():
    left = Forecast.objects.create(params=WISH, status="RUNNING", started_at=T0)

    await runs("print('{}')").step(T0 + 9 * SEC)

    left.refresh_from_db()
    assert (left.status, left.error) == ("FAILED", "Facho was stopped during the forecast. Request it again.")


async def test_it_makes_way_for_polling():
    Forecast.objects.create(params=WISH)

    # Its priority is set right after it began, so it looks for it more than once.
    script = (
        "import json, os, time\n"
        "for _ in range(100):\n"
        "    if os.nice(0): break\n"
        "    time.sleep(0.05)\n"
        "print(json.dumps({'niceness': os.nice(0)}))"
    )
    await runs(script).step(T0)

    assert Forecast.objects.get().result["niceness"] >= 15


async def test_nothing_happens_where_nobody_asked():
    await runs("raise SystemExit('it was run')").step(T0)

    assert not Forecast.objects.exists()


def test_a_question_becomes_options():
    interval = {"job": 3, "name": "State", "seconds": 120, "olts": [1, 5]}

    assert arguments({"question": {"more_olts": 20, "more_pollers": -1, "interval": interval}, "seed": 1}) == [
        "--seed=1",
        "--more-olts=20",
        "--more-pollers=-1",
        "--interval=3:120",
        "--only-olts=1,5",
        "--answer",
    ]
    assert arguments({"question": {}}) == ["--answer"]


def test_what_was_asked_for_becomes_options():
    job = {"name": "Optical power", "interval_seconds": 1800, "seconds": 120.5, "priority": 40}

    assert arguments({"hours": 24, "dead": 10, "seed": 1, "jobs": [job]}) == [
        "--hours=24",
        "--dead=10",
        "--seed=1",
        "--job=Optical power:1800:120.5:40",
    ]
