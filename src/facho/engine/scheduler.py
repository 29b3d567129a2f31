"""The one clock of Facho: once a second it reads what changed and offers what is due."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.events import Event, tell
from facho.engine.manager import PollerManager
from facho.engine.model import Cause, Claim, CompositeNode, Node, Skipped, Trigger
from facho.engine.ports import Clock, Ledger, NodeRunner, NodeSource
from facho.engine.schedule import RESTART_GRACE, first_check, group_chains, missed_slots, next_check, regrid

logger = logging.getLogger(__name__)

TICK = timedelta(seconds=1)

# A master and its chain.
Links = tuple[Node, tuple[Node, ...]]


@dataclass(slots=True)
class Plan:
    """What a change in the database means for the grid."""

    # For the ledger: when masters are due now; None takes one off the grid.
    checks: dict[int, datetime | None] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    # For the heap.
    dues: dict[int, datetime] = field(default_factory=dict)


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
        self._composites: dict[int, Links] = {}
        self._by_olt: dict[int, set[int]] = {}
        # When each master is due; an entry of the heap that disagrees is out of date. Absent: with the manager.
        self._due: dict[int, datetime] = {}
        self._heap: list[tuple[datetime, int]] = []
        # Slots that were not there to be taken; the next sync finds out what became of their nodes.
        self._refused: dict[int, CompositeNode] = {}
        self._has_started = False

    async def run(self) -> None:
        """Tick for ever, on the second."""
        interrupted = await self._ledger.recover(self._clock.now())
        if interrupted:
            tell(
                logger,
                logging.WARNING,
                Event.EXECUTIONS_RECOVERED,
                "%d executions were left open by an engine that died; they are interrupted now",
                interrupted,
            )
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
        """Read an OLT again whose node was not as we thought it to be. A wish that is gone changes nothing."""
        logger.info("%s: the slot of %s was taken already", composite.master.olt_name, composite.master.name)
        if composite.trigger is Trigger.SCHEDULE:
            self._refused[composite.id] = composite

    def _put(self, node_id: int, due: datetime) -> None:
        self._due[node_id] = due
        heappush(self._heap, (due, node_id))

    async def sync(self) -> None:
        """Take over what changed in the database since the last time."""
        revisions = await self._nodes.revisions()
        # More may be refused while we read: those are for the next time.
        refused = dict(self._refused)
        doubtful = {composite.olt_id for composite in refused.values()} & revisions.keys()
        changed = doubtful | {id_ for id_, revision in revisions.items() if self._revisions.get(id_) != revision}
        gone = self._revisions.keys() - revisions.keys()
        if changed or gone or refused:
            nodes = await self._nodes.nodes(changed) if changed else ()
            await self._take_over(changed | gone, nodes, refused)
        self._refused = {id_: each for id_, each in self._refused.items() if refused.get(id_) is not each}
        self._revisions = dict(revisions)
        self._has_started = True

    async def _take_over(
        self, olt_ids: Collection[int], nodes: Collection[Node], refused: Mapping[int, CompositeNode]
    ) -> None:
        """Follow a change: write down what it means first, so that a database that fails leaves it to the next tick."""
        composites = group_chains(nodes)
        before = {node_id for olt_id in olt_ids for node_id in self._by_olt.get(olt_id, ())}
        plan = self._compare(before, composites, refused, self._clock.now())
        await self._ledger.schedule(plan.checks)
        await self._ledger.skip(plan.skipped)
        self._apply(before - composites.keys(), composites, plan)
        self._offer_requests(nodes, composites)

    def _compare(
        self, before: set[int], composites: Mapping[int, Links], refused: Mapping[int, CompositeNode], now: datetime
    ) -> Plan:
        """Decide what becomes of each master: dropped, met for the first time or anew, or moved to another grid."""
        plan = Plan()
        for node_id in (before | refused.keys()) - composites.keys():
            plan.checks[node_id] = None
            waiting = self.manager.queue.find(node_id)
            plan.skipped += _slot_of_dropped(waiting.composite if waiting else refused.get(node_id), now)
        for node_id, (master, _) in composites.items():
            if node_id not in before or node_id in refused:
                plan.dues[node_id] = self._first_due(master, now, plan.skipped)
            elif node_id in self._due and self._composites[node_id][0].interval != master.interval:
                plan.dues[node_id] = regrid(self._due[node_id], master.interval, now)
        plan.checks |= {id_: due for id_, due in plan.dues.items() if due != composites[id_][0].next_check}
        return plan

    def _first_due(self, master: Node, now: datetime, skipped: list[Skipped]) -> datetime:
        """Return when a master is due that we did not know; slots that passed while the engine was down are lost."""
        due = master.next_check
        if due is None or (self._has_started and due + RESTART_GRACE < now):
            return first_check(master, now)
        if due + RESTART_GRACE < now:
            lost = missed_slots(due, master.interval, now) + 1
            skipped.append(Skipped(master, due, lost, Cause.ENGINE_DOWN))
            return next_check(due, master.interval, now)
        return due

    def _apply(self, dropped: Collection[int], composites: Mapping[int, Links], plan: Plan) -> None:
        for node_id in dropped:
            self.manager.queue.withdraw(node_id)
        self._forget(dropped)
        for node_id, links in composites.items():
            self._composites[node_id] = links
            self._by_olt.setdefault(links[0].olt_id, set()).add(node_id)
            self.manager.renew(node_id, links)
        for node_id, due in plan.dues.items():
            self._put(node_id, due)
        self._tell_of(dropped, plan)

    def _tell_of(self, dropped: Collection[int], plan: Plan) -> None:
        if plan.dues:
            tell(logger, logging.INFO, Event.NODES_SCHEDULED, "%d nodes were put on the grid", len(plan.dues))
        if dropped:
            tell(logger, logging.INFO, Event.NODES_REMOVED, "%d nodes are not polled any more", len(dropped))
        for item in plan.skipped:
            tell(
                logger,
                logging.WARNING,
                Event.SLOTS_LOST,
                "%s: %s missed %d slots from %s on (%s)",
                item.node.olt_name,
                item.node.name,
                item.slots,
                item.slot.isoformat(timespec="seconds"),
                item.cause.value,
                olt_id=item.node.olt_id,
            )

    def _forget(self, node_ids: Collection[int]) -> None:
        for node_id in node_ids:
            known = self._composites.pop(node_id, None)
            self._due.pop(node_id, None)
            if known is not None:
                self._by_olt.get(known[0].olt_id, set()).discard(node_id)

    def _offer_requests(self, nodes: Collection[Node], composites: Mapping[int, Links]) -> None:
        """Offer what a person asked for. A chained node can be run alone; a master brings its chain."""
        for node in nodes:
            if node.run_requested_at is not None:
                _, chain = composites.get(node.id, (node, ()))
                asked = CompositeNode(node, chain, node.run_requested_at, Trigger.MANUAL, urgent=True)
                self.manager.offer(asked)


def _slot_of_dropped(composite: CompositeNode | None, now: datetime) -> list[Skipped]:
    """Return the slots that a node was waiting with when it was disabled."""
    if composite is None or composite.trigger is not Trigger.SCHEDULE:
        return []
    lost = missed_slots(composite.slot, composite.master.interval, now) + 1
    return [Skipped(composite.master, composite.slot, lost, Cause.DISABLED)]
