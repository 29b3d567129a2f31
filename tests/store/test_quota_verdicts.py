"""How hours that are over are judged: as soon as they can be, once, and again when something ends even later."""

import logging

import pytest
from builders import HOUR, MIN, SEC, T0
from django.db import IntegrityError, transaction

from contracts.worlds import DbWorld, done, scheduled
from facho.apps.coordinator.models import QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution
from facho.engine.events import Event
from facho.engine.model import Cause, Outcome, Skipped, Status, Traffic
from facho.store.quotas import open_hour, settle

pytestmark = pytest.mark.django_db

SUCCESS = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02))
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")
END = T0 + HOUR


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def discovery(world):
    """Four discoveries an hour."""
    node = world.add("Discovery", interval=15 * MIN, next_check=T0)
    open_hour(T0)
    return node


def run(world, node, slot, outcome, *, late=0 * SEC, took=9 * SEC, waits=None):
    (id_,) = world.claim(scheduled(node, slot=slot), now=slot + late, waits=waits).execution_ids
    world.start(id_, now=slot + late)
    world.close([id_], outcome, now=slot + late + took)


def hour_of_runs(world, node, *outcomes):
    for number, outcome in enumerate(outcomes):
        run(world, node, T0 + number * node.interval, outcome)


def verdict(task="Discovery", hour=T0):
    return QuotaTracker.objects.get(task_type=task, period_start=hour).status


@pytest.mark.parametrize(
    ("completed", "status", "severity"),
    [
        pytest.param(4, "COMPLETED", None, id="all"),
        pytest.param(3, "QUOTA_NOT_MET", "LOW", id="three of four"),
        pytest.param(2, "QUOTA_NOT_MET", "HIGH", id="two of four discoveries"),
        pytest.param(1, "QUOTA_NOT_MET", "HIGH", id="one of four"),
        pytest.param(0, "FAILED", "CRITICAL", id="a silent OLT"),
    ],
)
def test_an_hour_is_judged_by_what_was_completed(world, discovery, completed, status, severity):
    hour_of_runs(world, discovery, *[SUCCESS] * completed, *[SILENT] * (4 - completed))

    settle(END)

    assert verdict() == status
    assert list(QuotaViolation.objects.values_list("severity", flat=True)) == ([severity] if severity else [])


def test_enough_is_partial_and_no_violation(world):
    power = world.add("Optical power", next_check=T0)
    hour_of_runs(world, power, *[SUCCESS] * 10, SILENT, SILENT)

    settle(END)

    assert verdict("Optical power") == "PARTIAL"
    assert QuotaViolation.objects.count() == 0


def test_an_hour_that_is_not_over_is_not_judged(world, discovery):
    hour_of_runs(world, discovery, SILENT, SILENT, SILENT, SILENT)

    settle(END - 1 * SEC)

    assert verdict() == "IN_PROGRESS"


def test_a_violation_does_not_wait_forever_for_a_running_slot(world, discovery):
    hour_of_runs(world, discovery, SUCCESS, SUCCESS, SUCCESS)
    (id_,) = world.claim(scheduled(discovery, slot=T0 + 45 * MIN)).execution_ids
    world.start(id_, now=T0 + 45 * MIN)

    settle(END + 4 * MIN)
    waiting = verdict()
    settle(END + 5 * MIN)

    assert (waiting, verdict()) == ("IN_PROGRESS", "IN_PROGRESS")
    assert QuotaViolation.objects.get().report["pending"] == 1


def test_an_olt_that_waits_keeps_no_other_waiting(world, discovery):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="huawei", host="127.0.0.2", community="public")
    names = world.add("Names", olt_id=other.pk, interval=HOUR, next_check=T0)
    open_hour(T0)
    run(world, names, T0, SUCCESS)

    settle(END)

    assert (verdict("Discovery"), verdict("Names")) == ("IN_PROGRESS", "COMPLETED")


