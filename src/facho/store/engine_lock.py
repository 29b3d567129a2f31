"""Whose a PostgreSQL database is: that of one engine in one process, or that of the roles of scale-out. Never both.

An engine holds an exclusive lock as long as it lives, and takes it only while nobody has a lease. Whoever takes a lease
shares that lock for as long as its transaction lasts. So the server decides between the two, also when both start in
the same moment: with the lock there are no leases, and with a lease there is no lock.
"""

from typing import Any

from django.db import connection

from facho.engine.errors import OltBusy

# Any number, as long as everybody asks for the same one: "facho" in ASCII.
ENGINE_LOCK = 0x666163686F


class EngineAtWork(OltBusy):
    """An engine in one process has the database, and so every OLT."""

    @property
    def for_roles(self) -> str:
        """Return what to say to whoever has started a role beside it."""
        return f"{self}: the roles of scale-out cannot work beside it. Stop it first."


def refuse_beside_engine() -> None:
    """Keep an engine from starting until the transaction is over; `EngineAtWork` if one has."""
    if connection.vendor != "postgresql":
        # A file beside SQLite is its lock, and there are no roles on it.
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [ENGINE_LOCK])
        (is_free,) = cursor.fetchone()
    if not is_free:
        raise EngineAtWork("`facho run` is at work on this database, or `facho migrate-to`")


def take_for_engine(server: Any) -> bool:
    """Take the lock for the life of a connection; True also if that has it already."""
    with server.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ENGINE_LOCK])
        (is_ours,) = cursor.fetchone()
    return bool(is_ours)


def give_back(server: Any) -> None:
    """Let go of the lock, however often the connection has taken it."""
    with server.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")


def holder_of_lease(server: Any) -> str | None:
    """Return one who has a lease: a scheduler, if there is one."""
    with server.cursor() as cursor:
        # A database that is not up to date may have no such table.
        cursor.execute("SELECT to_regclass('leases') IS NOT NULL")
        (is_there,) = cursor.fetchone()
        if not is_there:
            return None
        cursor.execute("SELECT holder FROM leases WHERE expires_at > clock_timestamp() ORDER BY key DESC LIMIT 1")
        row = cursor.fetchone()
    return None if row is None else str(row[0])
