"""SQL of every run, and conversion of values for each database."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any

from django.db import connection, models

from facho.apps.telemetry.models import Onu
from facho.engine.brand import ONU_FIELDS
from facho.engine.escapes import LONGEST_TEXT, shortened
from facho.engine.model import Reading

POWERS = frozenset({"rx_dbm", "tx_dbm", "olt_rx_dbm"})

# A counter above 9 exabytes or a port above 2 ** 31 is invalid, and fits no integer column.
LARGEST_COUNTER = 2**63 - 1
LARGEST_PLACE = 2**31 - 1
# A text in `extra`.
LONGEST_EXTRA = 1000

# Columns of `Onu` that a reading may fill. All other values go into `extra`.
FILLED = {field.name: field for field in Onu._meta.concrete_fields if field.name in ONU_FIELDS}
PLACE = {field.name: field for field in Onu._meta.concrete_fields if field.name in ("slot", "port", "onu")}


def merge_twins(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return one reading per index. If an ONU was read twice, the last value of each column counts."""
    if len({reading.index for reading in readings}) == len(readings):
        return readings
    merged: dict[str, Reading] = {}
    for reading in readings:
        twin = merged.get(reading.index)
        if twin is not None:
            unknown = {name: getattr(twin, name) for name in PLACE if getattr(reading, name) is None}
            reading = replace(reading, **unknown, values={**twin.values, **reading.values})
        merged[reading.index] = reading
    return list(merged.values())


def timestamp(value: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(value)


def normal(field: "models.Field[Any, Any]", value: Any) -> Any:
    """Return a value that fits its column. A text that does not fit is cut and marked; the row is never lost."""
    if value is None or _is_no_number(value):
        return None
    if isinstance(field, models.CharField):
        return shortened(_text(value), field.max_length or LONGEST_TEXT)
    if isinstance(value, float) and isinstance(field, models.IntegerField):
        # PostgreSQL accepts no fraction in an integer column.
        value = round(value)
    largest = LARGEST_PLACE if field.name in PLACE else LARGEST_COUNTER
    if isinstance(value, int) and abs(value) > largest:
        return None
    return float(value) if isinstance(field, models.FloatField) else value


def normals(field: "models.Field[Any, Any]", values: Iterable[Any]) -> list[Any]:
    """Return many values of a column in that form. Most have it already and are not converted."""
    if isinstance(field, models.FloatField):
        return [v if v.__class__ is float and v - v == 0.0 else normal(field, v) for v in values]
    if isinstance(field, models.CharField):
        longest = field.max_length or 0
        return [v if v.__class__ is str and len(v) <= longest and "\0" not in v else normal(field, v) for v in values]
    return [normal(field, v) for v in values]


def adapted(value: Any) -> Any:
    """Return a value for the database driver."""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Enum):
        return value.value
    return json.dumps(value) if isinstance(value, dict | list) else value


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as plain JSON for any database."""
    return {key: plain_value(value) for key, value in values.items()}


def plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return shortened(_text(value), LONGEST_EXTRA)
    return None if _is_no_number(value) else value


def _text(value: Any) -> str:
    # PostgreSQL refuses NUL in text and in JSON.
    return str(value).replace("\0", "")


def _is_no_number(value: Any) -> bool:
    """Return whether a value is infinity or NaN, which are not valid JSON."""
    return isinstance(value, float) and not math.isfinite(value)


# With fewer rows, single statements are faster on PostgreSQL, because they are sent together.
FEWEST_IN_ARRAYS = 20
# A COPY costs as much to set up as some ten rows.
FEWEST_TO_COPY = 16


def prepared() -> Any:
    """Return a cursor of which the server prepares each statement: it takes longer to plan one than to execute it."""
    if connection.vendor != "postgresql" or connection.queries_logged:
        # What is logged is the text, and psycopg has none for a prepared statement.
        return connection.cursor()
    # Django has this cursor for all statements or for none, and those of the ORM cannot all be prepared.
    server: Any = connection
    server.close_if_health_check_failed()
    server.ensure_connection()
    return server._prepare_cursor(server.Database.Cursor(server.connection))


def write(model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows in the open transaction, all or none. Each has the values in the order of the columns."""
    if not rows:
        return
    if connection.vendor == "postgresql" and len(rows) >= FEWEST_TO_COPY:
        copy(model, columns, rows)
        return
    with prepared() as cursor:
        cursor.executemany(_insert(model, tuple(columns)), rows)