def test_what_ends_after_the_verdict_takes_the_violation_back(world, discovery):
    hour_of_runs(world, discovery, SUCCESS, SUCCESS, SUCCESS)
    (id_,) = world.claim(scheduled(discovery, slot=T0 + 45 * MIN)).execution_ids
    world.start(id_, now=T0 + 45 * MIN)
    settle(END + 5 * MIN)

    world.close([id_], SUCCESS, now=END + 6 * MIN)
    settle(END + 7 * MIN)

    assert verdict() == "COMPLETED"
    assert QuotaViolation.objects.count() == 0


def test_what_ends_after_the_verdict_makes_the_violation_report_it(world, discovery, caplog):
    caplog.set_level(logging.INFO)
    hour_of_runs(world, discovery, SILENT, SILENT, SILENT)
    (id_,) = world.claim(scheduled(discovery, slot=T0 + 45 * MIN)).execution_ids
    world.start(id_, now=T0 + 45 * MIN)
    settle(END + 5 * MIN)
    QuotaViolation.objects.update(notified=True)

    world.close([id_], SUCCESS, now=END + 6 * MIN)
    settle(END + 7 * MIN)

    violation = QuotaViolation.objects.get()
    assert (violation.severity, violation.report["completed"], violation.report["pending"]) == ("HIGH", 1, 0)
    assert violation.notified is True
    assert [each.event.name for each in caplog.records if hasattr(each, "event")].count("QUOTA_VIOLATED") == 1


@pytest.mark.parametrize(
    ("completed", "level"),
    [
        pytest.param(9, "WARNING", id="low"),
        pytest.param(7, "WARNING", id="medium"),
        pytest.param(4, "ERROR", id="high"),
        pytest.param(0, "CRITICAL", id="critical"),
    ],
)
def test_a_violation_is_logged_at_the_level_of_its_severity(world, caplog, completed, level):
    power = world.add("Optical power", next_check=T0)
    hour_of_runs(world, power, *[SUCCESS] * completed, *[SILENT] * (12 - completed))

    settle(END)

    told = [each for each in caplog.records if getattr(each, "event", None) is Event.QUOTA_VIOLATED]
    assert [each.levelname for each in told] == [level]


def test_judging_again_changes_nothing_and_tells_nothing(world, discovery, caplog):
    caplog.set_level(logging.INFO)
    hour_of_runs(world, discovery, SUCCESS, SUCCESS, SILENT, SILENT)
    settle(END)
    before = list(QuotaViolation.objects.values()), list(QuotaTracker.objects.values())

    again = settle(END + 1 * MIN)

    assert again == 0
    assert (list(QuotaViolation.objects.values()), list(QuotaTracker.objects.values())) == before
    told = [record.getMessage() for record in caplog.records if hasattr(record, "event")]
    assert told == [
        "OLT-CENTRAL-01: Discovery completed 2 of 4 runs in the hour from 2026-03-01T10:00+00:00 (HIGH)",
    ]


def test_a_violation_says_why_and_what_to_do(world, discovery):
    power = world.add("Optical power", interval=30 * MIN, next_check=T0 + 1 * MIN)
    run(world, discovery, T0, SUCCESS, took=20 * SEC)
    run(world, power, T0 + 1 * MIN, SUCCESS, took=12 * MIN)
    waits = {Cause.OLT_BUSY: 70.0, Cause.NO_FREE_POLLER: 1.0}
    run(world, discovery, T0 + 15 * MIN, SUCCESS, late=71 * SEC, waits=waits)
    lost = Skipped(discovery, T0 + 30 * MIN, 2, Cause.OLT_BUSY)
    world.reschedule({discovery.id: END}, lost, now=END)

    settle(END)

    report = QuotaViolation.objects.get(task_type="Discovery").report
    assert (report["required"], report["completed"], report["skipped"], report["percent"]) == (4, 2, 2, 50.0)
    assert report["causes"] == {"olt_busy": 2}
    assert [(each["task"], each["mean_seconds"], each["runs"]) for each in report["slowest"]] == [
        ("Optical power", 720.0, 1),
        ("Discovery", 14.5, 2),
    ]
    assert (report["worst_lateness"]["seconds"], report["worst_lateness"]["parts"]) == (
        71.0,
        {"olt_busy": 70.0, "no_free_poller": 1.0},
    )
    assert [each["sentence"] for each in report["advice"]] == [
        "OLT-CENTRAL-01 was busy: increase the interval of Optical power, or remove Discovery from this OLT."
    ]


