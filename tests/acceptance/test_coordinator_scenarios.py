"""What the coordinator was asked for: the scenarios of a task, an hour and an OLT, and every slot accounted for."""

from datetime import timedelta

import pytest
from builders import MIN, SEC
from coordinator_world import HOUR, START, Coordinator, add_node, add_olt, balance, told, violations
from django.db import connection

from facho.apps.coordinator.models import ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt

pytestmark = pytest.mark.django_db

# Seconds between two ticks where hours are told of in which no second matters: in most of them nothing is due.
COARSE = 5.0


@pytest.fixture
def world(db):
    coordinator = Coordinator()
    yield coordinator
    coordinator.close()


def quota(olt: Olt, task: str, hour=START) -> QuotaTracker:
    return QuotaTracker.objects.get(olt=olt, task_type=task, period_start=hour)


def test_scenario_1_a_task_is_disabled(world):
    olt = add_olt()
    names = add_node(olt, "Names", interval=30 * MIN)
    power = add_node(olt, "Optical power", interval=30 * MIN)

    world.silent.add(olt.pk)
    world.run_for(3 * MIN)
    waiting = Execution.objects.filter(node=names, status="PENDING").count()
    before = quota(olt, "Names")
    names.job.enabled = False
    names.job.save()
    world.run_for(1 * SEC)
    queued = [waiting.composite.id for waiting in world.manager.queue]
    left = quota(olt, "Names")
    world.run_for(20 * MIN)

    assert waiting == 1
    assert (before.quota_required, before.quota_pending) == (2, 2)
    assert names.pk not in queued
    ended = Execution.objects.get(node=names)
    assert (ended.status, ended.cause) == ("INTERRUPTED", "disabled")
    assert (left.quota_required, left.quota_failed, left.quota_pending) == (1, 1, 0)
    assert left.status == QuotaTracker.Status.INTERRUPTED
    assert told("TASK_REMOVED") == ["OLT-CENTRAL-01: polling of Names stopped"]
    assert told("EXECUTIONS_ABORTED")
    # The other task of the OLT goes on, with a plan of its own.
    assert Execution.objects.filter(node=power).exists()
    assert ExecutionPlan.objects.filter(olt=olt, status="SUPERSEDED").exists()
    active = ExecutionPlan.objects.get(olt=olt, status="ACTIVE")
    assert {slot["task"] for slot in active.plan_data} == {"Optical power"}
    assert balance() == []


def test_scenario_2_a_quota_is_not_met(world):
    world.tick = COARSE
    olt = add_olt()
    add_node(olt, "Discovery", interval=15 * MIN, kind="discovery", retries=0)

    world.run_for(HOUR)
    # Two of the four slots of the second hour fail.
    world.silent.add(olt.pk)
    world.run_for(31 * MIN)
    world.silent.clear()
    world.run_for(34 * MIN)

    second = quota(olt, "Discovery", START + HOUR)
    assert (second.quota_required, second.quota_completed, second.quota_failed) == (4, 2, 2)
    assert second.status == QuotaTracker.Status.QUOTA_NOT_MET
    assert violations() == [("OLT-CENTRAL-01", "Discovery", "HIGH")]
    violation = QuotaViolation.objects.get()
    assert (violation.report["completed"], violation.report["required"]) == (2, 4)
    assert violation.report["causes"] == {"unreachable": 2}
    assert len(told("QUOTA_VIOLATED")) == 1
    assert balance() == []


def test_scenario_3_an_olt_is_disabled_and_enabled_again(world):
    olt = add_olt()
    nodes = [add_node(olt, name) for name in ("Discovery", "Names", "Optical power")]

    world.seconds = 100.0
    world.run_for(130 * SEC)
    busy = [poller.is_free for poller in world.manager.pollers].count(False)
    olt.disable()
    world.run_for(2 * SEC)
    after = (
        [poller.is_free for poller in world.manager.pollers].count(False),
        len(world.manager.queue),
        dict(world.runner._leases._held),
        set(QuotaTracker.objects.values_list("status", flat=True)),
        set(Execution.objects.exclude(status="SKIPPED").values_list("status", "cause")),
        Execution.objects.filter(status__in=["PENDING", "RUNNING"]).count(),
    )
    world.seconds = 1.0
    world.run_for(10 * MIN)
    quiet = Execution.objects.count()
    olt.enable()
    enabled_at = world.now
    world.run_for(3 * MIN)
    first = [row.slot - enabled_at for row in Execution.objects.filter(slot__gt=enabled_at).order_by("slot")]

    assert busy == 1
    assert after == (0, 0, {}, {"INTERRUPTED"}, {("INTERRUPTED", "disabled")}, 0)
    assert quiet == Execution.objects.exclude(slot__gt=START + 12 * MIN).count()
    assert len(first) == len(nodes)
    assert all(60 * SEC <= wait <= 121 * SEC for wait in first)
    assert set(QuotaTracker.objects.values_list("status", flat=True)) == {"IN_PROGRESS"}
    assert told("OLT_DISABLED") == ["OLT-CENTRAL-01: polling stopped"]
    assert len(told("OLT_ENABLED")) == 1
    assert balance() == []


