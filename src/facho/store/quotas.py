"""Quotas as rows: counted when executions start and end, judged when the hour is over."""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from facho.apps.coordinator.models import QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs import in_effect
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.apps.polling.queries import with_parts
from facho.engine.events import Event, log_event
from facho.engine.model import Cause, Skipped, Status, Trigger
from facho.engine.quota.quota import (
    GRACE,
    HOUR,
    LEVELS,
    SHARES,
    Count,
    CountedRun,
    Severity,
    Share,
    by_hour,
    hour_of,
    report,
    severity,
    slots_between,
    verdict,
)
from facho.store import sql
from facho.store.sql import adapted

logger = logging.getLogger(__name__)

IN_PROGRESS = QuotaTracker.Status.IN_PROGRESS.value
INTERRUPTED = QuotaTracker.Status.INTERRUPTED.value

# An OLT, a job name, and the start of an hour.
Key = tuple[int, str, datetime]

# Maximum rows per statement when an hour is opened for the whole fleet.
KEYS_PER_QUERY = 1000

COUNTS = ("quota_completed", "quota_failed", "quota_skipped", "quota_pending")
DURATIONS = ("total_duration_ms", "avg_duration_ms")
# Columns needed for counting.
READ = ("id", "olt_id", "task_type", "period_start", *COUNTS, "causes", "total_duration_ms", "status")
WRITTEN = ("quota_required", *COUNTS, "causes", *DURATIONS, "status", "updated_at")


@dataclass(frozen=True, slots=True)
class Ended:
    """Finished slots of a node, all in one hour and with the same result."""

    olt_id: int
    node_id: int | None
    task: str
    hour: datetime
    status: Status
    slots: int = 1
    # A cause, or the kind of an error.
    cause: str = ""
    milliseconds: int = 0

    @property
    def key(self) -> Key:
        return self.olt_id, self.task, self.hour


def skipped_slots(skipped: Iterable[Skipped]) -> list[Ended]:
    """Return skipped slots of masters and of their chains, by hour."""
    return [
        Ended(link.olt_id, link.id, link.name, hour, Status.SKIPPED, slots, item.cause.value)
        for item in skipped
        for hour, slots in by_hour(item.slot, item.node.interval, item.slots)
        for link in (item.node, *item.chain)
    ]


def count(ended: Sequence[Ended]) -> None:
    """Count finished slots. A slot that is in no row raises `required`."""
    if not ended:
        return
    nodes = {each.key: each.node_id for each in ended}
    rows = _rows(nodes.keys())
    missing = nodes.keys() - rows.keys()
    if missing:
        _create({key: nodes[key] for key in missing})
        rows |= _rows(missing)
    for each in ended:
        row, share = rows[each.key], SHARES[each.status]
        row.quota_pending = max(row.quota_pending - each.slots, 0)
        name = f"quota_{share.value}"
        setattr(row, name, getattr(row, name) + each.slots)
        row.total_duration_ms += each.milliseconds
        if share is not Share.COMPLETED:
            cause = each.cause or each.status.lower()
            row.causes = {**row.causes, cause: row.causes.get(cause, 0) + each.slots}
        if row.status != INTERRUPTED:
            # Also of a judged hour: the next step judges it again.
            row.status = IN_PROGRESS
    write(rows.values())


def _create(nodes: Mapping[Key, int | None]) -> None:
    """Create missing rows with zero counters."""
    new = [
        QuotaTracker(olt_id=olt_id, node_id=node_id, task_type=task, period_start=hour, period_end=hour + HOUR)
        for (olt_id, task, hour), node_id in nodes.items()
    ]
    QuotaTracker.objects.bulk_create(new, batch_size=KEYS_PER_QUERY, ignore_conflicts=True)


def _rows(keys: Collection[Key]) -> dict[Key, QuotaTracker]:
    """Return the existing rows, locked until the end of the transaction."""
    if not keys:
        return {}
    olts, tasks, hours = (list(set(part)) for part in zip(*keys, strict=True))
    found = sql.fetch(
        f"SELECT {', '.join(READ)} FROM quota_tracker q"  # noqa: S608 - names of columns
        f" WHERE period_start IN {sql.marks(hours)} AND task_type IN {sql.marks(tasks)}"
        f" AND olt_id IN {sql.marks(olts)} ORDER BY id{sql.locked('q')}",
        *hours,
        *tasks,
        *olts,
    )
    rows = {}
    for values in found:
        columns = dict(zip(READ, values, strict=True))
        columns |= {"period_start": sql.moment(columns["period_start"]), "causes": json.loads(columns["causes"])}
        row = QuotaTracker(**columns)
        if key_of(row) in keys:
            rows[key_of(row)] = row
    return rows


