"""A worker that cannot reach the database is given nothing, and what nobody could begin does not count as a failure."""

import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from line import Line

from stack import Fleet, Stack, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

JOBS = {
    "Optical power": {"kind": "get", "columns": ["rx_dbm"], "interval_seconds": 10, "retries": 0},
    "State": {"kind": "table", "columns": ["state"], "follows": "Optical power", "retries": 0},
    "Discovery": {"kind": "discovery", "interval_seconds": 30, "priority": 90, "retries": 0},
}
# Longer than a lease is trusted.
AWAY = 14.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """A scheduler and two workers; the line of the second one to PostgreSQL can be cut."""
    folder = tmp_path_factory.mktemp("cut-off")
    with (
        Fleet(folder, olts=4, onus=60) as fleet,
        Stack(folder, fleet, JOBS, FACHO_LEASE_SECONDS="10") as stack,
    ):
        stack.line = Line(stack.postgres.url)
        stack.worker("worker-1", 3)
        stack.worker("worker-2", 3, DATABASE_URL=stack.line.url)
        stack.scheduler("scheduler-1")
        stack.await_ready()
        try:
            yield stack
        finally:
            stack.line.close()


def told(stack, event, since):
    question = "SELECT 1 FROM coordinator_logs WHERE event_type = %s AND timestamp > %s"
    return stack.database.rows(question, event, since)


def runs_of(stack, worker, since):
    """Return what a worker has begun, by the numbers that its pollers have."""
    question = (
        "SELECT e.id FROM snmp_executions e JOIN pollers p ON p.poller_id = e.poller_id"
        " WHERE p.worker LIKE %s AND e.started_at > %s"
    )
    return stack.database.rows(question, f"{worker}/%", since)


def ended(stack):
    """Return how runs on OLTs that answer ended, and how many of them in each way."""
    question = (
        "SELECT e.status || ' ' || e.cause AS ending FROM snmp_executions e JOIN olts o ON o.id = e.olt_id"
        " WHERE o.name <> 'OLT-SUR-03'"
    )
    return Counter(row["ending"] for row in stack.database.rows(question))


def failed(stack):
    """Return the causes of failed runs, except runs that could not read the known ONUs at their start."""
    question = (
        "SELECT DISTINCT e.cause FROM snmp_executions e JOIN olts o ON o.id = e.olt_id"
        " WHERE o.name <> 'OLT-SUR-03' AND e.status = 'FAILED'"
        " AND NOT (e.cause = 'database_unavailable' AND e.pdus = 0)"
    )
    return {row["cause"] for row in stack.database.rows(question)}


def test_a_worker_whose_packets_get_lost_is_given_nothing_until_they_arrive(stack):
    begin = datetime.now(UTC)
    wait_for(lambda: runs_of(stack, "worker-2", begin), "the second worker is at work", 120)
    stack.line.cut()

    wait_for(lambda: told(stack, "WORKER_CUT_OFF", begin), "the scheduler has noticed", 30)
    noticed, silent = datetime.now(UTC), stack.roles["worker-2"].log.stat().st_size
    wait_for(lambda: len(runs_of(stack, "worker-1", noticed)) > 8, "the first worker goes on", 120)
    taken = stack.roles["worker-2"].said(silent).count("is waiting for the database")
    stack.line.mend()
    wait_for(lambda: told(stack, "WORKER_BACK", noticed), "it is back", 120)
    back = datetime.now(UTC)

    wait_for(lambda: runs_of(stack, "worker-2", back), "the second worker is at work again", 120)
    # It may have asked for one message before it knew.
    assert taken <= 1
    assert failed(stack) == set(), ended(stack)


def test_what_could_not_begin_while_the_database_was_unavailable_has_not_failed(stack):
    for seconds in (2.0, AWAY):
        begin = datetime.now(UTC)
        wait_for(lambda begin=begin: runs_of(stack, "worker-1", begin), "the first worker is at work", 120)
        stack.postgres.stop()
        time.sleep(seconds)
        stack.postgres.start()
        back = datetime.now(UTC)
        wait_for(lambda back=back: runs_of(stack, "worker-1", back), "runs begin again", 120)

    assert failed(stack) == set(), ended(stack)
