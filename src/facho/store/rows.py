"""Readings as rows: which value goes into which column, and in what form. Writes nothing."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection, models

from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.brand import ONU_FIELDS
from facho.engine.model import Reading

POWERS = frozenset({"rx_dbm", "tx_dbm", "olt_rx_dbm"})
HISTORY = ("state", "rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "in_octets", "out_octets")

# A counter past 9 exabytes, or a port past 2 ** 31, is a device's garbage, and no database's integer.
LARGEST_COUNTER = 2**63 - 1
LARGEST_PLACE = 2**31 - 1

# Columns of `Onu` that a reading may fill; everything else that was read goes into `extra`.
FILLED = {field.name: field for field in Onu._meta.concrete_fields if field.name in ONU_FIELDS}
PLACE = {field.name: field for field in Onu._meta.concrete_fields if field.name in ("slot", "port", "onu")}

# What a column of a new ONU begins with that may not be empty, where nobody has read it.
FIRST = {"state": Onu.State.UNKNOWN.value, "extra": "{}", "misses": 0, "moved_from": ""}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table that have the same columns, and no key twice."""

    table: str
    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]
    # The columns that name a row, and those that one that is there already takes over from its namesake.
    key: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    # Of those: where the new one has nothing to say, the old value stays.
    kept: frozenset[str] = frozenset()


def merge_twins(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return one reading an index: where an ONU was read twice, what was read last of each column.

    PostgreSQL refuses to touch a row twice in one statement, and with it the whole harvest.
    """
    if len({reading.index for reading in readings}) == len(readings):
        return readings
    merged: dict[str, Reading] = {}
    for reading in readings:
        twin = merged.get(reading.index)
        merged[reading.index] = reading if twin is None else _merge(twin, reading)
    return list(merged.values())


def _merge(old: Reading, new: Reading) -> Reading:
    place = {
        name: getattr(old, name) if getattr(new, name) is None else getattr(new, name)
        for name in ("slot", "port", "onu")
    }
    return replace(new, **place, values={**old.values, **new.values})


def state_rows(
    olt_id: int, readings: Iterable[Reading], extras: Mapping[str, dict[str, Any]], now: datetime
) -> list[Rows]:
    """Return the rows of `onu_data`, grouped by what was read: a column that was not read keeps its value."""
    groups: defaultdict[tuple[str, ...], list[Reading]] = defaultdict(list)
    for reading in readings:
        groups[tuple(sorted(reading.values.keys() & FILLED.keys()))].append(reading)
    return [_group(olt_id, names, group, extras, now) for names, group in groups.items()]


def _group(
    olt_id: int,
    names: tuple[str, ...],
    readings: Sequence[Reading],
    extras: Mapping[str, dict[str, Any]],
    now: datetime,
) -> Rows:
    times = ("read_at", *(["state_at"] if "state" in names else []), *(["power_at"] if POWERS & set(names) else []))
    read = (*PLACE, *names, *(["extra"] if extras else []))
    first = {name: value for name, value in FIRST.items() if name not in read}
    same = (*[timestamp(now)] * (1 + len(times)), *first.values())
    values = []
    for reading in readings:
        row = [olt_id, reading.index]
        row += [cell(field, getattr(reading, name)) for name, field in PLACE.items()]
        row += [_state(reading) if name == "state" else cell(FILLED[name], reading.values[name]) for name in names]
        if extras:
            row.append(json.dumps(extras[reading.index]))
        values.append((*row, *same))
    columns = ("olt_id", "index", *read, "first_seen_at", *times, *first)
    return Rows(Onu._meta.db_table, columns, values, ("olt_id", "index"), (*read, *times), frozenset(PLACE))


def _state(reading: Reading) -> Any:
    return cell(FILLED["state"], reading.values["state"]) or Onu.State.UNKNOWN.value


def history_rows(ids: Mapping[str, int], readings: Iterable[Reading], now: datetime) -> Rows:
    """Return the rows of `onu_history`, of the readings that have something to tell there."""
    at = timestamp(now)
    fields = [FILLED[name] for name in HISTORY]
    values = [
        (ids[reading.index], at, *(cell(field, reading.values.get(field.name)) for field in fields))
        for reading in readings
    ]
    return Rows(OnuHistory._meta.db_table, ("onu_id", "at", *HISTORY), values)


def tells_history(reading: Reading) -> bool:
    return not reading.values.keys().isdisjoint(HISTORY)


def timestamp(value: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(value)


def cell(field: "models.Field[Any, Any]", value: Any) -> Any:
    """Return a value as its column can hold it. What does not fit is cut, never a reason to lose the row."""
    if value is None or _is_no_number(value):
        return None
    if isinstance(field, models.CharField):
        return _text(value)[: field.max_length]
    if isinstance(field, models.DateTimeField):
        return timestamp(value)
    if isinstance(value, float) and isinstance(field, models.IntegerField):
        # COPY takes no fraction into a column of integers.
        value = round(value)
    largest = LARGEST_PLACE if field.name in PLACE else LARGEST_COUNTER
    return None if isinstance(value, int) and abs(value) > largest else value


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
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
