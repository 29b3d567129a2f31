"""Deletion of old rows in small batches that do not delay other writers.

A batch aims at a fifth of the maximum of 0.1 s under the write lock, and avoids slow steps: no fsync, no garbage
collection. Not bounded: a stalled machine, and the one fsync of a few bytes with which SQLite restarts its log every
few batches.
"""

import gc
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, Model, OuterRef
from django.db.models.functions import Coalesce

from facho.apps.changes.models import Change
from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.engine.events import Event, log_event
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Rows per batch: minimum, maximum and initial value.
LEAST, MOST, FIRST = 20, 200, 50

# Rows after which SQLite gets a checkpoint. Otherwise it runs one inside the commit that reaches 1,000 pages.
CHECKPOINT_AFTER = 400

# Seconds under the write lock: longer batches get smaller, shorter ones may grow.
TOO_LONG, SHORT = 0.02, 0.01

# After a batch the thread is free for this many times its duration, and at least for this long. The engine writes in
# the same thread and has three quarters of it.
PAUSE_FACTOR = 3
SHORTEST_PAUSE = 0.02

# Time limit of a run in seconds. The next run continues.
BUDGET = 540.0

# Without an index by time, the oldest rows are searched among this many of the first ones.
LEAST_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Keep:
    """Retention of a model, counted from one of its times."""

    label: str
    time: str
    days: int
    # End time of a row, if that is another column; open rows stay.
    over: str = ""

    @property
    def model(self) -> type[Model]:
        return apps.get_model(self.label)


def rules(*, logs: int, executions: int, history: int, daily: int, changes: int) -> list[Keep]:
    """Return the retention rules in days."""
    return [
        Keep("coordinator.CoordinatorLog", "timestamp", logs),
        Keep("polling.Execution", "slot", executions),
        Keep("telemetry.HistoryRun", "at", history),
        Keep("telemetry.HistoryChunk", "last_at", history),
        Keep("telemetry.HistoryDay", "at", daily),
        Keep("telemetry.HistoryMonth", "last_at", daily),
        Keep("telemetry.OnuEvent", "at", history),
        Keep("coordinator.QuotaTracker", "period_start", history),
        Keep("coordinator.QuotaViolation", "created_at", history),
        Keep("coordinator.ExecutionPlan", "period_start", history),
        Keep("coordinator.Forecast", "requested_at", history, over="ended_at"),
        Keep("polling.PollerStats", "timestamp", history),
        Keep("inventory.Question", "asked_at", 1),
        Keep("accounts.UserSession", "expire_date", 1),
        Keep("axes.AccessAttempt", "attempt_time", 1),
        # Addresses of earlier logins: see `accounts/logins.py`.
        Keep("axes.AccessLog", "attempt_time", 90),
        # Before their alerts, so that deleted rows are not searched again.
        Keep("alerts.Delivery", "created_at", history),
        Keep("alerts.Alert", "opened_at", history, over="recovered_at"),
        Keep("problems.ProblemEntry", "at", history),
        Keep("problems.Problem", "since", history, over="until"),
        Keep("maintenance.MaintenanceWindow", "ends_at", history),
        Keep("changes.Change", "at", changes),
    ]


