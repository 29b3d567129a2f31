"""How many pollers it takes: an hour of all OLTs, simulated with pools of different sizes.

Formulas for queues with several servers do not hold here: arrivals are a grid and not chance, an OLT is served by one
poller at a time, and durations are the OLT's own. So the hour is simulated with a pool of k, and k is found by halving
the range in which it can lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

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
    end = hour + HOUR
    due = [work.due_at(work.first_slot(hour)) for work in works]
    # Seconds of each run, by composite and slot: spread as measured, the same for any pool.
    takes: dict[tuple[int, datetime], float] = {}
    for work in works:
        for slot in work.slots(hour, end):
            chance = min(max(len(takes) * GOLDEN_RATIO % 1, 0.001), 0.999)
            takes[work.composite.id, slot] = sum(each.at(chance) for each in work.predictions)
    # Those of slots after the hour.
    means = {work.composite.id: work.mean for work in works}
    if not takes:
        return PoolNeed(1, 1.0, 1.0)

    def simulate(pollers: int, enough: float = 0.0) -> tuple[float, int]:
        """Return the share of slots that start within 5 s, and the maximum of runs at once.

        The simulation ends when the share is certainly below `enough`.
        """
        on_time = late = busiest = 0
        simulation = Simulation(due, pollers=pollers, seconds=lambda run: takes.get((run.id, run.slot), means[run.id]))
        for fate in simulation.run():
            if fate.at > end + DELAYED_AFTER or late > (1 - enough) * len(takes):
                break
            busiest = max(busiest, simulation.busy_pollers)
            if fate.slot < end:
                is_on_time = fate.cause is None and fate.at - fate.slot <= DELAYED_AFTER
                on_time += is_on_time
                late += not is_on_time
        return on_time / len(takes), busiest

    # More than one poller per OLT have nothing to do, and neither have more than ever run at once.
    reachable, high = simulate(len({work.composite.olt_id for work in works}))
    enough, on_time = min(target, reachable - NEARLY), reachable
    # Fewer than this would be busy without a pause and never finish.
    low = min(ceil(sum(takes.values()) / HOUR.total_seconds()), high)
    while low < high:
        middle = (low + high) // 2
        share, _ = simulate(middle, enough)
        if share >= enough:
            high, on_time = middle, share
        else:
            low = middle + 1
    return PoolNeed(high, on_time, reachable)
