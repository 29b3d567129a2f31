"""Snapshot of pollers and queue as plain values, published once a tick."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from facho.engine.scheduling.pollers import Poller, PollerManager
from facho.engine.scheduling.queue import QueuedNode, in_order

# Number of queue entries in a snapshot.
QUEUE_SHOWN = 50


def snapshot(
    manager: PollerManager, now: datetime, pollers: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the pollers, the head of the queue and the statistics of the pool.

    `pollers` are those of the workers in scale-out; otherwise the manager's own.
    """
    if pollers is None:
        pollers = describe(manager.pollers, now, manager.started_at)
    saturation = manager.saturation
    busy = sum(poller["status"] == "BUSY" for poller in pollers)
    size, delayed = len(manager.waiting), manager.queue.delayed(now)
    return {
        "at": now.isoformat(),
        "pollers": pollers,
        "queue": {
            "size": size,
            "delayed": delayed,
            # More runs are late than all pollers together can start at once.
            "is_overload": delayed > len(pollers),
            "next": [_waiting(item, now) for item in in_order(manager.waiting, now)[:QUEUE_SHOWN]],
        },
        "stats": {
            "total_pollers": len(pollers),
            "free_pollers": len(pollers) - busy,
            "busy_pollers": busy,
            "busy_percentage": round(saturation.mean, 1),
            "samples": [round(sample, 1) for sample in saturation.samples],
            "is_saturated": saturation.is_saturated,
            "queue_size": size,
            "delayed": delayed,
            "total_tasks_completed": sum(poller["tasks_completed"] for poller in pollers),
            "total_tasks_delayed": sum(poller["tasks_delayed"] for poller in pollers),
        },
    }


def describe(
    pollers: Iterable[Poller], now: datetime, started_at: datetime, worker: str = "", host: str = ""
) -> list[dict[str, Any]]:
    """Return the state and place of pollers as plain values."""
    return [{**_poller(poller, now, started_at), "worker": worker, "host": host} for poller in pollers]


def _poller(poller: Poller, now: datetime, started_at: datetime) -> dict[str, Any]:
    seconds = (now - poller.busy_since).total_seconds() if poller.busy_since else 0.0
    composite, node = poller.composite, poller.node
    return {
        "id": poller.id,
        "status": "FREE" if composite is None else "BUSY",
        "olt_id": composite.olt_id if composite else None,
        "olt": composite.master.olt_name if composite else None,
        "node_id": node.id if node else None,
        "node": node.name if node else None,
        "link": poller.link or None,
        "links": len(composite.links) if composite else None,
        "current_execution_id": poller.execution_id,
        "active_executions": [
            {"id": execution_id, "node_id": link.id, "node": link.name, "status": status.value}
            for execution_id, link, status in poller.active_executions
        ],
        "busy_since": poller.busy_since.isoformat() if poller.busy_since else None,
        "seconds": round(seconds, 1),
        "busy_time": round(poller.busy_time + seconds, 1),
        "total_time": round((now - started_at).total_seconds(), 1),
        "tasks_completed": poller.tasks_completed,
        "tasks_delayed": poller.tasks_delayed,
        "created_at": started_at.isoformat(),
        "updated_at": now.isoformat(),
    }


def _waiting(waiting: QueuedNode, now: datetime) -> dict[str, Any]:
    composite = waiting.composite
    return {
        "node_id": composite.id,
        "node": composite.master.name,
        "olt_id": composite.olt_id,
        "olt": composite.master.olt_name,
        "slot": composite.slot.isoformat(),
        "late": round((now - composite.slot).total_seconds(), 1),
        "priority": composite.master.priority,
        "trigger": composite.trigger.value,
        "links": len(composite.links),
        "attempt": waiting.retry.claim.attempt if waiting.retry else 1,
        "waiting_for": waiting.waits_for(now).value,
    }
