"""What an OLT's hour will look like: which slot runs when, which ones are lost, and whether the hour is long enough.

A plan is kept as `plan_data`, a list with one entry for each slot, in the order of the slots:

    node_id, task      the master
    slot               when it is due; times are ISO 8601 in UTC
    start, end         when it is expected to run; null where it will be lost
    p95_end            when it will have ended 19 times out of 20
    cause              why it will be lost, or was
    chain              the links behind the master: {node_id, task, start, end}

and, once it is known, what really happened, for the master and for each link of its chain:

    actual_start, actual_end, status, cause

`advice` is a list of {event, params}: what would make the hour long enough, as `engine/events.py` tells it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heapify, heappop
from math import hypot
from typing import Any

from facho.engine.events import Event
from facho.engine.model import Cause, CompositeNode, Node
from facho.engine.quota.durations import Prediction
from facho.engine.scheduling.due import may_make_way, urgency

HOUR = timedelta(hours=1)

# An hour is full at this share of it: what runs longer than expected must go somewhere.
FULL = 0.9

# A plan is made again when the utilisation of its hour has moved by so many percentage points. Where that makes a
# feasible hour infeasible or the other way round a smaller step is enough; some step it takes, or an hour that is just
# full would be planned again every minute.
MATERIAL = 10.0
MATERIAL_AT_LIMIT = 2.0

# Runs of an OLT that failed one after the other, after which the rest of its hour is planned again.
SEVERAL_FAILURES = 3

# Intervals that people choose, in minutes.
ROUND_MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720, 1440)

# Nobody is told to make a job rarer than by the first factor, as long as another way is left.
FARTHEST = (4, 16, 64, 1440)


@dataclass(frozen=True, slots=True)
class Work:
    """A composite, and how long each of its links will take. Its slot is when it is due next."""

    composite: CompositeNode
    predictions: tuple[Prediction, ...]

    @property
    def mean(self) -> float:
        return sum(each.mean for each in self.predictions)

    @property
    def p95(self) -> float:
        """Return what the whole chain stays below 19 times out of 20: its links are not all slow at once."""
        return self.mean + hypot(*(each.p95 - each.mean for each in self.predictions))

    @property
    def interval(self) -> timedelta:
        return self.composite.master.interval

    @property
    def is_known(self) -> bool:
        """Return whether it has ever run; otherwise its times are only what is usual."""
        return any(each.samples for each in self.predictions)

    def slots(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Return the slots of its grid from `start` until before `end`, none before it is due."""
        slot = self.composite.slot
        if slot < start:
            slot += -((slot - start) // self.interval) * self.interval
        while slot < end:
            yield slot
            slot += self.interval


@dataclass(frozen=True, slots=True)
class PlannedSlot:
    """A slot, and when it will run; without a start, it will be lost."""

    work: Work
    slot: datetime
    start: datetime | None = None
    cause: Cause | None = None

    @property
    def end(self) -> datetime | None:
        return self.start and self.start + timedelta(seconds=self.work.mean)


@dataclass(frozen=True, slots=True)
class Advice:
    """A job to be run less often."""

    node: Node
    minutes: int


@dataclass(frozen=True, slots=True)
class HourPlan:
    """An OLT's hour. `needed` is in seconds, and what a whole hour takes, also where only its rest is planned.

    Nobody is told that an hour is too short because of jobs that have never run: they do not count in it.
    """

    slots: tuple[PlannedSlot, ...]
    needed: float
    advice: tuple[Advice, ...] = ()

    @property
    def utilisation(self) -> float:
        """Return what is needed in percent of the hour."""
        return 100 * self.needed / HOUR.total_seconds()

    @property
    def is_feasible(self) -> bool:
        return self.needed <= HOUR.total_seconds()

    @property
    def lost(self) -> tuple[PlannedSlot, ...]:
        return tuple(each for each in self.slots if each.start is None)

    def data(self) -> list[dict[str, Any]]:
        """Return the slots as they are kept."""
        return [_entry(each) for each in self.slots]

    def advice_data(self, olt_name: str) -> list[dict[str, Any]]:
        """Return what to do as it is kept and told: one sentence, however many jobs it takes."""
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
    works: Sequence[Work], hour: datetime, *, since: datetime | None = None, blocked: Cause | None = None
) -> HourPlan:
    """Return the plan of an OLT for the hour that begins at `hour`, or for the rest of it.

    `since` is when the OLT is free: later than the beginning where the hour
    has begun, or something of the hour before is still running. `blocked` is
    the cause for which nothing will run.
    """
    end, now = hour + HOUR, max(hour, since or hour)
    slots = _lost(works, hour, end, now, blocked) if blocked else _laid_out(works, hour, end, now)
    needed = needed_seconds(works, hour)
    known = [work for work in works if work.is_known]
    full = FULL * HOUR.total_seconds()
    advice = _advice(known, needed, full) if needed > HOUR.total_seconds() else ()
    return HourPlan(tuple(slots), needed, advice)


