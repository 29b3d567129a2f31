"""The pollers as rows, as they last stood, and the pool's load by the minute."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from facho.apps.polling.models import Poller, PollerStats
from facho.store.tenancy import refuse_beside_engine

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
