"""Runs the engine on a virtual clock, over a fleet that there is or might be, and says what would come of it."""

import asyncio
import gc
import logging
import selectors
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.engine.breaker import OPENS_AFTER
from facho.engine.failures import Record
from facho.engine.fleet import Chance, Fleet
from facho.engine.forecast import ForecastNodes, ForecastSlots, SleepingProber, SleepingRunner, on_grid
from facho.engine.manager import PollerManager
from facho.engine.model import CompositeNode, Node, Status
from facho.engine.plan import HOUR, Work
from facho.engine.pool import pollers_needed
from facho.engine.schedule import first_check, group_chains
from facho.engine.scheduler import Scheduler
from facho.engine.score import Score
from facho.runtime.fleets import asked

# An engine that has just begun has nothing waiting. This long it runs before anything is counted, or dies.
WARM_UP = timedelta(minutes=30)

# Slots that are due in the last seconds still get this long to end.
DRAIN = timedelta(minutes=15)

# How many of the OLTs whose runs failed most are named.
WORST = 10

# Told how many virtual hours have passed.
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be forecast. The start is the turn of an hour, so that every quota is a whole one."""

    fleet: Fleet
    pollers: int
    hours: float
    start: datetime
    seed: int = 1
    opens_after: int = OPENS_AFTER
    auto_recover: bool = True
    warm_up: timedelta = WARM_UP


def forecast(wish: Wish, progress: Progress = lambda hours: None) -> dict[str, Any]:
    """Return what comes of it, as plain values."""
    nodes = tuple(on_grid(node, wish.start - wish.warm_up) for node in wish.fleet.nodes)
    wish = replace(wish, fleet=replace(wish.fleet, nodes=nodes))
    silenced = logging.getLogger("facho.engine")
    level = silenced.level
    # What a forecast runs into is no event of this installation.
    silenced.setLevel(logging.CRITICAL + 1)
    # Nothing that is made here lasts, and nothing of it is a cycle: looking for garbage would take a tenth of the time.
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=ForecastLoop) as runner:
            score = runner.run(_lived_through(wish, progress))
    finally:
        gc.enable()
        silenced.setLevel(level)
    return _described(wish) | score.report() | {"pool": _pool(wish)}


class ForecastLoop(VirtualTimeLoop):
    """A virtual loop that never looks at a socket: there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Jump(self)


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self._loop.virtual_time += timeout
        return []


async def _lived_through(wish: Wish, progress: Progress) -> Score:
    clock, end = VirtualClock(wish.start - wish.warm_up), wish.start + timedelta(hours=wish.hours)
    score = Score(wish.start, end, {node.id: node for node in wish.fleet.nodes}, wish.fleet.dead)
    chance = Chance(wish.fleet, wish.start, seed=wish.seed)
    nodes = ForecastNodes(wish.fleet, chance, clock, auto_recover=wish.auto_recover)
    slots = ForecastSlots(nodes, score, wish.opens_after)

    def sample(manager: PollerManager) -> None:
        if wish.start <= clock.now() < end:
            score.sampled(manager.saturation.samples[-1], wish.pollers, 1.0, manager.saturation.is_saturated)

    scheduler = Scheduler(
        pollers=wish.pollers,
        nodes=nodes,
        slots=slots,
        runner=SleepingRunner(chance, slots, clock),
        clock=clock,
        prober=SleepingProber(chance, slots, clock),
        on_tick=sample,
    )
    while clock.now() < end + DRAIN:
        await scheduler.step()
        progress(min(max((clock.now() - wish.start) / HOUR, 0.0), wish.hours))
        await clock.sleep(1.0)
    await _give_up(scheduler.manager, score, clock.now())
    return score


async def _give_up(manager: PollerManager, score: Score, now: datetime) -> None:
    """Count what still waits as what it would become, and stop the rest."""
    waiting = manager.waiting
    for retry in [*manager.retries.drain(), *(each.retry for each in waiting if each.retry)]:
        await manager.end(retry)
    for each in waiting:
        each.mark(now)
        if each.retry is None:
            for link in each.composite.links:
                score.ended(link.id, each.composite.slot, Status.SKIPPED, each.main_cause)
    await manager.stop()


def _described(wish: Wish) -> dict[str, Any]:
    return {
        "olts": len({node.olt_id for node in wish.fleet.nodes}),
        "dead": len(wish.fleet.dead),
        "nodes": len(wish.fleet.nodes),
        "pollers": wish.pollers,
        "hours": wish.hours,
        "seed": wish.seed,
        "start": wish.start.isoformat(),
        "failures": _failures(wish.fleet),
    }


def _failures(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the OLTs of which it was learned that runs fail, those first that answered least."""
    names = {node.olt_id: node.olt_name for node in fleet.nodes}
    known = [(names[id_], record) for id_, record in fleet.records.items() if id_ in names and _fails(record)]
    known.sort(key=lambda item: ((item[1].runs - item[1].silent - item[1].failed) / item[1].runs, item[0]))
    return [
        {"olt": name, "runs": record.runs, "answered": record.runs - record.silent, "failed": record.failed}
        for name, record in known[:WORST]
    ]


def _fails(record: Record) -> bool:
    return record.silent + record.failed > 0


def _pool(wish: Wish) -> dict[str, Any]:
    """Return how many pollers it takes. What dies in the forecast may come back, and counts."""
    need = pollers_needed(works(asked(wish.fleet), wish.fleet, wish.start), wish.start)
    return {
        "pollers": need.pollers,
        "on_time": round(100 * need.on_time, 1),
        "reachable": round(100 * need.reachable, 1),
    }


def works(nodes: Iterable[Node], fleet: Fleet, start: datetime) -> Sequence[Work]:
    """Return the composites of a fleet with what is known of their durations."""
    found = []
    for master, chain in group_chains(nodes).values():
        composite = CompositeNode(master, chain, master.next_check or first_check(master, start))
        found.append(Work(composite, tuple(fleet.durations(link, start) for link in composite.links)))
    return found
