"""Fleets for a forecast: one made up from the usual jobs, or from jobs as an operator writes them."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from facho.brands import brand
from facho.engine.fleet import Fleet
from facho.engine.model import JobKind, Node
from facho.engine.predict import USUAL, Prediction
from facho.engine.schedule import GOLDEN_RATIO

# OLTs of one kind are not equally fast: the deviation of the logarithm of how fast they are.
UNEVEN = 0.25

# Where nobody said how much a job's own time varies: 19 of 20 runs stay below this many times the mean.
P95 = 1.6

# The maker whose usual jobs a made-up fleet runs.
MAKER = "huawei"


@dataclass(frozen=True, slots=True)
class JobWish:
    """A job as it is written on the command line: NAME:INTERVAL:SECONDS[:PRIORITY]."""

    name: str
    interval: timedelta
    prediction: Prediction
    priority: int = 40
    kind: JobKind = JobKind.TABLE
    follows: str | None = None
    timeout: timedelta = timedelta(minutes=5)


def parse_job(text: str) -> JobWish:
    """Return the job that a text describes; `ValueError` says what is wrong with it."""
    name, *numbers = (part.strip() for part in text.split(":"))
    if not name or not 2 <= len(numbers) <= 3:
        raise ValueError(f"{text!r} is no job: write NAME:INTERVAL:SECONDS or NAME:INTERVAL:SECONDS:PRIORITY")
    interval, seconds = _seconds(numbers[0], text), _seconds(numbers[1], text)
    if interval < 10 or seconds <= 0:
        raise ValueError(f"{text!r}: an interval has at least 10 seconds, and a run takes some time")
    priority = int(_seconds(numbers[2], text)) if len(numbers) == 3 else 40
    # Nothing is cut off: what was given is how long it takes.
    timeout = timedelta(seconds=max(300.0, 10 * seconds))
    return JobWish(name, timedelta(seconds=interval), Prediction(seconds, seconds * P95), priority, timeout=timeout)


UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600}


def _seconds(text: str, whole: str) -> float:
    """Return seconds of `300`, `5min` or `6h`."""
    unit = next((unit for unit in ("min", "s", "m", "h") if text.endswith(unit)), "")
    try:
        number = float(text.removesuffix(unit)) * UNITS.get(unit, 1)
    except ValueError:
        raise ValueError(f"{whole!r}: {text!r} is no time; write seconds, or 5min, or 6h") from None
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{whole!r}: {text!r} is no time")
    return number


def usual_jobs() -> Sequence[JobWish]:
    """Return the jobs that an OLT gets by itself."""
    return [
        JobWish(each.name, each.interval, USUAL[each.kind], each.priority, each.kind, each.follows, each.timeout)
        for each in brand(MAKER).templates
    ]


def made_up(olts: int, jobs: Sequence[JobWish], start: datetime, *, dead: int = 0, seed: int = 1) -> Fleet:
    """Return so many OLTs with these jobs, some faster and some slower, the last ones dead.

    They are thought to have been added one after the other: their slots are
    spread over the whole interval.
    """
    dice = random.Random(seed)
    nodes: list[Node] = []
    known: dict[int, Prediction] = {}
    for olt_id in range(1, olts + 1):
        pace = dice.lognormvariate(0.0, UNEVEN)
        for node, prediction in _nodes_of(olt_id, jobs, len(nodes), start):
            nodes.append(node)
            known[node.id] = Prediction(prediction.mean * pace, prediction.p95 * pace)
    return Fleet(tuple(nodes), lambda node, at: known[node.id], frozenset(range(olts - dead + 1, olts + 1)))


def _nodes_of(
    olt_id: int, jobs: Sequence[JobWish], first_id: int, start: datetime
) -> Sequence[tuple[Node, Prediction]]:
    ids: Mapping[str, int] = {job.name: first_id + place for place, job in enumerate(jobs, 1)}
    return [
        (
            Node(
                id=ids[job.name],
                olt_id=olt_id,
                name=job.name,
                kind=job.kind,
                interval=job.interval,
                olt_name=f"OLT-{olt_id:04}",
                priority=job.priority,
                master_id=ids[job.follows] if job.follows else None,
                next_check=None if job.follows else _somewhere(ids[job.name], job.interval, start),
                timeout=job.timeout,
                expected=job.prediction.mean,
            ),
            job.prediction,
        )
        for job in jobs
    ]


def _somewhere(number: int, interval: timedelta, start: datetime) -> datetime:
    """Return a slot within the first interval, on the second, others evenly beside it."""
    return (start + number * GOLDEN_RATIO % 1 * interval).replace(microsecond=0)


def with_jobs(fleet: Fleet, jobs: Sequence[JobWish], start: datetime) -> Fleet:
    """Return a fleet with these jobs on each OLT, besides what it has."""
    if not jobs:
        return fleet
    names = {node.olt_id: node.olt_name for node in fleet.nodes}
    known: dict[int, Prediction] = {}
    nodes = list(fleet.nodes)
    last = max((node.id for node in nodes), default=0)
    for olt_id, name in names.items():
        for node, prediction in _nodes_of(olt_id, jobs, last, start):
            nodes.append(replace(node, olt_name=name))
            known[node.id] = prediction
        last += len(jobs)
    before = fleet.durations
    return replace(
        fleet, nodes=tuple(nodes), durations=lambda node, at: known[node.id] if node.id in known else before(node, at)
    )


def with_dead(fleet: Fleet, percent: float) -> Fleet:
    """Return a fleet of which this share is dead, those included that are already."""
    olts = sorted({node.olt_id for node in fleet.nodes} - fleet.dead)
    more = round((len(olts) + len(fleet.dead)) * percent / 100) - len(fleet.dead)
    return replace(fleet, dead=fleet.dead | frozenset(olts[len(olts) - max(more, 0) :]))


def asked(fleet: Fleet) -> list[Node]:
    """Return the nodes of OLTs that pollers are needed for: those that were dead before are not asked."""
    return [node for node in fleet.nodes if node.olt_id not in fleet.broken & fleet.dead]