def needed_seconds(works: Iterable[Work], hour: datetime) -> float:
    """Return the seconds that an hour of these jobs takes; jobs that have never run are left out."""
    return sum(_needed(work, hour, hour + HOUR) for work in works if work.is_known)


def is_material(before: float, after: float) -> bool:
    """Return whether a utilisation in percent has moved so far that the hour is planned again."""
    moved = abs(after - before)
    return moved >= MATERIAL or (moved >= MATERIAL_AT_LIMIT and (before > 100) != (after > 100))


def _needed(work: Work, start: datetime, end: datetime) -> float:
    """Return the seconds that a job takes of the hour; one that is rarer than hourly takes them all, or none."""
    if work.interval <= HOUR:
        return work.mean * (HOUR / work.interval)
    return work.mean * sum(1 for _ in work.slots(start, end))


@dataclass(slots=True)
class _Line:
    """The OLT's own waiting line, by the rules of `queue.py` and `manager.py`."""

    coming: list[tuple[datetime, int, Work]]
    waiting: dict[int, tuple[Work, datetime, datetime]] = field(default_factory=dict)
    lost: list[PlannedSlot] = field(default_factory=list)

    def admit(self, now: datetime) -> None:
        """Let in what is due. A slot that still waits when its next one comes is lost, and its place kept."""
        while self.coming and self.coming[0][0] <= now:
            slot, node_id, work = heappop(self.coming)
            since = slot
            if node_id in self.waiting:
                _, former, since = self.waiting[node_id]
                self.lost.append(PlannedSlot(work, former, cause=Cause.OLT_BUSY))
            self.waiting[node_id] = (work, slot, since)

    def take(self, now: datetime) -> tuple[Work, datetime] | None:
        """Give out the most urgent that may run now. The last slot of the hour has an end as well."""
        for work, slot, _ in list(self.waiting.values()):
            if slot + work.interval <= now:
                self.lost.append(PlannedSlot(work, slot, cause=Cause.OLT_BUSY))
                del self.waiting[work.composite.id]
        able = [id_ for id_, (work, _, since) in self.waiting.items() if not self._makes_way(work, since, now)]
        if not able:
            return None
        work, slot, _ = self.waiting.pop(min(able, key=lambda id_: self._urgency(id_, now)))
        return work, slot

    def _urgency(self, node_id: int, now: datetime) -> tuple[int, float, float, int]:
        work, slot, since = self.waiting[node_id]
        return urgency(replace(work.composite, slot=slot), since, now)

    def _makes_way(self, work: Work, since: datetime, now: datetime) -> bool:
        if not may_make_way(since, work.interval, now):
            return False
        ends = now + timedelta(seconds=work.mean)
        rivals = [other for other, _, _ in self.waiting.values()]
        rivals += [other for slot, _, other in self.coming if slot < ends]
        return any(other.composite.master.priority > work.composite.master.priority for other in rivals)

    def wakes_at(self, now: datetime) -> datetime | None:
        """Return when something may change: a slot comes, or one has made way for long enough."""
        times = [since + work.interval / 2 for work, _, since in self.waiting.values()]
        if self.coming:
            times.append(self.coming[0][0])
        return min((each for each in times if each > now), default=None)


