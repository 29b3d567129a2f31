"""Counts what passes through the ports: decorators that add nothing, change nothing and never fail by themselves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any

from facho.engine.changes import OltState
from facho.engine.errors import BadAnswer, LeaseLost, NoAnswer, OltBusy, Refused
from facho.engine.model import (
    Collected,
    KnownOnu,
    Lease,
    Node,
    Olt,
    Standing,
)
from facho.engine.oid import Oid
from facho.engine.ports import Clock, Ledger, NodeRunner, NodeSource, OltLeases, Snmp
from facho.engine.snmp import Agent, Answer
from facho.runtime.metered_ledger import InHand, MeteredLedger, MeteredRunner
from facho.runtime.metrics import OPERATIONS, RESULTS, Meters
from facho.store.entries import PatientSink


class Metering:
    """Puts a decorator around each port of one process. Ledger and runner know of each other's work."""

    def __init__(self, meters: Meters, clock: Clock) -> None:
        self.meters = meters
        self._clock = clock
        self._in_hand: InHand = {}

    def ledger(self, ledger: Ledger) -> MeteredLedger:
        return MeteredLedger(ledger, self.meters, self._in_hand)

    def runner(self, runner: NodeRunner) -> MeteredRunner:
        return MeteredRunner(runner, self._in_hand)

    def snmp(self, snmp: Snmp) -> "MeteredSnmp":
        return MeteredSnmp(snmp, self.meters, self._clock)

    def sink(self, sink: PatientSink) -> "MeteredSink":
        return MeteredSink(sink, self.meters, self._clock)

    def leases(self, leases: OltLeases) -> "MeteredLeases":
        return MeteredLeases(leases, self.meters)

    def nodes(self, nodes: NodeSource) -> "WatchedNodes":
        return WatchedNodes(nodes)


class MeteredSnmp:
    """Counts every PDU by how it ended, and measures the answered ones. Goes inside of whatever holds one back."""

    def __init__(self, snmp: Snmp, meters: Meters, clock: Clock) -> None:
        self._snmp = snmp
        self._meters = meters
        self._clock = clock
        # Looked up once: this is the busiest place of all.
        self._ends = {
            operation: {result: meters.pdus.labels(operation, result) for result in RESULTS} for operation in OPERATIONS
        }

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._measured("get", lambda: self._snmp.get(agent, oids, timeout=timeout))

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._measured("get_next", lambda: self._snmp.get_next(agent, oids, timeout=timeout))

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        return await self._measured(
            "get_bulk",
            lambda: self._snmp.get_bulk(
                agent, oids, non_repeaters=non_repeaters, max_repetitions=max_repetitions, timeout=timeout
            ),
        )

    async def close(self) -> None:
        await self._snmp.close()

    async def _measured(self, operation: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        sent, result = self._clock.monotonic(), "given_up"
        try:
            answer = await ask()
            result = "agent_error" if answer.error_status else "answered"
            self._count(answer, self._clock.monotonic() - sent)
        except NoAnswer:
            result = "no_answer"
            raise
        except BadAnswer:
            result = "bad_answer"
            raise
        except Refused:
            result = "refused"
            raise
        finally:
            self._ends[operation][result].inc()
        return answer

    def _count(self, answer: Answer, seconds: float) -> None:
        self._meters.round_trips.observe(seconds)
        self._meters.varbinds.inc(len(answer))
        self._meters.bytes_sent.inc(answer.bytes_sent)
        self._meters.bytes_received.inc(answer.bytes_received)


class MeteredSink:
    """Measures how long harvests take to be written. Goes inside of whatever keeps one for later."""

    def __init__(self, sink: PatientSink, meters: Meters, clock: Clock) -> None:
        self._sink = sink
        self._meters = meters
        self._clock = clock

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return await self._sink.known(olt_id)

    async def write(self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime) -> None:
        await self._measured(self._sink.write(node, execution_id, collected, lease=lease, now=now), collected)

    async def write_again(
        self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime
    ) -> None:
        await self._measured(self._sink.write_again(node, execution_id, collected, lease=lease, now=now), collected)

    async def _measured(self, writing: Awaitable[None], collected: Collected) -> None:
        began = self._clock.monotonic()
        try:
            await writing
        except Exception as error:
            reason = "lease_lost" if isinstance(error, LeaseLost) else "error"
            self._meters.write_failures.labels(reason).inc()
            raise
        self._meters.writes.observe(self._clock.monotonic() - began)
        self._meters.readings.inc(len(collected.readings))

    async def identified(
        self, node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], *, lease: Lease
    ) -> None:
        await self._sink.identified(node, execution_id, brand, seen, lease=lease)


class MeteredLeases:
    """Counts OLTs that are held, that were held by somebody else, and that were lost while they were held."""

    def __init__(self, leases: OltLeases, meters: Meters) -> None:
        self._leases = leases
        self._meters = meters

    @asynccontextmanager
    async def hold(self, olt_id: int, holder: str) -> AsyncIterator[Lease]:
        async with AsyncExitStack() as stack:
            try:
                lease = await stack.enter_async_context(self._leases.hold(olt_id, holder))
            except OltBusy:
                self._meters.lease_refusals.inc()
                raise
            was_stopped = False
            with self._meters.leases_held.track_inprogress():
                try:
                    yield lease
                except asyncio.CancelledError:
                    # A person has disabled the OLT, or Facho stops: that its lease ends is what they want.
                    was_stopped = True
                    raise
                finally:
                    if not was_stopped and not self._leases.is_valid(lease):
                        self._meters.lease_losses.labels("olt").inc()

    def is_valid(self, lease: Lease) -> bool:
        return self._leases.is_valid(lease)


class WatchedNodes:
    """Keeps how OLTs last stood, for whoever counts them at a scrape."""

    def __init__(self, nodes: NodeSource) -> None:
        self._nodes = nodes
        self.last: Mapping[int, Standing] = {}

    async def standings(self) -> Mapping[int, Standing]:
        self.last = await self._nodes.standings()
        return self.last

    async def fingerprints(self) -> Mapping[int, str]:
        return await self._nodes.fingerprints()

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        return await self._nodes.states(olt_ids)

    async def olt(self, olt_id: int) -> Olt:
        return await self._nodes.olt(olt_id)