def next_size(size: int, held: float) -> int:
    """Return the size of the next batch: smaller at once, larger step by step."""
    if held > TOO_LONG:
        return max(int(size * SHORT / held), LEAST)
    if held < SHORT:
        return min(size * 5 // 4, MOST)
    return size


class Sweep:
    """Deletes old rows, one batch per table in turn. It remembers the batch size of each table.

    Each batch is one short transaction and one job of the store's thread, so that other work can run in between.
    """

    def __init__(self, *, thread: DbThread, clock: Clock, rules: Iterable[Keep]) -> None:
        self._thread = thread
        self._clock = clock
        self._rules = tuple(rules)
        self._sizes = dict.fromkeys(self._rules, FIRST)
        self._since_checkpoint = 0

    async def run(self, now: datetime) -> None:
        """Delete until nothing is left, or the time limit is reached."""
        gone: Counter[Keep] = Counter()
        errors: list[DatabaseError] = []
        end = self._clock.monotonic() + BUDGET
        waiting = deque(self._rules)
        try:
            while waiting and self._clock.monotonic() < end:
                rule = waiting.popleft()
                try:
                    rows, took = await self._thread.run(partial(self._batch, rule, now))
                except DatabaseError as error:
                    # A problem with this table, or with all; each is tried once.
                    errors.append(error)
                    continue
                if rows:
                    gone[rule] += rows
                    waiting.append(rule)
                    await self._clock.sleep(max(took * PAUSE_FACTOR, SHORTEST_PAUSE))
        finally:
            # Also after a stop: the rows are deleted.
            for rule, rows in gone.items():
                log_event(logger, Event.ROWS_EXPIRED, rows=rows, table=rule.model._meta.db_table, days=rule.days)
        if errors:
            raise errors[0]

    def _batch(self, rule: Keep, now: datetime) -> tuple[int, float]:
        """Delete the oldest rows, and return their number and the seconds in the thread.

        Only the deletion itself holds the write lock.
        """
        begun = self._clock.monotonic()
        before = now - timedelta(days=rule.days)
        doomed = _find(rule, before, self._sizes[rule])
        if not doomed:
            return 0, 0.0
        with _no_waiting_for_disk(), _no_collecting(), transaction.atomic():
            # Other writers may have held the lock until here.
            locked = self._clock.monotonic()
            rows = _delete(rule.model, doomed)
        self._sizes[rule] = next_size(self._sizes[rule], self._clock.monotonic() - locked)
        self._since_checkpoint += rows
        if self._since_checkpoint >= CHECKPOINT_AFTER:
            self._since_checkpoint = 0
            _checkpoint()
        return rows, self._clock.monotonic() - begun


def _is_tunable() -> bool:
    """Return whether this is SQLite outside a transaction; inside, it ignores pragmas."""
    return connection.vendor == "sqlite" and not connection.in_atomic_block


@contextmanager
def _no_waiting_for_disk() -> Iterator[None]:
    """Let SQLite commit without an fsync, which would hold the write lock.

    After a power failure some rows are back and are deleted again. The next normal commit or checkpoint syncs the
    log.
    """
    if not _is_tunable():
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous")
        [before] = cursor.fetchone()
        cursor.execute("PRAGMA synchronous=NORMAL")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA synchronous={before}")


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Disable garbage collection: it can take 0.08 s under the write lock."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _checkpoint() -> None:
    """Let SQLite sync its log and move the pages to the database. This needs no write lock."""
    if _is_tunable():
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _find(rule: Keep, before: datetime, size: int) -> list[Any]:
    """Return the ids of the oldest expired rows, by an index and never by a full scan."""
    if rule.model is Execution:
        return _executions(before, size)
    rows = rule.model._default_manager.all()
    if rule.over:
        rows = rows.filter(**{f"{rule.over}__lt": before})
    if is_indexed(rule.model, rule.time):
        by_time = rows.filter(**{f"{rule.time}__lt": before}).order_by(rule.time)
        return list(by_time.values_list("pk", flat=True)[:size])
    # Rows are only appended: the first ones are the oldest, approximately.
    first = rows.order_by("pk").values_list("pk", rule.time)[: max(size, LEAST_LOOKED_AT)]
    return [pk for pk, at in first if at < before][:size]


def is_indexed(model: type[Model], name: str) -> bool:
    """Return whether a column leads an index of its table."""
    field = model._meta.get_field(name)
    leading = {index.fields[0].lstrip("-") for index in model._meta.indexes if index.fields and not index.condition}
    return name in leading or bool(getattr(field, "unique", False) or getattr(field, "db_index", False))


def _executions(before: datetime, size: int) -> list[int]:
    """Return the ids of expired masters. Links are deleted with them, so an open link keeps its master."""
    links = Execution.objects.filter(master_execution=OuterRef("pk"), status__in=OPEN_STATUSES)
    # A plain "has no master" would use its own index, which contains nearly every row, and then sort.
    masters = Execution.objects.annotate(master=Coalesce("master_execution_id", 0)).filter(master=0, slot__lt=before)
    ended = masters.filter(~Exists(links)).exclude(status__in=OPEN_STATUSES)
    return list(ended.order_by("slot").values_list("pk", flat=True)[:size])


def _delete(model: type[Model], pks: list[Any]) -> int:
    """Delete rows with their dependents, and return the number of rows of the model itself."""
    if model is Change:
        # Its own `delete` refuses.
        expired = Change.objects.filter(pk__in=pks)
        return expired._raw_delete(expired.db)
    if model is not Execution:
        _, by_model = model._default_manager.filter(pk__in=pks).delete()
        return by_model.get(model._meta.label, 0)
    # Attempts, then links, then masters. Django would first read every row with its errors.
    links = list(Execution.objects.filter(master_execution__in=pks).order_by().values_list("pk", flat=True))
    ExecutionAttempt.objects.filter(execution__in=[*pks, *links]).delete()
    deleted = 0
    for rows in (Execution.objects.filter(pk__in=ids) for ids in (links, pks) if ids):
        deleted += rows._raw_delete(rows.db)
    return deleted
