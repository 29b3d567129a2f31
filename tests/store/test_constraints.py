"""Constraints of the database, behind the rules of the engine."""

import pytest
from builders import HOUR, MIN, T0
from django.db import IntegrityError, transaction

from contracts.worlds import DbWorld
from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.telemetry.models import Onu

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


def execution(node, slot=T0, **more):
    values = {"olt_id": node.olt_id, "node_id": node.id, "node_name": node.name, "slot": slot} | more
    return Execution.objects.create(**values)


def refused(constraint):
    """Expect that this constraint, and no other, stops what is done inside."""
    return pytest.raises(IntegrityError, match=constraint)


def test_a_node_has_one_execution_for_a_slot(power):
    execution(power)
    execution(power, T0 + 5 * MIN)

    with refused(r"one_execution_per_slot|snmp_executions\.node_id, snmp_executions\.slot"), transaction.atomic():
        execution(power, status="SKIPPED")


def test_history_of_deleted_nodes_may_share_a_slot(power):
    for _ in range(2):
        execution(power, node_id=None)

    assert Execution.objects.filter(node=None, slot=T0).count() == 2


def test_an_olt_has_one_running_execution(world, power):
    names = world.add("Names", next_check=T0)
    execution(power, status="RUNNING", started_at=T0)

    with refused(r"one_running_execution_per_olt|snmp_executions\.olt_id"), transaction.atomic():
        execution(names, status="RUNNING", started_at=T0)


def test_two_olts_may_run_at_once(world, power):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="huawei", host="127.0.0.2", community="public")
    names = world.add("Names", olt_id=other.pk, next_check=T0)
    for node in (power, names):
        execution(node, status="RUNNING", started_at=T0)

    assert Execution.objects.filter(status="RUNNING").count() == 2


def test_what_runs_has_begun(power):
    with refused("a_running_execution_has_started"), transaction.atomic():
        execution(power, status="RUNNING")


def test_a_chained_node_has_no_schedule(world, power):
    names = world.add("Names", master_id=power.id)

    with refused("chained_node_has_no_schedule"), transaction.atomic():
        WorkflowNode.objects.filter(pk=names.id).update(next_run_at=T0)


def test_a_node_is_not_its_own_master(power):
    WorkflowNode.objects.filter(pk=power.id).update(next_run_at=None)

    with refused("node_not_its_own_master"), transaction.atomic():
        WorkflowNode.objects.filter(pk=power.id).update(master=power.id)


def test_a_job_is_on_an_olt_once(power):
    row = WorkflowNode.objects.get(pk=power.id)

    with refused(r"job_once_per_olt|snmp_job_hosts\.olt_id"), transaction.atomic():
        WorkflowNode.objects.create(olt=row.olt, job=row.job)


@pytest.mark.parametrize("seconds", [0, 9])
def test_no_interval_is_shorter_than_ten_seconds(power, seconds):
    with refused("node_interval_positive"), transaction.atomic():
        WorkflowNode.objects.filter(pk=power.id).update(own_interval_seconds=seconds)
    with refused("job_interval_positive"), transaction.atomic():
        SnmpJob.objects.update(interval_seconds=seconds)


def test_a_job_does_not_follow_itself(power):
    job = SnmpJob.objects.get()

    with refused("job_not_its_own_chain"), transaction.atomic():
        SnmpJob.objects.filter(pk=job.pk).update(follows=job)


@pytest.mark.parametrize("port", [0, 65536])
def test_a_port_is_a_port(world, port):
    with refused("olt_port_range"), transaction.atomic():
        Olt.objects.update(port=port)


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param({"quota_completed": 11}, id="one is missing"),
        pytest.param({"quota_completed": 12, "quota_pending": 1}, id="one is too many"),
    ],
)
def test_a_quota_that_does_not_balance_is_refused(world, counts):
    with refused("quota_balances"), transaction.atomic():
        quota(world, **counts)


def test_a_quota_that_balances_is_kept(world):
    quota(world, quota_completed=7, quota_failed=2, quota_skipped=2, quota_pending=1)

    with refused("quota_balances"), transaction.atomic():
        QuotaTracker.objects.update(quota_completed=8)


def quota(world, **counts):
    return QuotaTracker.objects.create(
        olt_id=world.olt_id,
        task_type="Optical power",
        period_start=T0,
        period_end=T0 + HOUR,
        quota_required=12,
        **counts,
    )


def test_an_onu_is_on_an_olt_once(world):
    Onu.objects.create(olt_id=world.olt_id, index="1.7", first_seen_at=T0, own_read_at=T0)

    with refused(r"onu_holds_index_alone|onu_data\.olt_id"), transaction.atomic():
        Onu.objects.create(olt_id=world.olt_id, index="1.7", first_seen_at=T0, own_read_at=T0)


def test_an_attempt_is_counted_once(power):
    run = execution(power)
    ExecutionAttempt.objects.create(execution=run, number=1, status="RUNNING", started_at=T0)

    with refused(r"attempt_once|execution_attempts\.execution_id"), transaction.atomic():
        ExecutionAttempt.objects.create(execution=run, number=1, status="RUNNING", started_at=T0)
