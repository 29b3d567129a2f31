"""An OLT's hour as lanes of bars: when each job was expected to run, and when it did."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from facho.apps.coordinator.models import ExecutionPlan
from facho.apps.inventory.spans import exact
from facho.apps.polling.models import CAUSE_CHOICES, STATUS_CHOICES, Execution
from facho.engine.model import Status

# A run of a second would be thinner than a line.
NARROWEST = 0.5

# Where the axis has its marks, in percent of the hour.
QUARTERS = (0, 25, 50, 75, 100)

TONES: dict[str, str] = {
    Status.SUCCESS: "ok",
    Status.PARTIAL: "warn",
    Status.FAILED: "bad",
    Status.INTERRUPTED: "warn",
    Status.RUNNING: "info",
    Status.PENDING: "info",
    Status.SKIPPED: "lost",
}

CAUSES = dict(CAUSE_CHOICES)
STATUSES = dict(STATUS_CHOICES)


@dataclass(frozen=True, slots=True)
class Bar:
    """From where to how far, in percent of the hour; what it means and what a pointer is told."""

    x: float
    width: float
    tone: str
    title: str


@dataclass(slots=True)
class TimelineLane:
    """One job: what was planned above, what happened below."""

    node_id: int
    task: str
    is_link: bool = False
    planned: list[Bar] = field(default_factory=list)
    actual: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lanes of an hour, where its marks are, and where now is if it is within."""

    start: datetime
    lanes: list[TimelineLane]
    marks: list[tuple[int, datetime]]
    now: float | None


def timeline(plan: ExecutionPlan, runs: Iterable[Execution], now: datetime) -> Timeline:
    """Return a plan as lanes, a master before its chain, with what is known of how its slots went."""
    hour = _Hour(plan.period_start, plan.period_end, now)
    known = {(run.node_id, run.slot): run for run in runs}
    lanes: dict[int, TimelineLane] = {}
    for slot, item, is_link in _entries(plan.plan_data):
        lane = lanes.setdefault(item["node_id"], TimelineLane(item["node_id"], item.get("task", ""), is_link))
        hour.put(lane, slot, item, known.get((item["node_id"], slot)))
    marks = [(mark, plan.period_start + mark * hour.length / 100) for mark in QUARTERS]
    within = plan.period_start <= now < plan.period_end
    return Timeline(plan.period_start, list(lanes.values()), marks, hour.share(now) if within else None)


def _entries(plan: Iterable[Mapping[str, Any]]) -> Iterator[tuple[datetime, Mapping[str, Any], bool]]:
    """Yield the masters and links of a plan by slot. What lacks a node or a slot cannot be drawn."""
    for item in plan:
        slot = _time(item, "slot")
        if slot is None or "node_id" not in item:
            continue
        yield slot, item, False
        for link in item.get("chain") or ():
            if isinstance(link, Mapping) and "node_id" in link:
                yield slot, link, True


def _time(item: Mapping[str, Any], name: str) -> datetime | None:
    return parse_datetime(item[name]) if item.get(name) else None


@dataclass(frozen=True, slots=True)
class _Hour:
    """Turns times into places."""

    start: datetime
    end: datetime
    now: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def share(self, at: datetime) -> float:
        return min(max(100 * ((at - self.start) / self.length), 0.0), 100.0)

    def put(self, lane: TimelineLane, slot: datetime, item: Mapping[str, Any], run: Execution | None) -> None:
        start, end = _time(item, "start"), _time(item, "end")
        if start is not None and end is not None:
            lane.planned.append(self._bar(start, end, "plan", _("expected")))
        elif not lane.is_link:
            cause = CAUSES.get(item.get("cause") or "", "")
            lane.planned.append(self._bar(slot, slot, "lost", f"{_('expected to be lost')}: {cause}"))
        bar = self._actual(slot, item, run)
        if bar is not None:
            lane.actual.append(bar)

    def _actual(self, slot: datetime, item: Mapping[str, Any], run: Execution | None) -> Bar | None:
        status = item.get("status") or (run.status if run else "")
        if not status:
            return None
        start = _time(item, "actual_start") or (run.started_at if run else None) or slot
        end = _time(item, "actual_end") or (run.ended_at if run else None)
        cause = item.get("cause") or (run.cause if run else "")
        said = f"{STATUSES.get(status, status)}{f' ({CAUSES.get(cause, cause)})' if cause else ''}"
        return self._bar(start, end or self._until(status, start), TONES.get(status, "lost"), said)

    def _until(self, status: str, start: datetime) -> datetime:
        return self.now if status == Status.RUNNING else start

    def _bar(self, start: datetime, end: datetime, tone: str, said: str) -> Bar:
        x = self.share(start)
        width = max(self.share(end) - x, NARROWEST)
        at = timezone.localtime(start).strftime("%H:%M:%S")
        took = exact((end - start).total_seconds()) if end > start else ""
        return Bar(min(x, 100 - NARROWEST), width, tone, " · ".join(filter(None, (at, took, str(said)))))


def runs_of(plan: ExecutionPlan) -> list[Execution]:
    """Return what ran, or did not, in the hour of a plan, as far as a timeline needs it."""
    rows = Execution.objects.filter(olt_id=plan.olt_id, slot__gte=plan.period_start, slot__lt=plan.period_end)
    return list(rows.only("node_id", "slot", "status", "cause", "started_at", "ended_at"))
