"""What is too old to keep goes, in batches so small that nobody who writes has to wait for them.

A batch is aimed at a fifth of the 0.1 s that nobody may have the write lock for, and has nothing in it that takes long
now and then: no waiting for the disk, no collecting of garbage. What is not ours to bound comes on top of it: a machine
that stands still, and the one fsync of a few bytes with which SQLite begins its log anew every few batches.
"""

import gc
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, Model, OuterRef
from django.db.models.functions import Coalesce

from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.engine.events import Event, tell
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Rows of a batch: the bounds, and what a table begins with.
LEAST, MOST, FIRST = 20, 200, 50

# Rows after which SQLite is told to move pages on. It does so by itself within the commit that comes to a thousand
# pages.
CHECKPOINT_AFTER = 400

# A batch that held the write lock for longer, in seconds, was too large; one that held it for less may have more rows.
TOO_LONG, SHORT = 0.02, 0.01

# After a batch the thread is left to others for this many times as long as the batch took, and at least so long: the
# engine writes in the same thread, and has three quarters of it however much there is to sweep.
PAUSE_FACTOR = 3
SHORTEST_PAUSE = 0.02

# Seconds that a run may take. What is left then waits for the next one.
BUDGET = 540.0

# Where a table has no index by time its oldest rows are looked for among this many of the first ones.
LEAST_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Keep:
    """How long the rows of a model are kept, counted from one of their times."""

    label: str
    time: str
    days: int
    # When such a row was over, where that is another time than the first; one that is not over yet stays.
    over: str = ""

    @property
    def model(self) -> type[Model]:
        return apps.get_model(self.label)


def rules(*, logs: int, executions: int, history: int, daily: int) -> list[Keep]:
    """Return what is kept for how many days."""
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
        # Before the alerts that they are about: what is gone already is not gone through again.
        Keep("alerts.Delivery", "created_at", history),
        Keep("alerts.Alert", "opened_at", history, over="recovered_at"),
    ]


class DeleteBatch(NamedTuple):
    """How many rows went, how long others could not write meanwhile, and how long the thread was busy, in seconds."""

    rows: int
    held: float
    took: float


