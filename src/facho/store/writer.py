"""Readings into rows: the latest state of each ONU by upsert, and its history. The only place of bulk writes.

Plain SQL by `executemany`, several times as fast as `bulk_create` where it
matters: a run of one OLT brings a thousand rows, and all of them wait for the
one writer of SQLite.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, models, transaction

from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.brand import ONU_FIELDS
from facho.engine.census import USUAL_RULES, Rules
from facho.engine.errors import LeaseLost
from facho.engine.model import Collected, JobKind, KnownOnu, Lease, Node, Reading, Status
from facho.store.census import PARKED, Verdict, apply_census, apply_moves, known_onus, tell_census
from facho.store.identification import put_to_work, tell_identified
from facho.store.threads import DbThread

POWERS = frozenset({"rx_dbm", "tx_dbm", "olt_rx_dbm"})
HISTORY = ("state", "rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "in_octets", "out_octets")

# A counter past 9 exabytes, or a port past 2 ** 31, is a device's garbage, and no database's integer.
LARGEST_COUNTER = 2**63 - 1
LARGEST_PLACE = 2**31 - 1

# Columns of `Onu` that a reading may fill; everything else that was read goes into `extra`.
FILLED = {field.name: field for field in Onu._meta.concrete_fields if field.name in ONU_FIELDS}
PLACE = {field.name: field for field in Onu._meta.concrete_fields if field.name in ("slot", "port", "onu")}


class DbReadingSink:
    """Keeps harvests, one transaction each, and only those of the present holder of the OLT."""

    def __init__(self, reader: DbThread, writer: DbThread, rules: Rules = USUAL_RULES) -> None:
        self._reader = reader
        self._writer = writer
        self._rules = rules

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return await self._reader.run(lambda: _known(olt_id))

    async def write(self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime) -> None:
        verdict = await self._writer.run(lambda: _write(node, execution_id, collected, self._rules, lease, now))
        if verdict is not None:
            tell_census(node, verdict)

    async def identified(
        self, node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], *, lease: Lease
    ) -> None:
        jobs = await self._writer.run(lambda: _identified(node, execution_id, brand, seen, lease))
        if jobs is not None:
            tell_identified(node, brand, jobs)


def _known(olt_id: int) -> list[KnownOnu]:
    # An ONU whose index is another's now cannot be asked for; a discovery that finds it again will say so.
    onus = Onu.objects.filter(olt_id=olt_id).exclude(index__startswith=PARKED)
    return [onu for _, onu, _ in known_onus(onus)]


def _check_fence(execution_id: int, lease: Lease) -> None:
    fence = Execution.objects.filter(pk=execution_id, status=Status.RUNNING, lease_token=lease.token)
    if not fence.exists():
        raise LeaseLost(f"execution {execution_id} is no longer ours; its readings were not kept")


@transaction.atomic
def _write(
    node: Node, execution_id: int, collected: Collected, rules: Rules, lease: Lease, now: datetime
) -> Verdict | None:
    _check_fence(execution_id, lease)
    if node.kind is JobKind.DISCOVERY:
        verdict: Verdict | None = apply_census(node, collected, rules, now)
    else:
        verdict = apply_moves(node, collected, now)
    if collected.readings:
        _write_onus(node.olt_id, collected.readings, now)
        _write_history(node.olt_id, collected.readings, now)
    if collected.scalars:
        _merge_scalars(node.olt_id, collected.scalars)
    if collected.learned:
        Olt.objects.filter(pk=node.olt_id).update(learned=dict(collected.learned))
    return verdict


@transaction.atomic
def _identified(node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], lease: Lease) -> list[str] | None:
    _check_fence(execution_id, lease)
    _merge_scalars(node.olt_id, seen)
    return put_to_work(node.olt_id, brand) if brand else None


def _merge_scalars(olt_id: int, scalars: Mapping[str, Any]) -> None:
    olt = Olt.objects.select_for_update().only("extra").get(pk=olt_id)
    Olt.objects.filter(pk=olt_id).update(extra={**olt.extra, **_plain(scalars)})


def _write_onus(olt_id: int, readings: Sequence[Reading], now: datetime) -> None:
    """Upsert by what was read: a column that was not read for an ONU keeps its value."""
    groups: defaultdict[tuple[str, ...], list[Reading]] = defaultdict(list)
    for reading in readings:
        groups[tuple(sorted(reading.values.keys() & FILLED.keys()))].append(reading)
    extras = _merged_extras(olt_id, readings)
    for names, group in groups.items():
        _upsert(olt_id, names, group, extras, now)


def _merged_extras(olt_id: int, readings: Sequence[Reading]) -> dict[str, dict[str, Any]]:
    """Return the `extra` of each ONU, old values under new ones, or nothing if no reading has anything for it."""
    new = {
        reading.index: _plain({key: value for key, value in reading.values.items() if key not in FILLED})
        for reading in readings
    }
    if not any(new.values()):
        return {}
    old = dict(Onu.objects.filter(olt_id=olt_id).values_list("index", "extra"))
    return {index: {**old.get(index, {}), **values} for index, values in new.items()}


def _upsert(
    olt_id: int,
    names: tuple[str, ...],
    readings: Sequence[Reading],
    extras: Mapping[str, dict[str, Any]],
    now: datetime,
) -> None:
    timestamp = _timestamp(now)
    fixed = {"read_at": timestamp}
    if "state" in names:
        fixed["state_at"] = timestamp
    if POWERS & set(names):
        fixed["power_at"] = timestamp
    updated = ["slot", "port", "onu", *names, *fixed, *(["extra"] if extras else [])]
    inserted = ["olt_id", "index", "first_seen_at", *updated]
    # Not filled by what was read, and not allowed to be empty.
    for column, value in (("state", Onu.State.UNKNOWN.value), ("extra", "{}"), ("misses", 0), ("moved_from", "")):
        if column not in inserted:
            inserted.append(column)
            fixed[column] = value
    rows = []
    for reading in readings:
        values = {name: _cell(FILLED[name], reading.values[name]) for name in names}
        if "state" in values and values["state"] is None:
            values["state"] = Onu.State.UNKNOWN.value
        row = {"olt_id": olt_id, "index": reading.index, "first_seen_at": timestamp, **fixed, **values}
        row |= {name: _cell(field, getattr(reading, name)) for name, field in PLACE.items()}
        if extras:
            row["extra"] = json.dumps(extras[reading.index])
        rows.append([row[column] for column in inserted])
    _execute_many(_upsert_sql(inserted, updated), rows)


def _upsert_sql(inserted: Iterable[str], updated: Iterable[str]) -> str:
    quote = connection.ops.quote_name
    columns = list(inserted)
    return (
        f"INSERT INTO {quote(Onu._meta.db_table)} ({', '.join(map(quote, columns))}) "  # noqa: S608 - names are ours
        f"VALUES ({', '.join(['%s'] * len(columns))}) "
        f"ON CONFLICT ({quote('olt_id')}, {quote('index')}) DO UPDATE SET "
        + ", ".join(f"{quote(column)} = {_updated(column)}" for column in updated)
    )


def _updated(column: str) -> str:
    """Return what a column becomes. An ONU that is off may not tell where it sits: then it sits where it sat."""
    new = f"excluded.{connection.ops.quote_name(column)}"
    old = f"{connection.ops.quote_name(Onu._meta.db_table)}.{connection.ops.quote_name(column)}"
    return f"COALESCE({new}, {old})" if column in PLACE else new


def _write_history(olt_id: int, readings: Sequence[Reading], now: datetime) -> None:
    telling = [reading for reading in readings if not reading.values.keys().isdisjoint(HISTORY)]
    if not telling:
        return
    ids = dict(Onu.objects.filter(olt_id=olt_id).values_list("index", "id"))
    timestamp = _timestamp(now)
    rows = [
        [ids[reading.index], timestamp, *(_cell(FILLED[name], reading.values.get(name)) for name in HISTORY)]
        for reading in telling
    ]
    quote = connection.ops.quote_name
    columns = ", ".join(map(quote, ("onu_id", "at", *HISTORY)))
    marks = ", ".join(["%s"] * (2 + len(HISTORY)))
    _execute_many(f"INSERT INTO {quote(OnuHistory._meta.db_table)} ({columns}) VALUES ({marks})", rows)  # noqa: S608 - as above


def _execute_many(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(sql, rows)


def _timestamp(value: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(value)


def _cell(field: "models.Field[Any, Any]", value: Any) -> Any:
    """Return a value as its column can hold it. What does not fit is cut, never a reason to lose the row."""
    if value is None or _is_no_number(value):
        return None
    if isinstance(field, models.DateTimeField):
        return _timestamp(value)
    if isinstance(field, models.CharField):
        return _text(value)[: field.max_length]
    largest = LARGEST_PLACE if field.name in PLACE else LARGEST_COUNTER
    if isinstance(value, int) and abs(value) > largest:
        return None
    return value


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON can hold them, in every database."""
    return {key: _json(value) for key, value in values.items()}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return _text(value)
    return None if _is_no_number(value) else value


def _text(value: Any) -> str:
    # PostgreSQL refuses NUL in text and in JSON.
    return str(value).replace("\0", "")


def _is_no_number(value: Any) -> bool:
    """Infinity and NaN are no JSON, and no measurement either."""
    return isinstance(value, float) and not math.isfinite(value)
