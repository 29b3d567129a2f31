"""Whether an error means that the database is away, or that what was asked of it is a defect of ours."""

import re
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


# What it says, in English and in Spanish, when it has as many connections as it may have.
FULL = re.compile(r"too many|reserved|demasiad|reservad", re.IGNORECASE)


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


def is_conflict(error: BaseException) -> bool:
    """Return whether PostgreSQL chose this transaction to end a deadlock. The same may succeed at once."""
    return getattr(error.__cause__, "sqlstate", None) in ("40P01", "40001")


def is_short_of_something(error: BaseException) -> bool:
    """Return whether a database that is away says itself that it is: a disk that is full, a lock that another has.

    Not so a connection that breaks: it may be what was asked that breaks it.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    return hasattr(error.__cause__, "sqlite_errorcode") or (state or "").startswith(POSTGRES_SHORT)


def is_refusal(error: BaseException) -> bool:
    """Return whether a connection failed although the server takes some: it does not take us, and waiting is in vain.

    The driver has no code for why a connection fails, and tells it in the
    language of the server. So the server is asked whether it takes anybody.
    """
    cause = error.__cause__
    if not isinstance(error, OperationalError) or connection.vendor != "postgresql" or isinstance(cause, _timeout()):
        return False
    return _takes_connections() and not FULL.search(str(error))


def _timeout() -> type[BaseException]:
    # Not before it is needed: an installation on SQLite has no such driver.
    from psycopg.errors import ConnectionTimeout

    return ConnectionTimeout


def _takes_connections() -> bool:
    """Ask the server itself; it needs no account for that."""
    from psycopg import conninfo, pq

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    address = {name: value for name, value in connection.get_connection_params().items() if name in known}
    return pq.Ping(pq.PGconn.ping(conninfo.make_conninfo(**address).encode())) == pq.Ping.OK


def ping() -> None:
    """Ask the database for nothing, in a thread of its own; an error if it is away."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
