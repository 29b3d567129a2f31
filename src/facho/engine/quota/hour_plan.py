"""Plan of an OLT's hour: expected times of its slots, lost slots, and whether the hour is long enough.

A plan is stored as `plan_data`, a list with one entry per slot, in order:

    node_id, task      the master
    slot               due time; times are ISO 8601 in UTC
    start, end         expected times; null if the slot will be lost
    p95_end            95th percentile of the end
    cause              cause of the loss, expected or actual
    chain              links after the master: {node_id, task, start, end}

and the actual result, for the master and for each link of its chain:

    actual_start, actual_end, status, cause

`advice` is a list of {event, params} with the changes that make the hour long enough; `engine/events.py` has the texts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import hypot
from typing import Any

from facho.engine.events import Event
from facho.engine.model import Cause, CompositeNode, Node
from facho.engine.quota.durations import Prediction
from facho.engine.scheduling.simulation import Simulation

HOUR = timedelta(hours=1)

# An hour is full at this share, to leave room for runs that take longer than expected.
FULL = 0.9

# A plan is made again when the utilisation changed by this many percentage points. A smaller change is enough if it
# makes a feasible hour infeasible or vice versa, but not any change: an hour that is just full would be planned again
# every minute.
MATERIAL = 10.0
MATERIAL_AT_LIMIT = 2.0

# Consecutive failed runs of an OLT after which the rest of its hour is planned again.
SEVERAL_FAILURES = 3

# Usual intervals, in minutes.
ROUND_MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1440)

# Maximum factors for a longer interval in an advice, tried in order.
FARTHEST = (4, 16, 64, 1440)


@dataclass(frozen=True, slots=True)
class Work:
    """A composite and the expected duration of each link. Its slot is its next due time."""

    composite: CompositeNode
    predictions: tuple[Prediction, ...]

    @property
    def mean(self) -> float:
        return sum(each.mean for each in self.predictions)

    @property
    def p95(self) -> float:
        """Return the 95th percentile of the whole chain: its links are not all slow at once."""
        return self.mean + hypot(*(each.p95 - each.mean for each in self.predictions))

    @property
    def interval(self) -> timedelta:
        return self.composite.master.interval

    @property
    def is_known(self) -> bool:
        """Return whether it has ever run; otherwise its durations are defaults."""
        return any(each.samples for each in self.predictions)

    def due_at(self, slot: datetime) -> CompositeNode:
        """Return the composite at a slot, as the engine will have it: it knows the durations that were measured."""
        master, *chain = (
            replace(link, expected=prediction.mean) if prediction.samples else link
            for link, prediction in zip(self.composite.links, self.predictions, strict=True)
        )
        return CompositeNode(master, tuple(chain), slot)

    def first_slot(self, start: datetime) -> datetime:
        """Return the first slot of its grid from `start` on, but not before it is due."""
        slot = self.composite.slot
        return slot if slot >= start else slot - (slot - start) // self.interval * self.interval

    def slots(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Return the slots of its grid from `start` until before `end`, none before it is due."""
        slot = self.first_slot(start)
        while slot < end:
            yield slot
            slot += self.interval