def test_rows_that_anybody_else_changed_are_followed_within_five_seconds(world):
    olt = add_olt()
    node = add_node(olt, "Optical power")

    world.run_for(3 * MIN)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE snmp_jobs SET interval_seconds = 60")
    world.run_for(5 * SEC)

    due_in = WorkflowNode.objects.get(pk=node.pk).next_run_at - world.now
    assert told("TASK_INTERVAL_CHANGED") == ["OLT-CENTRAL-01: the interval of Optical power changed from 300 s to 60 s"]
    assert due_in <= 60 * SEC


def test_a_new_interval_counts_for_the_rest_of_the_hour(world):
    world.tick = COARSE
    olt = add_olt()
    node = add_node(olt, "Optical power", interval=10 * MIN)

    world.run_for(30 * MIN)
    before = quota(olt, "Optical power").quota_required
    node.job.interval_seconds = 300
    node.job.save()
    world.run_for(36 * MIN)

    after = quota(olt, "Optical power")
    assert before == 6
    assert after.quota_required == after.quota_completed == 3 + 6
    assert after.status == QuotaTracker.Status.COMPLETED


def test_a_deleted_task_owes_nothing_at_once(world):
    olt = add_olt()
    node = add_node(olt, "Optical power", interval=1 * MIN)

    world.run_for(20 * MIN + 30 * SEC)
    node.job.delete()
    world.tick_once()

    row = quota(olt, "Optical power")
    assert (row.status, row.quota_pending) == (QuotaTracker.Status.INTERRUPTED, 0)
    assert row.quota_required == row.quota_completed > 0


def test_a_longer_interval_is_owed_less_at_once(world):
    olt = add_olt()
    node = add_node(olt, "Optical power", interval=1 * MIN)

    world.run_for(20 * MIN + 30 * SEC)
    node.job.interval_seconds = 600
    node.job.save()
    world.tick_once()

    row = quota(olt, "Optical power")
    assert row.quota_pending == 4
    assert row.quota_required == row.quota_completed + 4


def test_a_silent_olt_is_critical_within_the_hour_and_its_attempts_are_rows(world):
    world.tick = COARSE
    olt = add_olt("OLT-SUR-03")
    add_node(olt, "Optical power")

    world.silent.add(olt.pk)
    world.run_for(66 * MIN)

    row = quota(olt, "Optical power")
    assert (row.quota_required, row.quota_completed, row.quota_failed) == (12, 0, 1)
    assert row.causes == {"unreachable": 1, "breaker_open": 11}
    assert row.status == QuotaTracker.Status.FAILED
    assert violations() == [("OLT-SUR-03", "Optical power", "CRITICAL")]
    attempts = ExecutionAttempt.objects.filter(execution__status="FAILED")
    assert attempts.count() == 3
    assert set(attempts.values_list("status", "error_class")) == {("FAILED", "OltUnreachable")}
    assert Olt.objects.get().enabled
    assert Olt.objects.get().breaker_opened_at is not None
    assert told("BREAKER_OPENED") == [
        "OLT-SUR-03 did not answer 3 attempts in a row: breaker opened, probing once a minute"
    ]


def test_an_engine_that_was_down_shows_in_every_hour_it_missed(world):
    world.tick = COARSE
    olt = add_olt()
    add_node(olt, "Optical power")

    world.run_for(30 * MIN)
    world.killed_for(3 * HOUR)
    world.run_for(HOUR)

    rows = QuotaTracker.objects.order_by("period_start")[:4]
    assert [row.quota_required for row in rows] == [12, 12, 12, 12]
    assert [row.causes.get("engine_down", 0) for row in rows] == [6, 12, 12, 6]
    assert [row.quota_pending for row in rows] == [0, 0, 0, 0]
    assert [severity for *_, severity in violations()] == ["HIGH", "CRITICAL", "CRITICAL", "HIGH"]
    assert balance() == []


@pytest.mark.long
def test_seven_healthy_days_give_no_violation(world):
    world.tick, world.chores_every = 600.0, 30 * MIN
    olt = add_olt()
    add_node(olt, "Discovery", interval=60 * MIN, kind="discovery")
    add_node(olt, "Optical power", interval=30 * MIN)

    world.run_for(timedelta(days=7))

    assert violations() == []
    judged = QuotaTracker.objects.filter(period_start__lt=START + timedelta(days=7) - HOUR)
    assert set(judged.values_list("status", flat=True)) == {"COMPLETED"}
    assert judged.count() == 2 * (7 * 24 - 1)
    full = judged.filter(task_type="Optical power", period_start__gt=START)
    assert set(full.values_list("quota_required", "quota_completed")) == {(2, 2)}
    assert ExecutionPlan.objects.filter(status="COMPLETED").count() >= 7 * 24 - 2
