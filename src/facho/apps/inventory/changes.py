"""Saving of user changes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Model

# Any number that all processes share and no other lock uses: "save" in ASCII.
SAVE_LOCK = 0x73617665


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold a lock from the check of a row to its save: otherwise two requests could both find a name or device free."""
    with transaction.atomic():
        # A transaction of SQLite is exclusive from its start (IMMEDIATE).
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SAVE_LOCK])
        yield


def save_changes(row: Model, names: Iterable[str]) -> None:
    """Save these columns of a row and no others.

    Two users may have the same page open: saving all columns would undo the other's change. The models protect the
    engine's columns.
    """
    stamps = {field.name for field in row._meta.concrete_fields if getattr(field, "auto_now", False)}
    columns = {field.name for field in row._meta.concrete_fields}
    row.save(update_fields=(columns & set(names)) | stamps)