def key_of(row: QuotaTracker | QuotaViolation) -> Key:
    return row.olt_id, row.task_type, row.period_start


def write(rows: Iterable[QuotaTracker]) -> None:
    """Write locked rows. `required` and the mean time are computed only here."""
    now = timezone.now()
    written = []
    for row in rows:
        row.quota_required = sum(getattr(row, name) for name in COUNTS)
        runs = row.quota_completed + row.quota_failed
        row.avg_duration_ms = round(row.total_duration_ms / runs) if runs else None
        row.updated_at = now
        written.append((*(adapted(getattr(row, name)) for name in WRITTEN), row.pk))
    sql.update(QuotaTracker, WRITTEN, written)


def owe(olt_ids: Collection[int], now: datetime) -> set[int]:
    """Update the pending slots of these OLTs in the hour of `now`; return those with an interrupted row.

    Disabled or deleted nodes have no pending slots except running ones.
    """
    hour = hour_of(now)
    # By key: node, pending slots, and whether it is on the grid.
    owed: dict[Key, tuple[int | None, int, bool]] = {}
    for node in grid_nodes(olt_ids):
        key = node.olt_id, node.task, hour
        # Two jobs with one name share a row.
        node_id, slots, is_on = owed.get(key, (node.id, 0, False))
        owed[key] = node_id, slots + node.slots(hour), is_on or node.due is not None
    known, running = _known(olt_ids, hour), open_slots(olt_ids, hour, hour)
    missing = {key: node_id for key, (node_id, slots, _) in owed.items() if key not in known and slots + running[key]}
    if missing:
        _create(missing)
        # Only with a locked row no other process can count in the meantime.
        known, running = _known(olt_ids, hour), open_slots(olt_ids, hour, hour)
    changed = {}
    for key in known:
        _, slots, is_on = owed.get(key, (None, 0, False))
        wanted = running[key] + slots, IN_PROGRESS if is_on else INTERRUPTED
        if wanted != known[key]:
            changed[key] = wanted
    rows = _rows(changed.keys())
    for key, row in rows.items():
        row.quota_pending, row.status = changed[key]
    write(rows.values())
    return {key[0] for key, (_, status) in changed.items() if status == INTERRUPTED != known[key][1]}


def orphaned(now: datetime) -> set[int]:
    """Return the OLTs with rows of this hour that wait for a deleted node."""
    rows = QuotaTracker.objects.filter(period_start=hour_of(now), node__isnull=True, quota_pending__gt=0)
    return set(rows.order_by().values_list("olt_id", flat=True))


def _known(olt_ids: Collection[int], hour: datetime) -> dict[Key, tuple[int, str]]:
    """Return the pending slots and the status of each row of the hour; most rows need nothing else."""
    rows = QuotaTracker.objects.filter(olt_id__in=olt_ids, period_start=hour).order_by("pk").select_for_update()
    columns = ("olt_id", "task_type", "quota_pending", "status")
    return {(olt_id, task, hour): (pending, status) for olt_id, task, pending, status in rows.values_list(*columns)}


@dataclass(frozen=True, slots=True)
class GridNode:
    """Grid of a node, or of its master. `due` None: off the grid."""

    id: int
    olt_id: int
    task: str
    due: datetime | None
    interval: timedelta

    def slots(self, hour: datetime) -> int:
        return 0 if self.due is None else slots_between(self.due, self.interval, hour, hour + HOUR)


def grid_nodes(olt_ids: Collection[int]) -> list[GridNode]:
    """Return the nodes of these OLTs with their grid."""
    columns = ("id", "olt_id", "olt__enabled", "job__name", "master_id")
    # Settings of a node, and the same of its master.
    settings_of = ("next_run_at", in_effect.enabled(), in_effect.interval_seconds())
    rows = list(WorkflowNode.objects.filter(olt_id__in=olt_ids).order_by("pk").values_list(*columns, *settings_of))
    settings = {row[0]: row[5:] for row in rows}
    nodes = []
    for id_, olt_id, olt_enabled, task, master_id, *own in rows:
        masters = settings.get(master_id or id_)
        due, master_enabled, interval = masters or own
        is_on = olt_enabled and masters is not None and own[1] and master_enabled
        nodes.append(GridNode(id_, olt_id, task, due if is_on else None, timedelta(seconds=interval)))
    return nodes