@dataclass(frozen=True, slots=True)
class PlannedSlot:
    """A slot and its expected start; without a start, it will be lost."""

    work: Work
    slot: datetime
    start: datetime | None = None
    cause: Cause | None = None

    @property
    def end(self) -> datetime | None:
        return self.start and self.start + timedelta(seconds=self.work.mean)


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended longer interval of a job."""

    node: Node
    minutes: int


@dataclass(frozen=True, slots=True)
class HourPlan:
    """Plan of an OLT for one hour. `needed` is in seconds for a whole hour, even if only the rest is planned.

    Jobs that have never run do not count, so they never make an hour too short.
    """

    slots: tuple[PlannedSlot, ...]
    needed: float
    advice: tuple[Advice, ...] = ()

    @property
    def utilisation(self) -> float:
        """Return the needed time in percent of the hour."""
        return 100 * self.needed / HOUR.total_seconds()

    @property
    def is_feasible(self) -> bool:
        return self.needed <= HOUR.total_seconds()

    @property
    def lost(self) -> tuple[PlannedSlot, ...]:
        return tuple(each for each in self.slots if each.start is None)

    def data(self) -> list[dict[str, Any]]:
        """Return the slots as stored."""
        entries = []
        for planned in self.slots:
            work, start = planned.work, planned.start
            links: list[dict[str, Any]] = []
            for link, prediction in zip(work.composite.links, work.predictions, strict=True):
                end = start and start + timedelta(seconds=prediction.mean)
                links.append({"node_id": link.id, "task": link.name, "start": _iso(start), "end": _iso(end)})
                start = end
            entry = {
                **links[0],
                "slot": planned.slot.isoformat(),
                "end": _iso(planned.end),
                "p95_end": _iso(planned.start and planned.start + timedelta(seconds=work.p95)),
                "chain": links[1:],
                "cause": planned.cause.value if planned.cause else None,
            }
            entries.append(entry)
        return entries

    def advice_data(self, olt_name: str) -> list[dict[str, Any]]:
        """Return the advice as stored: one message for any number of jobs."""
        if not self.advice:
            return []
        first, *rest = self.advice
        params = {
            "olt": olt_name,
            "needed": round(self.needed / 60, 1),
            "task": first.node.name,
            "minutes": first.minutes,
            "jobs": len(self.advice),
            "others": ", ".join(f"{each.node.name} ({each.minutes} min)" for each in rest),
        }
        return [{"event": Event.HOUR_INFEASIBLE.name, "params": params}]


def plan_hour(
    works: Sequence[Work],
    hour: datetime,
    *,
    now: datetime | None = None,
    busy_until: datetime | None = None,
    blocked: Cause | None = None,
) -> HourPlan:
    """Return the plan of an OLT for the hour that starts at `hour`, or for the rest of it.

    `now` is the present time where the hour has begun, and `busy_until` when
    a run that is under way ends. `blocked` is the cause for which nothing
    will run.
    """
    now = max(hour, now or hour)
    if blocked:
        planned = [PlannedSlot(work, slot, cause=blocked) for work in works for slot in _left(work, hour, now)]
    else:
        planned = list(_simulated(works, hour, now, max(now, busy_until or now)))
    slots = sorted(planned, key=lambda each: (each.slot, each.work.composite.id))
    needed = needed_seconds(works, hour)
    known = [work for work in works if work.is_known]
    full = FULL * HOUR.total_seconds()
    advice = _advice(known, needed, full) if needed > HOUR.total_seconds() else ()
    return HourPlan(tuple(slots), needed, advice)


def needed_seconds(works: Iterable[Work], hour: datetime) -> float:
    """Return the seconds that these jobs need in an hour, without jobs that have never run."""
    needed = 0.0
    for work in works:
        if work.is_known:
            # A job with an interval of more than an hour needs all or none.
            is_short = work.interval <= HOUR
            needed += work.mean * (HOUR / work.interval if is_short else len(list(work.slots(hour, hour + HOUR))))
    return needed


def is_material(before: float, after: float) -> bool:
    """Return whether a change of utilisation, in percent, requires a new plan."""
    moved = abs(after - before)
    return moved >= MATERIAL or (moved >= MATERIAL_AT_LIMIT and (before > 100) != (after > 100))


def _simulated(works: Sequence[Work], hour: datetime, now: datetime, free: datetime) -> Iterator[PlannedSlot]:
    """Yield each slot of the hour that is left, as the engine will run it or lose it.

    Slots behind the hour are simulated, too: they compete with those that are late at its end.
    """
    by_id = {work.composite.id: work for work in works}
    left = {(work.composite.id, slot) for work in works for slot in _left(work, hour, now)}
    due = [work.due_at(work.first_slot(_since(work, hour, now))) for work in works]
    # An OLT has one run at a time, so one poller is as good as many.
    simulation = Simulation(due, pollers=1, seconds=lambda composite: by_id[composite.id].mean)
    for olt_id in {composite.olt_id for composite in due}:
        simulation.hold(olt_id, free)
    fates = simulation.run()
    while left:
        fate = next(fates)
        key = (fate.composite.id, fate.slot)
        if key in left:
            left.remove(key)
            yield PlannedSlot(by_id[fate.composite.id], fate.slot, fate.start, fate.cause)


def _left(work: Work, hour: datetime, now: datetime) -> Iterator[datetime]:
    """Return the slots of the hour that are still to run: those to come, and the one that is queued already."""
    return work.slots(_since(work, hour, now), hour + HOUR)


def _since(work: Work, hour: datetime, now: datetime) -> datetime:
    return hour if work.composite.slot >= hour else max(hour, now)


def _advice(works: Sequence[Work], needed: float, room: float) -> tuple[Advice, ...]:
    """Return the smallest change that makes an hour fit.

    One job if that is enough: the least important, then the most expensive. Otherwise several, the most expensive
    first.
    """
    important = sorted(works, key=lambda each: (each.composite.master.priority, -_rate(each)))
    expensive = sorted(works, key=lambda each: -_rate(each))
    for factor in FARTHEST:
        for work in important:
            others = needed - _rate(work)
            minutes = _minutes(work, room - others, factor)
            if minutes is not None and others + _rate(work, minutes) <= room:
                return (Advice(work.composite.master, minutes),)
        left = needed
        advice: list[Advice] = []
        for work in expensive:
            minutes = _minutes(work, room - (left - _rate(work)), factor)
            if left > room and minutes is not None:
                left += _rate(work, minutes) - _rate(work)
                advice.append(Advice(work.composite.master, minutes))
        if advice and left <= room:
            return tuple(advice)
    return ()


def _rate(work: Work, minutes: int | None = None) -> float:
    """Return the mean seconds per hour of a job, at its own or another interval."""
    return work.mean * (HOUR / (work.interval if minutes is None else timedelta(minutes=minutes)))


def _minutes(work: Work, room: float, factor: int) -> int | None:
    """Return the shortest usual interval at which a job fits into this many seconds of an hour.

    It is longer than the current one, but at most by this factor; if that does not fit, the maximum is returned.
    """
    longest = max(work.interval * factor, timedelta(minutes=1))
    longer = [minutes for minutes in ROUND_MINUTES if work.interval < timedelta(minutes=minutes) <= longest]
    return next((minutes for minutes in longer if _rate(work, minutes) <= room), longer[-1] if longer else None)


def _iso(time: datetime | None) -> str | None:
    return time.isoformat(timespec="milliseconds") if time else None