def test_the_time_between_attempts_does_not_make_a_job_slow(world, discovery):
    claim = world.claim(scheduled(discovery))
    world.start(claim.execution_ids[0], now=T0)
    world.put_off(claim.execution_ids, SILENT, retry_at=T0 + 2 * MIN, now=T0 + 15 * SEC)
    world.reclaim(claim)
    world.start(claim.execution_ids[0], token=900, now=T0 + 2 * MIN)
    world.close(claim.execution_ids, SILENT, token=900, now=T0 + 2 * MIN + 15 * SEC)

    settle(END + 5 * MIN)

    (slowest,) = QuotaViolation.objects.get().report["slowest"]
    assert (slowest["mean_seconds"], slowest["max_seconds"], slowest["runs"]) == (30.0, 30.0, 1)


def test_an_engine_that_was_down_for_three_days_shows_in_every_hour(world, discovery, caplog):
    caplog.set_level(logging.INFO)
    run(world, discovery, T0, SUCCESS)
    now = T0 + 72 * HOUR + 7 * MIN
    lost = Skipped(discovery, T0 + 15 * MIN, 3 + 71 * 4 + 1, Cause.ENGINE_DOWN)

    world.reschedule({discovery.id: T0 + 72 * HOUR + 15 * MIN}, lost, now=now)
    settle(now)

    violations = QuotaViolation.objects.order_by("period_start")
    assert [each.period_start for each in violations] == [T0 + n * HOUR for n in range(72)]
    assert {each.severity for each in violations[1:]} == {"CRITICAL"}
    assert violations[0].severity == "HIGH"
    assert [each["code"] for each in violations[1].report["advice"]] == ["check_service"]
    assert verdict(hour=T0 + 72 * HOUR) == "IN_PROGRESS"
    told = [record for record in caplog.records if getattr(record, "event", None) is not None]
    assert [record.event.name for record in told] == ["QUOTA_VIOLATED"] * 2


def test_a_verdict_that_came_before_the_outage_was_accounted_for_is_made_again(world, discovery):
    """As when the chores come up before the scheduler has looked at its grid."""
    run(world, discovery, T0, SUCCESS)
    now = T0 + 3 * HOUR
    settle(now)
    early = QuotaViolation.objects.get().report

    world.reschedule({discovery.id: now + 15 * MIN}, Skipped(discovery, T0 + 15 * MIN, 12, Cause.ENGINE_DOWN), now=now)
    settle(now)

    report = QuotaViolation.objects.get(period_start=T0).report
    assert (early["pending"], early["causes"]) == (3, {})
    assert (report["pending"], report["causes"]) == (0, {"engine_down": 3})


def test_an_hour_that_a_person_interrupted_stays_interrupted_and_is_judged_by_what_came(world, discovery):
    power = world.add("Optical power", next_check=T0)
    open_hour(T0)
    run(world, discovery, T0, SILENT)
    run(world, power, T0, SUCCESS)
    world.start(world.claim(scheduled(power, slot=T0 + 5 * MIN)).execution_ids[0], now=T0 + 5 * MIN)
    world.disable()
    world.abort(olts=[world.olt_id], now=T0 + 6 * MIN)
    world.reschedule({discovery.id: None, power.id: None}, now=T0 + 6 * MIN)

    settle(END)
    settle(END + 1 * MIN)

    assert (verdict("Discovery"), verdict("Optical power")) == ("INTERRUPTED", "INTERRUPTED")
    assert [(each.task_type, each.severity) for each in QuotaViolation.objects.all()] == [("Discovery", "CRITICAL")]