def open_slots(olt_ids: Collection[int], first: datetime, last: datetime) -> Counter[Key]:
    """Return the number of slots of these hours with an open execution."""
    columns = open_executions(olt_ids, first, last).values_list("olt_id", "node_name", "slot")
    return Counter((olt_id, name, hour_of(slot)) for olt_id, name, slot in columns)


def open_executions(olt_ids: Collection[int], first: datetime, last: datetime) -> "QuerySet[Execution]":
    """Return the open executions of slots in these hours. A manual run has no slot."""
    return Execution.objects.filter(
        olt_id__in=olt_ids, status__in=OPEN_STATUSES, trigger=Trigger.SCHEDULE, slot__gte=first, slot__lt=last + HOUR
    ).order_by()


def heal(rows: Collection[QuotaTracker]) -> None:
    """Correct pending slots of finished hours: a slot that will never run is not pending."""
    if not rows:
        return
    olt_ids = {row.olt_id for row in rows}
    hours = [row.period_start for row in rows]
    waiting = open_slots(olt_ids, min(hours), max(hours))
    nodes: defaultdict[tuple[int, str], list[GridNode]] = defaultdict(list)
    for node in grid_nodes(olt_ids):
        nodes[node.olt_id, node.task].append(node)
    for row in rows:
        to_come = sum(node.slots(row.period_start) for node in nodes[row.olt_id, row.task_type])
        row.quota_pending = waiting[key_of(row)] + to_come


def tell_interrupted(olt_ids: Collection[int]) -> None:
    """Log quotas interrupted by a user. Called after the commit."""
    if olt_ids:
        for olt_id, name in Olt.objects.filter(pk__in=olt_ids).values_list("pk", "name"):
            log_event(logger, Event.QUOTA_INTERRUPTED, olt_id=olt_id, olt=name)


# Limits per transaction, so that a large fleet does not block the database: OLTs whose hour starts, and rows to judge.
OLTS = 100
BATCH = 250
# After an outage there may be many thousands. The newest come first, the rest in the next step.
AT_ONCE = 8 * BATCH

# Maximum age of an hour interrupted by a user that is checked again.
INTERRUPTED_FOR = timedelta(days=1)

# Violations of older hours are stored but not reported.
NEWS_FOR = timedelta(hours=2)

# An OLT and the start of an hour.
OltHour = tuple[int, datetime]


def open_hour(now: datetime) -> None:
    """Create the row of this hour for every node on the grid, and correct its pending slots."""
    olt_ids = list(Olt.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(olt_ids), OLTS):
        with transaction.atomic():
            interrupted = owe(olt_ids[start : start + OLTS], now)
        tell_interrupted(interrupted)


