"""Timeline of an OLT's hour: lanes with expected and actual runs."""

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

# Minimum width in percent: a run of a second would be invisible.
NARROWEST = 0.5

# Marks of the axis, in percent of the hour.
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
    """Start and width in percent of the hour, meaning and tooltip."""

    x: float
    width: float
    tone: str
    title: str


@dataclass(slots=True)
class TimelineLane:
    """One job: planned runs above, actual runs below."""

    node_id: int
    task: str
    is_link: bool = False
    planned: list[Bar] = field(default_factory=list)
    actual: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes of an hour, its marks, and the position of the current time."""

    start: datetime
    lanes: list[TimelineLane]
    marks: list[tuple[int, datetime]]
    now: float | None


def timeline(plan: ExecutionPlan, runs: Iterable[Execution], now: datetime) -> Timeline:
    """Return a plan as lanes, a master before its chain, with the known results."""
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
    """Yield the masters and links of a plan by slot. Entries without a node or slot are left out."""
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
    """Converts times to positions."""

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
        until = self.now if status == Status.RUNNING else start
        return self._bar(start, end or until, TONES.get(status, "lost"), said)

    def _bar(self, start: datetime, end: datetime, tone: str, said: str) -> Bar:
        x = self.share(start)
        width = max(self.share(end) - x, NARROWEST)
        at = timezone.localtime(start).strftime("%H:%M:%S %Z")
        took = exact((end - start).total_seconds()) if end > start else ""
        return Bar(min(x, 100 - NARROWEST), width, tone, " · ".join(filter(None, (at, took, str(said)))))


def runs_of(plan: ExecutionPlan) -> list[Execution]:
    """Return the executions of the hour of a plan, with the fields of a timeline."""
    rows = Execution.objects.filter(olt_id=plan.olt_id, slot__gte=plan.period_start, slot__lt=plan.period_end)
    return list(rows.only("node_id", "slot", "status", "cause", "started_at", "ended_at"))
