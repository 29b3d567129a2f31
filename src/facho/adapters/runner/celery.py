"""Sends composites to workers, and waits for their results.

Each worker has its own queue, so that an OLT is polled by the same worker each time. A message that this worker does
not take goes to the shared queues.

A message names the composite to run. It has no secrets and gives no right: the worker needs the lease, and executions
that are still pending. So a message may be lost or delivered three times; the results are read from the database.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from facho.adapters.wire import claim_to_message
from facho.engine.model import Cause, Claim, Outcome, Status
from facho.engine.ports import Clock, EventBus, PollerWatch, Slots
from facho.engine.scheduling.outages import Outages

logger = logging.getLogger(__name__)

# Priority of discoveries, and of jobs that an admin made as urgent.
HIGH_PRIORITY = 90
HIGH, DEFAULT, RETRY = "snmp_highprio", "snmp_default", "snmp_retry"
# In the order of workers: urgent first, retries last.
QUEUES = (HIGH, DEFAULT, RETRY)

# A poller is free when a composite is sent, so a worker takes it at once. A message that no worker took by then
# expires, and another one is sent a little later.
EXPIRES = timedelta(seconds=20)
AGAIN_AFTER = timedelta(seconds=25)
# A composite that the worker of an OLT has not started by then is sent to the shared queues too: the worker is busy or
# dead.
SHARED_AFTER = timedelta(seconds=2)

# Maximum time to offer a manual run, which has no slot that ends it.
LONGEST_OFFER = timedelta(minutes=5)

# Seconds between queries of the database. A notification only makes the next one earlier.
LOOK_EVERY = 1.0
# Seconds to collect ends that come together.
TOGETHER = 0.05

# Sends a message: queue, message, and expiry in seconds.
Send = Callable[[str, Mapping[str, Any], float], Awaitable[None]]
# Names the queue of the worker for an OLT, given how many composites each queue has now; `WorkerRegistry.choose`.
Choose = Callable[[int, Mapping[str, int]], str | None]


@dataclass(eq=False, slots=True)
class _Given:
    """A composite that was given out, to the queue of a worker or to a shared one (None)."""

    claim: Claim
    queue: str | None
    over: "asyncio.Future[list[Outcome]]"
    begun: asyncio.Event = field(default_factory=asyncio.Event)


class CeleryRunner:
    """A NodeRunner whose pollers are in other processes."""

    def __init__(
        self,
        *,
        send: Send,
        slots: Slots,
        bus: EventBus,
        clock: Clock,
        choose: Choose = lambda olt_id, taken: None,
        outages: Outages | None = None,
    ) -> None:
        self._send = send
        self._choose = choose
        self._outages = outages or Outages()
        self._slots = slots
        self._bus = bus
        self._clock = clock
        self._given: set[_Given] = set()
        # How many of them the queue of each worker has.
        self._taken: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._is_leaving = False

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        """Give a composite to a worker, and return how its links ended."""
        queue = self._choose(claim.composite.olt_id, self._taken)
        given = _Given(claim, queue, asyncio.get_running_loop().create_future())
        self._given.add(given)
        if queue is not None:
            self._taken[queue] += 1
        offering = asyncio.create_task(self._offer(given), name=f"offer-{claim.execution_ids[0]}")
        try:
            return await given.over
        except asyncio.CancelledError:
            if not self._is_leaving:
                # Disabled by a user. Its executions have ended already.
                self._bus.publish("interrupt", {"olt_id": claim.composite.olt_id})
            raise
        finally:
            offering.cancel()
            self._share(given)
            self._given.discard(given)

    def _share(self, given: _Given) -> None:
        """Release the place in the queue of a worker: the composite is over, or the worker has not started it."""
        if given.queue is not None:
            self._taken[given.queue] -= 1
            given.queue = None

    @property
    def offered(self) -> Collection[int]:
        """Return the unstarted executions, for which this process is responsible."""
        return {id_ for given in self._given if not given.begun.is_set() for id_ in given.claim.execution_ids}

    def leave(self) -> None:
        """Let sent composites continue without us."""
        self._is_leaving = True

    async def _offer(self, given: _Given) -> None:
        """Send until a worker starts it, or until it is too late."""
        until = given.claim.next_check
        longest = LONGEST_OFFER if until is None else until - self._clock.now()
        # Monotonic, because the wall clock may be set.
        ends = self._clock.monotonic() + longest.total_seconds()
        while not given.begun.is_set():
            left = timedelta(seconds=ends - self._clock.monotonic())
            if left <= timedelta(0):
                # A worker may have started since the last query.
                await self.look()
                await self._give_up(given)
                return
            await self._put(given.claim, given.queue or queue_of(given.claim), min(EXPIRES, left))
            again_after = AGAIN_AFTER if given.queue is None else SHARED_AFTER
            await _first(given.begun.wait(), self._clock.sleep(min(again_after, left).total_seconds()))
            if not given.begun.is_set():
                self._share(given)

    async def _put(self, claim: Claim, queue: str, expires: timedelta) -> None:
        try:
            message = {"claim": claim_to_message(claim), "not_after": (self._clock.now() + expires).isoformat()}
            await self._send(queue, message, expires.total_seconds())
        except Exception as error:
            # The broker is unavailable. The next try follows while the slot lasts.
            self._outages.note("send", Cause.BROKER_UNAVAILABLE, self._clock.now())
            logger.warning("%s could not be sent to a worker: %s", claim.composite.master.name, error)
        else:
            self._outages.note("send", None, self._clock.now())

    async def _give_up(self, given: _Given) -> None:
        """End a composite that no worker started. If one starts now, the database decides which was first."""
        # Since its slot: one that was claimed at the end of an outage may have had no time left.
        cause = self._outages.main_cause(given.claim.composite.slot, self._clock.now())
        late = Outcome(Status.SKIPPED, cause or Cause.NO_FREE_POLLER)
        while not given.begun.is_set():
            try:
                await self._slots.close(given.claim.execution_ids, late, now=self._clock.now())
                return
            except Exception:
                # The database is unavailable. No other process ends this claim, so its OLT stays blocked until we have.
                logger.exception("%s could not be withdrawn", given.claim.composite.master.name)
            await self._clock.sleep(LOOK_EVERY)

    async def watch(self) -> None:
        """Follow sent composites, forever."""
        listening = asyncio.create_task(self._listen(), name="ends")
        try:
            while True:
                await _first(self._news.wait(), self._clock.sleep(LOOK_EVERY))
                await self._clock.sleep(TOGETHER)
                self._news.clear()
                await self.look()
        finally:
            listening.cancel()

    async def _listen(self) -> None:
        async for _, news in self._bus.subscribe(["execution"]):
            if news.get("status") != Status.RUNNING.value:
                self._news.set()

    async def look(self) -> None:
        """Read the state of all sent composites from the database."""
        given = list(self._given)
        if not given:
            return
        try:
            known = await self._slots.progress([id_ for each in given for id_ in each.claim.execution_ids])
        except Exception:
            # The database is unavailable. The runs stay assigned to us, and the next look asks again.
            logger.exception("the status of %d runs sent to workers is unknown, retrying", len(given))
            return
        gone = Outcome(Status.INTERRUPTED, Cause.DISABLED)
        for each in given:
            outcomes = [known.get(id_, gone) for id_ in each.claim.execution_ids]
            if any(outcome.status is not Status.PENDING or outcome.retry_at for outcome in outcomes):
                each.begun.set()
            if all(outcome.is_over for outcome in outcomes) and not each.over.done():
                # As the worker would have returned them.
                ended = [replace(one.as_last(), retry_at=one.retry_at) if one.retry_at else one for one in outcomes]
                each.over.set_result(ended)


def own_queue(worker: str) -> str:
    """Return the queue of one worker. It has no process number: a worker that restarts keeps its OLTs."""
    return f"snmp_worker_{worker}"


def queue_of(claim: Claim) -> str:
    """Return the shared queue of a composite."""
    if claim.attempt > 1:
        return RETRY
    is_urgent = claim.composite.urgent or claim.composite.master.priority >= HIGH_PRIORITY
    return HIGH if is_urgent else DEFAULT


async def _first(*awaitables: Awaitable[Any]) -> None:
    """Wait until one of these is done, and stop the others."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
