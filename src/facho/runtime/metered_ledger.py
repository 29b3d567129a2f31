"""Counts slots where they end: a ledger that knows what its process is running."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    Lease,
    Outcome,
    Recovery,
    Skipped,
    Status,
    Trigger,
)
from facho.engine.ports import Ledger, NodeRunner, PollerWatch
from facho.engine.schedule import missed_slots
from facho.runtime.metrics import Meters

# By execution, what this process has taken on and not ended yet.
InHand = dict[int, Claim]


class MeteredRunner:
    """Remembers what is being run, so that the ledger can tell a slot from a wish, and how late it is."""

    def __init__(self, runner: NodeRunner, in_hand: InHand) -> None:
        self._runner = runner
        self._in_hand = in_hand

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        self._in_hand.update(dict.fromkeys(claim.execution_ids, claim))
        try:
            return await self._runner.run(claim, watch)
        finally:
            for execution_id in claim.execution_ids:
                self._in_hand.pop(execution_id, None)


class MeteredLedger:
    """Counts each slot where it ends, after it has been written down. What could not be is not counted."""

    def __init__(self, ledger: Ledger, meters: Meters, in_hand: InHand) -> None:
        self._ledger = ledger
        self._meters = meters
        self._in_hand = in_hand
        # When the attempts that run here began.
        self._begun: dict[int, datetime] = {}
        meters.running.set_function(lambda: len(self._begun))

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        await self._ledger.reschedule(checks, skipped, now=now)
        for item in skipped:
            self._meters.slots_over(Status.SKIPPED, item.cause, item.slots * (1 + len(item.chain)))

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        claim = await self._ledger.claim(composite, poller_id=poller_id, now=now, waits=waits)
        if claim is not None and composite.trigger is Trigger.SCHEDULE:
            self._count_waits(composite, waits, now)
        return claim

    def _count_waits(self, composite: CompositeNode, waits: Mapping[Cause, float], now: datetime) -> None:
        """Count what a slot waited for, and the slots that passed meanwhile, as the ledger accounts for them."""
        for cause, seconds in waits.items():
            self._meters.waits.labels(cause.value).inc(max(seconds, 0.0))
        missed = missed_slots(composite.slot, composite.master.interval, now)
        if missed:
            longest = max(waits, key=lambda cause: waits[cause], default=Cause.SCHEDULER_LATE)
            self._meters.slots_over(Status.SKIPPED, longest, missed * len(composite.links))

    async def reclaim(self, claim: Claim, *, poller_id: int, now: datetime) -> bool:
        return await self._ledger.reclaim(claim, poller_id=poller_id, now=now)

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        begun = await self._ledger.start(execution_id, lease=lease, now=now, poller_id=poller_id)
        if begun:
            self._meters.attempts.inc()
            self._begun[execution_id] = now
            self._measure_lateness(execution_id, now)
        return begun

    def _measure_lateness(self, execution_id: int, now: datetime) -> None:
        """Links begin when the one before them ends, retries when it is their time: only a master can be late."""
        claim = self._in_hand.get(execution_id)
        if claim is None or claim.attempt > 1 or claim.composite.trigger is not Trigger.SCHEDULE:
            return
        if execution_id == claim.execution_ids[0]:
            self._meters.lateness.observe(max((now - claim.composite.slot).total_seconds(), 0.0))

    async def put_off(
        self, execution_ids: Sequence[int], outcome: Outcome, *, retry_at: datetime, lease: Lease, now: datetime
    ) -> None:
        self._end_attempts(execution_ids, outcome, now)
        await self._ledger.put_off(execution_ids, outcome, retry_at=retry_at, lease=lease, now=now)
        self._meters.retries.inc(len(execution_ids))

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        self._end_attempts(execution_ids, outcome, now)
        await self._ledger.close(execution_ids, outcome, lease=lease, now=now)
        claims = [self._in_hand.pop(execution_id, None) for execution_id in execution_ids]
        manual = sum(claim is not None and claim.composite.trigger is Trigger.MANUAL for claim in claims)
        self._meters.manual_runs.labels(outcome.status.value).inc(manual)
        self._meters.slots_over(outcome.status, outcome.cause, len(execution_ids) - manual)

    def _end_attempts(self, execution_ids: Sequence[int], outcome: Outcome, now: datetime) -> None:
        """Measure the attempts that end here. An end that only repeats what one said has no traffic of its own."""
        ended = [self._begun.pop(execution_id) for execution_id in execution_ids if execution_id in self._begun]
        for begun in ended:
            self._meters.durations.observe(max((now - begun).total_seconds(), 0.0))
        if ended:
            self._meters.retransmissions.inc(outcome.traffic.retransmissions)

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        # Whoever runs on these OLTs is stopped by it, and counts what it held.
        stopped = sum(claim.composite.olt_id in olt_ids for claim in self._in_hand.values())
        ended = await self._ledger.abort(olt_ids=olt_ids, node_ids=node_ids, now=now)
        self._meters.slots_over(Status.INTERRUPTED, Cause.DISABLED, ended - stopped)
        return ended

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        return await self._ledger.answered(olt_id, now=now)

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        await self._ledger.probed(olt_id, now=now)

    async def forgive(self, olt_ids: Collection[int], *, now: datetime) -> None:
        await self._ledger.forgive(olt_ids, now=now)

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        return await self._ledger.progress(execution_ids)

    async def recover(self, now: datetime) -> Recovery:
        recovery = await self._ledger.recover(now)
        self._meters.slots_over(Status.INTERRUPTED, Cause.ENGINE_DOWN, recovery.interrupted)
        return recovery