def next_size(size: int, held: float) -> int:
    """Return how many rows the batch after one of this size may have: down at once, and up again little by little."""
    if held > TOO_LONG:
        return max(int(size * SHORT / held), LEAST)
    if held < SHORT:
        return min(size * 5 // 4, MOST)
    return size


class Sweep:
    """Deletes what is too old, a batch of each table in turn. What it learns of a table's pace it keeps for later.

    Each batch is one short transaction and one job of the store's thread, so that whatever else
    waits for either comes in between.
    """

    def __init__(self, *, thread: DbThread, clock: Clock, rules: Iterable[Keep]) -> None:
        self._thread = thread
        self._clock = clock
        self._rules = tuple(rules)
        self._sizes = dict.fromkeys(self._rules, FIRST)
        self._since_checkpoint = 0

    async def run(self, now: datetime) -> None:
        """Sweep until nothing is left, or the time for it is over."""
        gone: Counter[Keep] = Counter()
        errors: list[DatabaseError] = []
        try:
            await self._take_turns(now, gone, errors)
        finally:
            # Also where it was stopped: what is gone is gone.
            for rule, rows in gone.items():
                tell(logger, Event.ROWS_EXPIRED, rows=rows, table=rule.model._meta.db_table, days=rule.days)
        if errors:
            raise errors[0]

    async def _take_turns(self, now: datetime, gone: Counter[Keep], errors: list[DatabaseError]) -> None:
        end = self._clock.monotonic() + BUDGET
        waiting = deque(self._rules)
        while waiting and self._clock.monotonic() < end:
            rule = waiting.popleft()
            try:
                batch = await self._thread.run(partial(self._batch, rule, now))
            except DatabaseError as error:
                # Something is wrong with this table, or with all of them; each is tried once.
                errors.append(error)
                continue
            if batch.rows:
                gone[rule] += batch.rows
                waiting.append(rule)
                self._sizes[rule] = next_size(self._sizes[rule], batch.held)
                await self._clock.sleep(max(batch.took * PAUSE_FACTOR, SHORTEST_PAUSE))

    def _batch(self, rule: Keep, now: datetime) -> DeleteBatch:
        """Delete the oldest rows. Only the deleting itself is done with the write lock."""
        begun = self._clock.monotonic()
        before = now - timedelta(days=rule.days)
        doomed = _find(rule, before, self._sizes[rule])
        if not doomed:
            return DeleteBatch(0, 0.0, 0.0)
        with _no_waiting_for_disk(), _no_collecting(), transaction.atomic():
            # Others may have had the lock until here.
            locked = self._clock.monotonic()
            rows = _delete(rule.model, doomed)
        held = self._clock.monotonic() - locked
        self._since_checkpoint += rows
        if self._since_checkpoint >= CHECKPOINT_AFTER:
            self._since_checkpoint = 0
            _checkpoint()
        return DeleteBatch(rows, held, self._clock.monotonic() - begun)


def _is_tunable() -> bool:
    """Return whether this is SQLite, and not within a transaction: there it takes no orders."""
    return connection.vendor == "sqlite" and not connection.in_atomic_block


@contextmanager
def _no_waiting_for_disk() -> Iterator[None]:
    """Let SQLite commit without an fsync, which would be waited for with the write lock.

    Should the plug be pulled then, some rows are back and go once more. Whoever commits
    next has the log on the disk up to there, as has the next checkpoint.
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
    """Keep Python from looking for garbage: at times that takes 0.08 s, and whoever has the write lock has to wait."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _checkpoint() -> None:
    """Let SQLite bring its log to the disk and move the pages in it to their place. It needs no write lock for that."""
    if _is_tunable():
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _find(rule: Keep, before: datetime, size: int) -> list[Any]:
    """Return the ids of the oldest rows that are too old."""
    return _executions(before, size) if rule.model is Execution else _oldest(rule, before, size)


def _oldest(rule: Keep, before: datetime, size: int) -> list[Any]:
    """Return the ids of the oldest rows that are too old, found by an index and never by reading the whole table."""
    rows = rule.model._default_manager.all()
    if rule.over:
        rows = rows.filter(**{f"{rule.over}__lt": before})
    if is_indexed(rule.model, rule.time):
        by_time = rows.filter(**{f"{rule.time}__lt": before}).order_by(rule.time)
        return list(by_time.values_list("pk", flat=True)[:size])
    # Rows are only ever added at the end: the first ones are the oldest, give or take a few.
    first = rows.order_by("pk").values_list("pk", rule.time)[: max(size, LEAST_LOOKED_AT)]
    return [pk for pk, at in first if at < before][:size]


def is_indexed(model: type[Model], name: str) -> bool:
    """Return whether a column leads an index of its table, so that rows can be found in its order."""
    field = model._meta.get_field(name)
    leading = {index.fields[0].lstrip("-") for index in model._meta.indexes if index.fields and not index.condition}
    return name in leading or bool(getattr(field, "unique", False) or getattr(field, "db_index", False))


def _executions(before: datetime, size: int) -> list[int]:
    """Return the ids of masters that are too old. Their links go with them, so one that has not ended keeps them."""
    links = Execution.objects.filter(master_execution=OuterRef("pk"), status__in=OPEN_STATUSES)
    # A plain "has no master" would be looked up in its own index, which nearly every row is in, and then sorted.
    masters = Execution.objects.annotate(master=Coalesce("master_execution_id", 0)).filter(master=0, slot__lt=before)
    ended = masters.filter(~Exists(links)).exclude(status__in=OPEN_STATUSES)
    return list(ended.order_by("slot").values_list("pk", flat=True)[:size])


def _delete(model: type[Model], pks: list[Any]) -> int:
    """Delete rows with all that hangs on them, and return how many of the model's own that were."""
    if model is Execution:
        return _delete_executions(pks)
    _, by_model = model._default_manager.filter(pk__in=pks).delete()
    return by_model.get(model._meta.label, 0)


def _delete_executions(masters: list[int]) -> int:
    """Delete attempts, then links, then masters. Django would read every row of them first, errors and all."""
    links = list(Execution.objects.filter(master_execution__in=masters).order_by().values_list("pk", flat=True))
    ExecutionAttempt.objects.filter(execution__in=[*masters, *links]).delete()
    deleted = 0
    for rows in (Execution.objects.filter(pk__in=ids) for ids in (links, masters) if ids):
        deleted += rows._raw_delete(rows.db)
    return deleted
