"""The ports of a runner, for which a database that is away is no reason to lose anything."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    CompositeNode,
    KnownOnu,
    Lease,
    Node,
    Outcome,
    Recovery,
    Skipped,
)
from facho.engine.ports import Ledger, ReadingSink
from facho.store.entries import End, Harvest, Identification, Postponement
from facho.store.forwarder import Forwarder


class SpoolingSink:
    """A `ReadingSink` whose harvests wait on the disk where they must."""

    def __init__(self, sink: ReadingSink, forwarder: Forwarder) -> None:
        self._sink = sink
        self._forwarder = forwarder

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return await self._sink.known(olt_id)

    async def write(self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime) -> None:
        await self._forwarder.say(Harvest(node, execution_id, collected, lease, now))

    async def identified(
        self, node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], *, lease: Lease
    ) -> None:
        await self._forwarder.say(Identification(node, execution_id, brand, seen, lease))


class SpoolingLedger:
    """A `Ledger` that takes every end, and begins nothing new before all of them have landed."""

    def __init__(self, ledger: Ledger, forwarder: Forwarder) -> None:
        self._ledger = ledger
        self._forwarder = forwarder

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        await self._ledger.reschedule(checks, skipped, now=now)

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        await self._forwarder.land()
        return await self._ledger.claim(composite, poller_id=poller_id, now=now, waits=waits)

    async def reclaim(self, claim: Claim, *, poller_id: int, now: datetime) -> bool:
        await self._forwarder.land()
        return await self._ledger.reclaim(claim, poller_id=poller_id, now=now)

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        await self._forwarder.land()
        return await self._ledger.start(execution_id, lease=lease, now=now, poller_id=poller_id)

    async def put_off(
        self, execution_ids: Sequence[int], outcome: Outcome, *, retry_at: datetime, lease: Lease, now: datetime
    ) -> None:
        await self._forwarder.say(Postponement(tuple(execution_ids), outcome, retry_at, lease, now))

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        await self._forwarder.say(End(tuple(execution_ids), outcome, lease, now))

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        return await self._ledger.abort(olt_ids=olt_ids, node_ids=node_ids, now=now)

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        return await self._ledger.answered(olt_id, now=now)

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        await self._ledger.probed(olt_id, now=now)

    async def forgive(self, olt_ids: Collection[int], *, now: datetime) -> None:
        await self._ledger.forgive(olt_ids, now=now)

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        return await self._ledger.progress(execution_ids)

    async def recover(self, now: datetime) -> Recovery:
        """End what a dead engine left open, but for what it had finished: that waits in the spool, and lands first."""
        await self._forwarder.land()
        return await self._ledger.recover(now)