def test_slots_that_nobody_will_run_or_account_for_are_not_owed(world, discovery):
    hour_of_runs(world, discovery, SUCCESS, SUCCESS, SUCCESS)
    done(world.slots.reschedule({discovery.id: END + 1 * MIN}, [], now=END + 1 * MIN))
    before = QuotaTracker.objects.get(period_start=T0).quota_pending

    settle(END + 5 * MIN)

    row = QuotaTracker.objects.get(period_start=T0)
    assert before == 1
    assert (row.status, row.quota_required, row.quota_pending) == ("COMPLETED", 3, 0)


@pytest.fixture
def silent(world):
    """An hourly job whose slot of 10:50 has not run at 11:05: the OLT does not answer."""
    node = world.add("Names", interval=HOUR, next_check=T0 + 50 * MIN)
    open_hour(T0)
    settle(END + 5 * MIN)
    return node


def judged(task="Names"):
    """Return what is pending in a row, its status, and the violation of its hour."""
    row = QuotaTracker.objects.get(task_type=task, period_start=T0)
    violation = QuotaViolation.objects.filter(task_type=task, period_start=T0).first()
    return row.quota_pending, row.status, violation


def test_an_hour_with_a_pending_slot_is_not_judged_and_its_violation_has_advice(world, silent):
    pending, status, violation = judged()

    assert (pending, status) == (1, "IN_PROGRESS")
    assert (violation.severity, violation.report["pending"]) == ("CRITICAL", 1)
    assert [each["code"] for each in violation.report["advice"]] == ["still_pending"]


def test_advice_for_a_pending_slot_names_the_reason(world, silent):
    claim = world.claim(scheduled(silent, slot=T0 + 50 * MIN), now=END + 6 * MIN)
    world.start(claim.execution_ids[0], now=END + 6 * MIN)
    world.put_off(claim.execution_ids, SILENT, retry_at=END + 8 * MIN, now=END + 6 * MIN)
    QuotaViolation.objects.all().delete()

    settle(END + 7 * MIN)

    pending, _, violation = judged()
    assert (pending, [each["code"] for each in violation.report["advice"]]) == (1, ["check_reachability"])


def test_an_open_breaker_is_the_advice_for_slots_that_wait_for_it(world):
    world.add("Names", interval=HOUR, next_check=T0 + 50 * MIN)
    open_hour(T0)
    Olt.objects.update(breaker_opened_at=T0 + 30 * MIN)

    settle(END + 5 * MIN)

    assert [each["code"] for each in judged()[2].report["advice"]] == ["check_reachability"]


def test_a_job_taken_off_its_olt_leaves_nothing_pending_in_the_hour_before(world, silent):
    lost = Skipped(silent, T0 + 50 * MIN, 1, Cause.DISABLED)
    world.delete(silent)
    world.abort(nodes=[silent], now=END + 6 * MIN)
    world.reschedule({silent.id: None}, lost, now=END + 6 * MIN)

    settle(END + 7 * MIN)

    assert judged() == (0, "COMPLETED", None)


def test_an_olt_disabled_while_the_engine_is_down_leaves_nothing_pending_in_the_hour_before(world, silent):
    Olt.objects.filter(pk=world.olt_id).update(enabled=False)

    done(world.slots.recover(END + 20 * MIN))
    settle(END + 21 * MIN)

    assert judged() == (0, "COMPLETED", None)


def test_a_claimed_slot_of_an_olt_disabled_while_the_engine_is_down_is_accounted_for(world, silent):
    claim = world.claim(scheduled(silent, slot=T0 + 50 * MIN), now=END + 6 * MIN)
    world.start(claim.execution_ids[0], now=END + 6 * MIN)
    world.disable()

    done(world.slots.recover(END + 20 * MIN))
    settle(END + 21 * MIN)

    pending, status, violation = judged()
    assert (pending, status, violation.report["causes"]) == (0, "FAILED", {"engine_down": 1})
    assert [each["code"] for each in violation.report["advice"]] == ["check_service"]


