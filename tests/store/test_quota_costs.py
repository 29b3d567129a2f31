"""How many statements the quotas cost: when an hour begins for a fleet, and when an execution ends."""

import pytest
from builders import T0
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.worlds import DbWorld, scheduled
from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.engine.model import Outcome, Status, Traffic
from facho.store.quotas import open_hour

pytestmark = pytest.mark.django_db

SUCCESS = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02))


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


def test_a_fleet_takes_few_statements_when_an_hour_begins(world, power):
    jobs = [SnmpJob.objects.create(name=f"Job {n}", brand="huawei", kind="table") for n in range(3)]
    olts = [Olt.objects.create(name=f"OLT-{n:02}", brand="huawei", host=f"10.0.0.{n}") for n in range(20)]
    for job in jobs:
        job.apply_to(olts)
    WorkflowNode.objects.update(next_run_at=T0)

    with CaptureQueriesContext(connection) as queries:
        open_hour(T0)

    assert QuotaTracker.objects.count() == 61
    assert len([each for each in queries if each["sql"].startswith("SELECT")]) == 4


def test_a_close_is_a_handful_of_statements(world, power):
    open_hour(T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)

    with CaptureQueriesContext(connection) as queries:
        world.close([id_], SUCCESS)

    statements = [each["sql"] for each in queries if each["sql"].split()[0] in ("SELECT", "INSERT", "UPDATE")]
    assert len(statements) == 9
    assert Execution.objects.get(pk=id_).status == "SUCCESS"
