"""Database access of a process: its threads, and the meaning of database errors."""

import asyncio
import os
import re
import select
import socket
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, Generic, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, connection, connections

# Seconds after which a statement counts as hung: the server hangs, or a firewall dropped the connection, which the
# operating system may not notice.
LONGEST_SILENCE = 60.0

# A connection that was used within so many seconds is not tested by a statement before it is used again.
FRESH = 2.0

T = TypeVar("T")


class DbThread:
    """One thread with one connection, for sync ORM code that must not block the event loop.

    A hung connection is closed: the work fails as if the server were unavailable, and the next work opens a new
    connection.
    """

    def __init__(self, name: str, longest_silence: float = LONGEST_SILENCE) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._longest_silence = longest_silence
        self._call: _Call[Any] | None = None
        # When the last call ended.
        self._used_at = 0.0
        self._is_closed = False

    async def run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        call = _Call(work)
        result = self._pool.submit(self._do, call)
        call.timer = loop.call_later(self._longest_silence, self._look, loop, call)
        try:
            return await asyncio.wrap_future(result)
        finally:
            # A cancelled caller does not stop the thread, but work that has not started is skipped.
            if call.is_over or result.cancelled():
                call.timer.cancel()

    @property
    def silence(self) -> float:
        """Return the seconds since the last answer of a running statement."""
        call = self._call
        return 0.0 if call is None or call.is_over else call.silence

    def _do(self, call: "_Call[T]") -> T:
        self._call = call
        try:
            return call.do(is_fresh=monotonic() - self._used_at < FRESH)
        finally:
            self._used_at = monotonic()

    def _look(self, loop: asyncio.AbstractEventLoop, call: "_Call[Any]") -> None:
        """Close the connection if it hangs, and schedule the next check."""
        if call.is_over:
            return
        left = self._longest_silence - call.silence
        if left <= 0:
            call.break_off()
        call.timer = loop.call_later(left if left > 0 else self._longest_silence, self._look, loop, call)

    def close(self) -> None:
        """Finish running work and close the connection."""
        if self._is_closed:
            return
        self._is_closed = True
        last = self._pool.submit(connections.close_all)
        try:
            last.result(self._longest_silence)
        except TimeoutError:
            # Work behind a hung server never ends.
            if self._call is not None:
                self._call.break_off()
        self._pool.shutdown(wait=True)


class _Call(Generic[T]):
    """One piece of work, and the time of its last answer."""

    timer: asyncio.TimerHandle

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._connection: Any = None
        # None: not started.
        self._heard_at: float | None = None
        self.is_over = False

    def do(self, *, is_fresh: bool) -> T:
        self._connection = connections["default"]
        self._heard_at = monotonic()
        try:
            # The thread runs for weeks, and the server may have closed its connection.
            close_old_connections()
            if is_fresh and not self._has_input():
                # After an error it has been tested already.
                self._connection.health_check_done = True
            with self._connection.execute_wrapper(self._execute):
                return self._work()
        finally:
            self.is_over = True

    def _execute(self, execute: Callable[..., Any], *statement: Any) -> Any:
        self._heard_at = monotonic()
        try:
            return execute(*statement)
        finally:
            self._heard_at = monotonic()

    def _has_input(self) -> bool:
        """Return whether the server sent something that was not asked for. If it has hung up, it did."""
        driver = self._driver()
        if driver is None or driver.status != 0:
            return False
        poll = select.poll()
        poll.register(driver.socket, select.POLLIN)
        return bool(poll.poll(0))

    def _driver(self) -> Any:
        """Return libpq's connection; None if there is none, or with SQLite."""
        return getattr(self._connection.connection, "pgconn", None) if self._connection is not None else None

    @property
    def silence(self) -> float:
        """Return the seconds for which a statement has been running."""
        return 0.0 if self._heard_at is None else monotonic() - self._heard_at

    def break_off(self) -> None:
        """Close the connection to a hung server, from another thread. SQLite has no server."""
        driver = self._driver()
        if driver is None:
            return
        try:
            with socket.socket(fileno=os.dup(driver.socket)) as line:
                line.shutdown(socket.SHUT_RDWR)
        except (self._connection.Database.Error, OSError):
            # Already closed.
            return


# SQLite error code of statements that can never succeed: bad SQL, missing table, too many variables.
SQLITE_DEFECT = 1

# SQLSTATE classes of statements that can never succeed: beyond the limits of the server.
POSTGRES_DEFECTS = ("54",)

# PostgreSQL errors of an unavailable server that psycopg does not count as operational: read-only after a failover, and
# a transaction that was idle for too long because this process was paused.
POSTGRES_AWAY = frozenset({"25006", "25P03", "25P04"})

# PostgreSQL without memory, connections or disk, or with a system error.
POSTGRES_SHORT = ("53", "58")


# Part of the message, in English and in Spanish, when the connection limit is reached.
FULL = re.compile(r"too many|reserved|demasiad|reservad", re.IGNORECASE)


def is_away(error: BaseException) -> bool:
    """Return whether the same call may succeed later: locked, full, restarting or unreachable."""
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None)
    if isinstance(error, DatabaseError) and state in POSTGRES_AWAY:
        return True
    if isinstance(error, InterfaceError):
        # SQLite's InterfaceError means a value that it cannot bind.
        return not isinstance(cause, sqlite3.InterfaceError)
    if not isinstance(error, OperationalError):
        return False
    # The lowest byte is the kind of error; the others are details.
    code = getattr(cause, "sqlite_errorcode", None)
    return not (state or "").startswith(POSTGRES_DEFECTS) and (code is None or code & 0xFF != SQLITE_DEFECT)


def is_conflict(error: BaseException) -> bool:
    """Return whether PostgreSQL cancelled this transaction to end a deadlock. An immediate retry may succeed."""
    return getattr(error.__cause__, "sqlstate", None) in ("40P01", "40001")


def is_short_of_something(error: BaseException) -> bool:
    """Return whether the database reports a shortage itself: full disk, locked.

    A broken connection is not one: the request may be its cause.
    """
    state = getattr(error.__cause__, "sqlstate", None)
    return hasattr(error.__cause__, "sqlite_errorcode") or (state or "").startswith(POSTGRES_SHORT)


def is_refusal(error: BaseException) -> bool:
    """Return whether the server refuses our connection while it accepts others, so that waiting does not help.

    The driver has no code for the reason, and the text is in the language of the server. So the server is asked
    whether it accepts connections at all.
    """
    if not isinstance(error, OperationalError) or connection.vendor != "postgresql":
        return False
    # Imported late: an installation with SQLite has no such driver.
    from psycopg import conninfo, pq
    from psycopg.errors import ConnectionTimeout

    if isinstance(error.__cause__, ConnectionTimeout):
        return False
    # Ask the server itself, without an account.
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    address = {name: value for name, value in connection.get_connection_params().items() if name in known}
    is_accepting = pq.Ping(pq.PGconn.ping(conninfo.make_conninfo(**address).encode())) == pq.Ping.OK
    return is_accepting and not FULL.search(str(error))


def ping() -> None:
    """Run an empty query in a separate thread; raises an error if the database is unavailable."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
