"""The chores of the hour: each node gets its row when one begins, and each row its verdict when one is over.

Plain functions for a `DbThread`. Both may be called as often as one likes.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from facho.apps.coordinator.models import QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.polling.queries import with_parts
from facho.engine.events import Event, tell
from facho.engine.model import Cause
from facho.engine.quota import GRACE, HOUR, LEVELS, Count, Run, Severity, hour_of, report, severity, verdict
from facho.store import tally

logger = logging.getLogger(__name__)

# What one transaction takes on, so that a large fleet does not keep the database from others for long: OLTs
# whose hour begins, rows that are judged.
OLTS = 100
BATCH = 250
# After an outage there may be many thousands; those that are left wait for the next time, the newest come first.
AT_ONCE = 8 * BATCH

# How long ago an hour may have ended that a person interrupted, to be looked at again.
INTERRUPTED_FOR = timedelta(days=1)

# Violations of older hours are kept, and not told: after an outage of days they are no news.
NEWS_FOR = timedelta(hours=2)

# An OLT and the beginning of an hour.
OltHour = tuple[int, datetime]


def open_hour(now: datetime) -> None:
    """Give every node that is on the grid its row of this hour, and set right what each owes."""
    olt_ids = list(Olt.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(olt_ids), OLTS):
        with transaction.atomic():
            interrupted = tally.owe(olt_ids[start : start + OLTS], now)
        tally.tell_interrupted(interrupted)


def settle(now: datetime) -> int:
    """Judge hours that are over, and return how many rows were looked at.

    A row gets its verdict as soon as nothing in it is pending. Five minutes
    after the end of its hour it may get a violation before that; the row is then looked at
    every time until nothing is pending, and the violation is corrected or
    deleted with it.
    """
    ripe = _ripe(now)
    new: list[QuotaViolation] = []
    for start in range(0, len(ripe), BATCH):
        with transaction.atomic():
            new += _judge(ripe[start : start + BATCH])
    _tell([violation for violation in new if violation.period_end > now - NEWS_FOR])
    return len(ripe)


def _ripe(now: datetime) -> list[int]:
    """Return the rows to judge, newest first. An OLT with pending slots gets five minutes to finish them."""
    over = QuotaTracker.objects.filter(period_end__lte=now)
    # By the beginning of the hour, which has an index: there are millions of rows, and this is asked every minute.
    fresh = over.filter(period_start__gt=now - GRACE - HOUR)
    waited_for = fresh.filter(quota_pending__gt=0).order_by().values_list("olt_id", flat=True)
    rows = over.filter(Q(status=QuotaTracker.Status.IN_PROGRESS) | _interrupted(now))
    rows = rows.exclude(period_end__gt=now - GRACE, olt_id__in=set(waited_for))
    rows = rows.order_by("status", "-period_start", "olt_id")
    # Rows with pending slots come back every time, so they must not take the places of others.
    pending = rows.filter(quota_pending__gt=0).values_list("pk", flat=True)
    return [*pending, *rows.filter(quota_pending=0).values_list("pk", flat=True)[:AT_ONCE]]


def _interrupted(now: datetime) -> Q:
    """Return which interrupted hours to judge: those with pending slots, and recent ones that may lack a violation."""
    violations = QuotaViolation.objects.filter(
        olt=OuterRef("olt"), task_type=OuterRef("task_type"), period_start=OuterRef("period_start")
    )
    may_lack_violation = Q(
        ~Exists(violations), period_end__gt=now - INTERRUPTED_FOR, quota_required__gt=F("quota_completed")
    )
    return Q(status=QuotaTracker.Status.INTERRUPTED) & (Q(quota_pending__gt=0) | may_lack_violation)


def _judge(ids: Sequence[int]) -> list[QuotaViolation]:
    """Give rows their status, and those that got too little their violation; return the violations that are new."""
    rows = list(
        QuotaTracker.objects.filter(pk__in=ids)
        .annotate(olt_name=F("olt__name"))
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    before = {row.pk: (row.status, row.quota_pending) for row in rows}
    tally.heal([row for row in rows if row.quota_pending])
    for row in rows:
        _give_status(row)
    new = _write_violations(rows)
    tally.write([row for row in rows if before[row.pk] != (row.status, row.quota_pending)])
    return new


def _give_status(row: QuotaTracker) -> None:
    if row.status != QuotaTracker.Status.INTERRUPTED and not row.quota_pending:
        count = _count_of(row)
        row.status = verdict(count.completed, count.wanted)


def _count_of(row: QuotaTracker) -> Count:
    return Count(row.quota_completed, row.quota_failed, row.quota_skipped, row.quota_pending, row.causes)


def _write_violations(rows: Collection[QuotaTracker]) -> list[QuotaViolation]:
    """Let each violation say what its row says, and return those that are new.

    A run that ended late may have made good for one: it is taken back, so that the two never disagree.
    """
    known = _known(rows)
    wanted, over = [], []
    for row in rows:
        count, violation = _count_of(row), known.get(tally.key_of(row))
        how_bad = severity(count.completed, count.wanted)
        if how_bad is None and violation is not None:
            over.append(violation.pk)
        elif how_bad is not None and (violation is None or _has_changed(violation, count)):
            wanted.append((row, count, how_bad))
    if over:
        QuotaViolation.objects.filter(pk__in=over).delete()
    runs = _runs([row for row, _, _ in wanted])
    blocked = _blocked_by([row for row, _, _ in wanted if row.quota_pending])
    written = [
        _violation(row, count, how_bad, runs[row.olt_id, row.period_start], blocked[tally.key_of(row)])
        for row, count, how_bad in wanted
    ]
    QuotaViolation.objects.bulk_create(
        written,
        update_conflicts=True,
        unique_fields=["olt", "task_type", "period_start"],
        update_fields=["report", "severity"],
    )
    return [violation for violation in written if _key(violation) not in known]


def _known(rows: Collection[QuotaTracker]) -> dict[tally.Key, QuotaViolation]:
    olts, hours = {row.olt_id for row in rows}, {row.period_start for row in rows}
    found = QuotaViolation.objects.filter(olt_id__in=olts, period_start__in=hours)
    keys = {tally.key_of(row) for row in rows}
    return {_key(violation): violation for violation in found if _key(violation) in keys}


def _key(violation: QuotaViolation) -> tally.Key:
    return violation.olt_id, violation.task_type, violation.period_start


def _has_changed(violation: QuotaViolation, count: Count) -> bool:
    numbers = {"required", "completed", "failed", "skipped", "pending", "causes"}
    said = {name: value for name, value in violation.report.items() if name in numbers}
    return said != {name: getattr(count, name) for name in numbers}


def _blocked_by(rows: Collection[QuotaTracker]) -> "defaultdict[tally.Key, Counter[str]]":
    """Return why slots are pending, by cause, as far as the database knows."""
    causes: defaultdict[tally.Key, Counter[str]] = defaultdict(Counter)
    if not rows:
        return causes
    olt_ids, hours = {row.olt_id for row in rows}, {row.period_start for row in rows}
    for execution in tally.open_executions(olt_ids, min(hours), max(hours)).exclude(cause=""):
        causes[execution.olt_id, execution.node_name, hour_of(execution.slot)][execution.cause] += 1
    broken = set(Olt.objects.filter(pk__in=olt_ids, breaker_opened_at__isnull=False).values_list("pk", flat=True))
    for row in rows:
        if row.olt_id in broken:
            found = causes[tally.key_of(row)]
            found[Cause.BREAKER_OPEN] += row.quota_pending - found.total()
    return causes


def _violation(
    row: Any, count: Count, how_bad: Severity, runs: Iterable[Run], blocked_by: Mapping[str, int]
) -> QuotaViolation:
    return QuotaViolation(
        olt_id=row.olt_id,
        node_id=row.node_id,
        task_type=row.task_type,
        period_start=row.period_start,
        period_end=row.period_end,
        severity=how_bad,
        report=report(row.olt_name, row.task_type, count, runs, blocked_by),
    )


def _runs(rows: Collection[QuotaTracker]) -> dict[OltHour, list[Run]]:
    """Return what ran on these OLTs in these hours."""
    runs: defaultdict[OltHour, list[Run]] = defaultdict(list)
    if not rows:
        return runs
    first, last = min(row.period_start for row in rows), max(row.period_end for row in rows)
    executions = Execution.objects.filter(
        olt_id__in={row.olt_id for row in rows}, slot__gte=first, slot__lt=last, started_at__isnull=False
    )
    seconds = _seconds(executions)
    columns = ("olt_id", "node_name", "slot", "started_at", "waits", "master_execution_id")
    for each in with_parts(executions).only(*columns).iterator():
        run = Run(each.node_name, each.slot, seconds.get(each.pk), each.lateness, each.parts)
        runs[each.olt_id, hour_of(each.slot)].append(run)
    return runs


def _seconds(executions: "QuerySet[Execution]") -> dict[int, float]:
    """Return how long executions ran, the time between attempts left out."""
    attempts = ExecutionAttempt.objects.filter(execution__in=executions).order_by()
    seconds: defaultdict[int, float] = defaultdict(float)
    for execution_id, started_at, ended_at in attempts.values_list("execution_id", "started_at", "ended_at"):
        if ended_at is not None:
            seconds[execution_id] += (ended_at - started_at).total_seconds()
    return seconds


def _tell(violations: Collection[QuotaViolation]) -> None:
    names = dict(Olt.objects.filter(pk__in={each.olt_id for each in violations}).values_list("pk", "name"))
    for violation in violations:
        tell(
            logger,
            Event.QUOTA_VIOLATED,
            level=LEVELS[Severity(violation.severity)],
            olt_id=violation.olt_id,
            olt=names.get(violation.olt_id, ""),
            task=violation.task_type,
            completed=violation.report["completed"],
            required=violation.report["required"],
            hour=violation.period_start.isoformat(timespec="minutes"),
            severity=str(violation.severity),
        )
