"""The pollers: who runs what, how busy they are, and whether there are too few."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Protocol

from facho.engine.events import Event, tell
from facho.engine.model import Cause, Claim, CompositeNode, Node, Outcome, Status, Trigger
from facho.engine.ports import Clock, Ledger, NodeRunner
from facho.engine.queue import NodeQueue, Waiting
from facho.engine.retry import Retries, Retry, retry_of
from facho.engine.schedule import is_delayed, may_make_way

logger = logging.getLogger(__name__)

# Saturated when the mean of a minute rises above the first, until it falls below the second.
SATURATED_ABOVE = 75.0
SATURATED_UNTIL = 65.0
SAMPLES = 60


class Poller:
    """A seat for one composite at a time: BUSY from its master's start to its last link's end."""

    def __init__(self, poller_id: int) -> None:
        self.id = poller_id
        self.composite: CompositeNode | None = None
        # Whether it has made its first step: a task that is cancelled before it never gets to its end.
        self.is_at_work = False
        self.link = 0
        self.node: Node | None = None
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

    def link_started(self, position: int, node: Node) -> None:
        self.link, self.node = position, node

    def rise(self, now: datetime) -> None:
        if self.busy_since is not None:
            self.busy_time += (now - self.busy_since).total_seconds()
        self.composite = self.node = self.busy_since = None
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


class Foreman(Protocol):
    """Who gives the manager its work, and is told what becomes of it."""

    def claimed(self, claim: Claim) -> None:
        """A slot was taken."""

    def refused(self, composite: CompositeNode) -> None:
        """A slot was not there to be taken any more."""

    def next_due(self, olt_id: int, above: int) -> datetime | None:
        """Return when the OLT is next due for something of a higher priority than this."""


class PollerManager:
    """Seats composites on pollers: at most one an OLT, the most urgent first.

    A retry waits outside until its time comes. OLTs whose breaker is open are
    passed over, unless a person asked. A composite that is late anyway waits
    for a gap that is long enough for it, where something more important would
    have to wait for its end.
    """

    def __init__(self, *, pollers: int, runner: NodeRunner, ledger: Ledger, clock: Clock, foreman: Foreman) -> None:
        self.pollers = [Poller(number) for number in range(1, pollers + 1)]
        self.queue = NodeQueue()
        self.retries = Retries()
        self.saturation = Saturation()
        self._runner = runner
        self._ledger = ledger
        self._clock = clock
        self._foreman = foreman
        # Places in `pollers`, lowest first.
        self._free = list(range(pollers))
        # How many there are to be; those beyond it leave when they are free.
        self._seats = pollers
        # By poller.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # Seconds that a composite last took.
        self._took: dict[int, float] = {}
        # The last slot of each master that was claimed.
        self._slots: dict[int, datetime] = {}
        self.started_at = clock.now()
        self._stopping = False

    def offer(self, composite: CompositeNode) -> None:
        self.queue.offer(composite, self._clock.now())

    def renew(self, node_id: int, links: tuple[Node, tuple[Node, ...]]) -> None:
        """Let a composite that waits run as it is set up now, not as it was when it came in."""
        self.queue.renew(node_id, *links, self._clock.now())

    def follow_breakers(self, broken: Collection[int]) -> None:
        """Pass over OLTs that are not asked because they never answer."""
        self.queue.follow_breakers(frozenset(broken), self._clock.now())

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

    def _makes_way(self, waiting: Waiting, now: datetime) -> datetime | None:
        """Return until when a composite waits for something more important on its OLT; None: it goes now."""
        composite, priority = waiting.composite, waiting.composite.master.priority
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
        """Give free pollers what may run."""
        now = self._clock.now()
        while self._free and not self._stopping:
            if self._free[0] >= self._seats:
                return
            waiting = self.queue.take(now, lambda item: self._makes_way(item, now))
            if waiting is None:
                return
            self._begin(self.pollers[heappop(self._free)], waiting, now)

    def _begin(self, poller: Poller, waiting: Waiting, now: datetime) -> None:
        poller.sit(waiting.composite, now)
        self.queue.block(waiting.composite.olt_id, now)
        self._tasks[poller.id] = asyncio.create_task(self._work(poller, waiting), name=f"poller-{poller.id}")

    async def _work(self, poller: Poller, waiting: Waiting) -> None:
        poller.is_at_work = True
        try:
            if self._stopping:
                self.queue.put_back(waiting, now=self._clock.now())
                return
            claim = await (self._reclaim if waiting.retry else self._claim)(poller, waiting)
            if claim is not None:
                outcomes = await self._runner.run(claim, poller)
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

    def _note(self, poller: Poller, waiting: Waiting, retry: Retry | None) -> None:
        """Keep what a run tells for the next ones."""
        began = poller.busy_since or self._clock.now()
        poller.tasks_completed += 1
        poller.tasks_delayed += is_delayed(waiting.since, began)
        self._took[waiting.composite.id] = (self._clock.now() - began).total_seconds()
        if retry is not None:
            self.retries.add(retry)

    async def _claim(self, poller: Poller, waiting: Waiting) -> Claim | None:
        composite = waiting.composite
        claiming = asyncio.ensure_future(
            self._ledger.claim(composite, poller_id=poller.id, now=self._clock.now(), waits=dict(waiting.waits))
        )
        try:
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
                self._slots[composite.id] = composite.slot
            self._foreman.claimed(claim)
        return claim

    async def _reclaim(self, poller: Poller, waiting: Waiting) -> Claim | None:
        """Take up what is to be tried again. If its slot or a part of it is over, it ends as it stood."""
        retry = waiting.retry
        if retry is None:
            return None
        try:
            is_ours = not self._is_over(retry) and await self._ledger.reclaim(
                retry.claim, poller_id=poller.id, now=self._clock.now()
            )
            # Asked twice: a slow database takes its time to give it to us.
            if is_ours and not self._is_over(retry):
                return replace(retry.claim, poller_id=poller.id)
            await self.end(retry)
        except BaseException:
            # Stopped, or the database is away: it waits on, until its slot is over.
            self.queue.put_back(waiting, now=self._clock.now())
            raise
        return None

    def _is_over(self, retry: Retry) -> bool:
        """Return whether the next slot has come: when it should, or earlier, where the interval is shorter now."""
        slot, next_check = retry.claim.composite.slot, retry.claim.next_check
        master = retry.claim.composite.master
        is_late = next_check is not None and next_check <= self._clock.now()
        return is_late or self._slots.get(master.master_id or master.id, slot) > slot

    async def end(self, retry: Retry, outcome: Outcome | None = None) -> None:
        """End executions that will not be tried again: as their last attempt did, unless told otherwise."""
        for execution_id, last in zip(retry.claim.execution_ids, retry.outcomes, strict=True):
            await self._ledger.close([execution_id], outcome or last, lease=None, now=self._clock.now())

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
            await self._ledger.close(claim.execution_ids, stopped, lease=None, now=self._clock.now())

    def tick(self) -> None:
        """Once a second: let in what is tried again, sample the load, fill the seats."""
        now = self._clock.now()
        for retry in self.retries.due(now):
            self.queue.offer_retry(retry, now)
        busy = len(self.pollers) - len(self._free)
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
    def waiting_executions(self) -> set[int]:
        """Return the executions that wait here for another attempt."""
        waiting = [*self.retries, *(item.retry for item in self.queue if item.retry)]
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
        tasks = list(self._tasks.values())
        self._cancel(self.pollers)
        await asyncio.gather(*tasks, return_exceptions=True)
