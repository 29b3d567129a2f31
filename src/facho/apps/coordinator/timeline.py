"""Timeline of an OLT's hour: lanes with expected and actual runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.apps.coordinator.models import ExecutionPlan
from facho.apps.inventory.spans import exact
from facho.apps.polling.models import CAUSE_CHOICES, STATUS_CHOICES, Execution
from facho.engine.model import Status

# Minimum width in percent: a run of a second would be invisible.
NARROWEST = 0.5

# A lane with more runs has blocks of five minutes instead: 120 bars side by side cannot be told apart.
MOST_BARS = 30
BLOCKS = 12
# The start of a block is not exact in percent.
ROUNDING = 1e-6

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

# Results of runs by their tone, in the order of a block.
TONE_LABELS = {
    "ok": gettext_lazy("success"),
    "warn": gettext_lazy("partial or interrupted"),
    "bad": gettext_lazy("failed"),
    "lost": gettext_lazy("lost"),
    "info": gettext_lazy("running"),
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
    in_blocks: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes of an hour, its marks, and the position of the current time."""

    start: datetime
    lanes: list[TimelineLane]
    marks: list[tuple[int, datetime]]
    now: float | None

    @property
    def has_blocks(self) -> bool:
        return any(lane.in_blocks for lane in self.lanes)


def timeline(plan: ExecutionPlan, runs: Iterable[Execution], now: datetime) -> Timeline:
    """Return a plan as lanes, a master before its chain, with the known results."""
    hour = _Hour(plan.period_start, plan.period_end, now)
    known = {(run.node_id, run.slot): run for run in runs}
    lanes: dict[int, TimelineLane] = {}
    for slot, item, is_link in _entries(plan.plan_data):
        lane = lanes.setdefault(item["node_id"], TimelineLane(item["node_id"], item.get("task", ""), is_link))
        hour.put(lane, slot, item, known.get((item["node_id"], slot)))
    marks = [(mark, plan.period_start + mark * hour.length / 100) for mark in QUARTERS]
    for lane in lanes.values():
        if max(len(lane.planned), len(lane.actual)) > MOST_BARS:
            hour.put_in_blocks(lane)
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

    def put_in_blocks(self, lane: TimelineLane) -> None:
        """Replace the bars of a lane by blocks: each result has its share of the runs of a block as its width."""
        planned, actual = blocks(lane.planned), blocks(lane.actual)
        lane.planned, lane.actual, lane.in_blocks = [], [], True
        for block in range(BLOCKS):
            runs = max(planned[block].total(), actual[block].total())
            title = self._title(block, planned[block], actual[block])
            lane.planned += stacked(block, planned[block], runs, title)
            lane.actual += stacked(block, actual[block], runs, title)

    def _title(self, block: int, planned: Counter[str], actual: Counter[str]) -> str:
        start, end = (timezone.localtime(self.start + each * self.length / BLOCKS) for each in (block, block + 1))
        said = [f"{start:%H:%M}–{end:%H:%M %Z}"]
        if planned:
            said.append(f"{_('expected')}: {planned.total()}")
        said += [f"{TONE_LABELS[tone]}: {actual[tone]}" for tone in TONE_LABELS if actual[tone]]
        return " · ".join(said)


def blocks(bars: Iterable[Bar]) -> list[Counter[str]]:
    """Return the number of bars of each tone that start in each block of the hour."""
    counts = [Counter[str]() for _block in range(BLOCKS)]
    for bar in bars:
        counts[min(int(bar.x * BLOCKS / 100 + ROUNDING), BLOCKS - 1)][bar.tone] += 1
    return counts


def stacked(block: int, counts: Counter[str], runs: int, title: str) -> Iterator[Bar]:
    """Yield a bar for each tone of a block, side by side. A gap separates it from the next block."""
    x, width = 100 * block / BLOCKS, 95 / BLOCKS
    for tone in (*TONE_LABELS, "plan"):
        if counts[tone]:
            share = width * counts[tone] / runs
            yield Bar(x, share, tone, title)
            x += share


def runs_of(plan: ExecutionPlan) -> list[Execution]:
    """Return the executions of the hour of a plan, with the fields of a timeline."""
    rows = Execution.objects.filter(olt_id=plan.olt_id, slot__gte=plan.period_start, slot__lt=plan.period_end)
    return list(rows.only("node_id", "slot", "status", "cause", "started_at", "ended_at"))