def test_an_olt_disabled_right_before_the_engine_is_killed_leaves_nothing_pending(world, silent):
    run(world, silent, T0 + 50 * MIN, SILENT, late=16 * MIN)
    other = world.add("Power", interval=HOUR, next_check=T0 + 55 * MIN)
    QuotaTracker.objects.create(
        olt_id=world.olt_id,
        node_id=other.id,
        task_type="Power",
        period_start=T0,
        period_end=END,
        quota_required=1,
        quota_pending=1,
    )
    settle(END + 6 * MIN)
    world.disable()

    settle(END + 30 * MIN)

    assert judged("Power") == (0, "COMPLETED", None)
    assert judged("Names")[:2] == (0, "FAILED")


def test_an_interrupted_hour_with_a_pending_slot_is_looked_at_until_it_has_none(world, silent):
    claim = world.claim(scheduled(silent, slot=T0 + 50 * MIN), now=END + 6 * MIN)
    QuotaTracker.objects.update(status="INTERRUPTED")
    settle(END + 7 * MIN)
    waiting = judged()[0]

    Execution.objects.filter(pk__in=claim.execution_ids).delete()
    settle(END + 48 * HOUR)

    assert (waiting, judged()[:2]) == (1, (0, "INTERRUPTED"))


def test_pending_slots_of_a_large_fleet_keep_no_other_hour_waiting(world, silent, monkeypatch):
    monkeypatch.setattr("facho.store.quotas.AT_ONCE", 1)
    monkeypatch.setattr("facho.store.quotas.BATCH", 1)
    QuotaTracker.objects.create(
        olt_id=world.olt_id, task_type="Old", period_start=T0 - HOUR, period_end=T0, quota_required=1, quota_completed=1
    )

    settle(END + 8 * MIN)

    assert verdict("Old", T0 - HOUR) == "COMPLETED"


def test_the_database_refuses_a_verdict_on_an_hour_with_pending_slots(world, silent):
    with pytest.raises(IntegrityError), transaction.atomic():
        QuotaTracker.objects.update(status="FAILED")


@pytest.mark.parametrize(
    ("minutes", "severity"),
    [
        pytest.param(None, "HIGH", id="none"),
        pytest.param(15, "LOW", id="during the first of them"),
        pytest.param(60, None, id="during both"),
    ],
)
def test_failures_in_a_maintenance_are_excused(world, discovery, minutes, severity):
    if minutes is not None:
        world.maintain(T0, T0 + minutes * MIN, polling=True)

    hour_of_runs(world, discovery, SILENT, SILENT, SUCCESS, SUCCESS)
    settle(END + 6 * MIN)

    row = QuotaTracker.objects.get(period_start=T0)
    assert (row.quota_required, row.quota_completed, row.quota_failed) == (4, 2, 2)
    assert list(QuotaViolation.objects.values_list("severity", flat=True)) == [each for each in [severity] if each]


def test_slots_skipped_in_a_maintenance_are_excused_and_the_rest_is_judged(world, discovery):
    run(world, discovery, T0, SUCCESS)
    lost = Skipped(discovery, T0 + 15 * MIN, 2, Cause.MAINTENANCE)
    world.reschedule({discovery.id: T0 + 45 * MIN}, lost, now=T0 + 45 * MIN)
    run(world, discovery, T0 + 45 * MIN, SUCCESS)
    settle(END + 6 * MIN)

    row = QuotaTracker.objects.get(period_start=T0)
    assert (row.quota_required, row.quota_completed, row.quota_skipped) == (4, 2, 2)
    assert (row.causes, row.status) == ({"maintenance": 2}, "COMPLETED")
    assert not QuotaViolation.objects.exists()
