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

    def slots(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Return the slots of its grid with start <= slot < end, from its due time on."""
        slot = self.composite.slot
        if slot < start:
            slot += -((slot - start) // self.interval) * self.interval
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
        return [_entry(each) for each in self.slots]

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
    works: Sequence[Work], hour: datetime, *, since: datetime | None = None, blocked: Cause | None = None
) -> HourPlan:
    """Return the plan of an OLT for the hour that starts at `hour`, or for the rest of it.

    `since` is the time at which the OLT is free: later than the start if the hour has begun, or if a run of the
    previous hour is in progress. `blocked` is the cause for which nothing will run.
    """
    end, now = hour + HOUR, max(hour, since or hour)
    slots = _lost(works, hour, end, now, blocked) if blocked else _laid_out(works, hour, end, now)
    needed = needed_seconds(works, hour)
    known = [work for work in works if work.is_known]
    full = FULL * HOUR.total_seconds()
    advice = _advice(known, needed, full) if needed > HOUR.total_seconds() else ()
    return HourPlan(tuple(slots), needed, advice)


def needed_seconds(works: Iterable[Work], hour: datetime) -> float:
    """Return the seconds that these jobs need in an hour, without jobs that have never run."""
    return sum(_needed(work, hour, hour + HOUR) for work in works if work.is_known)


def is_material(before: float, after: float) -> bool:
    """Return whether a change of utilisation, in percent, requires a new plan."""
    moved = abs(after - before)
    return moved >= MATERIAL or (moved >= MATERIAL_AT_LIMIT and (before > 100) != (after > 100))


def _needed(work: Work, start: datetime, end: datetime) -> float:
    """Return the seconds that a job needs in this hour; a job with a longer interval needs all or none."""
    if work.interval <= HOUR:
        return work.mean * (HOUR / work.interval)
    return work.mean * sum(1 for _ in work.slots(start, end))


@dataclass(slots=True)
class _Line:
    """Queue of one OLT, by the rules of `scheduling/queue.py` and `scheduling/pollers.py`."""

    coming: list[tuple[datetime, int, Work]]
    waiting: dict[int, tuple[Work, datetime, datetime]] = field(default_factory=dict)
    lost: list[PlannedSlot] = field(default_factory=list)

    def admit(self, now: datetime) -> None:
        """Add the due slots. A slot that still waits when its next one begins is lost; its place is kept."""
        while self.coming and self.coming[0][0] <= now:
            slot, node_id, work = heappop(self.coming)
            since = slot
            if node_id in self.waiting:
                _, former, since = self.waiting[node_id]
                self.lost.append(PlannedSlot(work, former, cause=Cause.OLT_BUSY))
            self.waiting[node_id] = (work, slot, since)

    def take(self, now: datetime) -> tuple[Work, datetime] | None:
        """Remove and return the most urgent work that can run. The last slot of the hour also has an end."""
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
        """Return the time of the next change: a new slot, or the end of a wait for a gap."""
        times = [since + work.interval / 2 for work, _, since in self.waiting.values()]
        if self.coming:
            times.append(self.coming[0][0])
        return min((each for each in times if each > now), default=None)


def _laid_out(works: Iterable[Work], start: datetime, end: datetime, now: datetime) -> list[PlannedSlot]:
    """Return the remaining slots of the hour, by time."""
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
    """Return the remaining slots of the hour, all of them lost."""
    slots = [PlannedSlot(work, slot, cause=cause) for work in works for slot in _left(work, start, end, now)]
    return sorted(slots, key=lambda each: (each.slot, each.work.composite.id))


def _left(work: Work, start: datetime, end: datetime, now: datetime) -> Iterator[datetime]:
    """Return the slots still to run: future ones and the one that waits."""
    due = work.composite.slot
    if start <= due < now:
        yield due
    yield from work.slots(max(now, start), end)


def _advice(works: Sequence[Work], needed: float, room: float) -> tuple[Advice, ...]:
    """Return the smallest change that makes an hour fit.

    One job if that is enough: the least important, then the most expensive. Otherwise several, the most expensive
    first.
    """
    important = sorted(works, key=lambda each: (each.composite.master.priority, -_rate(each)))
    dearest = sorted(works, key=lambda each: -_rate(each))
    for factor in FARTHEST:
        advice = _one(important, needed, room, factor) or _several(dearest, needed, room, factor)
        if advice:
            return advice
    return ()


def _one(works: Iterable[Work], needed: float, room: float, factor: int) -> tuple[Advice, ...]:
    """Return the first job that alone makes the hour fit, within this factor of its interval."""
    for work in works:
        minutes = _minutes(work, room - (needed - _rate(work)), factor)
        if minutes is not None and needed - _rate(work) + _rate(work, minutes) <= room:
            return (Advice(work.composite.master, minutes),)
    return ()


def _several(works: Iterable[Work], needed: float, room: float, factor: int) -> tuple[Advice, ...]:
    """Lengthen the interval of one job after the other until the hour fits; empty if it never does."""
    advice: list[Advice] = []
    for work in works:
        minutes = _minutes(work, room - (needed - _rate(work)), factor)
        if needed > room and minutes is not None:
            needed += _rate(work, minutes) - _rate(work)
            advice.append(Advice(work.composite.master, minutes))
    return tuple(advice) if needed <= room else ()


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
    """Return each link with its expected time span."""
    for link, prediction in zip(work.composite.links, work.predictions, strict=True):
        end = start and start + timedelta(seconds=prediction.mean)
        yield {"node_id": link.id, "task": link.name, "start": _iso(start), "end": _iso(end)}
        start = end


def _iso(time: datetime | None) -> str | None:
    return time.isoformat(timespec="milliseconds") if time else None
