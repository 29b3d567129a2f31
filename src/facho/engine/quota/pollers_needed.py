"""How many pollers it takes: an hour of all OLTs, simulated with pools of different sizes.

Formulas for queues with several servers do not hold here: arrivals are a grid and not chance, an OLT is served by one
poller at a time, and durations are the OLT's own. So the hour is simulated with a pool of k, and k is found by halving
the range in which it can lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from facho.engine.model import CompositeNode
from facho.engine.quota.hour_plan import HOUR, Work
from facho.engine.scheduling.grid import DELAYED_AFTER, GOLDEN_RATIO
from facho.engine.scheduling.simulation import Simulation

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


def pollers_needed(works: Sequence[Work], hour: datetime, *, target: float = ON_TIME) -> PoolNeed:
    """Return how many pollers the works of all OLTs take, so that this share of their slots begins within 5 s."""
    fleet = SimulatedHour(works, hour)
    if not fleet.slots:
        return PoolNeed(1, 1.0, 1.0)
    # More than one poller per OLT have nothing to do, and neither have more than ever run at once.
    reachable, high = fleet.simulate(len({work.composite.olt_id for work in works}))
    enough, on_time = min(target, reachable - NEARLY), reachable
    # Fewer than this would be busy without a pause and never be through.
    low = min(ceil(fleet.busy_seconds / HOUR.total_seconds()), high)
    while low < high:
        middle = (low + high) // 2
        share, _ = fleet.simulate(middle, enough)
        if share >= enough:
            high, on_time = middle, share
        else:
            low = middle + 1
    return PoolNeed(high, on_time, reachable)


class SimulatedHour:
    """The slots of all OLTs in an hour. How long the run of a slot takes does not depend on the pool."""

    def __init__(self, works: Sequence[Work], hour: datetime) -> None:
        self._end = hour + HOUR
        self._due = [work.due_at(work.first_slot(hour)) for work in works]
        # By composite and slot, in seconds, spread as it was measured.
        self._takes: dict[tuple[int, datetime], float] = {}
        for work in works:
            for slot in work.slots(hour, self._end):
                chance = min(max(len(self._takes) * GOLDEN_RATIO % 1, 0.001), 0.999)
                self._takes[work.composite.id, slot] = sum(each.at(chance) for each in work.predictions)
        # That of slots behind the hour.
        self._means = {work.composite.id: work.mean for work in works}

    @property
    def slots(self) -> int:
        return len(self._takes)

    @property
    def busy_seconds(self) -> float:
        """Return how long the runs of the hour take together."""
        return sum(self._takes.values())

    def simulate(self, pollers: int, enough: float = 0.0) -> tuple[float, int]:
        """Return the share of the slots that begin within 5 s, and the most runs at once.

        Where it becomes certain that the share is below `enough`, the rest is not simulated.
        """
        on_time = late = busiest = 0
        simulation = Simulation(self._due, pollers=pollers, seconds=self._seconds)
        for fate in simulation.run():
            if fate.at > self._end + DELAYED_AFTER or late > (1 - enough) * self.slots:
                break
            busiest = max(busiest, simulation.busy_pollers)
            if fate.slot < self._end:
                is_on_time = fate.cause is None and fate.at - fate.slot <= DELAYED_AFTER
                on_time += is_on_time
                late += not is_on_time
        return on_time / self.slots, busiest

    def _seconds(self, composite: CompositeNode) -> float:
        return self._takes.get((composite.id, composite.slot), self._means[composite.id])
