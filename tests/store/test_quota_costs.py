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
from facho.engine.quota.quota import HOUR
from facho.store.quotas import open_hour, settle

pytestmark = pytest.mark.django_db

SUCCESS = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02))


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


def test_a_fleet_takes_few_statements_when_an_hour_begins(world, power):
    jobs = [SnmpJob.objects.create(name=f"Job {n}", brand="huawei", kind="table", columns=["rx_dbm"]) for n in range(3)]
    olts = [Olt.objects.create(name=f"OLT-{n:02}", brand="huawei", host=f"10.0.0.{n}") for n in range(20)]
    for job in jobs:
        job.apply_to(olts)
    WorkflowNode.objects.update(next_run_at=T0)

    with CaptureQueriesContext(connection) as queries:
        open_hour(T0)

    assert QuotaTracker.objects.count() == 61
    # What there is and what is open are looked at once more, with the new rows locked.
    assert len([each for each in queries if each["sql"].startswith("SELECT")]) == 7


def test_a_close_is_a_handful_of_statements(world, power):
    open_hour(T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)

    with CaptureQueriesContext(connection) as queries:
        world.close([id_], SUCCESS)

    statements = [each["sql"] for each in queries if each["sql"].split()[0] in ("SELECT", "INSERT", "UPDATE")]
    assert len(statements) == 10
    assert Execution.objects.get(pk=id_).status == "SUCCESS"


def test_hours_are_judged_without_reading_all_hours_that_there_were(world, power):
    open_hour(T0)

    with CaptureQueriesContext(connection) as queries:
        settle(T0 + 2 * HOUR)

    asked = [each["sql"] for each in queries if each["sql"].startswith("SELECT") and "quota_tracker" in each["sql"]]
    assert asked
    assert [each for each in asked if reads_whole_table(each, "quota_tracker")] == []


def reads_whole_table(statement, table):
    """Return whether no index helps a database to find what is asked for."""
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        if not is_sqlite:
            # However small the table is.
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{statement}")
        plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
    return f"{'SCAN' if is_sqlite else 'Seq Scan on'} {table}" in plan
