"""The scheduler: once a second it reads changes and offers due nodes."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from facho.engine.events import Event, log_event
from facho.engine.maintenance import Window
from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    LeftOver,
    Outcome,
    Skipped,
    Standing,
    Status,
    Trigger,
)
from facho.engine.observer import Observer
from facho.engine.ports import Clock, NodeRunner, NodeSource, Slots
from facho.engine.scheduling.changes import ChangeKind, OltChange, OltState, detect_changes
from facho.engine.scheduling.grid import RESTART_GRACE, Gap, Grid, Links, excused, group_chains, next_check
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.pollers import OltProber, PollerManager, PoolSize
from facho.engine.scheduling.queue import NOT_POLLED
from facho.engine.scheduling.retry import retry_of_left

logger = logging.getLogger(__name__)

TICK = timedelta(seconds=1)

# Changes through Facho raise a revision and are seen at the next tick. Direct changes to the rows are found by
# fingerprints every fourth tick; ticks come some milliseconds early or late.
LOOK_EVERY = timedelta(seconds=3.5)

# Maximum number of quotas per write of the grid: the scheduler must renew its lease between two writes.
AT_ONCE = 500

# After these changes, earlier failures of an OLT no longer count: the address or password is new.
CHANGED_PARTNERS = (ChangeKind.ADDRESS_CHANGED, ChangeKind.CREDENTIALS_CHANGED)

# An OLT that answered this recently before the start of the engine is not checked first.
RECENTLY = timedelta(minutes=10)


class Scheduler:
    """Holds all nodes in memory and reads only changes from the database.

    A node is offered once per slot and no slot is lost: a slot that has not started when the next one begins is
    stored as skipped, with its cause.
    """

    def __init__(
        self,
        *,
        pollers: int,
        nodes: NodeSource,
        slots: Slots,
        runner: NodeRunner,
        clock: Clock,
        prober: OltProber | None = None,
        on_tick: Callable[[PollerManager], None] = lambda manager: None,
        on_change: Callable[[Collection[int]], None] = lambda olt_ids: None,
        restart_grace: timedelta = RESTART_GRACE,
        outages: Outages | None = None,
        observer: Observer | None = None,
        size: PoolSize | None = None,
    ) -> None:
        # Outages may have started earlier: their lost slots must not count as "engine down".
        self.outages = outages or Outages()
        self.manager = PollerManager(
            pollers=pollers,
            runner=runner,
            slots=slots,
            clock=clock,
            scheduler=self,
            outages=self.outages,
            checker=prober,
            observer=observer,
            size=size,
        )
        self._nodes = nodes
        self._slots = slots
        self._clock = clock
        self._prober = prober
        self._on_tick = on_tick
        # Called with the OLTs whose configuration or breaker changed.
        self._on_change = on_change
        self._grid = Grid(restart_grace)
        # The enabled OLTs as last read.
        self.standings: Mapping[int, Standing] = {}
        # Start times of open breakers, by OLT.
        self._broken: Mapping[int, datetime] = {}
        # Windows of maintenance, by OLT.
        self._windows: Mapping[int, tuple[Window, ...]] = {}
        self._fingerprints: Mapping[int, str] = {}
        self._states: dict[int, OltState] = {}
        self._looked_at: datetime | None = None
        # Masters whose slot could not be claimed. The next sync reads their nodes again.
        self._refused: dict[int, CompositeNode] = {}
        self._has_started = False
        # Unfinished claims of an earlier scheduler.
        self._left: list[LeftOver] = []
        # The last clock step, and whether the slots have to be moved after it.
        self.gap: Gap | None = None
        self.follows_clock = False
        # Executions that waited for a retry when the clock was set, and the step.
        self._to_move: list[tuple[set[int], timedelta]] = []

    async def run(self) -> None:
        """Tick forever, on the second."""
        while True:
            try:
                await self.recover()
                break
            except Exception:
                # Nothing starts before recovery has succeeded, because an earlier engine may still be polling.
                logger.exception("recovery failed, retrying in %d s", TICK.total_seconds())
            await self._clock.sleep(TICK / timedelta(seconds=1))
        while True:
            await self.step()
            now = self._clock.now()
            await self._clock.sleep((TICK - timedelta(microseconds=now.microsecond)) / timedelta(seconds=1))

    async def recover(self) -> None:
        """End the executions of a dead engine, and hold OLTs with a run that continues elsewhere."""
        recovery = await self._slots.recover(self._clock.now())
        if recovery.interrupted:
            log_event(logger, Event.EXECUTIONS_RECOVERED, executions=recovery.interrupted)
        self._left = list(recovery.left)
        for left in self._left:
            if left.is_running:
                self.manager.hold(left.olt_id)

    async def follow(self) -> None:
        """Continue the unfinished claims of an earlier scheduler when no worker runs them."""
        if not self._left or not self._has_started:
            return
        known = await self._slots.progress([id_ for left in self._left for id_ in left.execution_ids])
        for left in list(self._left):
            stands = {id_: known[id_] for id_ in left.execution_ids if id_ in known}
            if not all(outcome.is_over for outcome in stands.values()):
                continue
            waiting = {id_: each for id_, each in stands.items() if each.retry_at is not None}
            state = self._states.get(left.olt_id)
            nodes = {node.id: node for node in state.nodes} if state is not None else {}
            retry = retry_of_left(left, waiting, nodes)
            unwanted = waiting.keys() - set(retry.claim.execution_ids if retry else ())
            if unwanted:
                disabled = Outcome(Status.INTERRUPTED, Cause.DISABLED)
                await self._slots.close(sorted(unwanted), disabled, now=self._clock.now())
            if retry is not None:
                self.manager.retries.add(retry, self._clock.now())
            self._left.remove(left)
            if left.is_running:
                self.manager.release(left.olt_id)

    @property
    def waiting_executions(self) -> set[int]:
        """Return the executions with a pending retry, for which this scheduler is responsible."""
        left = {id_ for each in self._left if not each.is_running for id_ in each.execution_ids}
        return left | self.manager.waiting_executions

    def clock_set(self, by: timedelta) -> None:
        """Shift all times after the clock was set. Called at the moment in which `now` changes."""
        now = self._clock.now()
        self._to_move.append((self.waiting_executions, by))
        self.manager.clock_set(by)
        self._looked_at = None
        before, self.gap = self.gap, None
        if by > timedelta(0):
            # Two steps in a row count as one until the grid has followed.
            self.gap = Gap(before.start if before and self.follows_clock else now - by, now)
        elif before and before.start < now:
            self.gap = Gap(before.start, min(before.end, now))
        for composite in self._astray(now):
            self.manager.queue.withdraw(composite.id, now)
            if composite.id in self._grid:
                slot, interval = composite.slot, composite.master.interval
                due = slot if by < timedelta(0) else next_check(slot, interval, now - by)
                self._grid.put(composite.id, due, interval)
        self.follows_clock = True

    def _astray(self, now: datetime) -> list[CompositeNode]:
        """Return queued composites whose slot belongs to the old time. A manual run does not wait longer."""
        is_long = self.gap is not None and not self.gap.is_accounted_for
        return [
            waiting.composite
            for waiting in self.manager.queue
            if waiting.retry is None
            and waiting.composite.trigger is Trigger.SCHEDULE
            and not waiting.composite.urgent
            and (is_long or waiting.composite.slot > now + RESTART_GRACE)
        ]

    async def follow_clock(self) -> None:
        """Move the slots after the clock was set. Until that is stored, nothing new is offered."""
        while self._to_move:
            execution_ids, by = self._to_move[0]
            if execution_ids:
                await self._slots.move(execution_ids, by)
            del self._to_move[0]
        if not self.follows_clock or not self._has_started:
            # An engine that starts sets all slots anyway.
            self.follows_clock = False
            return
        # Slots claimed from here on, during the write, are handled the next time.
        self.follows_clock = False
        try:
            now = self._clock.now()
            shift = self._grid.follow_clock(self.gap, now)
            composites = self._grid.links_of(shift.dues)
            shift.avoid(await self._taken(composites, now), composites)
            for checks, skipped in shift.portions(AT_ONCE):
                await self._slots.reschedule(checks, skipped, now=now)
            for node_id, due in shift.dues.items():
                self._grid.put(node_id, due, composites[node_id][0].interval)
        except BaseException:
            self.follows_clock = True
            raise

    async def _taken(self, composites: Mapping[int, Links], now: datetime) -> Mapping[int, Collection[datetime]]:
        ids = {link.id for master, chain in composites.values() for link in (master, *chain)}
        return await self._slots.taken(ids, after=now) if ids else {}

    async def step(self) -> None:
        """Run one second: read changes, account for lost slots, offer, assign, probe, publish."""
        for write in (self.follow_clock, self.sync, self.expire, self.follow):
            try:
                await write()
            except Exception:
                # The database may be unavailable. Nodes in memory continue; the next tick tries again.
                logger.exception("reading changes from the database failed; continuing with the last known state")
        self._follow_maintenance()
        self.tick(self._clock.now())
        self.manager.tick()
        if self._prober is not None:
            self._prober.tick(self._clock.now(), self.manager)
        self._on_tick(self.manager)

    def tick(self, now: datetime) -> None:
        """Offer the due nodes. Nothing is offered while the slots have to follow the clock."""
        if self.follows_clock:
            return
        for composite in self._grid.take_due(now):
            is_in_gap = self.gap is not None and composite.slot in self.gap
            self.manager.offer(composite, Cause.CLOCK_SET if is_in_gap else Cause.SCHEDULER_LATE)

    def claimed(self, claim: Claim) -> None:
        """Put a master on the grid again after its slot was claimed."""
        if claim.next_check is not None and claim.composite.id in self._grid:
            due, interval = claim.next_check, claim.composite.master.interval
            self._grid.put(claim.composite.id, due, interval)
            # The clock may have been set while the slot was being claimed.
            is_far = due > self._clock.now() + interval + RESTART_GRACE
            if is_far or (self.gap is not None and self.gap.has_passed(due)):
                self.follows_clock = True

    def refused(self, composite: CompositeNode) -> None:
        """Read an OLT again whose node differs from memory. A withdrawn manual run changes nothing."""
        logger.info("%s: the slot of %s was already claimed", composite.master.olt_name, composite.master.name)
        if composite.trigger is Trigger.SCHEDULE:
            self._refused[composite.id] = composite

    def next_due(self, olt_id: int, above: int) -> datetime | None:
        return self._grid.next_due(olt_id, above)

    async def expire(self) -> None:
        """Account for slots whose node waited until the next one; it stays queued with the new slot."""
        now = self._clock.now()
        expired = self.manager.queue.expire(now)
        while expired:
            part, expired = expired[:AT_ONCE], expired[AT_ONCE:]
            try:
                for waiting in list(part):
                    if waiting.retry is not None:
                        await self.manager.end(waiting.retry)
                        part.remove(waiting)
                lost = [waiting.as_skipped(now) for waiting in part]
                renewed = [waiting.renewed(now) for waiting in part]
                slots: dict[int, datetime | None] = {each.composite.id: each.composite.slot for each in renewed}
                with self.outages.watch("write", self._clock):
                    await self._slots.reschedule(slots, lost, now=now)
            except BaseException:
                # Entries left in `part` are not stored.
                self.manager.queue.put_back(*part, *expired, now=now)
                raise
            self.manager.queue.put_back(*renewed, now=now)
            _tell_lost(lost)

    async def sync(self) -> None:
        """Read the changes in the database since the last call."""
        with self.outages.watch("read", self._clock):
            standings = await self._nodes.standings()
            now, fingerprints = self._clock.now(), self._fingerprints
            if self._looked_at is None or now - self._looked_at >= LOOK_EVERY:
                fingerprints = await self._nodes.fingerprints()
                self._looked_at = now
        is_known = standings is self.standings and fingerprints is self._fingerprints
        if is_known and not self._refused and not self._grid.outdated:
            # A source without changes returns the same mapping.
            return
        # Before any step that may fail: an OLT with an open breaker must not be polled.
        self._follow_breakers(standings)
        devices = {id_: each.device for id_, each in standings.items() if each.device}
        self.manager.queue.follow_devices(devices, self._clock.now())
        for id_ in standings.keys() - self.standings.keys():
            # An OLT that this engine has not polled needs no check if it answered a short time ago.
            new = standings[id_]
            is_recent = new.answered_at is not None and new.answered_at >= self._clock.now() - RECENTLY
            if is_recent and new.breaker_since is None:
                self.manager.mark_reachable(id_)
        # More claims may be refused during the read; they are handled the next time.
        refused = dict(self._refused)
        changed = set()
        for id_, standing in standings.items():
            known = self.standings.get(id_)
            is_touched = fingerprints.get(id_) != self._fingerprints.get(id_)
            if is_touched or known is None or known.revision != standing.revision:
                changed.add(id_)
        changed |= (self._grid.outdated | {each.olt_id for each in refused.values()}) & standings.keys()
        gone = self.standings.keys() - standings.keys()
        self.manager.forget(gone)
        if changed or gone or refused:
            states = await self._nodes.states(changed) if changed else {}
            await self._take_over(changed | gone, states, refused)
        self._refused = {id_: each for id_, each in self._refused.items() if refused.get(id_) is not each}
        self.standings, self._fingerprints = standings, fingerprints
        self._has_started = True

    def _follow_maintenance(self) -> None:
        """Apply the windows of maintenance that start or end now, with or without the database."""
        now = self._clock.now()
        current = [(id_, each) for id_, windows in self._windows.items() for each in windows if each.covers(now)]
        paused = {id_ for id_, window in current if not window.polls}
        self.manager.queue.follow_maintenance({id_ for id_, _ in current}, paused, now)
        if self._prober is not None:
            self._prober.follow({id_: since for id_, since in self._broken.items() if id_ not in paused})

    def _follow_breakers(self, standings: Mapping[int, Standing]) -> None:
        broken = {id_: standing.breaker_since for id_, standing in standings.items() if standing.breaker_since}
        self._on_change(broken.keys() ^ {id_ for id_, each in self.standings.items() if each.breaker_since})
        self._broken = broken
        self.manager.follow_breakers(broken)
        self._windows = {id_: standing.windows for id_, standing in standings.items() if standing.windows}
        self._follow_maintenance()

    async def _take_over(
        self, olt_ids: Collection[int], states: Mapping[int, OltState], refused: Mapping[int, CompositeNode]
    ) -> None:
        """Apply a change: store its effect first, so that after a database error the next tick repeats it."""
        now = self._clock.now()
        changes = [
            change for id_ in sorted(olt_ids) for change in detect_changes(self._states.get(id_), states.get(id_))
        ]
        nodes = [node for state in states.values() for node in state.nodes]
        composites = group_chains(nodes)
        before = self._grid.of_olts(olt_ids)
        queued = {id_: item.composite for id_ in before if (item := self.manager.queue.find(id_)) is not None}
        waiting = {**refused, **queued}
        shift = self._grid.compare(before, composites, waiting, refused.keys(), now, is_start=not self._has_started)
        shift.skipped = [
            self._with_true_cause(part, now)
            for item in shift.skipped
            for part in excused(item, self._windows.get(item.node.olt_id, ()))
        ]
        shift.avoid(await self._taken({id_: composites[id_] for id_ in shift.dues}, now), composites)
        await self._obey(changes, now)
        for checks, skipped in shift.portions(AT_ONCE):
            # If one part fails, the next tick reads the stored state and continues from there.
            with self.outages.watch("write", self._clock):
                await self._slots.reschedule(checks, skipped, now=now)
        dropped = before - composites.keys()
        for node_id in dropped:
            self.manager.queue.withdraw(node_id, self._clock.now())
        self._grid.apply(dropped, composites, shift)
        for node_id, links in composites.items():
            self.manager.queue.renew(node_id, *links, self._clock.now())
        for olt_id in olt_ids:
            self._states.pop(olt_id, None)
        self._states |= states
        self._on_change(olt_ids)
        for node in nodes:
            if node.run_requested_at is not None:
                # A chained node runs alone; a master runs with its chain.
                _, chain = composites.get(node.id, (node, ()))
                self.manager.offer(CompositeNode(node, chain, node.run_requested_at, Trigger.MANUAL, urgent=True))
        _tell_lost(shift.skipped)

    def _with_true_cause(self, item: Skipped, now: datetime) -> Skipped:
        """Return slots lost without an engine, with the cause that would have applied anyway."""
        if item.cause is not Cause.ENGINE_DOWN:
            return item
        broken_since = self._broken.get(item.node.olt_id)
        if broken_since is not None and broken_since <= item.slot:
            return replace(item, cause=Cause.BREAKER_OPEN)
        return replace(item, cause=self.outages.main_cause(item.slot, now) or item.cause)

    async def _obey(self, changes: Sequence[OltChange], now: datetime) -> None:
        """Apply a change to open executions at once: disabling must take effect immediately."""
        disabled = {change.olt_id for change in changes if change.kind is ChangeKind.OLT_DISABLED}
        removed = [change.node.id for change in changes if change.kind is ChangeKind.TASK_REMOVED and change.node]
        moved = {change.olt_id for change in changes if change.kind in CHANGED_PARTNERS}
        aborted = await self._slots.abort(olt_ids=disabled, node_ids=removed, now=now) if disabled or removed else 0
        if moved:
            self.manager.forget(moved)
            await self._slots.reset_breakers(moved, now=now)
        self.manager.interrupt(disabled)
        if self._has_started:
            for change in changes:
                _tell_change(change)
        if aborted:
            log_event(logger, Event.EXECUTIONS_ABORTED, executions=aborted)


def _tell_change(change: OltChange) -> None:
    details = {**change.details, **({"task": change.node.name} if change.node else {})}
    log_event(logger, Event[change.kind.name], olt_id=change.olt_id, olt=change.olt_name, **details)


def _tell_lost(skipped: Collection[Skipped]) -> None:
    # The open breaker or the maintenance is already logged, and each slot that it costs has a row.
    for item in (each for each in skipped if each.cause not in NOT_POLLED):
        log_event(
            logger,
            Event.SLOTS_LOST,
            olt_id=item.node.olt_id,
            olt=item.node.olt_name,
            task=item.node.name,
            slots=item.slots,
            slot=item.slot.isoformat(timespec="seconds"),
            cause=item.cause.value,
        )
