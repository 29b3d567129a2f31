"""Metrics as an observer: each hook moves its series, and SNMP requests and leases report to it."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from builders import T0, make_node
from metrics_stage import Counts

from facho.adapters.snmp.client import SnmpByVersion
from facho.engine import oid
from facho.engine.errors import BadAnswer, LeaseLost, NoAnswer, OltBusy, Refused
from facho.engine.model import Cause, Collected, Completeness, Lease, Olt, Outcome, RunResult, Status, Traffic
from facho.engine.scheduling.leased_snmp import hold
from facho.engine.snmp import Agent, Answer, Community, ErrorStatus, Tag, Version

AGENT = Agent("127.0.0.1", 161, Version.V2C, Community("public"))
OLT = Olt(7, "OLT-CENTRAL-01", "huawei", AGENT)
UP_TIME = oid.parse("1.3.6.1.2.1.1.3.0")
ANSWER = Answer(0, 0, [UP_TIME, UP_TIME], [1, 2], bytes([Tag.TIME_TICKS] * 2), bytes_sent=60, bytes_received=90)


@pytest.fixture
def counts():
    return Counts()


def test_slots_are_counted_by_how_they_ended_and_why(counts):
    counts.meters.slots_ended(Status.SUCCESS, None, 1)
    counts.meters.slots_ended(Status.SKIPPED, Cause.UNREACHABLE, 2)

    assert counts.split("facho_slots_total") == {("SUCCESS", ""): 1, ("SKIPPED", "unreachable"): 2}


def test_manual_runs_and_retries_are_no_slots(counts):
    counts.meters.manual_runs_ended(Status.FAILED, 1)
    counts.meters.retries_planned(2)

    assert counts.split("facho_manual_runs_total") == {("FAILED",): 1}
    assert counts.of("facho_retries_total") == 2
    assert counts.split("facho_slots_total") == {}


def test_waits_are_counted_by_cause(counts):
    counts.meters.slot_waited({Cause.OLT_BUSY: 600.0, Cause.NO_FREE_POLLER: 60.0})

    assert counts.split("facho_slot_wait_seconds_total") == {("olt_busy",): 600, ("no_free_poller",): 60}


def test_an_attempt_runs_until_it_ends(counts):
    counts.meters.attempt_started(3.0)
    counts.meters.attempt_started(None)
    during = counts.of("facho_executions_running")
    counts.meters.attempt_ended(Outcome(Status.FAILED, traffic=Traffic(retransmissions=2, varbinds=40), seconds=4.0))
    counts.meters.attempt_ended(Outcome(Status.SUCCESS, seconds=6.0))

    assert (during, counts.of("facho_executions_running")) == (2, 0)
    assert counts.of("facho_attempts_total") == 2
    assert counts.of("facho_attempt_seconds_sum") == 10
    assert counts.of("facho_snmp_retransmissions_total") == 2
    assert counts.of("facho_snmp_varbinds_total") == 40
    assert counts.of("facho_slot_lateness_seconds_sum") == 3
    assert counts.of("facho_slot_lateness_seconds_bucket", le="5.0") == 1
    assert counts.of("facho_slot_lateness_seconds_bucket", le="2.0") == 0


def test_a_stored_result_is_measured(counts):
    lease = Lease(7, "noc/1", 1)
    outcome = Outcome(Status.SUCCESS, readings=3)
    result = RunResult((1,), outcome, lease, T0, make_node(), Collected(Completeness.COMPLETE))

    counts.meters.result_stored(result, 0.3)

    assert counts.of("facho_writer_seconds_sum") == pytest.approx(0.3)
    assert counts.of("facho_readings_written_total") == 3
    assert counts.split("facho_writer_failures_total") == {}


@pytest.mark.parametrize(
    ("error", "reason"),
    [(LeaseLost("it ended"), "lease_lost"), (ConnectionError("the database is unavailable"), "error")],
    ids=["the OLT is held by another process", "the database is unavailable"],
)
def test_a_result_that_could_not_be_stored_is_counted_by_reason(counts, error, reason):
    counts.meters.result_failed(error)

    assert counts.split("facho_writer_failures_total") == {(reason,): 1}


class Agents:
    """Answers every request in the same way."""

    def __init__(self, end=ANSWER):
        self._end = end
        self.asked = []

    async def _answer(self, agent, oids, **more):
        self.asked.append((oids, more))
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end

    get = get_next = get_bulk = _answer


async def test_a_request_goes_out_as_it_was_made(counts):
    agents = Agents()
    snmp = SnmpByVersion(agents, observer=counts.meters)

    await snmp.get_bulk(AGENT, [UP_TIME], non_repeaters=1, max_repetitions=20, timeout=2.0)

    assert agents.asked == [([UP_TIME], {"non_repeaters": 1, "max_repetitions": 20, "timeout": 2.0})]
    assert counts.split("facho_snmp_pdus_total") == {("get_bulk", "answered"): 1}


async def test_an_answer_is_measured(counts):
    snmp = SnmpByVersion(Agents(), observer=counts.meters)

    assert await snmp.get(AGENT, [UP_TIME], timeout=2.0) is ANSWER
    assert await snmp.get_next(AGENT, [UP_TIME], timeout=2.0) is ANSWER

    assert counts.split("facho_snmp_pdus_total") == {("get", "answered"): 1, ("get_next", "answered"): 1}
    assert counts.of("facho_snmp_round_trip_seconds_count") == 2
    assert counts.of("facho_snmp_sent_bytes_total") == 120
    assert counts.of("facho_snmp_received_bytes_total") == 180


async def test_an_error_of_the_agent_is_an_answer_of_its_own_kind(counts):
    snmp = SnmpByVersion(Agents(Answer(ErrorStatus.TOO_BIG, 0, [], [], b"")), observer=counts.meters)

    await snmp.get(AGENT, [UP_TIME], timeout=2.0)

    assert counts.split("facho_snmp_pdus_total") == {("get", "agent_error"): 1}
    assert counts.of("facho_snmp_round_trip_seconds_count") == 1


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (NoAnswer("no answer in 2 s"), "no_answer"),
        (BadAnswer("not BER"), "bad_answer"),
        (Refused("wrong digest"), "refused"),
        (asyncio.CancelledError(), "given_up"),
    ],
    ids=["silence", "unreadable", "refused", "stopped by us"],
)
async def test_a_request_without_an_answer_has_no_round_trip(counts, error, result):
    snmp = SnmpByVersion(Agents(error), observer=counts.meters)

    with pytest.raises(type(error)):
        await snmp.get(AGENT, [UP_TIME], timeout=2.0)

    assert counts.split("facho_snmp_pdus_total") == {("get", result): 1}
    assert counts.of("facho_snmp_round_trip_seconds_count") == 0


class Leases:
    """One device, which another process may hold, or whose lease may be lost at any time."""

    def __init__(self):
        self.is_free = True
        self.is_kept = True
        self.released = 0

    @asynccontextmanager
    async def hold(self, olt_id, holder, *, device):
        if not self.is_free:
            raise OltBusy("OLT 7 is held by noc/2")
        try:
            yield Lease(olt_id, holder, 1, device)
        finally:
            self.released += 1

    def is_valid(self, lease):
        return self.is_kept


class TestLeases:
    @pytest.fixture
    def leases(self):
        return Leases()

    async def test_one_that_is_held_counts_as_long_as_it_is(self, counts, leases):
        async with hold(leases, OLT, "noc/1", counts.meters) as lease:
            during = counts.of("facho_leases_held")

        assert (lease, during, counts.of("facho_leases_held")) == (Lease(7, "noc/1", 1, AGENT.device), 1, 0)
        assert counts.split("facho_lease_losses_total") == {}
        assert leases.released == 1

    async def test_one_that_another_process_has_is_counted(self, counts, leases):
        leases.is_free = False

        with pytest.raises(OltBusy):
            async with hold(leases, OLT, "noc/1", counts.meters):
                raise AssertionError("it is not ours")

        assert counts.of("facho_lease_refusals_total") == 1
        assert counts.of("facho_leases_held") == 0

    async def test_an_olt_that_is_found_busy_later_is_no_refusal_of_the_lease(self, counts, leases):
        with pytest.raises(OltBusy):
            async with hold(leases, OLT, "noc/1", counts.meters):
                raise OltBusy("OLT 7 has another execution running")

        assert counts.of("facho_lease_refusals_total") == 0
        assert counts.of("facho_leases_held") == 0

    async def test_one_that_ends_while_it_is_held_is_lost(self, counts, leases):
        async with hold(leases, OLT, "noc/1", counts.meters):
            leases.is_kept = False

        assert counts.split("facho_lease_losses_total") == {("olt",): 1}
        assert leases.released == 1

    async def test_one_that_ends_because_a_person_stops_it_is_not_lost(self, counts, leases):
        leases.is_kept = False

        with pytest.raises(asyncio.CancelledError):
            async with hold(leases, OLT, "noc/1", counts.meters):
                raise asyncio.CancelledError

        assert counts.split("facho_lease_losses_total") == {}
        assert leases.released == 1
