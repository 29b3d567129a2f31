"""What executions leave in the tables that people look at, beyond what the engine needs."""

from dataclasses import replace

import pytest
from builders import SEC, T0
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.worlds import DEVICE, PRESENT, DbWorld, done, scheduled
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import Execution, ExecutionAttempt, Lease
from facho.engine.model import Cause, Collected, Completeness, Coverage, Outcome, Status, Traffic
from facho.engine.quota.durations import expected
from facho.store import leases

pytestmark = pytest.mark.django_db

TRAFFIC = Traffic(
    pdus=12, retransmissions=2, varbinds=480, bytes_sent=1000, bytes_received=9000, rtt_p50=0.02, rtt_p95=0.4
)


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


@pytest.fixture
def running(world, power):
    """The id of an execution that has begun on OLT-CENTRAL-01."""
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_, now=T0 + 1 * SEC)
    return id_


def central():
    return Olt.objects.get()


def test_an_execution_keeps_what_it_read_and_what_it_cost(world, running):
    error = "port 0/1 was cut\nport 0/2 was cut"
    outcome = Outcome(Status.PARTIAL, None, error, "", 1200, Completeness.PARTIAL, TRAFFIC)

    world.close([running], outcome, now=T0 + 33 * SEC)

    row = Execution.objects.get(pk=running)
    assert (row.status, row.error, row.readings, row.completeness) == ("PARTIAL", error, 1200, "PARTIAL")
    assert (row.pdus, row.retransmissions, row.varbinds) == (12, 2, 480)
    assert (row.bytes_sent, row.bytes_received, row.rtt_p50, row.rtt_p95) == (1000, 9000, 0.02, 0.4)
    assert (row.lateness, row.duration, row.node_name) == (1.0, 32.0, "Optical power")


def test_an_execution_keeps_how_it_asked_and_what_it_covered(world, running):
    traffic = replace(TRAFFIC, rtt_p99=0.9, peak_in_flight=3, sizes={"onus": 20})
    coverage = (Coverage("rx_dbm", 0, 1, Completeness.PARTIAL, 12, "no answer"),)

    collected = Collected(Completeness.PARTIAL, coverage=coverage, failed_onus=("ONU 0/1/7",))
    world.close([running], Outcome(Status.PARTIAL, traffic=traffic), collected=collected)

    row = Execution.objects.get(pk=running)
    assert (row.rtt_p99, row.peak_in_flight, row.sizes) == (0.9, 3, {"onus": 20})
    assert row.coverage["failed"] == [{"field": "rx_dbm", "slot": 0, "port": 1, "reason": "no answer"}]
    assert row.failed_onus == ["ONU 0/1/7"]


def test_each_start_is_an_attempt_that_ends_with_its_execution(world, running):
    assert list(ExecutionAttempt.objects.values_list("number", "status", "ended_at")) == [(1, "RUNNING", None)]

    world.close([running], Outcome(Status.FAILED, None, "refused", "Refused", traffic=TRAFFIC), now=T0 + 9 * SEC)

    (attempt,) = ExecutionAttempt.objects.all()
    assert (attempt.status, attempt.error, attempt.error_class) == ("FAILED", "refused", "Refused")
    assert (attempt.started_at, attempt.ended_at, attempt.pdus) == (T0 + 1 * SEC, T0 + 9 * SEC, 12)


def test_recovering_ends_attempts_too(world, running):
    done(world.slots.recover(T0 + 9 * SEC))

    assert list(ExecutionAttempt.objects.values_list("status", "ended_at")) == [("INTERRUPTED", T0 + 9 * SEC)]


def test_taking_over_from_an_older_holder_ends_its_attempt(world, power, running):
    names = world.add("Names", next_check=T0)
    (id_,) = world.claim(scheduled(names)).execution_ids

    world.start(id_, token=10**18, now=T0 + 9 * SEC)

    assert set(ExecutionAttempt.objects.values_list("execution", "status")) == {
        (running, "INTERRUPTED"),
        (id_, "RUNNING"),
    }


