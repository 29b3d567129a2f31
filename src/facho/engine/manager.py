"""The pollers: who runs what, how busy they are, and whether there are too few."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from facho.engine.events import Event, tell
from facho.engine.model import Cause, Claim, CompositeNode, Node, Outcome, Status
from facho.engine.ports import Clock, Ledger, NodeRunner
from facho.engine.queue import NodeQueue, Waiting
from facho.engine.schedule import is_delayed

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


class PollerManager:
    """Seats composites on pollers: at most one an OLT, the most urgent first.

    `on_claimed` is told of each slot that was taken, `on_refused` of each that
    was not there to be taken any more.
    """

    def __init__(
        self,
        *,
        pollers: int,
        runner: NodeRunner,
        ledger: Ledger,
        clock: Clock,
        on_claimed: Callable[[Claim], None],
        on_refused: Callable[[CompositeNode], None],
    ) -> None:
        self.pollers = [Poller(number) for number in range(1, pollers + 1)]
        self.queue = NodeQueue()
        self.saturation = Saturation()
        self._runner = runner
        self._ledger = ledger
        self._clock = clock
        self._on_claimed = on_claimed
        self._on_refused = on_refused
        self._tasks: set[asyncio.Task[None]] = set()
        self.started_at = clock.now()
        self._stopping = False

    @property
    def busy_olts(self) -> set[int]:
        return {poller.composite.olt_id for poller in self.pollers if poller.composite is not None}

    def offer(self, composite: CompositeNode) -> None:
        self.queue.offer(composite, self._clock.now())

    def renew(self, node_id: int, links: tuple[Node, tuple[Node, ...]]) -> None:
        """Let a composite that waits run as it is set up now, not as it was when it came in."""
        waiting = self.queue.find(node_id)
        if waiting is not None:
            master, chain = links
            waiting.composite = replace(waiting.composite, master=master, chain=chain)

    def seat(self) -> None:
        """Give free pollers what may run."""
        now = self._clock.now()
        busy = self.busy_olts
        for poller in self.pollers:
            if self._stopping:
                return
            if poller.is_free:
                waiting = self.queue.take(busy, now)
                if waiting is None:
                    return
                busy.add(waiting.composite.olt_id)
                self._begin(poller, waiting, now)

    def _begin(self, poller: Poller, waiting: Waiting, now: datetime) -> None:
        waiting.mark(Cause.NO_FREE_POLLER, now)
        poller.sit(waiting.composite, now)
        task = asyncio.create_task(self._work(poller, waiting), name=f"poller-{poller.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, poller: Poller, waiting: Waiting) -> None:
        try:
            claim = await self._claim(poller, waiting)
            if claim is not None:
                await self._runner.run(claim, poller)
                poller.tasks_completed += 1
                poller.tasks_delayed += is_delayed(waiting.composite, poller.busy_since or self._clock.now())
        except Exception:
            # A poller outlives whatever its composite ran into.
            logger.exception("poller %d: %s ended in an error", poller.id, waiting.composite.master.name)
            # The next tick seats again: a database that is away must not be asked in a tight loop.
            return
        finally:
            # What waited for this OLT until now did not wait for a poller.
            self.queue.mark(self.busy_olts, self._clock.now())
            poller.rise(self._clock.now())
        self.seat()

    async def _claim(self, poller: Poller, waiting: Waiting) -> Claim | None:
        composite = waiting.composite
        claiming = asyncio.ensure_future(
            self._ledger.claim(composite, poller_id=poller.id, now=self._clock.now(), waits=dict(waiting.waits))
        )
        try:
            claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The slot may be ours by now, and nobody will run it.
            await self._give_up(await claiming)
            raise
        except Exception:
            # The database may be away for a while. Nothing has been asked of the OLT yet, so waiting costs it nothing.
            self.queue.put_back(waiting)
            raise
        if claim is None:
            self._on_refused(composite)
        else:
            self._on_claimed(claim)
        return claim

    async def _give_up(self, claim: Claim | None) -> None:
        """End the executions of a slot that was taken in the moment of stopping."""
        if claim is not None:
            stopped = Outcome(Status.INTERRUPTED, Cause.STOPPED)
            await self._ledger.close(claim.execution_ids, stopped, lease=None, now=self._clock.now())

    def tick(self) -> None:
        """Once a second: account for what waits, sample the load, fill the seats."""
        now = self._clock.now()
        self.queue.mark(self.busy_olts, now)
        busy = sum(not poller.is_free for poller in self.pollers)
        self._sample(100.0 * busy / len(self.pollers))
        self.seat()

    def _sample(self, busy_percentage: float) -> None:
        before = self.saturation.is_saturated
        self.saturation.add(busy_percentage)
        if self.saturation.is_saturated and not before:
            tell(logger, Event.POOL_SATURATED, busy=self.saturation.mean)
        elif before and not self.saturation.is_saturated:
            tell(logger, Event.POOL_RELIEVED, busy=self.saturation.mean)

    async def stop(self) -> None:
        """Interrupt what runs, and wait until it has been written down."""
        self._stopping = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
