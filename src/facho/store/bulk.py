"""Rows in the way that is quickest on each database.

PostgreSQL reads a stream of new rows several times as fast as it executes statements, and updates many rows by one
statement over arrays. SQLite runs in our own process, where a statement costs next to nothing.

Statements that every run executes are written here and by its callers as SQL: the ORM takes ten times as long to put
one together as the database takes to execute it.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import connection, models

from facho.store.rows import Rows, adapted

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
            statement = f"UPDATE {_names([model._meta.db_table])} SET {assigned} WHERE id = %s"  # noqa: S608 - names are ours
            if len(rows) == 1:
                cursor.execute(statement, rows[0])
            else:
                cursor.executemany(statement, rows)


def set_columns(model: type[models.Model], ids: Sequence[int], **values: Any) -> None:
    """Set columns of rows, by id, to the same values."""
    same = tuple(map(adapted, values.values()))
    update(model, tuple(values), [(*same, id_) for id_ in ids])


def insert(model: type[models.Model], **values: Any) -> int:
    """Insert a row, with the defaults of the model for all other columns, and return its id."""
    values = {**_defaults(model), **{name: adapted(value) for name, value in values.items()}}
    statement = f"INSERT INTO {_names([model._meta.db_table])} ({_names(values)}) VALUES {marks(list(values))}"  # noqa: S608 - names are ours
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"{statement} RETURNING id", list(values.values()))
            return int(cursor.fetchone()[0])
        cursor.execute(statement, list(values.values()))
        return int(cursor.lastrowid)


@cache
def _defaults(model: type[models.Model]) -> dict[str, Any]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    return {str(field.column): adapted(field.get_default()) for field in fields}


def execute(statement: str, *values: Any) -> int:
    """Execute a statement, and return how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, list(map(adapted, values)))
        return int(cursor.rowcount)


def fetch(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query as the driver has them: JSON is text, and times go through `moment`."""
    with connection.cursor() as cursor:
        cursor.execute(statement, list(map(adapted, values)))
        return list(cursor.fetchall())


def marks(values: Sequence[Any]) -> str:
    """Return a list of placeholders for an IN."""
    return f"({', '.join(['%s'] * len(values))})"


def moment(value: Any) -> datetime | None:
    """Return a time that `fetch` found."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def locked(alias: str) -> str:
    """Return the end of a query that locks its rows. SQLite has locked the whole database already."""
    return f" FOR UPDATE OF {alias}" if connection.vendor == "postgresql" else ""


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