def _laid_out(works: Iterable[Work], start: datetime, end: datetime, now: datetime) -> list[PlannedSlot]:
    """Return each slot of the hour that has not passed, by its time."""
    coming = [(slot, work.composite.id, work) for work in works for slot in _left(work, start, end, now)]
    heapify(coming)
    line, planned = _Line(coming), []
    time: datetime | None = now
    while time is not None:
        line.admit(time)
        taken = line.take(time)
        if taken is None:
            time = line.wakes_at(time)
        else:
            work, slot = taken
            planned.append(PlannedSlot(work, slot, time))
            time += timedelta(seconds=work.mean)
    return sorted([*planned, *line.lost], key=lambda each: (each.slot, each.work.composite.id))


def _lost(works: Iterable[Work], start: datetime, end: datetime, now: datetime, cause: Cause) -> list[PlannedSlot]:
    """Return each slot of the hour that has not passed, none of which will run."""
    slots = [PlannedSlot(work, slot, cause=cause) for work in works for slot in _left(work, start, end, now)]
    return sorted(slots, key=lambda each: (each.slot, each.work.composite.id))


def _left(work: Work, start: datetime, end: datetime, now: datetime) -> Iterator[datetime]:
    """Return the slots that are still to run: those to come, and the one that waits already."""
    due = work.composite.slot
    if start <= due < now:
        yield due
    yield from work.slots(max(now, start), end)


def _advice(works: Sequence[Work], needed: float, room: float) -> tuple[Advice, ...]:
    """Return the least that makes an hour fit.

    One job if one will do: the least important, and of these the dearest.
    Otherwise several, the dearest first.
    """
    important = sorted(works, key=lambda each: (each.composite.master.priority, -_rate(each)))
    dearest = sorted(works, key=lambda each: -_rate(each))
    for factor in FARTHEST:
        advice = _one(important, needed, room, factor) or _several(dearest, needed, room, factor)
        if advice:
            return advice
    return ()


def _one(works: Iterable[Work], needed: float, room: float, factor: int) -> tuple[Advice, ...]:
    """Return the first job that alone makes the hour fit, without becoming rarer than by this factor."""
    for work in works:
        minutes = _minutes(work, room - (needed - _rate(work)), factor)
        if minutes is not None and needed - _rate(work) + _rate(work, minutes) <= room:
            return (Advice(work.composite.master, minutes),)
    return ()


def _several(works: Iterable[Work], needed: float, room: float, factor: int) -> tuple[Advice, ...]:
    """Make one job after the other rarer, until the hour fits; nothing if it never does."""
    advice: list[Advice] = []
    for work in works:
        minutes = _minutes(work, room - (needed - _rate(work)), factor)
        if needed > room and minutes is not None:
            needed += _rate(work, minutes) - _rate(work)
            advice.append(Advice(work.composite.master, minutes))
    return tuple(advice) if needed <= room else ()


def _rate(work: Work, minutes: int | None = None) -> float:
    """Return the seconds that a job takes of an hour in the mean, at its own interval or at another."""
    return work.mean * (HOUR / (work.interval if minutes is None else timedelta(minutes=minutes)))


def _minutes(work: Work, room: float, factor: int) -> int | None:
    """Return the shortest round interval at which a job fits into so many seconds of an hour.

    It is longer than its own, but by no more than this factor: where it does
    not fit then, that is the interval.
    """
    longest = max(work.interval * factor, timedelta(minutes=1))
    longer = [minutes for minutes in ROUND_MINUTES if work.interval < timedelta(minutes=minutes) <= longest]
    return next((minutes for minutes in longer if _rate(work, minutes) <= room), longer[-1] if longer else None)


def _entry(planned: PlannedSlot) -> dict[str, Any]:
    work, start = planned.work, planned.start
    master, *chain = _spans(work, start)
    return {
        **master,
        "slot": planned.slot.isoformat(),
        "end": _iso(planned.end),
        "p95_end": _iso(start and start + timedelta(seconds=work.p95)),
        "chain": chain,
        "cause": planned.cause.value if planned.cause else None,
    }


def _spans(work: Work, start: datetime | None) -> Iterator[dict[str, Any]]:
    """Return each link with the time it will run."""
    for link, prediction in zip(work.composite.links, work.predictions, strict=True):
        end = start and start + timedelta(seconds=prediction.mean)
        yield {"node_id": link.id, "task": link.name, "start": _iso(start), "end": _iso(end)}
        start = end


def _iso(time: datetime | None) -> str | None:
    return time.isoformat(timespec="milliseconds") if time else None
