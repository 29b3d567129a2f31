"""Number of pollers needed: the merged plans of all OLTs, simulated with pools of different sizes.

Queueing formulas do not apply: arrivals follow a grid, an OLT is served by one poller at a time, and durations differ
per OLT. So the hour is simulated with k pollers, which takes a fraction of a second, and k is found by bisection.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from math import ceil

from facho.engine.quota.hour_plan import HOUR, Work
from facho.engine.scheduling.due import DELAYED_AFTER, GOLDEN_RATIO

# Required share of slots that start in time.
ON_TIME = 0.95

# If busy OLTs keep the share below that for any pool, the pool must come this close to an unlimited one.
NEARLY = 0.005


@dataclass(frozen=True, slots=True)
class PoolNeed:
    """Smallest sufficient pool, the share that it reaches, and the share of an unlimited pool."""

    pollers: int
    on_time: float
    reachable: float


@dataclass(frozen=True, slots=True)
class _Run:
    """A slot in seconds since the start of the hour. Sorted like late runs in the queue: longest delay first."""

    slot: float
    priority: int
    number: int
    olt_id: int
    takes: float
    lost_at: float

    @property
    def key(self) -> tuple[float, int, int]:
        return (self.slot, -self.priority, self.number)


def pollers_needed(works: Sequence[Work], hour: datetime, *, target: float = ON_TIME) -> PoolNeed:
    """Return the number of pollers with which this share of all slots starts within 5 s."""
    runs = _runs(works, hour)
    olts = len({run.olt_id for run in runs})
    if not runs:
        return PoolNeed(1, 1.0, 1.0)
    reachable = on_time_share(runs, olts)
    enough = min(target, reachable - NEARLY)
    # Fewer pollers would never catch up; more than one per OLT are idle.
    low, high = min(ceil(sum(run.takes for run in runs) / HOUR.total_seconds()), olts), olts
    while low < high:
        middle = (low + high) // 2
        if on_time_share(runs, middle) >= enough:
            high = middle
        else:
            low = middle + 1
    return PoolNeed(low, on_time_share(runs, low), reachable)


def _runs(works: Sequence[Work], hour: datetime) -> list[_Run]:
    """Return all slots of the hour, by time, with durations spread as observed."""
    runs: list[_Run] = []
    for work in works:
        master, interval = work.composite.master, work.interval.total_seconds()
        for slot in work.slots(hour, hour + HOUR):
            due = (slot - hour).total_seconds()
            chance = len(runs) * GOLDEN_RATIO % 1
            takes = sum(each.at(min(max(chance, 0.001), 0.999)) for each in work.predictions)
            runs.append(_Run(due, master.priority, len(runs), master.olt_id, takes, due + interval))
    return sorted(runs, key=lambda run: run.key)


def on_time_share(runs: Sequence[_Run], pollers: int) -> float:
    """Simulate the hour, and return the share of slots that started within 5 s."""
    play, number = _Play(pollers), 0
    while number < len(runs) or play.finishing:
        finish = play.finishing[0][0] if play.finishing else float("inf")
        now = min(finish, runs[number].slot) if number < len(runs) else finish
        while number < len(runs) and runs[number].slot <= now:
            play.offer(runs[number])
            number += 1
        play.finish(now)
        play.seat(now)
    return play.on_time / len(runs)


class _Play:
    """A pool and its OLTs, one run at a time per OLT."""

    def __init__(self, pollers: int) -> None:
        self.free = pollers
        self.on_time = 0
        self.finishing: list[tuple[float, int]] = []
        self._ready: list[tuple[tuple[float, int, int], _Run]] = []
        self._busy: set[int] = set()
        self._parked: defaultdict[int, list[tuple[tuple[float, int, int], _Run]]] = defaultdict(list)

    def offer(self, run: _Run) -> None:
        heappush(self._parked[run.olt_id] if run.olt_id in self._busy else self._ready, (run.key, run))

    def finish(self, now: float) -> None:
        """Release pollers and OLTs whose run has ended."""
        while self.finishing and self.finishing[0][0] <= now:
            _, olt_id = heappop(self.finishing)
            self.free += 1
            self._busy.discard(olt_id)
            if self._parked[olt_id]:
                heappush(self._ready, heappop(self._parked[olt_id]))

    def seat(self, now: float) -> None:
        while self.free and self._ready:
            _, run = heappop(self._ready)
            if run.olt_id in self._busy:
                self.offer(run)
            elif run.lost_at > now:
                self._begin(run, now)
            elif self._parked[run.olt_id]:
                heappush(self._ready, heappop(self._parked[run.olt_id]))

    def _begin(self, run: _Run, now: float) -> None:
        self.free -= 1
        self.on_time += now - run.slot <= DELAYED_AFTER.total_seconds()
        self._busy.add(run.olt_id)
        heappush(self.finishing, (now + run.takes, run.olt_id))
