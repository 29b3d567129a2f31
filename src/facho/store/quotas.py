"""The chores of the hour: each node gets its row when one begins, and each row its verdict when one is over.

Plain functions for a `DbThread`. Both may be called as often as one likes.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from facho.apps.coordinator.models import QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.polling.queries import with_parts
from facho.engine.events import Event, tell
from facho.engine.quota import GRACE, HOUR, Count, Run, Severity, hour_of, report, severity, verdict
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
    """Judge hours that are over, and return how many rows were.

    An OLT's hour is judged as soon as nothing of it is pending, and five
    minutes after its end anyway. What ends even later is counted, and the hour
    judged anew.
    """
    ripe = _ripe(now)
    new: list[QuotaViolation] = []
    for start in range(0, len(ripe), BATCH):
        with transaction.atomic():
            new += _judge(ripe[start : start + BATCH])
    _tell([violation for violation in new if violation.period_end > now - NEWS_FOR])
    return len(ripe)


def _ripe(now: datetime) -> list[int]:
    """Return the rows to judge, newest first; those of an OLT that is waited for come later."""
    over = QuotaTracker.objects.filter(period_end__lte=now)
    # By the beginning of the hour, which has an index: there are millions of rows, and this is asked every minute.
    fresh = over.filter(period_start__gt=now - GRACE - HOUR)
    waited_for = fresh.filter(quota_pending__gt=0).order_by().values_list("olt_id", flat=True)
    rows = over.filter(Q(status=QuotaTracker.Status.IN_PROGRESS) | _interrupted(now))
    rows = rows.exclude(period_end__gt=now - GRACE, olt_id__in=set(waited_for))
    return list(rows.order_by("status", "-period_start", "olt_id").values_list("pk", flat=True)[:AT_ONCE])


def _interrupted(now: datetime) -> Q:
    """Return which hours that a person interrupted may lack a violation: what came before that is judged too."""
    violations = QuotaViolation.objects.filter(
        olt=OuterRef("olt"), task_type=OuterRef("task_type"), period_start=OuterRef("period_start")
    )
    return Q(
        ~Exists(violations),
        status=QuotaTracker.Status.INTERRUPTED,
        period_end__gt=now - INTERRUPTED_FOR,
        quota_required__gt=F("quota_completed"),
    )


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
    if row.status != QuotaTracker.Status.INTERRUPTED:
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
    written = [_violation(row, count, how_bad, runs[row.olt_id, row.period_start]) for row, count, how_bad in wanted]
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


def _violation(row: Any, count: Count, how_bad: Severity, runs: Iterable[Run]) -> QuotaViolation:
    return QuotaViolation(
        olt_id=row.olt_id,
        node_id=row.node_id,
        task_type=row.task_type,
        period_start=row.period_start,
        period_end=row.period_end,
        severity=how_bad,
        report=report(row.olt_name, row.task_type, count, runs),
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
            olt_id=violation.olt_id,
            olt=names.get(violation.olt_id, ""),
            task=violation.task_type,
            completed=violation.report["completed"],
            required=violation.report["required"],
            hour=violation.period_start.isoformat(timespec="minutes"),
            severity=str(violation.severity),
        )
