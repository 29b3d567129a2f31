"""Whether an error means that the database is away, or that what was asked of it is a defect of ours."""

import sqlite3

from django.db import DatabaseError, InterfaceError, OperationalError, connection

# What SQLite says of a statement that it will never take: bad SQL, a table that is not there, too many variables.
SQLITE_DEFECT = 1

# Classes of SQLSTATE for what PostgreSQL will never take: a statement beyond its limits.
POSTGRES_DEFECTS = ("54",)

# What PostgreSQL says instead of doing its work, and psycopg does not count as operational: a server that only
# reads after a failover, and a transaction that was idle for too long, because this process was paused.
POSTGRES_AWAY = frozenset({"25006", "25P03", "25P04"})

# PostgreSQL short of memory, connections or disk, or with trouble of its system.
POSTGRES_SHORT = ("53", "58")


def is_away(error: BaseException) -> bool:
    """Return whether the same may succeed later. Locked, full, restarting and unreachable all mean away."""
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None)
    if isinstance(error, DatabaseError) and state in POSTGRES_AWAY:
        return True
    if isinstance(error, InterfaceError):
        # SQLite's own means a value that it cannot bind.
        return not isinstance(cause, sqlite3.InterfaceError)
    if not isinstance(error, OperationalError):
        return False
    # The lowest byte is the kind of error; those above it say more of it.
    code = getattr(cause, "sqlite_errorcode", None)
    return not (state or "").startswith(POSTGRES_DEFECTS) and (code is None or code & 0xFF != SQLITE_DEFECT)


def is_short_of_something(error: BaseException) -> bool:
    """Return whether a database that is away says itself that it is: a disk that is full, a lock that another has.

    Not so a connection that breaks: it may be what was asked that breaks it.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    return hasattr(error.__cause__, "sqlite_errorcode") or (state or "").startswith(POSTGRES_SHORT)


def ping() -> None:
    """Ask the database for nothing, in a thread of its own; an error if it is away."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
