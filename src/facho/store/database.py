"""The database of this process: its threads, and what its errors mean."""

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

# A statement that takes longer than this is not answered any more, in seconds: the server hangs, or what lies between
# has forgotten the connection. The system notices that only where nobody in between keeps it from doing so.
LONGEST_SILENCE = 60.0

# A connection that was used within so many seconds is not tested by a statement before it is used again.
FRESH = 2.0

T = TypeVar("T")


class DbThread:
    """One thread with one connection, for sync ORM code that must not block the loop.

    A connection that is silent for too long is broken off: the work ends in the
    error that it would have got from a server that went away, and the next one
    connects anew.
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
            # Who gave up waiting leaves the thread at its work, unless that had not begun: then it never does.
            if call.is_over or result.cancelled():
                call.timer.cancel()

    @property
    def silence(self) -> float:
        """Return for how many seconds the database has owed it an answer."""
        call = self._call
        return 0.0 if call is None or call.is_over else call.silence

    def _do(self, call: "_Call[T]") -> T:
        self._call = call
        try:
            return call.do(is_fresh=monotonic() - self._used_at < FRESH)
        finally:
            self._used_at = monotonic()

    def _look(self, loop: asyncio.AbstractEventLoop, call: "_Call[Any]") -> None:
        """Break off what has been silent for too long, and look again when it may be."""
        if call.is_over:
            return
        left = self._longest_silence - call.silence
        if left <= 0:
            call.break_off()
        call.timer = loop.call_later(left if left > 0 else self._longest_silence, self._look, loop, call)

    def close(self) -> None:
        """Finish what was begun, and give the connection back."""
        if self._is_closed:
            return
        self._is_closed = True
        last = self._pool.submit(connections.close_all)
        try:
            last.result(self._longest_silence)
        except TimeoutError:
            # Nothing comes to its end behind a server that hangs.
            if self._call is not None:
                self._call.break_off()
        self._pool.shutdown(wait=True)


class _Call(Generic[T]):
    """One piece of work, and when it last had an answer."""

    timer: asyncio.TimerHandle

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._connection: Any = None
        # None: it waits for its turn.
        self._heard_at: float | None = None
        self.is_over = False

    def do(self, *, is_fresh: bool) -> T:
        self._connection = connections["default"]
        self._heard_at = monotonic()
        try:
            # This thread lives for weeks; the server may have dropped its connection.
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
        """Return for how many seconds a statement has been waiting."""
        return 0.0 if self._heard_at is None else monotonic() - self._heard_at

    def break_off(self) -> None:
        """Hang up, from another thread, on a server that does not. SQLite has nobody to hang up on."""
        driver = self._driver()
        if driver is None:
            return
        try:
            with socket.socket(fileno=os.dup(driver.socket)) as line:
                line.shutdown(socket.SHUT_RDWR)
        except (self._connection.Database.Error, OSError):
            # It has just been closed.
            return


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
