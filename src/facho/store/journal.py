"""What the engine tells, kept: events as rows, the pollers as they last stood, the pool's load by the minute."""

import logging
import math
import threading
from collections import deque
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import transaction

from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.engine.events import Event, tell
from facho.engine.ports import Clock, EventBus
from facho.store.pool import Pool
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)

# How often, in seconds, pollers and events are written down.
EVERY = 5.0

# Events kept while the database is away; beyond that the oldest are in the log file only.
BACKLOG = 5000

# Events written in one transaction: a backlog must not keep the engine from its own writes when the database is back.
BATCH = 500

# The columns of a log entry, by name.
Columns = dict[str, Any]


class EventRows(logging.Handler):
    """Holds events, in the order in which they were told, until the journal has written them."""

    def __init__(self, backlog: int = BACKLOG) -> None:
        super().__init__()
        self._pending: deque[Columns] = deque(maxlen=backlog)
        self._dropped = 0
        # Events are told in several threads, and written in one.
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) is None:
            return
        try:
            columns = _columns(record)
        except Exception:
            # A sentence that cannot be said must not stop who says it; logging has its own way to complain.
            self.handleError(record)
            return
        with self._guard:
            self._dropped += len(self._pending) == self._pending.maxlen
            self._pending.append(columns)

    def first(self, count: int) -> list[Columns]:
        """Return the oldest events. They stay until they are `written`."""
        with self._guard:
            return [self._pending[position] for position in range(min(count, len(self._pending)))]

    def written(self, rows: list[Columns]) -> None:
        """Let go of events that are in the database now."""
        with self._guard:
            for row in rows:
                if self._pending and self._pending[0] is row:
                    self._pending.popleft()
                else:
                    # A full backlog had let go of it while it was being written.
                    self._dropped -= 1

    def take_dropped(self) -> int:
        """Return how many events were lost since this was asked last."""
        with self._guard:
            dropped, self._dropped = self._dropped, 0
            return dropped


def _columns(record: logging.LogRecord) -> Columns:
    return {
        "olt_id": getattr(record, "olt_id", None),
        "event_type": record.event.name,  # type: ignore[attr-defined]  # given by `tell`
        "level": record.levelname,
        "message": _storable(record.getMessage()),
        "details": {key: _plain(value) for key, value in getattr(record, "details", {}).items()},
        "timestamp": datetime.fromtimestamp(record.created, UTC),
    }


def _plain(value: object) -> object:
    """Return a detail as JSON can hold it, in every database."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return value if isinstance(value, int | float | None) else _storable(str(value))


def _storable(text: str) -> str:
    """Return a text without what a database refuses: a device may say anything, and an error may quote it."""
    return text.replace("\0", "").encode(errors="replace").decode()


class Journal:
    """Writes every few seconds what was told and what the bus last said. Losing a beat loses no fact."""

    def __init__(
        self, *, bus: EventBus, clock: Clock, thread: DbThread, events: EventRows, pool: Pool | None = None
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._thread = thread
        self._events = events
        # Who keeps the snapshots, where that is ours to do.
        self._pool = pool

    async def run(self) -> None:
        while True:
            await self._clock.sleep(EVERY)
            await self.step()

    async def step(self) -> None:
        try:
            await self._write_events()
            dropped = self._events.take_dropped()
            if dropped:
                tell(logger, Event.EVENTS_DROPPED, events=dropped)
                await self._write_events()
            await self._write_snapshot()
        except Exception:
            # The database may be away; the events stay where they are until it is back.
            logger.exception("the journal could not be written")

    async def _write_events(self) -> None:
        while await self._thread.run(self._write_batch) == BATCH:
            pass

    def _write_batch(self) -> int:
        """Write the oldest events, and return how many there were.

        All of it in the thread, which finishes what it began: were the journal stopped
        between the write and the note of it, the last beat would write them again.
        """
        rows = self._events.first(BATCH)
        if rows:
            _write_events(rows)
            self._events.written(rows)
        return len(rows)

    async def _write_snapshot(self) -> None:
        snapshot = self._bus.latest("snapshot")
        if snapshot is not None and self._pool is not None:
            await self._thread.run(partial(self._pool.write, snapshot))


@transaction.atomic
def _write_events(rows: list[Columns]) -> None:
    """Write events; one of an OLT that was deleted meanwhile is kept without it."""
    present = set(Olt.objects.filter(pk__in={row["olt_id"] for row in rows}).values_list("pk", flat=True))
    CoordinatorLog.objects.bulk_create(
        CoordinatorLog(**row | {"olt_id": row["olt_id"] if row["olt_id"] in present else None}) for row in rows
    )
