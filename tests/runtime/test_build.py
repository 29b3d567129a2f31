"""How the embedded engine is put together: who does which chore when, and in which order everything stops."""

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest
from builders import T0

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.runtime import build, config, logs
from facho.store.events import EventRows


@pytest.fixture
def settings(tmp_path):
    return config.load(
        {"FACHO_DATA_DIR": str(tmp_path), "FACHO_KEEP_LOGS": "3", "FACHO_KEEP_HISTORY": "50", "FACHO_KEEP_DAILY": "400"}
    )


class Thread:
    """A thread of the store that works immediately, and records it."""

    def __init__(self, name, diary):
        self.name = name
        self._diary = diary

    async def run(self, work):
        self._diary.append(self.name)
        return work()

    def close(self):
        self._diary.append(f"{self.name} closed")


class Closing:
    """Stands in for the closing of the history: notes when it runs."""

    def __init__(self, note):
        self._note = note

    async def run(self, now):
        self._note(now)


@pytest.fixture
def chores_of_two_minutes(settings, monkeypatch):
    """Return what is done, by which thread, and how long after the turn of an hour, in its first two minutes."""
    diary = []

    def note(name):
        return lambda now, *_: diary.append((name, (now - T0).total_seconds()))

    monkeypatch.setattr(build.quotas, "open_hour", note("open"))
    monkeypatch.setattr(build.quotas, "settle", note("settle"))
    monkeypatch.setattr(build.maintenance, "step", note("maintenance"))
    monkeypatch.setattr(build.recovery, "reap", note("reap"))
    monkeypatch.setattr(build.outbox, "clear", note("outbox"))
    monkeypatch.setattr(build.runs, "repair", note("identification"))

    class Plans:
        async def step(self, now):
            note("plan")(now)

    class Runs:
        def __init__(self, **more):
            pass

        async def step(self, now):
            note("forecast")(now)

    class Sweep:
        def __init__(self, *, rules, **more):
            diary.append({rule.label: rule.days for rule in rules})

        async def run(self, now):
            note("sweep")(now)

    class Devices:
        def __init__(self, *more):
            pass

        async def step(self, now):
            note("devices")(now)

    monkeypatch.setattr(build, "DeviceWatch", Devices)
    monkeypatch.setattr(build, "ForecastRuns", Runs)
    monkeypatch.setattr(build, "Sweep", Sweep)
    monkeypatch.setattr(build, "Removal", lambda *, thread, clock: Closing(note("removal")))

    monkeypatch.setattr(build, "Closing", lambda *, thread, clock: Closing(note(f"close in {thread.name}")))

    async def story():
        clock = VirtualClock(T0 - timedelta(seconds=10))
        threads = {"writer": Thread("writer", diary), "helper": Thread("helper", diary)}
        chores = build.make_chores(settings, clock, planner=Plans(), gap=lambda: None, **threads)
        task = asyncio.ensure_future(chores.run())
        await clock.sleep(129)
        task.cancel()
        await chores.stop()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story())
    return diary


def times_of(diary, name):
    return [each[1] for each in diary if isinstance(each, tuple) and each[0] == name]


def test_an_hour_is_opened_reaped_settled_and_planned_right_behind_its_turn(chores_of_two_minutes):
    assert times_of(chores_of_two_minutes, "open") == [-10, 1, 61]
    assert times_of(chores_of_two_minutes, "reap") == [-10, 3, 63]
    assert times_of(chores_of_two_minutes, "settle") == [-10, 5, 65]
    assert times_of(chores_of_two_minutes, "plan")[:3] == [-10, -8, -6]
    assert times_of(chores_of_two_minutes, "identification") == [-10, 15]
    assert times_of(chores_of_two_minutes, "close in helper") == [-10, 20]
    assert times_of(chores_of_two_minutes, "sweep") == [-10, 30]
    assert len(times_of(chores_of_two_minutes, "removal")) > 20
    assert len(times_of(chores_of_two_minutes, "forecast")) > 20


def test_quotas_are_written_by_the_thread_that_writes_slots(chores_of_two_minutes):
    diary = chores_of_two_minutes

    doers = {work[0]: who for who, work in pairwise(diary) if isinstance(who, str)}
    writers = dict.fromkeys(["open", "reap", "settle", "maintenance", "identification", "outbox"], "writer")
    assert doers == writers


def test_what_is_kept_for_how_long_comes_from_the_settings(chores_of_two_minutes):
    (days,) = [each for each in chores_of_two_minutes if isinstance(each, dict)]

    assert days["coordinator.CoordinatorLog"] == 3
    assert days["polling.Execution"] == 30
    assert days["telemetry.HistoryRun"] == days["telemetry.HistoryChunk"] == days["alerts.Delivery"] == 50
    assert days["telemetry.OnuEvent"] == 50
    assert days["telemetry.HistoryDay"] == days["telemetry.HistoryMonth"] == 400


async def test_everything_stops_before_what_it_is_written_down_with():
    diary = []

    def part(**methods):
        return SimpleNamespace(**methods)

    def noting(name):
        async def note():
            diary.append(name)

        return note

    events = EventRows()
    logs.add_events(events)
    engine = build.Engine(
        scheduler=part(manager=part(stop=noting("pollers"))),
        prober=part(stop=noting("prober")),
        answerer=part(stop=noting("questions")),
        chores=part(stop=noting("chores")),
        alerts=part(close=noting("alerts")),
        problems=None,
        push=part(close=lambda: diary.append("push")),
        journal=part(step=noting("journal")),
        events=events,
        bus=part(close=lambda: diary.append("bus")),
        snmp=part(close=noting("snmp")),
        observed=part(close=lambda: None),
        delivery=part(close=noting("spool")),
        threads=(Thread("reader", diary), Thread("writer", diary)),
        clock=None,
        clock_watch=None,
    )

    await engine.close()

    assert diary[-3:] == ["journal", "reader closed", "writer closed"]
    assert set(diary[:-3]) == {"chores", "prober", "questions", "pollers", "alerts", "push", "bus", "snmp", "spool"}
    assert diary.index("chores") < diary.index("pollers") < diary.index("snmp")
    assert events not in logging.getLogger("facho").handlers
