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

from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Poller, PollerStats
from facho.engine.events import Event, log_event
from facho.engine.ports import Clock, EventBus
from facho.store.database import DbThread
from facho.store.engine_lock import refuse_beside_engine

# Pollers without an update for this long belong to a dead worker, and their numbers are free.
GONE_AFTER = timedelta(seconds=30)

# Attempts to get numbers: workers that start together may choose the same ones.
TRIES = 20

# Figures of a snapshot that are stored.
STATS = tuple(field.name for field in PollerStats._meta.concrete_fields if field.name not in ("id", "timestamp"))


class Pool:
    """Stores snapshots. Workers store their own pollers; here dead ones are deleted."""

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
    """Write the state of pollers, whether or not their numbers existed."""
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
    """Write the state of a worker's pollers; False if another worker has their numbers by now."""
    with transaction.atomic():
        refuse_beside_engine()
        rows = Poller.objects.select_for_update().filter(poller_id__in=[poller["id"] for poller in pollers])
        owners = set(rows.values_list("worker", flat=True))
        if owners - {poller["worker"] for poller in pollers}:
            return False
        write_pollers(pollers, at)
    return True


def enlist(worker: str, host: str, count: int, now: datetime) -> list[int]:
    """Assign a worker the lowest free numbers, and return them."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                refuse_beside_engine()
                Poller.objects.filter(updated_at__lt=now - GONE_AFTER).delete()
                Poller.objects.filter(worker=worker).delete()
                taken = set(Poller.objects.values_list("poller_id", flat=True))
                numbers = [number for number in range(1, len(taken) + count + 1) if number not in taken][:count]
                Poller.objects.bulk_create(
                    Poller(poller_id=number, worker=worker, host=host, created_at=now, updated_at=now)
                    for number in numbers
                )
                return numbers
        except IntegrityError:
            continue
    raise RuntimeError(f"no free poller numbers were found for {worker}")


def strike_out(worker: str, numbers: Sequence[int]) -> None:
    """Release the numbers of a worker that stops."""
    Poller.objects.filter(worker=worker, poller_id__in=numbers).delete()


logger = logging.getLogger(__name__)

# Seconds between writes of pollers and events.
EVERY = 5.0

# Events to keep while the database is unavailable. Older ones are in the log file only.
BACKLOG = 5000

# Events per transaction: a backlog must not block the writes of the engine.
BATCH = 500

# The columns of a log entry, by name.
Columns = dict[str, Any]


class EventRows(logging.Handler):
    """Buffers events, in order, until the journal has written them."""

    def __init__(self, backlog: int = BACKLOG) -> None:
        super().__init__()
        self._pending: deque[Columns] = deque(maxlen=backlog)
        self._dropped = 0
        # Events come from several threads and are written in one.
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) is None:
            return
        try:
            columns = {
                "olt_id": getattr(record, "olt_id", None),
                "event_type": record.event.name,  # type: ignore[attr-defined]  # given by `log_event`
                "level": record.levelname,
                "message": _storable(record.getMessage()),
                "details": {key: _plain(value) for key, value in getattr(record, "details", {}).items()},
                "timestamp": datetime.fromtimestamp(record.created, UTC),
            }
        except Exception:
            # A message that cannot be formatted must not stop its caller; logging reports it.
            self.handleError(record)
            return
        with self._guard:
            self._dropped += len(self._pending) == self._pending.maxlen
            self._pending.append(columns)

    def first(self, count: int) -> list[Columns]:
        """Return the oldest events. They stay until `written` is called."""
        with self._guard:
            return [self._pending[position] for position in range(min(count, len(self._pending)))]

    def written(self, rows: list[Columns]) -> None:
        """Remove events that are in the database now."""
        with self._guard:
            for row in rows:
                if self._pending and self._pending[0] is row:
                    self._pending.popleft()
                else:
                    # The buffer was full and had dropped it during the write.
                    self._dropped -= 1

    def take_dropped(self) -> int:
        """Return the number of dropped events since the last call."""
        with self._guard:
            dropped, self._dropped = self._dropped, 0
            return dropped


def _plain(value: object) -> object:
    """Return a detail as plain JSON for any database."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return value if isinstance(value, int | float | None) else _storable(str(value))


def _storable(text: str) -> str:
    """Return a text without characters that a database refuses: it may quote a device."""
    return text.replace("\0", "").encode(errors="replace").decode()


class Journal:
    """Writes events and the last snapshot every few seconds. A missed beat loses nothing."""

    def __init__(
        self, *, bus: EventBus, clock: Clock, thread: DbThread, events: EventRows, pool: Pool | None = None
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._thread = thread
        self._events = events
        # Stores the snapshots, if this process is responsible for them.
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
                log_event(logger, Event.EVENTS_DROPPED, events=dropped)
                await self._write_events()
            snapshot = self._bus.latest("snapshot")
            if snapshot is not None and self._pool is not None:
                await self._thread.run(partial(self._pool.write, snapshot))
        except Exception:
            # The database may be unavailable; the events stay in the buffer.
            logger.exception("the journal could not be written")

    async def _write_events(self) -> None:
        while await self._thread.run(self._write_batch) == BATCH:
            pass

    def _write_batch(self) -> int:
        """Write the oldest events, and return their number.

        All in the thread, which finishes its work: if the journal were stopped between the write and `written`, the
        last beat would write them again.
        """
        rows = self._events.first(BATCH)
        if rows:
            _write_events(rows)
            self._events.written(rows)
        return len(rows)


@transaction.atomic
def _write_events(rows: list[Columns]) -> None:
    """Write events. An event of a deleted OLT is stored without the OLT."""
    present = set(Olt.objects.filter(pk__in={row["olt_id"] for row in rows}).values_list("pk", flat=True))
    CoordinatorLog.objects.bulk_create(
        CoordinatorLog(**row | {"olt_id": row["olt_id"] if row["olt_id"] in present else None}) for row in rows
    )
