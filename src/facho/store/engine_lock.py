"""Advisory lock of a PostgreSQL database: one engine in one process, or the roles of scale-out, never both.

An engine holds an exclusive lock while it runs, and takes it only if there are no leases. Taking a lease shares that
lock for its transaction. So the server decides, even if both start at the same moment.
"""

from typing import Any

from django.db import connection

from facho.engine.errors import OltBusy

# Any number that all processes share: "facho" in ASCII.
ENGINE_LOCK = 0x666163686F


class EngineAtWork(OltBusy):
    """An engine in one process has the database, and so all OLTs."""

    @property
    def for_roles(self) -> str:
        """Return the message for a role that was started beside an engine."""
        return f"{self}: the roles of scale-out cannot run at the same time. Stop it first."


def refuse_beside_engine() -> None:
    """Prevent an engine from starting until the transaction ends; `EngineAtWork` if one is running."""
    if connection.vendor != "postgresql":
        # SQLite uses a lock file, and has no roles.
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(%s)", [ENGINE_LOCK])
        (is_free,) = cursor.fetchone()
    if not is_free:
        raise EngineAtWork("`facho run` or `facho migrate-to` is using this database")


def take_for_engine(server: Any) -> bool:
    """Take the lock for the life of a connection; True also if it has the lock already."""
    with server.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ENGINE_LOCK])
        (is_ours,) = cursor.fetchone()
    return bool(is_ours)


def give_back(server: Any) -> None:
    """Release the lock, even if the connection has taken it several times."""
    with server.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")


def holder_of_lease(server: Any) -> str | None:
    """Return a holder of a lease: a scheduler, if there is one."""
    with server.cursor() as cursor:
        # A database before migration may not have this table.
        cursor.execute("SELECT to_regclass('leases') IS NOT NULL")
        (is_there,) = cursor.fetchone()
        if not is_there:
            return None
        cursor.execute("SELECT holder FROM leases WHERE expires_at > clock_timestamp() ORDER BY key DESC LIMIT 1")
        row = cursor.fetchone()
    return None if row is None else str(row[0])
