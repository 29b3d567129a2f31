"""Slots, attempts and lateness, counted as they pass through the ledger."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from builders import ANSWERED, MIN, SEC, SILENT, T0, StandInRunner, make_composite, make_node
from metrics_stage import Counts

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.adapters.memory import MemoryLedger, MemoryNodes
from facho.engine.model import Cause, Claim, Lease, Outcome, Recovery, Skipped, Status, Traffic, Trigger
from facho.engine.scheduler import Scheduler

LEASE = Lease(7, "noc/1", 1)
FAILED = Outcome(Status.FAILED, error="genErr", error_class="BadAnswer", traffic=Traffic(pdus=9, retransmissions=2))


class Steady:
    """A ledger that does whatever it is told, unless it is away."""

    def __init__(self):
        self.is_away = False
        self.aborted = 0

    async def _go(self, *args, **more):
        if self.is_away:
            raise ConnectionError("the database is away")

    reschedule = close = put_off = _go

    async def start(self, execution_id, **more):
        await self._go()
        return True

    async def claim(self, composite, *, poller_id, now, waits):
        return Claim(composite, tuple(range(len(composite.links))), poller_id, None)

    async def abort(self, **more):
        return self.aborted

    async def recover(self, now):
        return Recovery(interrupted=3)


class Runs:
    """A runner that does what a test says with each claim."""

    def __init__(self, work):
        self._work = work

    async def run(self, claim, watch):
        await self._work(claim)
        return []


@pytest.fixture
def counts():
    return Counts(VirtualClock(T0))


@pytest.fixture
def steady():
    return Steady()


@pytest.fixture
def ledger(counts, steady):
    return counts.metering.ledger(steady)


def claim_of(*ids, slot=T0, trigger=Trigger.SCHEDULE, attempt=1, olt_id=7):
    composite = make_composite(1, olt_id=olt_id, slot=slot, trigger=trigger)
    return Claim(composite, ids, 1, None, attempt)


async def test_a_slot_is_counted_by_how_it_ended_and_why(counts, ledger):
    await ledger.close([1], ANSWERED, lease=LEASE, now=T0)
    await ledger.close([2, 3], Outcome(Status.SKIPPED, Cause.UNREACHABLE), lease=LEASE, now=T0)

    assert counts.split("facho_slots_total") == {("SUCCESS", ""): 1, ("SKIPPED", "unreachable"): 2}


async def test_an_end_that_could_not_be_written_is_not_counted(counts, ledger, steady):
    steady.is_away = True

    with pytest.raises(ConnectionError):
        await ledger.close([1], ANSWERED, lease=LEASE, now=T0)

    assert counts.split("facho_slots_total") == {}


async def test_slots_that_never_ran_count_with_those_of_their_chain(counts, ledger):
    chain = (make_node(2, master_id=1), make_node(3, master_id=1))

    await ledger.reschedule({}, [Skipped(make_node(1), T0, 4, Cause.ENGINE_DOWN, chain)], now=T0)

    assert counts.split("facho_slots_total") == {("SKIPPED", "engine_down"): 12}


async def test_slots_that_passed_while_one_waited_are_put_down_to_the_longest_wait(counts, ledger):
    composite = make_composite(1, interval=5 * MIN, chain=[make_node(2, master_id=1)])

    await ledger.claim(
        composite, poller_id=1, now=T0 + 11 * MIN, waits={Cause.OLT_BUSY: 600.0, Cause.NO_FREE_POLLER: 60.0}
    )

    assert counts.split("facho_slots_total") == {("SKIPPED", "olt_busy"): 4}
    assert counts.split("facho_slot_wait_seconds_total") == {("olt_busy",): 600, ("no_free_poller",): 60}


async def test_what_an_engine_that_died_left_open_is_counted(counts, ledger):
    await ledger.recover(T0)

    assert counts.split("facho_slots_total") == {("INTERRUPTED", "engine_down"): 3}


async def test_what_a_person_asked_for_is_no_slot(counts, ledger):
    async def work(claim):
        await ledger.start(1, lease=LEASE, now=T0 + 1 * SEC)
        await ledger.close([1], ANSWERED, lease=LEASE, now=T0 + 2 * SEC)

    await counts.metering.runner(Runs(work)).run(claim_of(1, trigger=Trigger.MANUAL), watch=None)
    await ledger.claim(make_composite(trigger=Trigger.MANUAL), poller_id=1, now=T0 + 60 * MIN, waits={})

    assert counts.split("facho_slots_total") == {}
    assert counts.split("facho_manual_runs_total") == {("SUCCESS",): 1}
    assert counts.of("facho_slot_lateness_seconds_count") == 0


async def test_what_is_stopped_by_disabling_its_olt_is_counted_once(counts, ledger, steady):
    steady.aborted = 3

    async def work(claim):
        await ledger.abort(olt_ids={7}, now=T0)
        await ledger.close([1, 2], Outcome(Status.INTERRUPTED, Cause.STOPPED), lease=LEASE, now=T0)

    await counts.metering.runner(Runs(work)).run(claim_of(1, 2), watch=None)

    assert sum(counts.split("facho_slots_total").values()) == 3


async def test_what_runs_on_another_olt_takes_nothing_from_what_was_aborted(counts, ledger, steady):
    steady.aborted = 3

    async def work(claim):
        await ledger.abort(olt_ids={8}, now=T0)

    await counts.metering.runner(Runs(work)).run(claim_of(1, 2), watch=None)

    assert counts.split("facho_slots_total") == {("INTERRUPTED", "disabled"): 3}


class TestLateness:
    async def begin(self, counts, ledger, claim, execution_id, after):
        async def work(_):
            await ledger.start(execution_id, lease=LEASE, now=T0 + after)

        await counts.metering.runner(Runs(work)).run(claim, watch=None)

    async def test_it_is_the_time_from_the_slot_to_the_start_of_the_master(self, counts, ledger):
        await self.begin(counts, ledger, claim_of(1, 2), 1, 3 * SEC)

        assert counts.of("facho_slot_lateness_seconds_sum") == 3
        assert counts.of("facho_slot_lateness_seconds_bucket", le="5.0") == 1
        assert counts.of("facho_slot_lateness_seconds_bucket", le="2.0") == 0

    @pytest.mark.parametrize(
        ("claim", "execution_id"),
        [
            pytest.param(claim_of(1, 2), 2, id="a link begins when the one before it ends"),
            pytest.param(claim_of(1, attempt=2), 1, id="a retry begins when it is its time"),
            pytest.param(claim_of(1, trigger=Trigger.MANUAL), 1, id="a wish has no slot"),
            pytest.param(claim_of(1), 99, id="nothing is known of it here"),
        ],
    )
    async def test_only_a_master_in_its_slot_can_be_late(self, counts, ledger, claim, execution_id):
        await self.begin(counts, ledger, claim, execution_id, 3 * SEC)

        assert counts.of("facho_slot_lateness_seconds_count") == 0
        assert counts.of("facho_attempts_total") == 1

    async def test_nothing_is_remembered_of_a_run_that_is_over(self, counts, ledger):
        await self.begin(counts, ledger, claim_of(1), 99, 0 * SEC)

        await ledger.start(1, lease=LEASE, now=T0 + 9 * SEC)

        assert counts.of("facho_slot_lateness_seconds_count") == 0


class TestAttempts:
    async def test_one_that_runs_is_counted_until_it_ends(self, counts, ledger):
        await ledger.start(1, lease=LEASE, now=T0)
        await ledger.start(2, lease=LEASE, now=T0)
        assert counts.of("facho_executions_running") == 2

        await ledger.close([1], ANSWERED, lease=LEASE, now=T0 + 4 * SEC)
        await ledger.put_off([2], FAILED, retry_at=T0 + MIN, lease=LEASE, now=T0 + 6 * SEC)

        assert counts.of("facho_executions_running") == 0
        assert counts.of("facho_attempt_seconds_sum") == 10

    async def test_one_whose_end_cannot_be_written_runs_no_longer(self, counts, ledger, steady):
        await ledger.start(1, lease=LEASE, now=T0)
        steady.is_away = True

        with pytest.raises(ConnectionError):
            await ledger.close([1], ANSWERED, lease=LEASE, now=T0)

        assert counts.of("facho_executions_running") == 0

    async def test_a_further_one_is_no_end_of_the_slot(self, counts, ledger):
        await ledger.put_off([1, 2], FAILED, retry_at=T0 + MIN, lease=LEASE, now=T0)

        assert counts.of("facho_retries_total") == 2
        assert counts.split("facho_slots_total") == {}

    async def test_requests_sent_again_are_counted_with_the_attempt_and_not_with_its_echo(self, counts, ledger):
        await ledger.start(1, lease=LEASE, now=T0)
        await ledger.put_off([1], FAILED, retry_at=T0 + MIN, lease=LEASE, now=T0)

        # Its slot is over before it could be tried again: it ends as its last attempt did.
        await ledger.close([1], FAILED, lease=None, now=T0 + 5 * MIN)

        assert counts.of("facho_snmp_retransmissions_total") == 2


def outcome_of(node, slot):
    """End well, or silent, or with an error, or in part, by turns."""
    minute = int((slot - T0) / MIN)
    ends = [ANSWERED, SILENT, FAILED, replace(ANSWERED, status=Status.PARTIAL)]
    return ends[(node.id + minute // 5) % len(ends)]


def test_hours_of_polling_are_counted_as_the_ledger_has_them():
    """Two pollers are too few for what is due, and OLTs are silent by turns: runs end in every way."""
    counts, nodes = (
        Counts(VirtualClock(T0)),
        MemoryNodes(make_node(id, olt_id=id % 5, retries=1) for id in range(1, 16)),
    )
    memory = MemoryLedger(nodes)

    async def poll():
        clock = VirtualClock(T0)
        ledger = counts.metering.ledger(memory)
        stand_in = StandInRunner(clock, ledger, seconds=lambda node, slot: 53.0, outcome=outcome_of)
        runner = counts.metering.runner(stand_in)
        scheduler = Scheduler(pollers=2, nodes=nodes, ledger=ledger, runner=runner, clock=clock)
        while clock.now() < T0 + 240 * MIN:
            await scheduler.step()
            await clock.sleep(1)
        await scheduler.manager.stop()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as loop:
        loop.run(poll())

    expected, running = Counter(), sum(row.status is Status.RUNNING for row in memory.rows)
    for row in memory.rows:
        expected[(row.status.value, (row.cause or ""))] += row.slots if row.ended_at or not row.claimed_at else 0
    assert counts.split("facho_slots_total") == +expected
    assert {"SUCCESS", "PARTIAL", "FAILED", "SKIPPED"} <= {status for status, _ in expected}
    assert counts.of("facho_attempts_total") == sum(len(row.attempts) for row in memory.rows)
    assert counts.of("facho_executions_running") == running
    started = [row for row in memory.rows if row.started_at]
    late = sum((row.started_at - row.slot).total_seconds() for row in started)
    assert counts.of("facho_slot_lateness_seconds_sum") == pytest.approx(late)