def settle(now: datetime) -> int:
    """Judge finished hours, and return the number of rows checked.

    A row gets its verdict when nothing in it is pending. Five minutes after the end of its hour it may get a
    violation before that. The row is then checked every time until nothing is pending, and the violation is corrected
    or deleted.
    """
    ripe = _ripe(now)
    new: list[QuotaViolation] = []
    for start in range(0, len(ripe), BATCH):
        with transaction.atomic():
            new += _judge(ripe[start : start + BATCH])
    news = [violation for violation in new if violation.period_end > now - NEWS_FOR]
    names = dict(Olt.objects.filter(pk__in={each.olt_id for each in news}).values_list("pk", "name"))
    for violation in news:
        log_event(
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
    return len(ripe)


def _ripe(now: datetime) -> list[int]:
    """Return the rows to judge, newest first. An OLT with pending slots gets five minutes to finish them."""
    over = QuotaTracker.objects.filter(period_end__lte=now)
    # By the start of the hour, which has an index: there are millions of rows, and this runs every minute.
    fresh = over.filter(period_start__gt=now - GRACE - HOUR)
    waited_for = fresh.filter(quota_pending__gt=0).order_by().values_list("olt_id", flat=True)
    violations = QuotaViolation.objects.filter(
        olt=OuterRef("olt"), task_type=OuterRef("task_type"), period_start=OuterRef("period_start")
    )
    may_lack_violation = Q(
        ~Exists(violations), period_end__gt=now - INTERRUPTED_FOR, quota_required__gt=F("quota_completed")
    )
    interrupted = Q(status=INTERRUPTED) & (Q(quota_pending__gt=0) | may_lack_violation)
    rows = over.filter(Q(status=IN_PROGRESS) | interrupted)
    rows = rows.exclude(period_end__gt=now - GRACE, olt_id__in=set(waited_for))
    rows = rows.order_by("status", "-period_start", "olt_id")
    # Rows with pending slots return every time, so they must not displace others.
    pending = rows.filter(quota_pending__gt=0).values_list("pk", flat=True)
    return [*pending, *rows.filter(quota_pending=0).values_list("pk", flat=True)[:AT_ONCE]]


def _judge(ids: Sequence[int]) -> list[QuotaViolation]:
    """Set the status of rows and create violations; return the new violations."""
    rows = list(
        QuotaTracker.objects.filter(pk__in=ids)
        .annotate(olt_name=F("olt__name"))
        .order_by("pk")
        .select_for_update(of=("self",))
    )
    before = {row.pk: (row.status, row.quota_pending) for row in rows}
    heal([row for row in rows if row.quota_pending])
    for row in rows:
        if row.status != INTERRUPTED and not row.quota_pending:
            count = _count_of(row)
            row.status = verdict(count.completed, count.wanted)
    new = _write_violations(rows)
    write([row for row in rows if before[row.pk] != (row.status, row.quota_pending)])
    return new


def _count_of(row: QuotaTracker) -> Count:
    return Count(row.quota_completed, row.quota_failed, row.quota_skipped, row.quota_pending, row.causes)


def _write_violations(rows: Collection[QuotaTracker]) -> list[QuotaViolation]:
    """Update each violation from its row, and return the new ones.

    A late run may have fulfilled the quota: then the violation is deleted.
    """
    olts, hours = {row.olt_id for row in rows}, {row.period_start for row in rows}
    found = QuotaViolation.objects.filter(olt_id__in=olts, period_start__in=hours)
    known = {key_of(violation): violation for violation in found}
    # The rows have the name of the OLT.
    wanted: list[tuple[Any, Count, Severity]] = []
    over = []
    for row in rows:
        count, violation = _count_of(row), known.get(key_of(row))
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
        QuotaViolation(
            olt_id=row.olt_id,
            node_id=row.node_id,
            task_type=row.task_type,
            period_start=row.period_start,
            period_end=row.period_end,
            severity=how_bad,
            report=report(row.olt_name, row.task_type, count, runs[row.olt_id, row.period_start], blocked[key_of(row)]),
        )
        for row, count, how_bad in wanted
    ]
    QuotaViolation.objects.bulk_create(
        written,
        update_conflicts=True,
        unique_fields=["olt", "task_type", "period_start"],
        update_fields=["report", "severity"],
    )
    return [violation for violation in written if key_of(violation) not in known]


def _has_changed(violation: QuotaViolation, count: Count) -> bool:
    numbers = {"required", "completed", "failed", "skipped", "pending", "causes"}
    said = {name: value for name, value in violation.report.items() if name in numbers}
    return said != {name: getattr(count, name) for name in numbers}


def _blocked_by(rows: Collection[QuotaTracker]) -> "defaultdict[Key, Counter[str]]":
    """Return the causes of pending slots, as far as the database knows them."""
    causes: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    if not rows:
        return causes
    olt_ids, hours = {row.olt_id for row in rows}, {row.period_start for row in rows}
    for execution in open_executions(olt_ids, min(hours), max(hours)).exclude(cause=""):
        causes[execution.olt_id, execution.node_name, hour_of(execution.slot)][execution.cause] += 1
    broken = set(Olt.objects.filter(pk__in=olt_ids, breaker_opened_at__isnull=False).values_list("pk", flat=True))
    for row in rows:
        if row.olt_id in broken:
            found = causes[key_of(row)]
            found[Cause.BREAKER_OPEN] += row.quota_pending - found.total()
    return causes


def _runs(rows: Collection[QuotaTracker]) -> dict[OltHour, list[CountedRun]]:
    """Return the runs on these OLTs in these hours."""
    runs: defaultdict[OltHour, list[CountedRun]] = defaultdict(list)
    if not rows:
        return runs
    first, last = min(row.period_start for row in rows), max(row.period_end for row in rows)
    executions = Execution.objects.filter(
        olt_id__in={row.olt_id for row in rows}, slot__gte=first, slot__lt=last, started_at__isnull=False
    )
    # The time between attempts does not count.
    seconds: defaultdict[int, float] = defaultdict(float)
    attempts = ExecutionAttempt.objects.filter(execution__in=executions).order_by()
    for execution_id, started_at, ended_at in attempts.values_list("execution_id", "started_at", "ended_at"):
        if ended_at is not None:
            seconds[execution_id] += (ended_at - started_at).total_seconds()
    columns = ("olt_id", "node_name", "slot", "started_at", "waits", "master_execution_id")
    for each in with_parts(executions).only(*columns).iterator():
        run = CountedRun(each.node_name, each.slot, seconds.get(each.pk), each.lateness, each.parts)
        runs[each.olt_id, hour_of(each.slot)].append(run)
    return runs
