"""Nodes and stand-ins for the engine's tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from facho.adapters.clock import VirtualClock
from facho.adapters.leases.local import LocalLeases
from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    JobKind,
    Lease,
    Node,
    Outcome,
    RunResult,
    Status,
    Traffic,
    Trigger,
)
from facho.engine.ports import PollerWatch, Runs
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.pollers import PoolSize
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.retry import retry_at
from facho.engine.scheduling.scheduler import Scheduler
from in_memory import MemoryNodes, MemoryRuns, MemorySlots

T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
SEC = timedelta(seconds=1)
MIN = timedelta(minutes=1)
HOUR = timedelta(hours=1)

# What a run tells that heard from its OLT, and one that did not.
ANSWERED = Outcome(Status.SUCCESS, traffic=Traffic(pdus=10, rtt_p50=0.02))
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


def make_node(id: int = 1, *, olt_id: int = 1, interval: timedelta = 5 * MIN, **more) -> Node:
    return Node(
        id=id,
        olt_id=olt_id,
        name=f"node {id}",
        kind=JobKind.TABLE,
        interval=interval,
        olt_name=f"OLT-{olt_id:02}",
        **more,
    )


def make_composite(id: int = 1, *, slot: datetime = T0, chain: Sequence[Node] = (), **more) -> CompositeNode:
    urgent = more.pop("urgent", False)
    trigger = more.pop("trigger", Trigger.SCHEDULE)
    return CompositeNode(make_node(id, **more), tuple(chain), slot, trigger, urgent)


class StandInRunner:
    """Runs nothing, but takes the time and ends the way it is told to. Notices two at once on one OLT."""

    def __init__(
        self,
        clock: VirtualClock,
        runs: Runs,
        *,
        seconds: Callable[[Node, datetime], float] = lambda node, slot: 1.0,
        outcome: Callable[[Node, datetime], Outcome] = lambda node, slot: ANSWERED,
    ) -> None:
        self.ran: list[int] = []
        self.overlaps = 0
        self._clock = clock
        self._runs = runs
        self._seconds = seconds
        self._outcome = outcome
        self._leases = LocalLeases(first_token=1)
        self._busy: set[int] = set()

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        composite = claim.composite
        self.overlaps += composite.olt_id in self._busy
        self._busy.add(composite.olt_id)
        outcomes = []
        async with self._leases.hold(composite.olt_id, "test", device=f"OLT-{composite.olt_id}") as lease:
            for position, (node, id_) in enumerate(zip(composite.links, claim.execution_ids, strict=True), 1):
                watch.link_started(position, node)
                await self._runs.start(id_, lease=lease, now=self._clock.now())
                watch.link_changed(position, Status.RUNNING)
                self.ran.append(node.id)
                await self._clock.sleep(self._seconds(node, composite.slot))
                outcome = self._outcome(node, composite.slot)
                again = retry_at(node, outcome, claim.attempt, claim.next_check, self._clock.now())
                outcomes.append(await self._end([id_], outcome, again, lease))
                watch.link_changed(position, Status.PENDING if again else outcome.status)
                if outcome.cause is Cause.UNREACHABLE:
                    rest = claim.execution_ids[position:]
                    skipped = Outcome(Status.SKIPPED, Cause.UNREACHABLE)
                    outcomes += [await self._end(rest, skipped, again, lease)] * len(rest)
                    break
        self._busy.discard(composite.olt_id)
        return outcomes

    async def _end(self, ids: Sequence[int], outcome: Outcome, again: datetime | None, lease: Lease) -> Outcome:
        outcome = replace(outcome, retry_at=again)
        await self._runs.finish(RunResult(tuple(ids), outcome, lease, self._clock.now()))
        return outcome


class World:
    """A scheduler with everything it needs, in memory."""

    def __init__(
        self,
        clock: VirtualClock,
        nodes: Sequence[Node] = (),
        *,
        pollers: int = 10,
        outages: Outages | None = None,
        size: PoolSize | None = None,
        **runner,
    ) -> None:
        self.clock = clock
        self.nodes = MemoryNodes(nodes)
        self.slots = MemorySlots(self.nodes)
        self.runs = MemoryRuns(self.slots)
        self.runner = StandInRunner(clock, self.runs, **runner)
        # OLTs that changed, with when the scheduler saw it.
        self.changed: list[tuple[datetime, set[int]]] = []
        self.outages = outages
        self._size = size
        self.scheduler = self._scheduler(pollers)

    def _scheduler(self, pollers: int, prober: Prober | None = None) -> Scheduler:
        return Scheduler(
            pollers=pollers,
            nodes=self.nodes,
            slots=self.slots,
            runner=self.runner,
            clock=self.clock,
            on_change=lambda olt_ids: self.changed.append((self.clock.now(), set(olt_ids))),
            outages=self.outages,
            prober=prober,
            size=self._size,
        )

    async def run_for(self, span: timedelta) -> None:
        """Tick once a second for so long."""
        end = self.clock.now() + span
        while self.clock.now() < end:
            await self.scheduler.step()
            await self.clock.sleep(1)

    @property
    def rows(self):
        return self.slots.rows
