"""Queries on quotas, violations and plans for pages and the API, a few for any number of rows."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from facho.apps.coordinator.models import ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.coordinator.progress import PARTS, QuotaProgress
from facho.apps.inventory.scopes import restrict
from facho.apps.jobs import in_effect
from facho.engine.quota.quota import ENOUGH, HOUR, hour_of, unwanted

# A violation up to this percentage is HIGH or CRITICAL.
GRAVE_PERCENT = 50

# Columns that a page with OLT names does not read, in particular secrets.
OLT_HEAVY = ("olt__community", "olt__v3_auth_key", "olt__v3_priv_key", "olt__extra", "olt__learned")

# Effective interval of a quota's node in seconds: a chained node has that of its master.
EVERY = Coalesce(in_effect.interval_seconds("node__master__"), in_effect.interval_seconds("node__"))

# A judged quota has a result; a running one has none yet.
UNJUDGED = QuotaTracker.Status.IN_PROGRESS
INTERRUPTED = QuotaTracker.Status.INTERRUPTED

SUMS = {name: Sum(f"quota_{name}") for name in ("required", *PARTS)}


@dataclass(frozen=True, slots=True)
class OltHour:
    """Required and completed runs of an OLT, over all jobs."""

    olt_id: int
    olt_name: str
    progress: QuotaProgress
    breaker_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class FleetHour:
    """Current hour of all OLTs: state, worst OLTs and unreachable ones."""

    start: datetime
    progress: QuotaProgress = field(default_factory=QuotaProgress)
    worst: Sequence[OltHour] = ()
    olts: int = 0


def fleet_hour(now: datetime, user: Any, worst: int = 6) -> FleetHour:
    """Return the current hour of the OLTs that a user sees in numbers, with three queries."""
    start = hour_of(now)
    quotas = restrict(QuotaTracker.objects.filter(period_start=start).order_by(), user)
    excused: Counter[int] = Counter()
    for olt_id, causes in quotas.filter(quota_skipped__gt=0).values_list("olt_id", "causes"):
        excused[olt_id] += unwanted(causes)
    sums = quotas.aggregate(**SUMS, olts=Count("olt_id", distinct=True))
    progress = _progress((sums[name] or 0 for name in SUMS), excused.total())
    by_olt = quotas.values_list("olt_id", "olt__name", "olt__breaker_opened_at").annotate(**SUMS)
    troubled = [
        OltHour(olt_id, name, _progress(parts, excused[olt_id]), since)
        for olt_id, name, since, *parts in by_olt.filter(Q(failed__gt=0) | Q(skipped__gt=0))
    ]
    return FleetHour(start, progress, sorted(troubled, key=_worst_first)[:worst], sums["olts"])


def _progress(sums: Iterable[int], excused: int) -> QuotaProgress:
    return QuotaProgress(**dict(zip(SUMS, sums, strict=True)), unwanted=excused)


def _worst_first(each: OltHour) -> tuple[float, int, str]:
    progress = each.progress
    return (progress.percent_of_those_that_came or 0.0, -(progress.failed + progress.skipped), each.olt_name)


@dataclass(frozen=True, slots=True)
class OltViolations:
    """Violations of one OLT: number, worst severity, and end of the last hour with one."""

    olt_id: int
    olt_name: str
    number: int
    severity: str
    latest: datetime

    @property
    def severity_label(self) -> str:
        return str(QuotaViolation.Severity(self.severity).label)


@dataclass(frozen=True, slots=True)
class Violations:
    """Violations of a time span: number per severity, and OLTs, the worst first."""

    by_severity: Mapping[str, int] = field(default_factory=dict)
    by_olt: Sequence[OltViolations] = ()

    @property
    def labelled(self) -> list[tuple[str, str, int]]:
        """Return each severity that occurred: name, label, number."""
        return [(name, str(QuotaViolation.Severity(name).label), number) for name, number in self.by_severity.items()]


# The worst first.
SEVERITIES = [severity.value for severity in reversed(QuotaViolation.Severity)]


def violations(since: datetime, user: Any, limit: int = 6) -> Violations:
    """Return the violations of hours since a time on the OLTs that a user sees, in one query."""
    rows = (
        restrict(QuotaViolation.objects.filter(period_start__gte=since), user)
        .order_by()
        .values_list("olt_id", "olt__name", "severity")
        .annotate(Count("pk"), Max("period_end"))
    )
    counts: Counter[str] = Counter()
    olts: dict[int, OltViolations] = {}
    for olt_id, name, severity, number, latest in sorted(rows, key=lambda row: SEVERITIES.index(row[2])):
        counts[severity] += number
        worse = olts.get(olt_id) or OltViolations(olt_id, name, 0, severity, latest)
        olts[olt_id] = replace(worse, number=worse.number + number, latest=max(worse.latest, latest))
    worst = sorted(olts.values(), key=lambda each: (SEVERITIES.index(each.severity), -each.number, each.olt_name))
    return Violations({name: counts[name] for name in SEVERITIES if counts[name]}, worst[:limit])


@dataclass(frozen=True, slots=True)
class Cell:
    """One hour of one job in a strip. Without a quota nothing was required or counted."""

    start: datetime
    quota: QuotaTracker | None

    @property
    def progress(self) -> QuotaProgress:
        return QuotaProgress.of(self.quota) if self.quota else QuotaProgress()

    @property
    def tone(self) -> str:
        """Return the colour of the hour: its result, or its state so far."""
        if self.quota is None or not self.quota.quota_required:
            return "none"
        if self.quota.status == INTERRUPTED:
            return "quiet"
        progress = self.progress
        share = progress.percent_of_those_that_came if self.quota.status == UNJUDGED else progress.percent
        if share is None:
            return "open"
        if share >= 100:
            return "ok"
        if share >= ENOUGH:
            return "fair"
        return "warn" if share > GRAVE_PERCENT else "bad"


@dataclass(frozen=True, slots=True)
class Strip:
    """A job of an OLT per hour, the latest at the end."""

    task: str
    cells: Sequence[Cell]

    @property
    def progress(self) -> QuotaProgress:
        return QuotaProgress.total(cell.progress for cell in self.cells)


def strips(olt_id: int, now: datetime, hours: int = 24) -> list[Strip]:
    """Return the last hours of each job of an OLT, including the current one, with one query."""
    first = hour_of(now) - (hours - 1) * HOUR
    found: defaultdict[str, dict[datetime, QuotaTracker]] = defaultdict(dict)
    for quota in QuotaTracker.objects.filter(olt_id=olt_id, period_start__gte=first, period_start__lte=now):
        found[quota.task_type][quota.period_start] = quota
    grid = [first + number * HOUR for number in range(hours)]
    return [Strip(task, [Cell(at, rows.get(at)) for at in grid]) for task, rows in sorted(found.items())]


def day_bars(strips_: Sequence[Strip]) -> list[tuple[datetime, QuotaProgress]]:
    """Return the result of an OLT per hour, all jobs together."""
    hours = zip(*(strip.cells for strip in strips_), strict=True)
    return [(cells[0].start, QuotaProgress.total(cell.progress for cell in cells)) for cells in hours]


def active_plans(olt_id: int, now: datetime) -> QuerySet[ExecutionPlan]:
    """Return the plans of an OLT for the current hour and later."""
    return ExecutionPlan.objects.filter(olt_id=olt_id, status=ExecutionPlan.Status.ACTIVE, period_end__gt=now).order_by(
        "period_start"
    )
