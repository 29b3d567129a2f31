"""Indexes of `onu_search`: FTS5 with trigrams in SQLite, pg_trgm in PostgreSQL."""

from typing import Any

from django.db import DatabaseError, transaction

# PostgreSQL's index, and SQLite's table.
INDEX = "onu_search_index"

# The rows of the index follow those of the table, however they change.
TRIGGERS = {
    "insert": "INSERT INTO onu_search_index (rowid, text) VALUES (new.onu_id, new.text);",
    "delete": "INSERT INTO onu_search_index (onu_search_index, rowid, text) VALUES ('delete', old.onu_id, old.text);",
}
TRIGGERS["update"] = TRIGGERS["delete"] + TRIGGERS["insert"]

WITHOUT_FTS5 = "This SQLite has no FTS5 index of trigrams. Facho requires SQLite 3.34 or later with FTS5."


def create_index(connection: Any) -> bool:
    """Create the index if there is none, and return whether there is one: PostgreSQL may not have pg_trgm.

    Without it, a search reads all texts.
    """
    if is_indexed(connection):
        return True
    if connection.vendor == "sqlite":
        _create_table(connection)
        return True
    if not _has_extension(connection):
        return False
    _create_gin(connection)
    return True


def drop_index(connection: Any) -> None:
    with connection.cursor() as cursor:
        kind = "TABLE" if connection.vendor == "sqlite" else "INDEX"
        cursor.execute(f"DROP {kind} IF EXISTS {INDEX}")


def is_indexed(connection: Any) -> bool:
    found = (
        "FROM sqlite_master WHERE name = %s" if connection.vendor == "sqlite" else "WHERE to_regclass(%s) IS NOT NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 {found}", [INDEX])
        return cursor.fetchone() is not None


def _create_table(connection: Any) -> None:
    with connection.cursor() as cursor:
        try:
            # Without positions it is a third of the size. The texts themselves decide: see `search.py`.
            cursor.execute(
                f"CREATE VIRTUAL TABLE {INDEX} USING fts5"
                " (text, content='onu_search', content_rowid='onu_id', tokenize='trigram', detail=none)"
            )
        except DatabaseError as error:
            raise RuntimeError(WITHOUT_FTS5) from error
        # Merged less often: a merge holds the write lock for 0.3 s with 100,000 ONUs.
        for option, value in (("automerge", 16), ("crisismerge", 64)):
            cursor.execute(f"INSERT INTO {INDEX} ({INDEX}, rank) VALUES (%s, %s)", [option, value])  # noqa: S608 - our name
        cursor.execute(f"INSERT INTO {INDEX} ({INDEX}) VALUES ('rebuild')")  # noqa: S608 - our name
        for event, statements in TRIGGERS.items():
            cursor.execute(
                f"CREATE TRIGGER onu_search_{event} AFTER {event.upper()} ON onu_search BEGIN {statements} END"
            )


def _has_extension(connection: Any) -> bool:
    """Create the extension if PostgreSQL does not have it, and return whether it has. Its packages may lack it."""
    try:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            # A trusted extension: the owner of the database may create it.
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except DatabaseError:
        return False
    return True


def _create_gin(connection: Any) -> None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # An administrator may have created it in a schema of its own.
        cursor.execute(
            "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace"
            " WHERE extname = 'pg_trgm'"
        )
        [schema] = cursor.fetchone()
        # With a million ONUs, the usual 64 MB take longer.
        cursor.execute("SET LOCAL maintenance_work_mem = '256MB'")
        cursor.execute(f"CREATE INDEX {INDEX} ON onu_search USING gin (text {schema}.gin_trgm_ops)")
        cursor.execute("ANALYZE onu_search")
