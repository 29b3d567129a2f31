"""Many rows at once, in the way that is quickest on each database.

PostgreSQL reads a stream of new rows several times as fast as it executes statements, and updates many rows by one
statement over arrays. SQLite runs in our own process, where a statement costs next to nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, models

from facho.store.rows import Rows

# With fewer rows a statement each is quicker on PostgreSQL: they are sent together.
FEWEST_IN_ARRAYS = 20


def write(rows: Rows) -> None:
    """Insert rows in the transaction that is open, all of them or none."""
    if not rows.values:
        return
    if connection.vendor == "postgresql":
        copy(rows, rows.table)
        return
    marks = ", ".join(["%s"] * len(rows.columns))
    statement = f"INSERT INTO {_names([rows.table])} ({_names(rows.columns)}) VALUES ({marks})"  # noqa: S608 - names are ours
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows.values)


def copy(rows: Rows, table: str) -> None:
    statement = f"COPY {_names([table])} ({_names(rows.columns)}) FROM STDIN"
    # Django turns the errors of its own methods into its own, but does not know this one.
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as stream:
        for values in rows.values:
            stream.write_row(values)


def update(model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Set the same columns of several rows by id. Each row has the values in the order of the columns, then its id."""
    if not rows:
        return
    in_arrays = connection.vendor == "postgresql" and len(rows) >= FEWEST_IN_ARRAYS
    with connection.cursor() as cursor:
        if in_arrays:
            cursor.execute(_update_from_arrays(model, columns), list(map(_array, zip(*rows, strict=True))))
        else:
            assigned = ", ".join(f"{_names([column])} = %s" for column in columns)
            cursor.executemany(f"UPDATE {_names([model._meta.db_table])} SET {assigned} WHERE id = %s", rows)  # noqa: S608 - names are ours


def _update_from_arrays(model: type[models.Model], columns: Sequence[str]) -> str:
    fields: list[Any] = [model._meta.get_field(column) for column in (*columns, "id")]
    arrays = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
    assigned = ", ".join(f"{_names([column])} = new.{_names([column])}" for column in columns)
    table = _names([model._meta.db_table])
    return (
        f"UPDATE {table} SET {assigned} FROM unnest({arrays}) AS new({_names((*columns, 'id'))})"  # noqa: S608 - names are ours
        f" WHERE {table}.id = new.id"
    )


def _array(values: Sequence[Any]) -> Any:
    """Return an array as psycopg takes it. Numbers are written here: psycopg takes four times as long for each."""
    if {*map(type, values)} <= {int, float, type(None)}:
        return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"
    return list(values)


def _names(names: Iterable[str]) -> str:
    quote: Any = connection.ops.quote_name
    return ", ".join(map(quote, names))
