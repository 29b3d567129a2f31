"""The poller pool: assignment of composites, load and size."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Protocol

from facho.engine.errors import LeaseLost, OltBusy, OltGone
from facho.engine.events import Event, log_event
from facho.engine.model import Cause, Claim, CompositeNode, Node, Outcome, Status, Trigger
from facho.engine.observer import Observer
from facho.engine.ports import Clock, NodeRunner, Slots
from facho.engine.scheduling.breaker import Heard, heard
from facho.engine.scheduling.grid import is_delayed, may_make_way
from facho.engine.scheduling.outages import NO_OUTAGES, Outages
from facho.engine.scheduling.queue import NodeQueue, QueuedNode
from facho.engine.scheduling.retry import Retries, Retry, retry_of

logger = logging.getLogger(__name__)

# Saturated when the mean of a minute exceeds the first, until it falls below the second.
SATURATED_ABOVE = 75.0
SATURATED_UNTIL = 65.0
SAMPLES = 60

# Delay of the event loop, in seconds, above which the process is short of CPU.
MOST_LAG = 0.2

# Maximum number of checks at once, one small request each. After a cold start all OLTs are in doubt.
MAX_CHECKS = 300


class Poller:
    """Runs one composite at a time: BUSY from the start of its master to the end of its last link."""

    def __init__(self, poller_id: int) -> None:
        self.id = poller_id
        self.composite: CompositeNode | None = None
        # False until the first step of the task: a task cancelled before that runs no `finally`.
        self.is_at_work = False
        self.link = 0
        self.node: Node | None = None
        # The claimed executions, by link, with their status.
        self._executions: list[tuple[int, Node, Status]] = []
        self.busy_since: datetime | None = None
        self.busy_time = 0.0
        self.tasks_completed = 0
        self.tasks_delayed = 0

    @property
    def is_free(self) -> bool:
        return self.composite is None

    def assign(self, composite: CompositeNode, now: datetime) -> None:
        self.composite = composite
        self.link, self.node = 1, composite.master
        self.busy_since = now

    def take(self, claim: Claim) -> None:
        """Store the executions of the composite, which was claimed after the poller was assigned."""
        links = zip(claim.execution_ids, claim.composite.links, strict=True)
        self._executions = [(execution_id, node, Status.PENDING) for execution_id, node in links]

    def link_started(self, position: int, node: Node) -> None:
        self.link, self.node = position, node

    def link_changed(self, position: int, status: Status) -> None:
        execution_id, node, _ = self._executions[position - 1]
        self._executions[position - 1] = (execution_id, node, status)

    @property
    def execution_id(self) -> int | None:
        """Return the execution of the current link; None while the composite is being claimed."""
        return self._executions[self.link - 1][0] if self._executions else None

    @property
    def active_executions(self) -> list[tuple[int, Node, Status]]:
        """Return the executions that are PENDING or RUNNING, master first, then the chain in order."""
        return [each for each in self._executions if each[2] in (Status.PENDING, Status.RUNNING)]

    def clock_set(self, by: timedelta) -> None:
        """Shift the times after the clock was set, so that the busy time stays the same."""
        if self.busy_since is not None:
            self.busy_since += by

    def release(self, now: datetime) -> None:
        if self.busy_since is not None:
            self.busy_time += (now - self.busy_since).total_seconds()
        self.composite = self.node = self.busy_since = None
        self._executions = []
        self.is_at_work = False
        self.link = 0


class Saturation:
    """Saturation of the pool: the mean load of a minute, with hysteresis against flapping."""

    def __init__(self) -> None:
        self.samples: deque[float] = deque(maxlen=SAMPLES)
        self.is_saturated = False

    @property
    def mean(self) -> float:
        return sum(self.samples) / len(self.samples) if self.samples else 0.0

    def add(self, busy_percentage: float) -> None:
        self.samples.append(busy_percentage)
        full = len(self.samples) == SAMPLES
        if full and self.mean > SATURATED_ABOVE:
            self.is_saturated = True
        elif self.mean < SATURATED_UNTIL:
            self.is_saturated = False


class PoolSize:
    """Size of an automatic pool: enough for the busiest second of the last ten minutes.

    An idle poller costs nothing, so the pool grows on demand and shrinks slowly. It keeps a third in reserve, so that
    it is saturated only at its limit. It does not grow while the process is short of CPU: more runs at once would only
    make each of them slower, until requests time out that were answered.
    """

    def __init__(self, least: int, most: int, lag: Callable[[], float] = lambda: 0.0) -> None:
        self.least = least
        self.most = most
        # Returns by how many seconds the event loop is late.
        self._lag = lag
        self._busy: deque[int] = deque(maxlen=600)

    def may_grow_beyond(self, pollers: int) -> bool:
        return pollers < self.most and self._lag() < MOST_LAG

    def wanted(self, busy: int) -> int:
        """Return the wanted number of pollers. Called once a second with the number of busy ones."""
        self._busy.append(busy)
        return min(self.most, max(self.least, -(-4 * max(self._busy) // 3)))


class Dispatcher:
    """Decides which composite runs next and on which poller: at most one per device, the most urgent first.

    A composite that is late anyway waits for a gap that is long enough for it, where something more important would
    have to wait for its end.

    It has no clock and does no I/O: the caller passes the time. The manager dispatches real runs with it, and
    `simulation.py` simulates runs with it.
    """

    def __init__(
        self,
        pollers: int,
        next_due: Callable[[int, int], datetime | None],
        *,
        outages: Outages = NO_OUTAGES,
        size: PoolSize | None = None,
        is_deferred: Callable[[CompositeNode], bool] = lambda composite: False,
    ) -> None:
        self.queue = NodeQueue(outages)
        self.pollers = [Poller(number) for number in range(1, pollers + 1)]
        # How many there are to be; those beyond it leave when they are free.
        self.limit = pollers
        # Seconds that a composite last took.
        self.took: dict[int, float] = {}
        # Returns when an OLT is next due for something of a higher priority than the given one.
        self._next_due = next_due
        # None: the number is set by `resize` only.
        self._size = size
        # Returns whether a composite cannot start now for a reason of the caller.
        self._is_deferred = is_deferred
        # Places in `pollers`, lowest first.
        self._free = list(range(pollers))

    @property
    def busy(self) -> int:
        """Return how many pollers run something."""
        return len(self.pollers) - len(self._free)

    @property
    def has_free_poller(self) -> bool:
        return bool(self._free) and self._free[0] < self.limit

    def resize(self, pollers: int) -> None:
        """Set the number of pollers. A busy poller beyond that finishes its composite first."""
        self.limit = pollers
        while len(self.pollers) < pollers:
            self.pollers.append(Poller(len(self.pollers) + 1))
            heappush(self._free, len(self.pollers) - 1)
        while len(self.pollers) > pollers and self.pollers[-1].is_free:
            self._free.remove(len(self.pollers) - 1)
            heapify(self._free)
            self.pollers.pop()

    def adapt_size(self) -> None:
        """Once a second: let an automatic pool follow its load."""
        if self._size is not None:
            wanted = self._size.wanted(self.busy)
            if wanted <= self.limit or self._size.may_grow_beyond(self.limit):
                self.resize(wanted)

    def take(self, now: datetime) -> QueuedNode | None:
        """Take the next composite out of the queue; None if no poller is free or nothing may run."""
        if not self.has_free_poller:
            next_place = self._free[0] if self._free else len(self.pollers)
            if self._size is None or not self._size.may_grow_beyond(next_place):
                return None
        return self.queue.take(now, lambda item: self._makes_way(item, now))

    def begin(self, composite: CompositeNode, now: datetime) -> Poller:
        """Assign a composite that was taken to a poller."""
        if not self.has_free_poller:
            # Pollers beyond the size of the pool may still run something, or be free between such.
            self.resize(self._free[0] + 1 if self._free else len(self.pollers) + 1)
        poller = self.pollers[heappop(self._free)]
        poller.assign(composite, now)
        self.queue.block(composite.olt_id, now)
        return poller

    def end(self, poller: Poller, olt_id: int, now: datetime) -> None:
        """Free a poller and the OLT of its composite."""
        poller.release(now)
        self.queue.release(olt_id, now)
        heappush(self._free, poller.id - 1)
        self.resize(self.limit)

    def _makes_way(self, waiting: QueuedNode, now: datetime) -> datetime | None:
        """Return until when a composite waits for something more important on its OLT; None: it goes now."""
        composite, priority = waiting.composite, waiting.composite.master.priority
        if self._is_deferred(composite):
            return now
        if composite.urgent or not may_make_way(waiting.since, composite.master.interval, now):
            return None
        known = [link.expected for link in composite.links]
        expected = self.took.get(composite.id, 0.0) if None in known else sum(filter(None, known))
        if not expected:
            return None
        due = self._next_due(composite.olt_id, priority)
        is_due = due is not None and due < now + timedelta(seconds=expected)
        if is_due or self.queue.highest_priority(composite.olt_id) > priority:
            return waiting.since + composite.master.interval / 2
        return None


class SchedulerCallbacks(Protocol):
    """Callbacks of the manager to the scheduler."""

    def claimed(self, claim: Claim) -> None:
        """Called after a slot was claimed."""

    def refused(self, composite: CompositeNode) -> None:
        """Called when a slot could not be claimed."""

    def next_due(self, olt_id: int, above: int) -> datetime | None:
        """Return the next due time of a node of this OLT with a higher priority."""


# Claims the composite of a check after the OLT did not answer.
TakeClaim = Callable[[], Awaitable[Claim | None]]


class OltProber(Protocol):
    """Requests outside the pollers: probes of open breakers and checks of OLTs in doubt."""

    def follow(self, broken: Mapping[int, datetime]) -> None:
        """Update the set of open breakers and their start times."""

    def tick(self, now: datetime, manager: "PollerManager") -> None:
        """Start the due probes."""

    async def check(self, olt_id: int, claim: TakeClaim) -> Sequence[Outcome] | None:
        """Check whether an OLT in doubt is reachable: None if it is, else the outcomes of its composite."""


@dataclass(eq=False, slots=True)
class PendingCheck:
    """A composite that is next while its OLT is in doubt."""

    waiting: QueuedNode
    began: datetime
    task: "asyncio.Task[None] | None" = None
    # True during the request. It can be cancelled then, because nothing is claimed yet.
    is_asking: bool = False
    claim: Claim | None = None


class PollerManager:
    """Runs composites on pollers, in the order of its `Dispatcher`.

    A retry waits outside until its time comes. OLTs whose breaker is open are
    passed over, unless a person asked.

    An OLT in doubt is checked first, without a poller. No answer counts as the attempt. After an answer the OLT is
    not checked again until an attempt fails without an answer.
    """

    def __init__(
        self,
        *,
        pollers: int,
        runner: NodeRunner,
        slots: Slots,
        clock: Clock,
        scheduler: SchedulerCallbacks,
        outages: Outages | None = None,
        checker: OltProber | None = None,
        observer: Observer | None = None,
        size: PoolSize | None = None,
    ) -> None:
        self.outages = outages or Outages()
        self.dispatcher = Dispatcher(
            pollers, scheduler.next_due, outages=self.outages, size=size, is_deferred=self._is_deferred
        )
        self.queue = self.dispatcher.queue
        self.retries = Retries()
        self.saturation = Saturation()
        self._runner = runner
        self._slots = slots
        self._clock = clock
        self._scheduler = scheduler
        self._observer = observer or Observer()
        # None: all OLTs are treated as reachable.
        self._checker = checker
        # Result of the last request to each OLT. OLTs without an entry have not been polled by this engine.
        self._answers: dict[int, bool] = {}
        self._broken: frozenset[int] = frozenset()
        # By OLT.
        self._checks: dict[int, PendingCheck] = {}
        self._reserved: Counter[int] = Counter()
        # By poller.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # The last slot of each master that was claimed.
        self._claimed_slots: dict[int, datetime] = {}
        self.started_at = clock.now()
        self._stopping = False

    @property
    def pollers(self) -> Sequence[Poller]:
        return self.dispatcher.pollers

    def offer(self, composite: CompositeNode, cause: Cause = Cause.SCHEDULER_LATE) -> None:
        """Queue a composite; `cause` is the reason for its delay."""
        self.queue.offer(composite, self._clock.now(), cause)

    def clock_set(self, by: timedelta) -> None:
        """Shift all times after the clock was set, so that elapsed times stay the same."""
        self.started_at += by
        for poller in self.pollers:
            poller.clock_set(by)
        for check in self._checks.values():
            check.began += by
            check.waiting.clock_set(by, self._clock.now())
        self.retries.clock_set(by)
        self.queue.clock_set(by, self._clock.now())

    def follow_breakers(self, broken: Collection[int]) -> None:
        """Skip OLTs whose breaker is open."""
        for olt_id in set(broken) - self._broken:
            self.mark_silent(olt_id)
        self._broken = frozenset(broken)
        self.queue.follow_breakers(self._broken, self._clock.now())

    def mark_reachable(self, olt_id: int) -> None:
        """Treat an OLT as reachable until an attempt gets no answer."""
        self._answers[olt_id] = True

    def mark_silent(self, olt_id: int) -> None:
        """Require a check before the OLT gets a poller again."""
        self._answers[olt_id] = False

    def forget(self, olt_ids: Iterable[int]) -> None:
        """Require a check for OLTs that are deleted or have another address."""
        for olt_id in olt_ids:
            self._answers.pop(olt_id, None)

    def _is_in_doubt(self, olt_id: int) -> bool:
        return self._checker is not None and not self._answers.get(olt_id, False)

    def _hear(self, olt_id: int, outcomes: Iterable[Outcome]) -> None:
        """Record whether an OLT answered. The last link with a clear result decides."""
        for outcome in outcomes:
            if heard(outcome) is Heard.SILENCE:
                self.mark_silent(olt_id)
            # The cost of a run on a worker is not known here.
            elif outcome.status in (Status.SUCCESS, Status.PARTIAL) or heard(outcome) is Heard.ANSWER:
                self.mark_reachable(olt_id)

    def resize(self, pollers: int) -> None:
        """Set the number of pollers. A busy poller beyond that finishes its composite first."""
        self.dispatcher.resize(pollers)

    def _is_deferred(self, composite: CompositeNode) -> bool:
        """Return whether an OLT is reserved, or has to be checked first while the maximum of checks is running."""
        if self._reserved[composite.olt_id]:
            return True
        return len(self._checks) >= MAX_CHECKS and self._is_in_doubt(composite.olt_id)

    def start_due(self) -> None:
        """Assign composites to free pollers, and check OLTs in doubt."""
        now = self._clock.now()
        while not self._stopping:
            waiting = self.dispatcher.take(now)
            if waiting is None:
                return
            olt_id = waiting.composite.olt_id
            if self._is_in_doubt(olt_id):
                waiting.wait_for(Cause.OLT_BUSY, now)
                self.queue.block(olt_id, now)
                check = self._checks[olt_id] = PendingCheck(waiting, now)
                check.task = asyncio.create_task(self._check(check), name=f"check-{olt_id}")
            else:
                poller = self.dispatcher.begin(waiting.composite, now)
                self._tasks[poller.id] = asyncio.create_task(self._work(poller, waiting), name=f"poller-{poller.id}")

    async def _check(self, check: PendingCheck) -> None:
        """Pass a composite on to a poller if its OLT answers. No answer counts as the attempt and uses no poller."""
        waiting, olt_id = check.waiting, check.waiting.composite.olt_id
        try:
            await self._ask(check)
        except (OltGone, asyncio.CancelledError) as error:
            if check.is_asking and self._stopping:
                self.queue.put_back(waiting, now=self._clock.now())
            elif check.is_asking and waiting.retry is None:
                # The OLT was disabled, and the scheduler accounts for the slot. A retry has ended already.
                self._scheduler.refused(waiting.composite)
            if isinstance(error, asyncio.CancelledError):
                raise
        except Exception as error:
            if check.is_asking:
                self.queue.put_back(waiting, now=self._clock.now())
            if not isinstance(error, (OltBusy, LeaseLost)):
                logger.exception("%s could not be checked", waiting.composite.master.olt_name)
            # The next tick tries again. This avoids a tight loop on the lease or the database.
            return
        finally:
            del self._checks[olt_id]
            self.queue.release(olt_id, self._clock.now())
        self.start_due()

    async def _ask(self, check: PendingCheck) -> None:
        waiting, olt_id = check.waiting, check.waiting.composite.olt_id
        if self._stopping or self._checker is None:
            self.queue.put_back(waiting, now=self._clock.now())
            return
        check.is_asking = True
        outcomes = await self._checker.check(olt_id, lambda: self._take(check))
        if outcomes is None:
            was_silent = self._answers.get(olt_id) is False
            self.mark_reachable(olt_id)
            if was_silent:
                # Earlier failures no longer count.
                await self._slots.answered(olt_id, now=self._clock.now())
            self.queue.put_back(waiting, now=self._clock.now())
        elif check.claim is not None:
            self._hear(olt_id, outcomes)
            retry = retry_of(check.claim, outcomes)
            if retry is not None:
                self.retries.add(retry, self._clock.now())

    async def _take(self, check: PendingCheck) -> Claim | None:
        """Claim the slot or retry of a check, as of the start of the check."""
        check.is_asking = False
        check.claim = await (self._reclaim if check.waiting.retry else self._claim)(None, check.waiting, check.began)
        return check.claim

    async def _work(self, poller: Poller, waiting: QueuedNode) -> None:
        poller.is_at_work = True
        try:
            if self._stopping:
                self.queue.put_back(waiting, now=self._clock.now())
                return
            claim = await (self._reclaim if waiting.retry else self._claim)(poller.id, waiting, self._clock.now())
            if claim is not None:
                poller.take(claim)
                outcomes = await self._runner.run(claim, poller)
                self._hear(waiting.composite.olt_id, outcomes)
                now = self._clock.now()
                began = poller.busy_since or now
                poller.tasks_completed += 1
                poller.tasks_delayed += is_delayed(waiting.since, began)
                self.dispatcher.took[waiting.composite.id] = (now - began).total_seconds()
                retry = retry_of(claim, outcomes)
                if retry is not None:
                    self.retries.add(retry, now)
        except Exception:
            # A poller survives any error of its composite.
            logger.exception("poller %d: %s ended in an error", poller.id, waiting.composite.master.name)
            # The next tick assigns again. This avoids a tight loop on an unavailable database.
            return
        finally:
            self._tasks.pop(poller.id, None)
            self.dispatcher.end(poller, waiting.composite.olt_id, self._clock.now())
        self.start_due()

    async def _claim(self, poller_id: int | None, waiting: QueuedNode, now: datetime) -> Claim | None:
        composite = waiting.composite
        claiming = asyncio.ensure_future(
            self._slots.claim(composite, poller_id=poller_id, now=now, waits=dict(waiting.waits))
        )
        try:
            with self.outages.watch("write", self._clock):
                claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The slot may be claimed by now, and no poller will run it.
            await self._give_up(composite, claiming)
            raise
        except Exception:
            # The database may be unavailable. The OLT got no request yet, so waiting is free.
            self.queue.put_back(waiting, now=self._clock.now())
            raise
        if claim is None:
            self._scheduler.refused(composite)
        else:
            if composite.trigger is Trigger.SCHEDULE:
                self._claimed_slots[composite.id] = composite.slot
                self._observer.slot_waited(waiting.waits)
            self._scheduler.claimed(claim)
        return claim

    async def _reclaim(self, poller_id: int | None, waiting: QueuedNode, now: datetime) -> Claim | None:
        """Claim a retry. If its slot or a part of it is over, it ends with the result of its last attempt."""
        retry = waiting.retry
        if retry is None:
            return None
        try:
            if not self._is_over(retry):
                with self.outages.watch("write", self._clock):
                    is_ours = await self._slots.reclaim(retry.claim, poller_id=poller_id, now=now)
                # Checked twice, because a slow database may need some time for the claim.
                if is_ours and not self._is_over(retry):
                    return replace(retry.claim, poller_id=poller_id)
            await self.end(retry)
        except BaseException:
            # Stopped, or the database is unavailable: the retry waits until its slot is over.
            self.queue.put_back(waiting, now=self._clock.now())
            raise
        return None

    def _is_over(self, retry: Retry) -> bool:
        """Return whether the next slot has started.

        It starts early if the interval became shorter or the clock was set back.
        """
        slot, next_check = retry.claim.composite.slot, retry.claim.next_check
        master = retry.claim.composite.master
        is_late = next_check is not None and next_check <= self._clock.now()
        return is_late or self._claimed_slots.get(master.master_id or master.id, slot) != slot

    async def end(self, retry: Retry, outcome: Outcome | None = None) -> None:
        """End executions without another attempt, by default with the result of their last attempt."""
        for execution_id, last in zip(retry.claim.execution_ids, retry.outcomes, strict=True):
            with self.outages.watch("write", self._clock):
                await self._slots.close([execution_id], outcome or last, now=self._clock.now())

    async def _give_up(self, composite: CompositeNode, claiming: Awaitable[Claim | None]) -> None:
        """End the executions of a slot that was claimed during the shutdown."""
        try:
            claim = await claiming
        except Exception:
            # The database is unavailable. Recovery finds out later whether the slot was claimed.
            logger.exception("%s could not be claimed", composite.master.name)
            claim = None
        if claim is None:
            self._scheduler.refused(composite)
        else:
            stopped = Outcome(Status.INTERRUPTED, Cause.STOPPED)
            await self._slots.close(claim.execution_ids, stopped, now=self._clock.now())

    def tick(self) -> None:
        """Run once a second: queue due retries, sample the load, assign pollers."""
        now = self._clock.now()
        for retry in self.retries.due(now):
            self.queue.offer_retry(retry, now)
        self.dispatcher.adapt_size()
        busy, limit = self.dispatcher.busy, self.dispatcher.limit
        was_saturated = self.saturation.is_saturated
        # A pool without pollers counts as fully busy while anything is queued.
        self.saturation.add(100.0 * min(1.0, busy / limit) if limit else 100.0 * bool(self.queue))
        if self.saturation.is_saturated is not was_saturated:
            event = Event.POOL_RELIEVED if was_saturated else Event.POOL_SATURATED
            log_event(logger, event, busy=self.saturation.mean)
        self.start_due()

    @property
    def waiting(self) -> list[QueuedNode]:
        """Return the queued composites and those being checked."""
        return [*self.queue, *(check.waiting for check in self._checks.values())]

    @property
    def waiting_executions(self) -> set[int]:
        """Return the executions of pending retries."""
        waiting = [*self.retries, *(item.retry for item in self.waiting if item.retry)]
        return {id_ for retry in waiting for id_ in retry.claim.execution_ids}

    def is_busy(self, olt_id: int) -> bool:
        """Return whether an OLT is polled or held."""
        return self.queue.is_blocked(olt_id)

    def run_on(self, olt_id: int) -> Node | None:
        """Return the master of the composite that runs on an OLT, with the expected duration of the whole chain."""
        for poller in self.pollers:
            if poller.composite is not None and poller.composite.olt_id == olt_id:
                known = [link.expected for link in poller.composite.links]
                expected = None if None in known else sum(filter(None, known))
                return replace(poller.composite.master, expected=expected)
        return None

    @contextmanager
    def reserved(self, olt_id: int) -> Iterator[None]:
        """Start nothing new on an OLT inside a `with`, so that its next free moment is for the caller."""
        self._reserved[olt_id] += 1
        try:
            yield
        finally:
            self._reserved[olt_id] -= 1

    def hold(self, olt_id: int) -> None:
        """Skip an OLT that another process polls."""
        self.queue.block(olt_id, self._clock.now())

    def release(self, olt_id: int) -> None:
        """Allow an OLT again from the next tick on."""
        self.queue.release(olt_id, self._clock.now())

    def interrupt(self, olt_ids: Collection[int]) -> None:
        """Cancel all runs on these OLTs. Their executions have ended already."""
        self._cancel(poller for poller in self.pollers if poller.composite and poller.composite.olt_id in olt_ids)
        self._cancel_checks(self._checks[olt_id] for olt_id in olt_ids if olt_id in self._checks)

    def _cancel_checks(self, checks: Iterable[PendingCheck]) -> None:
        # A check that has claimed a slot ends by itself.
        for check in checks:
            if check.is_asking and check.task is not None:
                check.task.cancel()

    def _cancel(self, pollers: Iterable[Poller]) -> None:
        # A task before its first step continues, and finds its slot taken or the manager stopping.
        for poller in pollers:
            if poller.is_at_work and poller.id in self._tasks:
                self._tasks[poller.id].cancel()

    async def stop(self) -> None:
        """Cancel all runs and wait until that is stored.

        Pending retries stay; the next scheduler continues them.
        """
        self._stopping = True
        checks = list(self._checks.values())
        tasks = [*self._tasks.values(), *(check.task for check in checks if check.task is not None)]
        self._cancel(self.pollers)
        self._cancel_checks(checks)
        await asyncio.gather(*tasks, return_exceptions=True)