def copy(model: type[models.Model], columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    statement = f"COPY {_names([model._meta.db_table])} ({_names(columns)}) FROM STDIN"
    # Django converts the errors of its own methods, but not of this one.
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as stream:
        for row in rows:
            stream.write_row(row)


def update(model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Set the same columns of several rows by id. Each row has the values in the order of the columns, then its id."""
    if not rows:
        return
    in_arrays = connection.vendor == "postgresql" and len(rows) >= FEWEST_IN_ARRAYS
    with prepared() as cursor:
        if in_arrays:
            cursor.execute(_update_from_arrays(model, tuple(columns)), list(map(_array, zip(*rows, strict=True))))
        else:
            statement = f"{_update(model, tuple(columns))} WHERE id = %s"
            if len(rows) == 1:
                cursor.execute(statement, rows[0])
            else:
                cursor.executemany(statement, rows)


def upsert_texts(rows: Iterable[tuple[int, int, str]]) -> None:
    """Write texts of ONUs that differ from the present ones. Each row has the ONU, its OLT and the text."""
    with prepared() as cursor:
        cursor.executemany(
            "INSERT INTO onu_search (onu_id, olt_id, text) VALUES (%s, %s, %s) ON CONFLICT (onu_id)"
            " DO UPDATE SET text = excluded.text WHERE onu_search.text <> excluded.text",
            list(rows),
        )


def set_columns(model: type[models.Model], ids: Sequence[int], **values: Any) -> None:
    """Set columns of rows, by id, to the same values."""
    if ids:
        execute(f"{_update(model, tuple(values))} WHERE id IN {marks(ids)}", *values.values(), *ids)


@cache
def _update(model: type[models.Model], columns: tuple[str, ...]) -> str:
    assigned = ", ".join(f"{_names([column])} = %s" for column in columns)
    return f"UPDATE {_names([model._meta.db_table])} SET {assigned}"  # noqa: S608 - names are ours


def insert(model: type[models.Model], **values: Any) -> int:
    """Insert a row, with the defaults of the model for all other columns, and return its id."""
    values = {**_defaults(model), **{name: adapted(value) for name, value in values.items()}}
    statement = _insert(model, tuple(values))
    with prepared() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"{statement} RETURNING id", list(values.values()))
            return int(cursor.fetchone()[0])
        cursor.execute(statement, list(values.values()))
        return int(cursor.lastrowid)


@cache
def _insert(model: type[models.Model], columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {_names([model._meta.db_table])} ({_names(columns)}) VALUES {marks(columns)}"  # noqa: S608 - names are ours


@cache
def _defaults(model: type[models.Model]) -> dict[str, Any]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    return {str(field.column): adapted(field.get_default()) for field in fields}


def execute(statement: str, *values: Any) -> int:
    """Execute a statement, and return how many rows it changed."""
    with prepared() as cursor:
        cursor.execute(statement, list(map(adapted, values)))
        return int(cursor.rowcount)


def fetch(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query as the driver has them: JSON is text, and times go through `moment`."""
    with prepared() as cursor:
        cursor.execute(statement, list(map(adapted, values)))
        return list(cursor.fetchall())


def marks(values: Sequence[Any]) -> str:
    """Return placeholders for an IN."""
    return f"({', '.join(['%s'] * len(values))})"


def among(ids: Collection[int]) -> tuple[str, Sequence[Any]]:
    """Return a condition on an id, and its values. On PostgreSQL it has the same text for any number of ids."""
    if connection.vendor == "postgresql":
        return "= ANY(%s::bigint[])", [_array(list(ids))]
    return f"IN {marks(list(ids))}", list(ids)


def moment(value: Any) -> datetime | None:
    """Return a time from `fetch`."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def known_moment(value: Any) -> datetime:
    """Return a time from `fetch`, of a column that is never NULL."""
    found = moment(value)
    if found is None:
        raise TypeError(f"{value!r} is not a time")
    return found


def in_seconds() -> str:
    """Return the time of the database's clock in so many seconds, which are a value of the statement."""
    if connection.vendor == "postgresql":
        return "STATEMENT_TIMESTAMP() + make_interval(secs => %s)"
    return "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s || ' seconds')"


def locked(alias: str) -> str:
    """Return the clause that locks the rows of a query. SQLite has locked the whole database already."""
    return f" FOR UPDATE OF {alias}" if connection.vendor == "postgresql" else ""


@cache
def _update_from_arrays(model: type[models.Model], columns: tuple[str, ...]) -> str:
    fields: list[Any] = [model._meta.get_field(column) for column in (*columns, "id")]
    arrays = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
    assigned = ", ".join(f"{_names([column])} = new.{_names([column])}" for column in columns)
    table = _names([model._meta.db_table])
    return (
        f"UPDATE {table} SET {assigned} FROM unnest({arrays}) AS new({_names((*columns, 'id'))})"  # noqa: S608 - names are ours
        f" WHERE {table}.id = new.id"
    )


def _array(values: Sequence[Any]) -> Any:
    """Return an array for psycopg. Numbers are formatted here, because psycopg takes four times as long."""
    if {*map(type, values)} <= {int, float, type(None)}:
        return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"
    return list(values)


def _names(names: Iterable[str]) -> str:
    quote: Any = connection.ops.quote_name
    return ", ".join(map(quote, names))
