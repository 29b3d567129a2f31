"""What is too old to keep goes, in batches so small that nobody who writes has to wait for them."""

import logging
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.apps import apps
from django.db import DatabaseError, transaction
from django.db.models import Exists, Model, OuterRef
from django.db.models.functions import Coalesce

from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.engine.events import Event, tell
from facho.engine.model import Status
from facho.engine.ports import Clock
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)

# Rows of a batch: the bounds, and what a table begins with.
LEAST, MOST, FIRST = 10, 5000, 100

# A batch that took longer, in seconds, was too large; one that took less may have more rows. No batch may hold the
# write lock for 0.1 s, and on a busy machine one in a hundred takes four times as long as the one before it.
TOO_LONG, SHORT = 0.025, 0.01

# After a batch the thread is left to others for this many times as long as the batch took, and at least so long: the
# engine writes in the same thread, and has three quarters of it however much there is to sweep.
PAUSE_FACTOR = 3
SHORTEST_PAUSE = 0.02

# Seconds that a run may take. What is left then waits for the next one.
BUDGET = 540.0

OPEN = (Status.PENDING, Status.RUNNING)

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


def rules(*, logs: int, executions: int, history: int) -> list[Keep]:
    """Return what is kept for how many days."""
    return [
        Keep("coordinator.CoordinatorLog", "timestamp", logs),
        Keep("polling.Execution", "slot", executions),
        Keep("telemetry.OnuHistory", "at", history),
        Keep("coordinator.QuotaTracker", "period_start", history),
        Keep("coordinator.QuotaViolation", "created_at", history),
        Keep("coordinator.ExecutionPlan", "period_start", history),
        Keep("coordinator.Forecast", "requested_at", history, over="ended_at"),
        Keep("polling.PollerStats", "timestamp", history),
        # Before the alerts that they are about: what is gone already is not gone through again.
        Keep("alerts.Delivery", "created_at", history),
        Keep("alerts.Alert", "opened_at", history, over="recovered_at"),
    ]


def next_size(size: int, seconds: float) -> int:
    """Return how many rows the batch after one of this size may have, by how long that one took."""
    if seconds > TOO_LONG:
        return max(size // 2, LEAST)
    if seconds < SHORT:
        return min(size * 3 // 2, MOST)
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
                rows, seconds = await self._thread.run(partial(self._batch, rule, now))
            except DatabaseError as error:
                # Something is wrong with this table, or with all of them; each is tried once.
                errors.append(error)
                continue
            if rows:
                gone[rule] += rows
                waiting.append(rule)
                self._sizes[rule] = next_size(self._sizes[rule], seconds)
                await self._clock.sleep(max(seconds * PAUSE_FACTOR, SHORTEST_PAUSE))

    def _batch(self, rule: Keep, now: datetime) -> tuple[int, float]:
        """Delete the oldest rows, and return how many those were and how long it took."""
        begun = self._clock.monotonic()
        before = now - timedelta(days=rule.days)
        find = _executions if rule.model is Execution else partial(_oldest, rule)
        doomed = find(before, self._sizes[rule])
        rows = _delete(rule.model, doomed) if doomed else 0
        return rows, self._clock.monotonic() - begun


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
    links = Execution.objects.filter(master_execution=OuterRef("pk"), status__in=OPEN)
    # A plain "has no master" would be looked up in its own index, which nearly every row is in, and then sorted.
    masters = Execution.objects.annotate(master=Coalesce("master_execution_id", 0)).filter(master=0, slot__lt=before)
    ended = masters.filter(~Exists(links)).exclude(status__in=OPEN)
    return list(ended.order_by("slot").values_list("pk", flat=True)[:size])


@transaction.atomic
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
