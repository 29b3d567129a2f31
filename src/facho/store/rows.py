"""Values as the database holds them: which value goes into which column, and in what form. Writes nothing."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from django.db import connection, models

from facho.apps.telemetry.models import Onu
from facho.engine.brand import ONU_FIELDS
from facho.engine.model import Reading

POWERS = frozenset({"rx_dbm", "tx_dbm", "olt_rx_dbm"})

# A counter past 9 exabytes, or a port past 2 ** 31, is a device's garbage, and no database's integer.
LARGEST_COUNTER = 2**63 - 1
LARGEST_PLACE = 2**31 - 1

# Columns of `Onu` that a reading may fill. All other values that were read go into `extra`.
FILLED = {field.name: field for field in Onu._meta.concrete_fields if field.name in ONU_FIELDS}
PLACE = {field.name: field for field in Onu._meta.concrete_fields if field.name in ("slot", "port", "onu")}


@dataclass(frozen=True, slots=True)
class Rows:
    """New rows of one table, all with the same columns."""

    table: str
    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]


def merge_twins(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return one reading per index: where an ONU was read twice, the last value of each column."""
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


def timestamp(value: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(value)


def cell(field: "models.Field[Any, Any]", value: Any) -> Any:
    """Return a value as it is written into its column."""
    return adapted(normal(field, value))


def normal(field: "models.Field[Any, Any]", value: Any) -> Any:
    """Return a value as its column can hold it. A value that does not fit is cut; the row is never lost."""
    if value is None or _is_no_number(value):
        return None
    if isinstance(field, models.CharField):
        return _text(value)[: field.max_length]
    if isinstance(value, float) and isinstance(field, models.IntegerField):
        # PostgreSQL takes no fraction into a column of integers.
        value = round(value)
    largest = LARGEST_PLACE if field.name in PLACE else LARGEST_COUNTER
    if isinstance(value, int) and abs(value) > largest:
        return None
    return float(value) if isinstance(field, models.FloatField) else value


def normals(field: "models.Field[Any, Any]", values: Iterable[Any]) -> list[Any]:
    """Return many values of a column in that form. Most have it already, and are spared the call."""
    if isinstance(field, models.FloatField):
        return [v if v.__class__ is float and v - v == 0.0 else normal(field, v) for v in values]
    if isinstance(field, models.CharField):
        longest = field.max_length or 0
        return [v if v.__class__ is str and len(v) <= longest and "\0" not in v else normal(field, v) for v in values]
    return [normal(field, v) for v in values]


def adapted(value: Any) -> Any:
    """Return a value as the database driver takes it."""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Enum):
        return value.value
    return json.dumps(value) if isinstance(value, dict | list) else value


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON can hold them, in every database."""
    return {key: plain_value(value) for key, value in values.items()}


def plain_value(value: Any) -> Any:
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
