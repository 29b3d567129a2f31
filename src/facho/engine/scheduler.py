"""The one clock of Facho: once a second it reads what changed and offers what is due."""

import logging
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.manager import PollerManager
from facho.engine.model import Cause, Claim, CompositeNode, Node, Skipped, Trigger
from facho.engine.ports import Clock, Ledger, NodeRunner, NodeSource
from facho.engine.schedule import RESTART_GRACE, first_check, group_chains, missed_slots, next_check, regrid

logger = logging.getLogger(__name__)

TICK = timedelta(seconds=1)


class Scheduler:
    """Holds every node in memory, the due ones on top of a heap, and reads only changes from the database.

    A node is in one of three places: on the heap until it is due, with the
    manager until it is claimed, and back on the heap, at its next slot, from
    then on. So no node is ever offered twice for a slot, and none is lost.
    """

    def __init__(
        self,
        *,
        pollers: int,
        nodes: NodeSource,
        ledger: Ledger,
        runner: NodeRunner,
        clock: Clock,
        on_tick: Callable[[PollerManager], None] = lambda manager: None,
    ) -> None:
        self.manager = PollerManager(
            pollers=pollers,
            runner=runner,
            ledger=ledger,
            clock=clock,
            on_claimed=self.claimed,
            on_refused=self.refused,
        )
        self._nodes = nodes
        self._ledger = ledger
        self._on_tick = on_tick
        self._clock = clock
        self._revisions: dict[int, int] = {}
        self._composites: dict[int, tuple[Node, tuple[Node, ...]]] = {}
        self._by_olt: dict[int, set[int]] = {}
        # When each master is due; an entry of the heap that disagrees is out of date. Absent: with the manager.
        self._due: dict[int, datetime] = {}
        self._heap: list[tuple[datetime, int]] = []
        self._has_started = False

    async def run(self) -> None:
        """Tick for ever, on the second."""
        interrupted = await self._ledger.recover(self._clock.now())
        if interrupted:
            logger.warning("%d executions were left open by an engine that died; they are interrupted now", interrupted)
        while True:
            await self.step()
            now = self._clock.now()
            await self._clock.sleep((TICK - timedelta(microseconds=now.microsecond)) / timedelta(seconds=1))

    async def step(self) -> None:
        """Do what a second asks for: read changes, offer, seat, tell."""
        try:
            await self.sync()
        except Exception:
            # The database may be away; what is in memory goes on, and the next tick tries again.
            logger.exception("what changed could not be read; going on with what is known")
        self.tick(self._clock.now())
        self.manager.tick()
        self._on_tick(self.manager)

    def tick(self, now: datetime) -> None:
        """Offer what is due. Costs nothing for nodes that are not."""
        while self._heap and self._heap[0][0] <= now:
            due, node_id = heappop(self._heap)
            if self._due.get(node_id) == due:
                del self._due[node_id]
                master, chain = self._composites[node_id]
                self.manager.offer(CompositeNode(master, chain, due))

    def claimed(self, claim: Claim) -> None:
        """Put a master whose slot was taken back on the heap."""
        if claim.next_check is not None and claim.composite.id in self._composites:
            self._put(claim.composite.id, claim.next_check)

    def refused(self, composite: CompositeNode) -> None:
        """Read an OLT again whose node was not as we thought it to be."""
        logger.info("%s: the slot of %s was taken already", composite.master.olt_name, composite.master.name)
        self._forget([composite.id])
        self._revisions.pop(composite.olt_id, None)

    def _put(self, node_id: int, due: datetime) -> None:
        self._due[node_id] = due
        heappush(self._heap, (due, node_id))

    async def sync(self) -> None:
        """Take over what changed in the database since the last time."""
        revisions = await self._nodes.revisions()
        changed = {olt_id for olt_id, revision in revisions.items() if self._revisions.get(olt_id) != revision}
        gone = self._revisions.keys() - revisions.keys()
        if changed or gone or not self._has_started:
            nodes = await self._nodes.nodes(changed) if changed else ()
            await self._take_over(changed | gone, nodes)
            self._revisions = dict(revisions)
            self._has_started = True

    async def _take_over(self, olt_ids: Collection[int], nodes: Collection[Node]) -> None:
        now = self._clock.now()
        composites = group_chains(nodes)
        before = {node_id for olt_id in olt_ids for node_id in self._by_olt.pop(olt_id, ())}
        await self._drop(before - composites.keys(), now)
        checks: dict[int, datetime | None] = {}
        skipped: list[Skipped] = []
        for node_id, (master, chain) in composites.items():
            old = self._composites.get(node_id)
            self._composites[node_id] = (master, chain)
            self._by_olt.setdefault(master.olt_id, set()).add(node_id)
            due = self._meet(master, now, skipped) if old is None else self._change(old[0], master, now)
            if due is not None and due != master.next_check:
                checks[node_id] = due
        await self._ledger.schedule(checks)
        await self._ledger.skip(skipped)
        self._offer_requests(nodes, composites)

    def _meet(self, master: Node, now: datetime, skipped: list[Skipped]) -> datetime:
        """Put a master on the heap that was not known before; slots that passed without us are skipped."""
        due = master.next_check
        if due is None or (self._has_started and due + RESTART_GRACE < now):
            due = first_check(master, now)
        elif due + RESTART_GRACE < now:
            lost = missed_slots(due, master.interval, now) + 1
            skipped.append(Skipped(master, due, lost, Cause.ENGINE_DOWN))
            due = next_check(due, master.interval, now)
        self._put(master.id, due)
        return due

    def _change(self, old: Node, new: Node, now: datetime) -> datetime | None:
        """Follow a change of a known master. Its place on the grid is ours to know, not the row's."""
        due = self._due.get(new.id)
        if due is None:
            self.manager.renew(new.id, self._composites[new.id])
            return None
        if old.interval != new.interval:
            due = regrid(due, new.interval, now)
            self._put(new.id, due)
            return due
        return None

    async def _drop(self, node_ids: Collection[int], now: datetime) -> None:
        """Let go of masters that were disabled or deleted; a slot that was waiting is accounted for."""
        skipped = []
        for node_id in node_ids:
            waiting = self.manager.queue.withdraw(node_id)
            if waiting is not None and waiting.composite.trigger is Trigger.SCHEDULE:
                composite = waiting.composite
                lost = missed_slots(composite.slot, composite.master.interval, now) + 1
                skipped.append(Skipped(composite.master, composite.slot, lost, Cause.DISABLED))
        self._forget(node_ids)
        if node_ids:
            await self._ledger.schedule(dict.fromkeys(node_ids))
            await self._ledger.skip(skipped)

    def _forget(self, node_ids: Collection[int]) -> None:
        for node_id in node_ids:
            known = self._composites.pop(node_id, None)
            self._due.pop(node_id, None)
            if known is not None:
                self._by_olt.get(known[0].olt_id, set()).discard(node_id)

    def _offer_requests(self, nodes: Collection[Node], composites: dict[int, tuple[Node, tuple[Node, ...]]]) -> None:
        """Offer what a person asked for. A chained node can be run alone; a master brings its chain."""
        for node in nodes:
            if node.run_requested_at is not None:
                _, chain = composites.get(node.id, (node, ()))
                asked = CompositeNode(node, chain, node.run_requested_at, Trigger.MANUAL, urgent=True)
                self.manager.offer(asked)