def test_a_start_notes_when_each_node_last_ran_its_chain_included(world, power):
    link = world.add("Traffic", master_id=power.id)
    ids = world.claim(scheduled(power, link)).execution_ids

    world.start(ids[0], now=T0 + 2 * SEC)
    world.close(ids[:1], Outcome(Status.SUCCESS))
    world.start(ids[1], now=T0 + 9 * SEC)

    assert [node.last_run_at for node in WorkflowNode.objects.order_by("pk")] == [T0 + 2 * SEC, T0 + 9 * SEC]


def test_a_claim_that_was_never_begun_is_no_run(world, power):
    world.claim(scheduled(power))

    assert WorkflowNode.objects.get().last_run_at is None


@pytest.mark.parametrize(
    ("outcome", "reachability", "answered"),
    [
        pytest.param(Outcome(Status.SUCCESS, traffic=TRAFFIC), "reachable", True, id="success"),
        pytest.param(Outcome(Status.PARTIAL, error="cut", traffic=TRAFFIC), "reachable", True, id="partial"),
        pytest.param(
            Outcome(Status.SUCCESS, traffic=replace(TRAFFIC, rtt_p95=2.5)), "slow", True, id="answers that take long"
        ),
        pytest.param(Outcome(Status.SUCCESS), "unknown", False, id="a run that had nothing to ask"),
        pytest.param(Outcome(Status.FAILED, Cause.UNREACHABLE, "mute"), "unreachable", False, id="silence"),
        pytest.param(Outcome(Status.FAILED, None, "refused"), "unknown", False, id="a failure says nothing of it"),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED), "unknown", False, id="nor does being stopped"),
    ],
)
def test_an_outcome_tells_how_the_olt_is(world, running, outcome, reachability, answered):
    world.close([running], outcome, now=T0 + 9 * SEC)

    olt = central()
    assert olt.reachability == reachability
    assert olt.last_error == outcome.error
    assert olt.last_answer_at == (T0 + 9 * SEC if answered else None)


def test_being_stopped_does_not_hide_why_an_olt_is_unreachable(world, running):
    Olt.objects.update(reachability="unreachable", last_error="no answer in 20 s")

    world.close([running], Outcome(Status.INTERRUPTED, Cause.STOPPED))

    assert (central().reachability, central().last_error) == ("unreachable", "no answer in 20 s")


def test_an_olt_that_answers_again_is_reachable_and_its_error_is_over(world, running):
    Olt.objects.update(reachability="unreachable", last_error="no answer in 20 s")

    world.close([running], Outcome(Status.SUCCESS, traffic=TRAFFIC))

    assert (central().reachability, central().last_error) == ("reachable", "")


def test_links_that_never_began_say_nothing_of_the_olt(world, power):
    ids = world.claim(scheduled(power)).execution_ids

    world.close(ids, Outcome(Status.SKIPPED, Cause.UNREACHABLE, "mute"))

    assert (central().reachability, central().last_error) == ("unknown", "")


def test_an_end_by_an_older_holder_says_nothing_of_the_olt(world, running):
    world.close([running], Outcome(Status.FAILED, Cause.UNREACHABLE, "mute"), token=1)

    assert central().reachability == "unknown"
    assert ExecutionAttempt.objects.get().status == "RUNNING"


def test_an_error_no_text_column_holds_does_not_leave_the_execution_open(world, running):
    world.close([running], Outcome(Status.FAILED, None, "bad \0 byte", "E" * 80))

    row = Execution.objects.get(pk=running)
    assert (row.status, row.error, row.error_class) == ("FAILED", "bad  byte", "E" * 60)


def test_a_history_outlives_its_node(world, power, running):
    world.delete(power)

    row = Execution.objects.get(pk=running)
    assert (row.node_id, row.node_name) == (None, "Optical power")


def durations():
    return WorkflowNode.objects.get().durations


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.PARTIAL])
def test_a_node_learns_how_long_it_took(world, running, status):
    world.close([running], Outcome(status, traffic=TRAFFIC), now=T0 + 13 * SEC)

    assert expected(durations(), T0).mean == 12.0


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(Outcome(Status.FAILED, Cause.UNREACHABLE, traffic=TRAFFIC), id="a failure"),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED, traffic=TRAFFIC), id="a run that was stopped"),
        pytest.param(Outcome(Status.SUCCESS), id="a run that had nothing to ask"),
    ],
)
def test_what_took_no_typical_time_is_not_learned_from(world, running, outcome):
    world.close([running], outcome, now=T0 + 13 * SEC)

    assert durations() == {}


