"""What the engine tells, kept: events as rows, the pollers as they last stood, the pool's load by the minute."""

import logging
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Poller, PollerStats
from facho.engine.ports import Clock, EventBus
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)

# How often, in seconds, pollers and events are written down.
EVERY = 5.0

# Events kept while the database is away; beyond that the oldest go to the log file only.
BACKLOG = 5000


class EventRows(logging.Handler):
    """Collects log records that are events, for the journal to write in one go."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: deque[CoordinatorLog] = deque(maxlen=BACKLOG)

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        if event is not None:
            self.pending.append(
                CoordinatorLog(
                    olt_id=getattr(record, "olt_id", None),
                    event_type=event.name,
                    level=record.levelname,
                    message=record.getMessage(),
                    details=_plain(getattr(record, "details", {})),
                    timestamp=datetime.fromtimestamp(record.created, UTC),
                )
            )


def _plain(details: Mapping[str, object]) -> dict[str, object]:
    """Return details as JSON can hold them, in every database."""
    numbers_and_truths = (int, float, bool, type(None))
    return {
        key: value if isinstance(value, numbers_and_truths) else str(value).replace("\0", "")
        for key, value in details.items()
    }


class Journal:
    """Writes every few seconds what the bus last said and what was logged. Losing a beat loses no fact."""

    def __init__(self, *, bus: EventBus, clock: Clock, thread: DbThread, events: EventRows, worker: str) -> None:
        self._bus = bus
        self._clock = clock
        self._thread = thread
        self._events = events
        self._worker = worker
        self._minute: str | None = None

    async def run(self) -> None:
        while True:
            await self._clock.sleep(EVERY)
            await self.step()

    async def step(self) -> None:
        snapshot = self._bus.latest("snapshot")
        rows = list(self._events.pending)
        try:
            await self._thread.run(lambda: self._write(snapshot, rows))
        except Exception:
            # The database may be away; the events stay where they are until it is back.
            logger.exception("the journal could not be written")
            return
        for row in rows:
            # A full backlog may have let go of it by itself meanwhile.
            if self._events.pending[0] is row:
                self._events.pending.popleft()

    @transaction.atomic
    def _write(self, snapshot: Mapping[str, Any] | None, rows: list[CoordinatorLog]) -> None:
        if rows:
            present = set(Olt.objects.filter(pk__in={row.olt_id for row in rows}).values_list("pk", flat=True))
            for row in rows:
                row.olt_id = row.olt_id if row.olt_id in present else None
            CoordinatorLog.objects.bulk_create(rows)
        if snapshot is not None:
            _write_pollers(snapshot, self._worker)
            minute = str(snapshot["at"])[:16]
            if minute != self._minute:
                _write_stats(snapshot)
                self._minute = minute


def _write_pollers(snapshot: Mapping[str, Any], worker: str) -> None:
    rows = [
        Poller(
            poller_id=poller["id"],
            worker=worker,
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
            updated_at=datetime.fromisoformat(snapshot["at"]),
        )
        for poller in snapshot["pollers"]
    ]
    fields = [field.name for field in Poller._meta.concrete_fields if field.name not in ("id", "poller_id")]
    Poller.objects.bulk_create(rows, update_conflicts=True, unique_fields=["poller_id"], update_fields=fields)
    Poller.objects.exclude(poller_id__in=[row.poller_id for row in rows]).delete()


def _write_stats(snapshot: Mapping[str, Any]) -> None:
    stats = snapshot["stats"]
    names = (
        "total_pollers",
        "busy_pollers",
        "busy_percentage",
        "queue_size",
        "delayed",
        "is_saturated",
        "total_tasks_completed",
        "total_tasks_delayed",
    )
    timestamp = datetime.fromisoformat(snapshot["at"]).replace(second=0, microsecond=0)
    PollerStats.objects.update_or_create(timestamp=timestamp, defaults={name: stats[name] for name in names})
