"""Last snapshot of the engine, for views. A view never calls the engine: it reads the published snapshot.

The snapshot, published once a tick on the topic "snapshot":

    at        when, ISO 8601 in UTC
    pollers   [{id, status, olt_id, olt, node_id, node, link, links, current_execution_id,
                active_executions: [{id, node_id, node, status}], busy_since, seconds, busy_time, total_time,
                tasks_completed, tasks_delayed, created_at, updated_at, worker, host}]
    queue     {size, delayed, is_overload, next: [{node_id, node, olt_id, olt, slot, late, priority, trigger, links,
                attempt, waiting_for}]}
    stats     {total_pollers, free_pollers, busy_pollers, busy_percentage, samples, is_saturated,
               queue_size, delayed, total_tasks_completed, total_tasks_delayed}

Topic "execution": {id, olt_id, node_id, status} when one starts or ends.
Topic "readings": {olt_id, node_id, count} after they are committed.
Topic "problems": {olt_id} when problems of an OLT changed; null for problems of all OLTs.

And in scale-out:

Topic "worker": {worker, host, draining, cut_off, spooled, pollers} from each worker, once a second.
Topic "interrupt": {olt_id} to all of them, when its runs must be interrupted.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext

from facho.apps.inventory.scopes import visible_ids
from facho.engine.ports import EventBus

# Twice the tick and a little: an older snapshot is stale.
STALE_AFTER = timedelta(seconds=5)

# Permission to see pollers and queue.
POOL_PERMISSION = "polling.view_poller"

EMPTY: Mapping[str, Any] = {
    "at": None,
    "pollers": [],
    "queue": {"size": 0, "delayed": 0, "is_overload": False, "next": []},
    "stats": {
        "total_pollers": 0,
        "free_pollers": 0,
        "busy_pollers": 0,
        "busy_percentage": 0.0,
        "samples": [],
        "is_saturated": False,
        "queue_size": 0,
        "delayed": 0,
        "total_tasks_completed": 0,
        "total_tasks_delayed": 0,
    },
}

_bus: EventBus | None = None


def attach(bus: EventBus | None) -> None:
    """Set the bus. Called once at the assembly."""
    global _bus
    _bus = bus


def bus() -> EventBus | None:
    return _bus


def snapshot(now: datetime | None = None) -> dict[str, Any]:
    """Return the last snapshot that this process has heard of, as `snapshot_of` does."""
    return snapshot_of(_bus, now or timezone.now())


def without_pool(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the time of a snapshot, which shows that the engine is running."""
    return {**EMPTY, **{name: snapshot[name] for name in ("at", "age", "stale") if name in snapshot}}


def snapshot_for(user: Any, now: datetime | None = None) -> dict[str, Any]:
    """Return the last snapshot as a user may see it."""
    latest, ids = snapshot(now), visible_ids(user)
    return latest if ids is None else hide_others(latest, ids, gettext("another OLT"))


def hide_others(latest: Mapping[str, Any], ids: Collection[int], label: str) -> dict[str, Any]:
    """Replace the names and ids of other OLTs in a snapshot. The numbers of the pool stay."""
    hidden = {"olt_id": None, "olt": label, "node_id": None}
    busy: dict[str, Any] = {**hidden, "node": None, "current_execution_id": None, "active_executions": []}
    queued = {**hidden, "node": ""}
    queue = latest["queue"]
    return {
        **latest,
        "pollers": [
            each if each["olt_id"] is None or each["olt_id"] in ids else {**each, **busy} for each in latest["pollers"]
        ],
        "queue": {
            **queue,
            "next": [each if each["olt_id"] in ids else {**each, **queued} for each in queue["next"]],
        },
    }


def snapshot_of(bus: EventBus | None, now: datetime) -> dict[str, Any]:
    """Return the last snapshot, with its `age` in seconds and whether it is `stale`. An honest stale beats a guess."""
    latest = (bus.latest("snapshot") if bus else None) or EMPTY
    if latest["at"] is None:
        return {**latest, "age": None, "stale": True}
    age = now - datetime.fromisoformat(latest["at"])
    return {**latest, "age": round(age.total_seconds(), 1), "stale": age > STALE_AFTER}
