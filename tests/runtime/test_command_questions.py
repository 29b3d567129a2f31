"""Questions to `facho forecast`: Yes or No, and what to change."""

import json

import pytest
from builders import T0

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.engine.quota.durations import learn
from facho.runtime import fleet_questions
from facho.runtime.cli import main


@pytest.fixture
def facho(capsys, monkeypatch):
    monkeypatch.setattr(fleet_questions, "MOST_HOURS", 1)

    def run(*options):
        with pytest.raises(SystemExit) as ended:
            main(["forecast", *options])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def result(facho):
    def run(*options):
        status, out, err = facho("--json", *options)
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def fleet(db, monkeypatch):
    """Four OLTs, polled for a minute of each five, with two pollers."""
    monkeypatch.setenv("FACHO_POLLERS", "2")
    job = SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"], interval_seconds=300)
    for number in range(4):
        olt = Olt.objects.create(name=f"OLT-{number}", brand="huawei", host=f"127.0.0.{number + 1}", community="public")
        [node] = job.apply_to([olt])
        slot = T0.replace(minute=number, second=10 * number)
        WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=slot, durations=learn({}, 60.0, T0))
    return job


def test_the_fleet_fits_as_it_is(fleet, result):
    told = result("--answer")

    assert (told["answer"]["fits"], told["answer"]["reasons"], told["answer"]["unmeasured"]) == (True, [], 0)
    assert told["today"]["pollers"] == told["pollers"] == 2
    assert told["today"]["busy"] == told["busy"] == pytest.approx(40, abs=4)


def test_more_olts_need_more_pollers(fleet, result):
    told = result("--more-olts", "16")

    assert told["answer"]["fits"] is False
    assert "saturated" in told["answer"]["reasons"]
    assert told["answer"]["changes"]["pollers"] > 4
    assert (told["olts"], told["today"]["olts"]) == (20, 4)


def test_an_automatic_pool_grows_with_the_fleet(fleet, result, monkeypatch):
    monkeypatch.setenv("FACHO_POLLERS", "")
    WorkflowNode.objects.update(durations=learn({}, 200.0, T0))

    told = result("--more-olts", "16")

    assert (told["answer"]["fits"], told["answer"]["pool_is_automatic"]) == (True, True)
    assert told["pollers"] > told["today"]["pollers"] == 10


def test_one_poller_fewer_is_too_few(fleet, result):
    told = result("--more-pollers=-1")

    assert (told["answer"]["fits"], told["pollers"]) == (False, 1)
    assert told["answer"]["changes"]["pollers"] == 2


@pytest.mark.parametrize("job", ["State", "state", None], ids=["name", "another case", "id"])
def test_an_interval_that_is_too_short_and_the_shortest_that_fits(fleet, result, job):
    told = result("--interval", f"{job or fleet.pk}:1min")

    assert told["answer"]["fits"] is False
    # A run takes a minute, and a pool of two has four OLTs.
    assert 120 < told["answer"]["changes"]["interval_seconds"] <= 300


def test_an_interval_of_some_olts(fleet, result):
    [first, *_] = Olt.objects.order_by("name")

    told = result("--interval", "State:4min", "--only-olts", str(first.pk))

    assert told["required"] == 15 + 3 * 12


def test_an_olt_that_does_not_answer_is_told(fleet, result):
    Olt.objects.filter(name="OLT-3").update(breaker_opened_at=T0)

    told = result("--answer")

    assert (told["answer"]["fits"], told["dead"], told["today"]["missed_quotas"]) == (True, 1, 0)


def test_what_has_not_run_yet_is_told(fleet, result):
    WorkflowNode.objects.filter(olt__name="OLT-3").update(durations={})

    assert result("--answer")["answer"]["unmeasured"] == 1


def test_people_read_sentences(fleet, facho):
    status, out, _err = facho("--more-olts", "16")

    assert status == 0
    assert out.startswith("No\n")
    assert "The pollers would be saturated" in out
    assert "pollers instead of 2 (FACHO_POLLERS)." in out
    assert "20 OLTs, " in out


def test_the_progress_is_reported_in_percent(fleet, facho):
    _status, _out, err = facho("--answer", "--json", "--report-progress")

    told = [line for line in err.splitlines() if line.startswith("progress: ")]
    assert told[-1] == "progress: 90"
    assert len(told) == len(set(told)) > 2


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--more-olts", "1", "--olts", "5"), "leave out --olts"),
        (("--more-olts", "-1"), "between 0 and 5000"),
        (("--more-pollers=-2",), "at least one must remain"),
        (("--interval", "State"), "JOB:INTERVAL"),
        (("--interval", "State:5"), "at least 10 seconds"),
        (("--interval", "State:often"), "is not a duration"),
        (("--interval", "Traffic:5min"), "runs on none of these OLTs"),
        (("--interval", "State:5min", "--only-olts", "9999"), "runs on none of these OLTs"),
        (("--interval", "State:5min", "--only-olts", "x"), "must be ids"),
        (("--answer", "--only-olts", "1"), "--only-olts needs --interval"),
    ],
)
def test_nonsense_is_refused(fleet, facho, options, complaint):
    status, _out, err = facho(*options)

    assert status == 2
    assert complaint in err


def test_nothing_is_invented_before_the_first_run(fleet, facho):
    WorkflowNode.objects.update(durations={})

    status, _out, err = facho("--answer")

    assert (status, "No run has been measured yet." in err) == (2, True)


def test_without_olts_there_is_no_answer(db, facho):
    status, _out, err = facho("--more-olts", "20")

    assert (status, "There is nothing to poll" in err) == (2, True)
