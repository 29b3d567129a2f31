"""Many rows into one table, each database in the way that is quickest there: `executemany`, or COPY.

PostgreSQL reads a stream of rows several times as fast as it executes statements, but COPY alone cannot
update: what may be there already goes through a temporary table. SQLite runs in our own process, and a
statement costs it next to nothing.
"""

from collections.abc import Iterable
from typing import Any

from django.db import connection

from facho.store.rows import Rows

INCOMING = "facho_incoming"

# To make a temporary table takes PostgreSQL as long as to execute about so many statements.
FEWEST_COPIED = 20


def write(rows: Rows) -> None:
    """Write rows in the transaction that is open, all of them or none."""
    if not rows.values:
        return
    if not is_copied(rows):
        write_by_statements(rows)
    elif rows.updated:
        write_by_upsert_of_copy(rows)
    else:
        copy(rows, rows.table)


def is_copied(rows: Rows) -> bool:
    return connection.vendor == "postgresql" and (not rows.updated or len(rows.values) >= FEWEST_COPIED)


def write_by_statements(rows: Rows) -> None:
    marks = ", ".join(["%s"] * len(rows.columns))
    with connection.cursor() as cursor:
        cursor.executemany(_insert(rows, f"VALUES ({marks})"), rows.values)


def write_by_upsert_of_copy(rows: Rows) -> None:
    names = _names(rows.columns)
    table, incoming = _names([rows.table]), _names([INCOMING])
    made = f"CREATE TEMPORARY TABLE {incoming} ON COMMIT DROP AS SELECT {names} FROM {table} WITH NO DATA"  # noqa: S608 - names are ours
    # Dropped at once: the next group of this harvest makes its own.
    moved = _insert(rows, f"SELECT {names} FROM {incoming}") + f"; DROP TABLE {incoming}"  # noqa: S608 - as above
    with connection.cursor() as cursor:
        cursor.execute(made)
        copy(rows, INCOMING)
        cursor.execute(moved)


def copy(rows: Rows, table: str) -> None:
    statement = f"COPY {_names([table])} ({_names(rows.columns)}) FROM STDIN"
    # Django turns the errors of its own methods into its own, but does not know this one.
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as stream:
        for values in rows.values:
            stream.write_row(values)


def _insert(rows: Rows, source: str) -> str:
    statement = f"INSERT INTO {_names([rows.table])} ({_names(rows.columns)}) {source}"
    if not rows.updated:
        return statement
    updates = ", ".join(f"{_names([column])} = {_updated(rows, column)}" for column in rows.updated)
    return f"{statement} ON CONFLICT ({_names(rows.key)}) DO UPDATE SET {updates}"


def _updated(rows: Rows, column: str) -> str:
    name = _names([column])
    new, old = f"excluded.{name}", f"{_names([rows.table])}.{name}"
    return f"COALESCE({new}, {old})" if column in rows.kept else new


def _names(names: Iterable[str]) -> str:
    quote: Any = connection.ops.quote_name
    return ", ".join(map(quote, names))
