"""Figures per OLT, computed from its executions: success, durations, losses and causes."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from django.db.models import (
    Avg,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    Window,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import CumeDist

from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.engine.model import Status

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Maximum points per answer.
MOST_POINTS = 1000
# Maximum time span per answer. Executions are kept for 30 days by default.
LONGEST = timedelta(days=92)
# Default steps, and the maximum number of points for choosing one.
STEPS = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 60, 6 * 60, 24 * 60))
USUAL_POINTS = 300

COMPLETED = (Status.SUCCESS.value, Status.PARTIAL.value)
ENDED = (*COMPLETED, Status.FAILED.value, Status.INTERRUPTED.value, Status.SKIPPED.value)

P95 = 0.95

TOOK = ExpressionWrapper(F("ended_at") - F("started_at"), output_field=DurationField())


@dataclass(slots=True)
class Figures:
    """Figures of an OLT's executions in a time span. None: no data."""

    completed: int = 0
    failed: int = 0
    interrupted: int = 0
    # Seconds, of completed runs.
    duration_mean: float | None = None
    duration_p95: float | None = None
    # Seconds: figures of the runs, weighted by their requests.
    round_trip_p50: float | None = None
    round_trip_p95: float | None = None
    pdus: int = 0
    retransmissions: int = 0
    # Attempts after the first one, and the seconds between attempts.
    retries: int = 0
    retry_gap_mean: float | None = None
    # Slots that did not run, by cause.
    lost_slots: dict[str, int] = field(default_factory=dict)

    @property
    def success_rate(self) -> float | None:
        """Return the percentage of completed runs among those that ended."""
        runs = self.completed + self.failed + self.interrupted
        return round(100.0 * self.completed / runs, 2) if runs else None

    def by_name(self) -> dict[str, Any]:
        return {**asdict(self), "success_rate": self.success_rate}


class Bucket(Func):
    """Number of the step of a time, counted from 1970."""

    output_field = IntegerField()
    arity = 1

    def __init__(self, time: str, step: timedelta) -> None:
        super().__init__(F(time), seconds=int(step.total_seconds()))

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        # Four, because the template and the cursor each halve them.
        template = "(CAST(strftime('%%%%s', %(expressions)s) AS INTEGER) / %(seconds)d)"
        return self.as_sql(compiler, connection, template=template, **more)

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        template = "FLOOR(EXTRACT(EPOCH FROM %(expressions)s) / %(seconds)d)::bigint"
        return self.as_sql(compiler, connection, template=template, **more)


def step_for(span: timedelta) -> timedelta:
    """Return the default step of a time span."""
    return next((step for step in STEPS if span / step <= USUAL_POINTS), STEPS[-1])


def first_bucket(since: datetime, step: timedelta) -> datetime:
    """Return the start of the step of `since`: steps are counted from 1970, so hours start on the hour."""
    return EPOCH + (since - EPOCH) // step * step


def olt_stats(olt_id: int, since: datetime, until: datetime, step: timedelta) -> list[dict[str, Any]]:
    """Return the figures of each step by name, from `since`, the start of a step, to `until`.

    A step without executions has only its time `at`.
    """
    executions = Execution.objects.filter(olt_id=olt_id, slot__gte=since, slot__lt=until)
    found = figures(executions, Bucket("slot", step))
    first = (since - EPOCH) // step
    numbers = range(first, first + ceil((until - since) / step))
    return [{"at": EPOCH + number * step, **(found[number].by_name() if number in found else {})} for number in numbers]


def fleet_stats(olt_ids: Collection[int], since: datetime, until: datetime) -> dict[int, Figures]:
    """Return the figures of these OLTs over one time, by OLT."""
    return figures(Execution.objects.filter(slot__gte=since, slot__lt=until, olt_id__in=olt_ids), F("olt_id"))


def figures(executions: QuerySet[Execution], key: Combinable) -> dict[int, Figures]:
    """Return the figures of finished executions, by a key."""
    keyed = executions.filter(status__in=ENDED).order_by().annotate(key=key)
    found = _sums(keyed)
    # The shortest of the longest twentieth of the completed durations is the percentile.
    share = Window(CumeDist(), partition_by=[F("key")], order_by=TOOK.asc())
    runs = keyed.filter(status__in=COMPLETED, started_at__isnull=False, ended_at__isnull=False)
    for number, took in runs.annotate(took=TOOK, share=share).filter(share__gte=P95).values_list("key", "took"):
        seconds, best = round(took.total_seconds(), 3), found[number].duration_p95
        found[number].duration_p95 = seconds if best is None else min(best, seconds)
    lost = keyed.filter(status=Status.SKIPPED.value).values("key", "cause").annotate(lost=Sum("slots"))
    for row in lost:
        found[row["key"]].lost_slots[row["cause"]] = row["lost"]
    _add_retries(found, keyed)
    return found


def _sums(keyed: QuerySet[Any]) -> dict[int, Figures]:
    rows = keyed.values("key").annotate(
        completed=Count("id", filter=Q(status__in=COMPLETED)),
        failed=Count("id", filter=Q(status=Status.FAILED.value)),
        interrupted=Count("id", filter=Q(status=Status.INTERRUPTED.value)),
        took=Avg(TOOK, filter=Q(status__in=COMPLETED)),
        sent=Sum("pdus"),
        again=Sum("retransmissions"),
        answered=Sum("pdus", filter=Q(rtt_p50__isnull=False)),
        p50=_weighted("rtt_p50"),
        p95=_weighted("rtt_p95"),
    )
    return {
        row["key"]: Figures(
            completed=row["completed"],
            failed=row["failed"],
            interrupted=row["interrupted"],
            duration_mean=None if row["took"] is None else round(row["took"].total_seconds(), 3),
            round_trip_p50=_mean(row["p50"], row["answered"]),
            round_trip_p95=_mean(row["p95"], row["answered"]),
            pdus=row["sent"],
            retransmissions=row["again"],
        )
        for row in rows
    }


def _weighted(name: str) -> Sum:
    """Return the sum of round trips times requests: percentiles of runs cannot be combined exactly."""
    return Sum(F(name) * F("pdus"), output_field=FloatField())


def _add_retries(found: Mapping[int, Figures], keyed: QuerySet[Any]) -> None:
    before = ExecutionAttempt.objects.filter(execution=OuterRef("pk"), number=OuterRef("number") - Value(1))
    retries = (
        keyed.annotate(number=F("attempts__number"), began=F("attempts__started_at"))
        .filter(number__gt=1)
        .annotate(gave_up=Subquery(before.values("ended_at")[:1]))
    )
    gaps: dict[int, list[float]] = {}
    for number, began, gave_up in retries.values_list("key", "began", "gave_up"):
        found[number].retries += 1
        if gave_up is not None:
            gaps.setdefault(number, []).append((began - gave_up).total_seconds())
    for number, seconds in gaps.items():
        found[number].retry_gap_mean = round(sum(seconds) / len(seconds), 3)


def _mean(total: float | None, weight: int | None) -> float | None:
    return round(total / weight, 6) if total is not None and weight else None
