"""Events, pollers and the load of the pool as rows, written every few seconds."""

import logging
import math
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Poller, PollerStats
from facho.engine.events import Event, tell
from facho.engine.ports import Clock, EventBus
from facho.store.database import DbThread
from facho.store.engine_lock import refuse_beside_engine

# Pollers of which nothing was written for this long belong to a worker that is gone. Others may take their numbers.
GONE_AFTER = timedelta(seconds=30)

# Workers that start together may reach for the same numbers; all but one of them try again.
TRIES = 20

STATS = (
    "total_pollers",
    "free_pollers",
    "busy_pollers",
    "busy_percentage",
    "queue_size",
    "delayed",
    "is_saturated",
    "total_tasks_completed",
    "total_tasks_delayed",
)


class Pool:
    """Keeps what snapshots say. Pollers that run elsewhere are kept by their workers; here the dead are struck out."""

    def __init__(self, *, owns_pollers: bool = True) -> None:
        self._owns_pollers = owns_pollers
        self._minute: str | None = None

    @transaction.atomic
    def write(self, snapshot: Mapping[str, Any]) -> None:
        at = datetime.fromisoformat(snapshot["at"])
        if self._owns_pollers:
            write_pollers(snapshot["pollers"], at)
            Poller.objects.exclude(poller_id__in=[poller["id"] for poller in snapshot["pollers"]]).delete()
        else:
            Poller.objects.filter(updated_at__lt=at - GONE_AFTER).delete()
        minute = snapshot["at"][:16]
        if minute != self._minute:
            timestamp = at.replace(second=0, microsecond=0)
            defaults = {name: snapshot["stats"][name] for name in STATS}
            PollerStats.objects.update_or_create(timestamp=timestamp, defaults=defaults)
            self._minute = minute


def write_pollers(pollers: Iterable[Mapping[str, Any]], at: datetime) -> None:
    """Write how pollers stand, whoever had their numbers before."""
    rows = [
        Poller(
            poller_id=poller["id"],
            worker=poller["worker"],
            host=poller["host"],
            status=poller["status"],
            current_olt_id=poller["olt_id"],
            current_node_id=poller["node_id"],
            link=poller["link"],
            links=poller["links"],
            busy_since=poller["busy_since"] and datetime.fromisoformat(poller["busy_since"]),
            busy_time=poller["busy_time"],
            total_time=poller["total_time"],
            tasks_completed=poller["tasks_completed"],
            tasks_delayed=poller["tasks_delayed"],
            created_at=datetime.fromisoformat(poller["created_at"]),
            updated_at=at,
        )
        for poller in pollers
    ]
    fields = [field.name for field in Poller._meta.concrete_fields if field.name not in ("id", "poller_id")]
    Poller.objects.bulk_create(rows, update_conflicts=True, unique_fields=["poller_id"], update_fields=fields)


def keep_pollers(pollers: Sequence[Mapping[str, Any]], at: datetime) -> bool:
    """Write how the pollers of a worker stand; False if it was silent for so long that others have their numbers."""
    with transaction.atomic():
        refuse_beside_engine()
        rows = Poller.objects.select_for_update().filter(poller_id__in=[poller["id"] for poller in pollers])
        owners = set(rows.values_list("worker", flat=True))
        if owners - {poller["worker"] for poller in pollers}:
            return False
        write_pollers(pollers, at)
    return True


def enlist(worker: str, host: str, count: int, now: datetime) -> list[int]:
    """Give a worker the lowest numbers that no other worker uses, and return them."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                return _enlist(worker, host, count, now)
        except IntegrityError:
            continue
    raise RuntimeError(f"no numbers could be found for the pollers of {worker}")


def _enlist(worker: str, host: str, count: int, now: datetime) -> list[int]:
    refuse_beside_engine()
    Poller.objects.filter(updated_at__lt=now - GONE_AFTER).delete()
    Poller.objects.filter(worker=worker).delete()
    taken = set(Poller.objects.values_list("poller_id", flat=True))
    highest = Poller.objects.aggregate(highest=Max("poller_id"))["highest"] or 0
    numbers = [number for number in range(1, highest + count + 1) if number not in taken][:count]
    Poller.objects.bulk_create(
        Poller(poller_id=number, worker=worker, host=host, created_at=now, updated_at=now) for number in numbers
    )
    return numbers


def strike_out(worker: str, numbers: Sequence[int]) -> None:
    """Let a worker that stops give its numbers back."""
    Poller.objects.filter(worker=worker, poller_id__in=numbers).delete()


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
