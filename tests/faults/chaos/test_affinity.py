"""An OLT is polled by the same worker each time, and by another one as soon as that worker is gone."""

from datetime import UTC, datetime

import pytest

from stack import Fleet, Stack, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

JOBS = {"State": {"kind": "table", "columns": ["state"], "interval_seconds": 10, "retries": 0}}
OLTS = 8
# Of each OLT that answers: `OLT-SUR-03` never does.
RUNS = 3


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("affinity")
    with Fleet(folder, olts=OLTS, onus=40) as fleet, Stack(folder, fleet, JOBS, FACHO_LEASE_SECONDS="10") as stack:
        stack.worker("worker-1", 8)
        stack.worker("worker-2", 8)
        stack.scheduler("scheduler-1")
        stack.await_ready()
        yield stack


def workers_by_olt(stack, since):
    """Return which workers stored runs of each OLT that began since, the runs in order."""
    question = (
        "SELECT o.name, p.worker FROM snmp_executions e JOIN olts o ON o.id = e.olt_id"
        " JOIN pollers p ON p.poller_id = e.poller_id WHERE e.status = 'SUCCESS' AND e.started_at > %s ORDER BY e.id"
    )
    found = {}
    for row in stack.database.rows(question, since):
        found.setdefault(row["name"], []).append(row["worker"].partition("/")[0])
    return found


def all_polled(stack, since, runs):
    found = workers_by_olt(stack, since)
    return found if len(found) == OLTS - 1 and all(len(each) >= runs for each in found.values()) else None


def test_each_olt_has_its_worker_until_that_is_killed(stack):
    wait_for(lambda: all_polled(stack, datetime.min.replace(tzinfo=UTC), 1), "each OLT was polled", 120)
    # From here on the scheduler knows both workers.
    start = datetime.now(UTC)
    before = wait_for(lambda: all_polled(stack, start, RUNS), "each OLT was polled some times", 240)

    stack.roles["worker-1"].kill()
    killed = datetime.now(UTC)
    after = wait_for(lambda: all_polled(stack, killed, 1), "each OLT was polled again", 120)

    assert {olt: len(set(workers)) for olt, workers in before.items()} == dict.fromkeys(before, 1)
    assert {workers[0] for workers in before.values()} == {"worker-1", "worker-2"}
    assert {worker for workers in after.values() for worker in workers} == {"worker-2"}
