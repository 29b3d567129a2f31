"""The pollers: who runs what, how busy they are, and whether there are too few."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Protocol

from facho.engine.errors import LeaseLost, OltBusy, OltGone
from facho.engine.events import Event, tell
from facho.engine.model import Cause, Claim, CompositeNode, Node, Outcome, Status, Trigger
from facho.engine.observer import Observer
from facho.engine.ports import Clock, NodeRunner, Slots
from facho.engine.scheduling.breaker import Heard, heard
from facho.engine.scheduling.due import is_delayed, may_make_way
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.queue import NodeQueue, QueuedNode
from facho.engine.scheduling.retry import Retries, Retry, retry_of

logger = logging.getLogger(__name__)

# Saturated when the mean of a minute rises above the first, until it falls below the second.
SATURATED_ABOVE = 75.0
SATURATED_UNTIL = 65.0
SAMPLES = 60

# Checks at once, at most: one small request each. At a cold start a whole fleet is in doubt.
MAX_CHECKS = 300


class Poller:
    """A seat for one composite at a time: BUSY from its master's start to its last link's end."""

    def __init__(self, poller_id: int) -> None:
        self.id = poller_id
        self.composite: CompositeNode | None = None
        # Whether it has made its first step: a task that is cancelled before it never gets to its end.
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

    def sit(self, composite: CompositeNode, now: datetime) -> None:
        self.composite = composite
        self.link, self.node = 1, composite.master
        self.busy_since = now

    def take(self, claim: Claim) -> None:
        """Keep the executions of the composite, which was claimed after the poller was assigned."""
        links = zip(claim.execution_ids, claim.composite.links, strict=True)
        self._executions = [(execution_id, node, Status.PENDING) for execution_id, node in links]

    def link_started(self, position: int, node: Node) -> None:
        self.link, self.node = position, node

    def link_changed(self, position: int, status: Status) -> None:
        execution_id, node, _ = self._executions[position - 1]
        self._executions[position - 1] = (execution_id, node, status)

    @property
    def execution_id(self) -> int | None:
        """Return the execution of the present link; None while the composite is being claimed."""
        return self._executions[self.link - 1][0] if self._executions else None

    @property
    def active_executions(self) -> list[tuple[int, Node, Status]]:
        """Return the executions that are PENDING or RUNNING, master first, then the chain in order."""
        return [each for each in self._executions if each[2] in (Status.PENDING, Status.RUNNING)]

    def clock_set(self, by: timedelta) -> None:
        """Move with the clock: how long it has been busy stays the same."""
        if self.busy_since is not None:
            self.busy_since += by

    def rise(self, now: datetime) -> None:
        if self.busy_since is not None:
            self.busy_time += (now - self.busy_since).total_seconds()
        self.composite = self.node = self.busy_since = None
        self._executions = []
        self.is_at_work = False
        self.link = 0


class Saturation:
    """Whether the pool is too small, told from the mean of a minute, with hysteresis so that it does not flicker."""

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
    """The number of pollers of an automatic pool: enough for the busiest second of the last ten minutes.

    A poller that waits costs nothing, so the pool grows when a composite needs one
    and shrinks slowly. It keeps a third more than it needs, so that it counts as
    saturated only when it has reached its limit.
    """

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most
        self._busy: deque[int] = deque(maxlen=600)

    def wanted(self, busy: int) -> int:
        """Return how many pollers there should be; called once a second with how many are busy."""
        self._busy.append(busy)
        return min(self.most, max(self.least, -(-4 * max(self._busy) // 3)))


class Foreman(Protocol):
    """Who gives the manager its work, and is told what becomes of it."""

    def claimed(self, claim: Claim) -> None:
        """A slot was taken."""

    def refused(self, composite: CompositeNode) -> None:
        """A slot was not there to be taken any more."""

    def next_due(self, olt_id: int, above: int) -> datetime | None:
        """Return when the OLT is next due for something of a higher priority than this."""


class Checker(Protocol):
    """Asks an OLT that is in doubt whether it is there; `Prober.check`."""

    async def check(self, olt_id: int, claim: Callable[[], Awaitable[Claim | None]]) -> Sequence[Outcome] | None: ...


@dataclass(eq=False, slots=True)
class PendingCheck:
    """A composite whose turn has come while its OLT is in doubt."""

    waiting: QueuedNode
    began: datetime
    task: "asyncio.Task[None] | None" = None
    # While it asks it may be stopped: nothing has been claimed yet.
    is_asking: bool = False
    claim: Claim | None = None


class PollerManager:
    """Seats composites on pollers: at most one per device, the most urgent first.

    A retry waits outside until its time comes. OLTs whose breaker is open are
    passed over, unless a person asked. A composite that is late anyway waits
    for a gap that is long enough for it, where something more important would
    have to wait for its end.

    An OLT that is not known to answer is checked first, without a poller: if it
    is silent, that was the attempt. Once it has answered it is not checked
    again, until an attempt meets silence.
    """

    def __init__(
        self,
        *,
        pollers: int,
        runner: NodeRunner,
        slots: Slots,
        clock: Clock,
        foreman: Foreman,
        outages: Outages | None = None,
        checker: Checker | None = None,
        observer: Observer | None = None,
        size: PoolSize | None = None,
    ) -> None:
        self.pollers = [Poller(number) for number in range(1, pollers + 1)]
        self.outages = outages or Outages()
        self.queue = NodeQueue(self.outages)
        self.retries = Retries()
        self.saturation = Saturation()
        self._runner = runner
        self._slots = slots
        self._clock = clock
        self._foreman = foreman
        self._observer = observer or Observer()
        # None: every OLT is taken to answer.
        self._checker = checker
        # Whether OLTs answered when they were last asked. One that is not in here was not asked by this engine yet.
        self._answers: dict[int, bool] = {}
        self._broken: frozenset[int] = frozenset()
        # By OLT.
        self._checks: dict[int, PendingCheck] = {}
        # Places in `pollers`, lowest first.
        self._free = list(range(pollers))
        # How many there are to be; those beyond it leave when they are free.
        self._seats = pollers
        # None: the number is set by `resize` only.
        self._size = size
        # By poller.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # Seconds that a composite last took.
        self._took: dict[int, float] = {}
        # The last slot of each master that was claimed.
        self._claimed_slots: dict[int, datetime] = {}
        self.started_at = clock.now()
        self._stopping = False

    def offer(self, composite: CompositeNode, cause: Cause = Cause.SCHEDULER_LATE) -> None:
        """Let a composite wait for a poller; `cause` is why it comes after its slot."""
        self.queue.offer(composite, self._clock.now(), cause)

    def clock_set(self, by: timedelta) -> None:
        """Move with the clock, which was set by so much: what has lasted a minute must not have lasted an hour."""
        self.started_at += by
        for poller in self.pollers:
            poller.clock_set(by)
        for check in self._checks.values():
            check.began += by
            check.waiting.clock_set(by, self._clock.now())
        self.retries.clock_set(by)
        self.queue.clock_set(by, self._clock.now())

    def renew(self, node_id: int, links: tuple[Node, tuple[Node, ...]]) -> None:
        """Let a composite that waits run as it is set up now, not as it was when it came in."""
        self.queue.renew(node_id, *links, self._clock.now())

    def follow_breakers(self, broken: Collection[int]) -> None:
        """Pass over OLTs that are not asked because they never answer."""
        for olt_id in set(broken) - self._broken:
            self.mark_silent(olt_id)
        self._broken = frozenset(broken)
        self.queue.follow_breakers(self._broken, self._clock.now())

    def mark_reachable(self, olt_id: int) -> None:
        """Take an OLT to answer until an attempt meets silence."""
        self._answers[olt_id] = True

    def mark_silent(self, olt_id: int) -> None:
        """Check an OLT before it is given to a poller again."""
        self._answers[olt_id] = False

    def forget(self, olt_ids: Iterable[int]) -> None:
        """Check OLTs that are gone, or are others now, as if they had never been asked."""
        for olt_id in olt_ids:
            self._answers.pop(olt_id, None)

    def _is_in_doubt(self, olt_id: int) -> bool:
        return self._checker is not None and not self._answers.get(olt_id, False)

    def _hear(self, olt_id: int, outcomes: Iterable[Outcome]) -> None:
        """Note whether an OLT answered the links of a composite, the last one that tells it deciding."""
        for outcome in outcomes:
            if heard(outcome) is Heard.SILENCE:
                self.mark_silent(olt_id)
            # Where a worker ran it, what it cost is not known here.
            elif outcome.status in (Status.SUCCESS, Status.PARTIAL) or heard(outcome) is Heard.ANSWER:
                self.mark_reachable(olt_id)

    def follow_devices(self, devices: Mapping[int, str]) -> None:
        """Let OLTs with the same device take turns."""
        self.queue.follow_devices(devices, self._clock.now())

    def resize(self, pollers: int) -> None:
        """Have this many pollers from now on. Who runs something beyond that finishes it, and leaves then."""
        self._seats = pollers
        while len(self.pollers) < pollers:
            self.pollers.append(Poller(len(self.pollers) + 1))
            heappush(self._free, len(self.pollers) - 1)
        while len(self.pollers) > pollers and self.pollers[-1].is_free:
            self._free.remove(len(self.pollers) - 1)
            heapify(self._free)
            self.pollers.pop()

    def _makes_way(self, waiting: QueuedNode, now: datetime) -> datetime | None:
        """Return until when a composite waits for something more important on its OLT; None: it goes now."""
        composite, priority = waiting.composite, waiting.composite.master.priority
        if self._is_in_doubt(composite.olt_id) and len(self._checks) >= MAX_CHECKS:
            return now
        expected = 0.0 if composite.urgent else self._expected(composite)
        if not expected or not may_make_way(waiting.since, composite.master.interval, now):
            return None
        due = self._foreman.next_due(composite.olt_id, priority)
        is_due = due is not None and due < now + timedelta(seconds=expected)
        if is_due or self.queue.highest_priority(composite.olt_id) > priority:
            return waiting.since + composite.master.interval / 2
        return None

    def _expected(self, composite: CompositeNode) -> float:
        """Return the seconds that a composite will take, as far as anybody knows."""
        known = [link.expected for link in composite.links]
        if None in known:
            return self._took.get(composite.id, 0.0)
        return sum(seconds for seconds in known if seconds is not None)

    def seat(self) -> None:
        """Give free pollers what may run, and check what is in doubt when its turn comes."""
        now = self._clock.now()
        while not self._stopping and (self._has_free_poller or self._may_grow):
            waiting = self.queue.take(now, lambda item: self._makes_way(item, now))
            if waiting is None:
                return
            if self._is_in_doubt(waiting.composite.olt_id):
                self._begin_check(waiting, now)
            else:
                if not self._has_free_poller:
                    # Pollers beyond the size of the pool may still run something, or be free between such.
                    self.resize(self._free[0] + 1 if self._free else len(self.pollers) + 1)
                self._begin(self.pollers[heappop(self._free)], waiting, now)

    @property
    def _has_free_poller(self) -> bool:
        return bool(self._free) and self._free[0] < self._seats

    @property
    def _may_grow(self) -> bool:
        if self._size is None:
            return False
        return self._free[0] < self._size.most if self._free else len(self.pollers) < self._size.most

    def _begin_check(self, waiting: QueuedNode, now: datetime) -> None:
        olt_id = waiting.composite.olt_id
        waiting.wait_for(Cause.OLT_BUSY, now)
        self.queue.block(olt_id, now)
        check = self._checks[olt_id] = PendingCheck(waiting, now)
        check.task = asyncio.create_task(self._check(check), name=f"check-{olt_id}")

    async def _check(self, check: PendingCheck) -> None:
        """Let a composite go on to a poller if its OLT answers. Silence is its attempt, and costs no poller."""
        waiting, olt_id = check.waiting, check.waiting.composite.olt_id
        try:
            await self._ask(check)
        except (OltGone, asyncio.CancelledError) as error:
            if check.is_asking and self._stopping:
                self.queue.put_back(waiting, now=self._clock.now())
            elif check.is_asking and waiting.retry is None:
                # A person disabled it, and the scheduler accounts for the slot. A retry has been ended already.
                self._foreman.refused(waiting.composite)
            if isinstance(error, asyncio.CancelledError):
                raise
        except Exception as error:
            if check.is_asking:
                self.queue.put_back(waiting, now=self._clock.now())
            if not isinstance(error, (OltBusy, LeaseLost)):
                logger.exception("%s could not be checked", waiting.composite.master.olt_name)
            # The next tick tries again: neither a lease nor a database is to be asked for in a tight loop.
            return
        finally:
            del self._checks[olt_id]
            self.queue.release(olt_id, self._clock.now())
        self.seat()

    async def _ask(self, check: PendingCheck) -> None:
        waiting, olt_id = check.waiting, check.waiting.composite.olt_id
        if self._stopping or self._checker is None:
            self.queue.put_back(waiting, now=self._clock.now())
            return
        check.is_asking = True
        outcomes = await self._checker.check(olt_id, lambda: self._take(check))
        if outcomes is None:
            await self._came_back(olt_id)
            self.queue.put_back(waiting, now=self._clock.now())
        elif check.claim is not None:
            self._hear(olt_id, outcomes)
            retry = retry_of(check.claim, outcomes)
            if retry is not None:
                self.retries.add(retry, self._clock.now())

    async def _take(self, check: PendingCheck) -> Claim | None:
        """Take the slot, or the retry, that a check was made for, as of when the check began."""
        check.is_asking = False
        check.claim = await (self._reclaim if check.waiting.retry else self._claim)(None, check.waiting, check.began)
        return check.claim

    async def _came_back(self, olt_id: int) -> None:
        """Note that an OLT answered a check. If it was silent before, that is forgotten."""
        was_silent = self._answers.get(olt_id) is False
        self.mark_reachable(olt_id)
        if was_silent:
            await self._slots.answered(olt_id, now=self._clock.now())

    def _begin(self, poller: Poller, waiting: QueuedNode, now: datetime) -> None:
        poller.sit(waiting.composite, now)
        self.queue.block(waiting.composite.olt_id, now)
        self._tasks[poller.id] = asyncio.create_task(self._work(poller, waiting), name=f"poller-{poller.id}")

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
                self._note(poller, waiting, retry_of(claim, outcomes))
        except Exception:
            # A poller outlives whatever its composite ran into.
            logger.exception("poller %d: %s ended in an error", poller.id, waiting.composite.master.name)
            # The next tick seats again: a database that is away must not be asked in a tight loop.
            return
        finally:
            now = self._clock.now()
            poller.rise(now)
            self.queue.release(waiting.composite.olt_id, now)
            heappush(self._free, poller.id - 1)
            self._tasks.pop(poller.id, None)
            self.resize(self._seats)
        self.seat()

    def _note(self, poller: Poller, waiting: QueuedNode, retry: Retry | None) -> None:
        """Keep what a run tells for the next ones."""
        began = poller.busy_since or self._clock.now()
        poller.tasks_completed += 1
        poller.tasks_delayed += is_delayed(waiting.since, began)
        self._took[waiting.composite.id] = (self._clock.now() - began).total_seconds()
        if retry is not None:
            self.retries.add(retry, self._clock.now())

    async def _claim(self, poller_id: int | None, waiting: QueuedNode, now: datetime) -> Claim | None:
        composite = waiting.composite
        claiming = asyncio.ensure_future(
            self._slots.claim(composite, poller_id=poller_id, now=now, waits=dict(waiting.waits))
        )
        try:
            with self.outages.watch("write", self._clock):
                claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The slot may be ours by now, and nobody will run it.
            await self._give_up(composite, claiming)
            raise
        except Exception:
            # The database may be away for a while. Nothing has been asked of the OLT yet, so waiting costs it nothing.
            self.queue.put_back(waiting, now=self._clock.now())
            raise
        if claim is None:
            self._foreman.refused(composite)
        else:
            if composite.trigger is Trigger.SCHEDULE:
                self._claimed_slots[composite.id] = composite.slot
                self._observer.slot_waited(waiting.waits)
            self._foreman.claimed(claim)
        return claim

    async def _reclaim(self, poller_id: int | None, waiting: QueuedNode, now: datetime) -> Claim | None:
        """Take up what is to be tried again. If its slot or a part of it is over, it ends as it stood."""
        retry = waiting.retry
        if retry is None:
            return None
        try:
            is_ours = not self._is_over(retry) and await self._take_again(retry, poller_id, now)
            # Asked twice: a slow database takes its time to give it to us.
            if is_ours and not self._is_over(retry):
                return replace(retry.claim, poller_id=poller_id)
            await self.end(retry)
        except BaseException:
            # Stopped, or the database is away: it waits on, until its slot is over.
            self.queue.put_back(waiting, now=self._clock.now())
            raise
        return None

    async def _take_again(self, retry: Retry, poller_id: int | None, now: datetime) -> bool:
        with self.outages.watch("write", self._clock):
            return await self._slots.reclaim(retry.claim, poller_id=poller_id, now=now)

    def _is_over(self, retry: Retry) -> bool:
        """Return whether the next slot has come: when it should, or earlier.

        It comes earlier where the interval is shorter now, or the clock was set back.
        """
        slot, next_check = retry.claim.composite.slot, retry.claim.next_check
        master = retry.claim.composite.master
        is_late = next_check is not None and next_check <= self._clock.now()
        return is_late or self._claimed_slots.get(master.master_id or master.id, slot) != slot

    async def end(self, retry: Retry, outcome: Outcome | None = None) -> None:
        """End executions that will not be tried again: as their last attempt did, unless told otherwise."""
        for execution_id, last in zip(retry.claim.execution_ids, retry.outcomes, strict=True):
            with self.outages.watch("write", self._clock):
                await self._slots.close([execution_id], outcome or last, now=self._clock.now())

    async def _give_up(self, composite: CompositeNode, claiming: Awaitable[Claim | None]) -> None:
        """End the executions of a slot that was taken in the moment of stopping."""
        try:
            claim = await claiming
        except Exception:
            # The database is away, and whether the slot was taken is found out when it is back.
            logger.exception("%s could not be claimed", composite.master.name)
            claim = None
        if claim is None:
            self._foreman.refused(composite)
        else:
            stopped = Outcome(Status.INTERRUPTED, Cause.STOPPED)
            await self._slots.close(claim.execution_ids, stopped, now=self._clock.now())

    def tick(self) -> None:
        """Once a second: let in what is tried again, sample the load, fill the seats."""
        now = self._clock.now()
        for retry in self.retries.due(now):
            self.queue.offer_retry(retry, now)
        busy = len(self.pollers) - len(self._free)
        if self._size is not None:
            self.resize(self._size.wanted(busy))
        # Without any pollers there is nothing to be had, and whoever waits is told so.
        self._sample(100.0 * min(1.0, busy / self._seats) if self._seats else 100.0 * bool(self.queue))
        self.seat()

    def _sample(self, busy_percentage: float) -> None:
        before = self.saturation.is_saturated
        self.saturation.add(busy_percentage)
        if self.saturation.is_saturated and not before:
            tell(logger, Event.POOL_SATURATED, busy=self.saturation.mean)
        elif before and not self.saturation.is_saturated:
            tell(logger, Event.POOL_RELIEVED, busy=self.saturation.mean)

    @property
    def waiting(self) -> list[QueuedNode]:
        """Return what waits for its turn, and what is being checked."""
        return [*self.queue, *(check.waiting for check in self._checks.values())]

    @property
    def waiting_executions(self) -> set[int]:
        """Return the executions that wait here for another attempt."""
        waiting = [*self.retries, *(item.retry for item in self.waiting if item.retry)]
        return {id_ for retry in waiting for id_ in retry.claim.execution_ids}

    def is_busy(self, olt_id: int) -> bool:
        """Return whether an OLT is being asked, or held."""
        return self.queue.is_blocked(olt_id)

    def hold(self, olt_id: int) -> None:
        """Ask nothing of an OLT that somebody else asks."""
        self.queue.block(olt_id, self._clock.now())

    def release(self, olt_id: int) -> None:
        """Let an OLT be asked again, from the next tick on."""
        self.queue.release(olt_id, self._clock.now())

    def interrupt(self, olt_ids: Collection[int]) -> None:
        """Stop at once whatever runs on these OLTs. Their executions have been ended already."""
        self._cancel(poller for poller in self.pollers if poller.composite and poller.composite.olt_id in olt_ids)
        self._cancel_checks(self._checks[olt_id] for olt_id in olt_ids if olt_id in self._checks)

    def _cancel_checks(self, checks: Iterable[PendingCheck]) -> None:
        # One that has claimed something ends it by itself, at once.
        for check in checks:
            if check.is_asking and check.task is not None:
                check.task.cancel()

    def _cancel(self, pollers: Iterable[Poller]) -> None:
        # One that has not made its first step makes it, and finds its slot taken, or that we are stopping.
        for poller in pollers:
            if poller.is_at_work and poller.id in self._tasks:
                self._tasks[poller.id].cancel()

    async def stop(self) -> None:
        """Interrupt what runs, and wait until that has been written down.

        What waits for another attempt waits on: whoever starts next takes it up.
        """
        self._stopping = True
        checks = list(self._checks.values())
        tasks = [*self._tasks.values(), *(check.task for check in checks if check.task is not None)]
        self._cancel(self.pollers)
        self._cancel_checks(checks)
        await asyncio.gather(*tasks, return_exceptions=True)
