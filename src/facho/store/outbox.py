"""Outbox of a time series store: runs that it has not confirmed, with all that is sent of them.

A run is appended in its own transaction and deleted when the store has it, so a crash loses nothing and what is sent
again is the same. There is no cursor: ids of concurrent transactions become visible in any order.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from facho.apps.telemetry.models import COUNTERS, OutboxRun
from facho.engine.chunks import Cell, pack_run
from facho.store import sql


class Pending(NamedTuple):
    """A run in the outbox. `ports` are slot, port and mostly a number for each of the counters."""

    id: int
    olt_id: int
    at: datetime
    data: bytes
    more: bytes
    counters: list[str]
    ports: list[list[int | None]]


class Backlog(NamedTuple):
    """Runs in the outbox, and the time of the oldest one."""

    runs: int
    oldest: datetime | None


def append(
    olt_id: int,
    at: datetime,
    data: bytes,
    onu_ids: Sequence[int],
    more: Mapping[str, Sequence[Cell]],
    ports: Sequence[Sequence[int | None]],
) -> None:
    """Add a run in the open transaction: its packed history, fields that have none, and the ports that it read."""
    packed = pack_run(onu_ids, more) if more else b""
    sql.insert(OutboxRun, olt_id=olt_id, at=at, data=data, more=packed, ports=[list(COUNTERS), *ports])


def pending(most: int, but: Collection[int] = ()) -> list[Pending]:
    """Return the first runs, without those that have been sent."""
    condition, values = sql.among(but)
    found = sql.fetch(
        "SELECT id, olt_id, at, data, more, ports FROM tsdb_outbox"  # noqa: S608 - no values
        f" WHERE NOT id {condition} ORDER BY id LIMIT {most:d}",
        *values,
    )
    return [
        Pending(id_, olt_id, sql.known_moment(at), bytes(data), bytes(more), *_ports(json.loads(ports)))
        for id_, olt_id, at, data, more, ports in found
    ]


def _ports(stored: list[Any]) -> tuple[list[str], list[list[int | None]]]:
    return (stored[0], stored[1:]) if stored else ([], [])


def delete(ids: Collection[int]) -> int:
    """Delete runs that the store has, or will never have."""
    deleted, _ = OutboxRun.objects.filter(pk__in=ids).delete()
    return deleted


def drop_before(limit: datetime, but: Collection[int] = ()) -> int:
    """Delete runs from before a time, without those that have been sent."""
    condition, values = sql.among(but)
    return sql.execute(f"DELETE FROM tsdb_outbox WHERE at < %s AND NOT id {condition}", limit, *values)  # noqa: S608 - no values


def backlog(but: Collection[int] = ()) -> Backlog:
    """Count the runs that have not been sent."""
    condition, values = sql.among(but)
    ((runs, oldest),) = sql.fetch(f"SELECT COUNT(*), MIN(at) FROM tsdb_outbox WHERE NOT id {condition}", *values)  # noqa: S608 - no values
    return Backlog(runs, sql.moment(oldest))


def clear(now: datetime) -> int:
    """Delete all runs: without a store they would never be sent."""
    return OutboxRun.objects.all().delete()[0]