def test_a_node_learns_from_the_attempt_that_succeeded(world, power):
    claim = world.claim(scheduled(power))
    (id_,) = claim.execution_ids
    world.start(id_, now=T0)
    world.put_off([id_], Outcome(Status.FAILED), retry_at=T0 + 120 * SEC, now=T0 + 15 * SEC)
    world.reclaim(claim)
    world.start(id_, token=10**18, now=T0 + 120 * SEC)

    world.close([id_], Outcome(Status.SUCCESS, traffic=TRAFFIC), token=10**18, now=T0 + 127 * SEC)

    assert expected(durations(), T0).mean == 7.0


def test_an_attempt_that_is_put_off_keeps_its_error_for_people_to_see(world, running):
    outcome = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer \0", "OltUnreachable", traffic=TRAFFIC)

    world.put_off([running], outcome, retry_at=T0 + 120 * SEC, now=T0 + 9 * SEC)

    row, attempt = Execution.objects.get(pk=running), ExecutionAttempt.objects.get()
    assert (row.status, row.error, row.error_class) == ("PENDING", "no answer ", "OltUnreachable")
    assert (attempt.status, attempt.error_class, attempt.pdus) == ("FAILED", "OltUnreachable", 12)


def test_an_error_of_an_attempt_is_over_when_a_later_one_succeeds(world, power):
    claim = world.claim(scheduled(power))
    (id_,) = claim.execution_ids
    world.start(id_, now=T0)
    world.put_off([id_], Outcome(Status.FAILED, error="cut", error_class="BadAnswer"), retry_at=T0, now=T0)
    world.reclaim(claim)
    world.start(id_, token=10**18, now=T0)

    world.close([id_], Outcome(Status.SUCCESS, traffic=TRAFFIC), token=10**18)

    row = Execution.objects.get(pk=id_)
    assert (row.error, row.error_class, row.retry_at) == ("", "", None)


def begun(world, node, number):
    """Return an execution of the slot with this number."""
    slot = T0 + number * node.interval
    (id_,) = world.claim(scheduled(node, slot=slot)).execution_ids
    world.start(id_, now=T0)
    return id_


def test_a_node_counts_the_runs_in_which_a_column_had_no_value(world, power):
    counts = []
    for number, had in enumerate([False, False, None, False, True]):
        collected = Collected(Completeness.COMPLETE, had_values={"rx_dbm": had, "name": True})
        outcome = Outcome(Status.SUCCESS, traffic=TRAFFIC)
        world.close([begun(world, power, number)], outcome, now=T0, collected=collected)
        counts.append(WorkflowNode.objects.get(pk=power.id).blank_runs)

    assert counts == [{"rx_dbm": 1}, {"rx_dbm": 2}, {"rx_dbm": 2}, {"rx_dbm": 3}, {}]


def test_counting_runs_without_a_value_costs_no_query(world, power):
    costs = []
    for number, had_values in enumerate([{}, {}, {"rx_dbm": True}, {"rx_dbm": False}, {"rx_dbm": False}]):
        id_ = begun(world, power, number)
        with CaptureQueriesContext(connection) as queries:
            collected = Collected(Completeness.COMPLETE, had_values=had_values)
            world.close([id_], Outcome(Status.SUCCESS, traffic=TRAFFIC), now=T0, collected=collected)
        costs.append(len(queries))

    # The first end of an hour costs more than the others.
    assert len(set(costs[1:])) == 1


def test_disabling_an_olt_revokes_its_lease_and_not_that_of_another_olt_with_the_same_device(world, running):
    twin = world.add_olt("OLT-CENTRAL-TWIN", host="127.0.0.1")
    Lease.objects.create(key=leases.key_of(DEVICE), holder="noc/3", token=PRESENT, expires_at=leases.NEVER)

    world.abort(olts=[twin])
    after_the_twin = Lease.objects.get().revoked
    world.abort(olts=[world.olt_id])

    assert (after_the_twin, Lease.objects.get().revoked) == (False, True)


def test_an_execution_says_at_which_device_it_ran(running):
    assert Execution.objects.get(pk=running).device == DEVICE
