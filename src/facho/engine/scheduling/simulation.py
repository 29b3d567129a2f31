"""The grid, the queue and the dispatcher of the engine on a virtual clock. Runs only take their time.

The plan of the hour and `pollers_needed` are read from it. It has no event loop: it jumps from one time at which
something can happen to the next, so an hour of 1,000 OLTs takes about a second.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.model import Cause, CompositeNode
from facho.engine.scheduling.grid import Grid, Shift, next_check
from facho.engine.scheduling.pollers import Dispatcher, Poller

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SlotFate:
    """What became of a slot: it began at `at`, or was lost then for a cause."""

    composite: CompositeNode
    at: datetime
    cause: Cause | None = None

    @property
    def slot(self) -> datetime:
        return self.composite.slot

    @property
    def start(self) -> datetime | None:
        return self.at if self.cause is None else None


class Simulation:
    """Yields the fate of one slot after the other, in the order of time.

    As in a live engine, a tick on the whole second expires slots and offers those that are due, and a run that ends
    frees its poller and its OLT at once. Every OLT answers and no run fails. Each composite is first due at its slot.
    """

    def __init__(
        self, composites: Iterable[CompositeNode], *, pollers: int, seconds: Callable[[CompositeNode], float]
    ) -> None:
        # Returns how long the run of a composite takes.
        self._seconds = seconds
        self._grid = Grid()
        every = {each.id: each for each in composites}
        links = {id_: (each.master, each.chain) for id_, each in every.items()}
        self._grid.apply((), links, Shift(dues={id_: each.slot for id_, each in every.items()}))
        self._dispatcher = Dispatcher(pollers, self._grid.next_due)
        self._queue = self._dispatcher.queue
        # When runs end: the time, a number that no two have in common, the OLT and the poller.
        self._ends: list[tuple[datetime, int, int, Poller | None]] = []
        self._numbers = itertools.count()

    def hold(self, olt_id: int, until: datetime) -> None:
        """Keep an OLT busy from the beginning: something runs on it that is not simulated."""
        self._queue.block(olt_id, until)
        heappush(self._ends, (until, next(self._numbers), olt_id, None))

    @property
    def busy_pollers(self) -> int:
        return self._dispatcher.busy

    def run(self) -> Iterator[SlotFate]:
        """Yield the fate of each slot, without end."""
        while True:
            # The next whole second at which the scheduler has something to do.
            events = (self._grid.first_due(), self._queue.next_end())
            times = [_next_second(at) if at.microsecond else at for at in events if at is not None]
            # Without a free poller, `take` looks at nothing before a run has ended.
            alarm = self._queue.next_alarm() if self._dispatcher.has_free_poller else None
            if alarm is not None:
                times.append(_next_second(alarm))
            tick = min(times, default=None)
            if self._ends and (tick is None or self._ends[0][0] < tick):
                now, _, olt_id, poller = heappop(self._ends)
                if poller is None:
                    self._queue.release(olt_id, now)
                else:
                    self._dispatcher.end(poller, olt_id, now)
            elif tick is None:
                return
            else:
                now = tick
                for waiting in self._queue.expire(now):
                    yield from _lost(waiting.composite, 0, waiting.lost_slots(now) - 1, waiting.main_cause, now)
                    self._queue.put_back(waiting.renewed(now), now=now)
                for composite in self._grid.take_due(now):
                    self._queue.offer(composite, now)
            while (taken := self._dispatcher.take(now)) is not None:
                composite = taken.composite
                seconds, interval = self._seconds(composite), composite.master.interval
                poller = self._dispatcher.begin(composite, now)
                # Set before the run ends: until then nothing else is considered on its OLT.
                self._dispatcher.took[composite.id] = seconds
                heappush(self._ends, (now + timedelta(seconds=seconds), next(self._numbers), composite.olt_id, poller))
                self._grid.put(composite.id, next_check(composite.slot, interval, now), interval)
                yield SlotFate(composite, now)
                # A slot that ends between two ticks can still begin; those behind it that have come are lost.
                yield from _lost(composite, 1, taken.lost_slots(now), taken.main_cause, now)


def _next_second(at: datetime) -> datetime:
    return at.replace(microsecond=0) + SECOND


def _lost(composite: CompositeNode, first: int, last: int, cause: Cause, now: datetime) -> Iterator[SlotFate]:
    """Yield slots that are lost, counted from that of the composite."""
    for number in range(first, last + 1):
        slot = composite.slot + number * composite.master.interval
        yield SlotFate(replace(composite, slot=slot), now, cause)
