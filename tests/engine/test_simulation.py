"""What is simulated is what the engine does: the same slots at the same times, with the same losses."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from math import isqrt

from builders import HOUR, MIN, T0, World, make_node
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from examples import examples
from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.engine.model import CompositeNode
from facho.engine.quota.durations import Prediction
from facho.engine.quota.hour_plan import Work, plan_hour
from facho.engine.scheduling.simulation import Simulation

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)


@dataclass(frozen=True)
class Job:
    """A composite, and how long its links take, in whole seconds."""

    olt_id: int
    seconds: int
    chain: int
    minutes: int
    due: int
    priority: int
    is_known: bool


def jobs(olts, seconds):
    return st.lists(
        st.builds(
            Job,
            olt_id=st.integers(1, olts),
            seconds=st.integers(0, seconds),
            chain=st.sampled_from([0, 0, 0, 20]),
            minutes=st.sampled_from([1, 2, 5, 10, 30, 90]),
            due=st.integers(0, 5399),
            priority=st.sampled_from([20, 40, 90]),
            is_known=st.booleans(),
        ),
        min_size=1,
        max_size=len(PRIMES),
    )


def works_of(jobs):
    """Return the works of jobs. Each takes a fraction of a second of its own.

    No two runs end at the same time then, nor together with a tick: what comes first would be chance.
    """
    works = []
    for number, job in enumerate(jobs):
        interval = job.minutes * MIN
        seconds = job.seconds + isqrt(PRIMES[number] * 10**12) % 10**6 / 1e6
        times = [seconds, *([float(job.chain)] if job.chain else [])]
        common = {"olt_id": job.olt_id, "interval": interval, "priority": job.priority}
        slot = T0 + timedelta(seconds=job.due) % interval
        master = make_node(number + 1, next_check=slot, **common)
        chain = [make_node(number + 101, master_id=master.id, **common) for _ in times[1:]]
        predictions = tuple(Prediction(each, each, 20 if job.is_known else 0) for each in times)
        works.append(Work(CompositeNode(master, tuple(chain), slot), predictions))
    return works


def lived(works, span, pollers):
    """Return what the engine makes of these works on a virtual clock, as `fates` does."""
    takes = {
        link.id: each.mean for work in works for link, each in zip(work.composite.links, work.predictions, strict=True)
    }
    nodes = [link for work in works for link in work.due_at(work.composite.slot).links]

    async def story():
        world = World(VirtualClock(T0), nodes, pollers=pollers, seconds=lambda node, slot: takes[node.id])
        await world.run_for(span)
        return world

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        rows = [row for row in runner.run(story()).rows if row.node.master_id is None]
    return {
        (row.node.id, row.slot + number * row.node.interval): (row.claimed_at, row.cause)
        for row in rows
        for number in range(row.slots)
    }


def simulated(works, span, pollers):
    """Return when each slot begins, or why it is lost, as far as that is decided by then."""
    takes = {work.composite.id: work.mean for work in works}
    simulation = Simulation(
        [work.due_at(work.composite.slot) for work in works],
        pollers=pollers,
        seconds=lambda composite: takes[composite.id],
    )
    decided = takewhile(lambda fate: fate.at < T0 + span, simulation.run())
    return {(fate.composite.id, fate.slot): (fate.start, fate.cause) for fate in decided}


# An hour of the engine takes a second, so looking for the shortest example that fails would take minutes.
PHASES = [phase for phase in Phase if phase is not Phase.shrink]
SLOW = settings(max_examples=examples(10), deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(jobs(olts=6, seconds=200), st.integers(1, 4))
def test_a_fleet_is_simulated_as_the_engine_runs_it(jobs, pollers):
    works, span = works_of(jobs), 20 * MIN

    assert simulated(works, span, pollers) == lived(works, span, pollers)


@SLOW
@given(jobs(olts=1, seconds=300))
def test_the_plan_of_an_olt_is_what_the_engine_does(jobs):
    works = works_of(jobs)

    plan = {(each.work.composite.id, each.slot): (each.start, each.cause) for each in plan_hour(works, T0).slots}

    # At the end of the hour some of its slots are still queued.
    decided = lived(works, HOUR, pollers=1)
    assert {key: plan.get(key) for key in decided} == decided
    assert all(start is None or start >= T0 + HOUR for key, (start, _) in plan.items() if key not in decided)
