"""Spool: results on disk while the database is unavailable. Each is stored once."""

import asyncio
import contextlib
import logging
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Self

from facho.adapters.wire import UnreadableMessage, decode_result, encode_result
from facho.engine.errors import FachoError, LeaseLost
from facho.engine.events import Event, log_event
from facho.engine.model import RunResult
from facho.store.database import DbThread, is_away, is_short_of_something, ping
from facho.store.old_spool import decode_json

logger = logging.getLogger(__name__)

MEGABYTE = 2**20
LIMIT = 256 * MEGABYTE

# Share of the limit that is reserved for results without data.
RESERVE = 1 / 16

# Maximum results without data in memory when the disk is full.
MOST_HELD = 10_000

# Results that cannot be stored because of a bug are kept for analysis: the newest of them.
MOST_REFUSED = 50

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS refused (id INTEGER PRIMARY KEY, reason TEXT NOT NULL, body BLOB NOT NULL);
"""


class NotKept(FachoError):
    """Readings could not be kept: the database is unavailable, and the spool is full or cannot be written."""


class SpoolTaken(FachoError):
    """Another process has this spool."""


class Spool:
    """Results in order, oldest first. For one thread at a time and one process."""

    def __init__(self, path: Path, limit_bytes: int = LIMIT) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        self._file = _open(path)
        self._sizes: dict[int, int] = dict(self._file.execute("SELECT id, length(body) FROM results ORDER BY id"))
        # Bytes on disk.
        self.size = sum(self._sizes.values())
        # Results that are only in memory, by number. Their numbers follow those of the file.
        self._held: dict[int, RunResult] = {}

    @classmethod
    def take(cls, folder: Path, limit_bytes: int = LIMIT) -> Self:
        """Open the first spool of a folder that no live process has, including the results in it."""
        number = 1
        while True:
            try:
                return cls(folder / f"{number}.sqlite3", limit_bytes)
            except SpoolTaken:
                number += 1

    def __len__(self) -> int:
        return len(self._sizes) + len(self._held)

    def first(self) -> int | None:
        """Return the number of the oldest result."""
        return next(iter(self._sizes), None) or next(iter(self._held), None)

    def read(self, number: int) -> RunResult:
        """Return a result; `UnreadableMessage` if it is damaged or of an unknown version."""
        if number in self._held:
            return self._held[number]
        try:
            (body,) = self._file.execute("SELECT body FROM results WHERE id = ?", (number,)).fetchone()
        except (sqlite3.Error, TypeError) as error:
            raise UnreadableMessage(f"the spool cannot be read: {error}") from error
        return decode(body)

    def append(self, result: RunResult) -> None:
        """Append a result, synced to disk; `NotKept` if there is no room for its readings."""
        try:
            self._append(encode_result(result), self.limit_bytes * (1 - RESERVE if result.has_data else 1))
        except NotKept as full:
            if result.has_data:
                raise
            if len(self._held) >= MOST_HELD:
                raise NotKept(f"{MOST_HELD:,} results are already waiting in memory") from full
            self._held[max([*self._held, *self._sizes], default=0) + 1] = result

    def _append(self, body: bytes, limit: float) -> None:
        if self.size + len(body) > limit or self._held:
            raise NotKept(f"the spool is full: {self.size / MEGABYTE:.1f} of {self.limit_bytes / MEGABYTE:.1f} MB")
        try:
            with self._file:
                number = self._file.execute("INSERT INTO results (body) VALUES (?)", (body,)).lastrowid or 0
        except sqlite3.Error as error:
            raise NotKept(f"the spool cannot be written: {error}") from error
        self._sizes[number] = len(body)
        self.size += len(body)

    def remove(self, number: int) -> None:
        """Remove a stored result."""
        if self._held.pop(number, None) is None:
            self.size -= self._sizes.pop(number)
            try:
                with self._file:
                    self._file.execute("DELETE FROM results WHERE id = ?", (number,))
            except sqlite3.Error as error:
                # The disk is read-only. After a restart the result is delivered again, which changes nothing.
                logger.warning("result %d could not be removed from the spool: %s", number, error)

    def refuse(self, number: int, reason: str) -> None:
        """Set a result aside that cannot be stored."""
        if self._held.pop(number, None) is not None:
            return
        self.size -= self._sizes.pop(number)
        try:
            with self._file:
                self._file.execute(
                    "INSERT OR REPLACE INTO refused SELECT id, ?, body FROM results WHERE id = ?", (reason, number)
                )
                self._file.execute("DELETE FROM results WHERE id = ?", (number,))
                self._file.execute(
                    "DELETE FROM refused WHERE id NOT IN (SELECT id FROM refused ORDER BY id DESC LIMIT ?)",
                    (MOST_REFUSED,),
                )
        except sqlite3.Error as error:
            logger.warning("result %d could not be moved to the rejected results: %s", number, error)

    def refused(self) -> list[tuple[int, str]]:
        """Return the numbers of results that were set aside, oldest first, with the reason."""
        return list(self._file.execute("SELECT id, reason FROM refused ORDER BY id"))

    def close(self) -> None:
        """Release the file for another process."""
        self._file.close()


def decode(body: bytes) -> RunResult:
    """Decode a result; `UnreadableMessage` if it cannot be read. No record of this version begins with a brace."""
    return decode_json(body) if body[:1] == b"{" else decode_result(body)


def _open(path: Path) -> sqlite3.Connection:
    """Open a spool and lock it while this process lives. A damaged file is set aside."""
    try:
        return _connect(path)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise SpoolTaken(f"another process uses the spool {path}") from error
        raise
    except sqlite3.DatabaseError as error:
        aside = path.with_suffix(".damaged")
        logger.error("the spool %s is damaged (%s); it was renamed to %s", path, error, aside.name)
        path.replace(aside)
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    # Used by one thread at a time, but not always the same one.
    file = sqlite3.connect(path, timeout=0, check_same_thread=False)
    try:
        path.chmod(0o600)
        # Pages of removed results are returned to the file system.
        file.execute("PRAGMA auto_vacuum = FULL")
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("PRAGMA synchronous = EXTRA")
        # Takes the lock, which is held until the file is closed.
        file.executescript(f"BEGIN EXCLUSIVE; {SCHEMA} COMMIT")
    except sqlite3.Error:
        with contextlib.suppress(sqlite3.Error):
            file.close()
        raise
    return file


# A result that fails this often, while the database answers other requests, is itself the cause.
MOST_FAILURES = 10

NOT_STORED = "the readings could not be stored after the database came back; they stay in the spool"


class ResultDelivery:
    """Delivers results to the database, now or later. One per process, to keep their order."""

    def __init__(
        self,
        store: Callable[[RunResult], Awaitable[None]],
        *,
        spool: Spool,
        thread: DbThread,
        ping: Callable[[], None] = ping,
    ) -> None:
        self._store = store
        self._spool = spool
        # The event loop must not wait for a disk.
        self._thread = thread
        self._ping = ping
        self._flushing: asyncio.Task[None] | None = None
        self._failures: Counter[int] = Counter()
        # Results stored late and results that came too late, since the database was last available.
        self._stored = self._dropped = 0
        self._is_away = self._is_full = False

    @property
    def waiting(self) -> int:
        """Return the number of pending results."""
        return len(self._spool)

    @property
    def waiting_bytes(self) -> int:
        return self._spool.size

    async def finish(self, result: RunResult) -> None:
        """Store a result now, or keep it for later; `NotKept` if there is no room for its readings."""
        if not self.waiting:
            try:
                await self._store(result)
            except Exception as error:
                if not is_away(error):
                    raise
                if not self._is_away:
                    self._is_away = True
                    log_event(logger, Event.SPOOLING, error=_sentence(error))
            else:
                self._is_away = self._is_full = False
                return
        await self._thread.run(lambda: self._keep(result))

    def _keep(self, result: RunResult) -> None:
        try:
            self._spool.append(result)
        except (NotKept, TypeError) as error:
            if not self._is_full:
                self._is_full = True
                log_event(logger, Event.SPOOL_FULL, size=self._spool.size / MEGABYTE, error=str(error))
            if result.has_data:
                reason = f"the database is unavailable, and the readings could not be saved to disk: {error}"
                raise NotKept(reason) from error
            # The execution stays open until the reaper ends it.
            logger.error("the result of executions %s was lost: %s", result.execution_ids, error)

    async def flush(self) -> None:
        """Store all pending results in order; raises the database error if it is still unavailable."""
        if not self.waiting:
            return
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush(), name="spool")
            self._flushing.add_done_callback(self._flushed)
        # Several callers may await it; a cancelled one must not stop it for the others.
        await asyncio.shield(self._flushing)

    def _flushed(self, task: "asyncio.Task[None]") -> None:
        self._flushing = None
        if not task.cancelled():
            # Its callers get the error; without callers, asyncio must not warn.
            task.exception()

    async def step(self, now: datetime) -> None:
        """Flush, as a chore. The outage is already logged."""
        try:
            await self.flush()
        except Exception as error:
            if not is_away(error):
                raise
            logger.debug("%d results are still pending: %s", self.waiting, error)

    async def close(self) -> None:
        """Wait for a flush in progress, and leave the rest to the next process."""
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
        await self._thread.run(self._spool.close)

    async def _flush(self) -> None:
        # Results that arrive in the meantime are appended and stored as well.
        while (number := await self._thread.run(self._spool.first)) is not None:
            await self._deliver(number)
        if self._stored:
            log_event(logger, Event.SPOOL_LANDED, entries=self._stored)
        if self._dropped:
            log_event(logger, Event.SPOOL_DROPPED, entries=self._dropped)
        self._stored = self._dropped = 0
        self._is_away = self._is_full = False

    async def _deliver(self, number: int) -> None:
        """Store the result with this number and remove it; raises the database error if it is unavailable."""
        try:
            result = await self._thread.run(lambda: self._spool.read(number))
        except UnreadableMessage as error:
            await self._refuse(number, error)
            return
        try:
            await self._store(result)
        except LeaseLost as error:
            logger.warning("the result of execution %s arrived too late: %s", result.execution_ids, error)
            self._dropped += 1
        except Exception as error:
            if is_away(error) and not await self._is_to_blame(number, error):
                raise
            # A bug, or one bad row: the results after it must not wait.
            logger.exception("the result of execution %s could not be stored", result.execution_ids)
            await self._store_without_data(result)
            await self._refuse(number, error)
            return
        else:
            self._stored += 1
        await self._thread.run(lambda: self._spool.remove(number))

    async def _store_without_data(self, result: RunResult) -> None:
        """End the executions of a result that cannot be stored as failed, since the readings are lost."""
        if result.has_data:
            try:
                await self._store(result.without_data(NOT_STORED, NotKept.__name__))
            except Exception as error:
                if is_away(error):
                    raise
                # The reaper ends them.
                logger.exception("executions %s could not be closed", result.execution_ids)

    async def _is_to_blame(self, number: int, error: Exception) -> bool:
        """Return whether the database answers other requests but fails for this result repeatedly."""
        if is_short_of_something(error):
            return False
        try:
            await self._thread.run(self._ping)
        except Exception as away:
            logger.debug("the database is unavailable: %s", away)
            self._failures.clear()
            return False
        self._failures[number] += 1
        return self._failures[number] >= MOST_FAILURES

    async def _refuse(self, number: int, error: Exception) -> None:
        self._failures.pop(number, None)
        await self._thread.run(lambda: self._spool.refuse(number, _sentence(error)))
        log_event(logger, Event.SPOOL_REFUSED, entry=f"result {number}", error=_sentence(error))


def _sentence(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
