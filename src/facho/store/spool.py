"""Results that wait for the database, in an SQLite file: they survive a crash, in order, within a limit.

A file belongs to one process, which holds its lock. A result that was stored
but not yet removed is delivered again after a crash; storing it twice changes
nothing.

The last part of the limit is kept for results without readings: that an
execution has ended is worth more than one more set of readings. If even that
does not fit, they wait in memory, as long as this process lives.
"""

import contextlib
import itertools
import json
import logging
import sqlite3
from pathlib import Path
from typing import Self

from facho.adapters.wire import UnreadableMessage, from_wire, to_wire
from facho.engine.errors import FachoError
from facho.engine.model import RunResult

logger = logging.getLogger(__name__)

MEGABYTE = 2**20
LIMIT = 256 * MEGABYTE

# The part of the limit that is only for results without data.
RESERVE = 1 / 16

# Results without data that wait in memory because the disk takes no more.
MOST_HELD = 10_000

# Results that cannot be stored because of a defect are kept for a person to look at: the newest of them.
MOST_REFUSED = 50

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS refused (id INTEGER PRIMARY KEY, reason TEXT NOT NULL, body BLOB NOT NULL);
"""


class NotKept(FachoError):
    """What was read could not be kept: the database is unavailable, and the spool is full or cannot be written."""


class SpoolTaken(FachoError):
    """Another process has this spool."""


class Spool:
    """Results in order, oldest first. Not for several threads at once, nor for several processes."""

    def __init__(self, path: Path, limit_bytes: int = LIMIT) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        self._file = _open(path)
        self._sizes: dict[int, int] = dict(self._file.execute("SELECT id, length(body) FROM results ORDER BY id"))
        # Bytes that wait on the disk.
        self.size = sum(self._sizes.values())
        # By number, results that are not on the disk. Their numbers follow those of the file.
        self._held: dict[int, RunResult] = {}

    @classmethod
    def take(cls, folder: Path, limit_bytes: int = LIMIT) -> Self:
        """Open the first spool of a folder that no living process has, with the results that a dead one left in it."""
        for number in itertools.count(1):
            try:
                return cls(folder / f"{number}.sqlite3", limit_bytes)
            except SpoolTaken:
                continue
        raise AssertionError("count() does not end")

    def __len__(self) -> int:
        return len(self._sizes) + len(self._held)

    def first(self) -> int | None:
        """Return the number of the oldest result."""
        return next(iter(self._sizes), None) or next(iter(self._held), None)

    def read(self, number: int) -> RunResult:
        """Return a result; `UnreadableMessage` if it is damaged or of a version that this one does not know."""
        if number in self._held:
            return self._held[number]
        try:
            (body,) = self._file.execute("SELECT body FROM results WHERE id = ?", (number,)).fetchone()
        except (sqlite3.Error, TypeError) as error:
            raise UnreadableMessage(f"the spool cannot be read: {error}") from error
        return decode(body)

    def append(self, result: RunResult) -> None:
        """Add a result behind the others, safe on the disk; `NotKept` if there is no room for what was read."""
        try:
            self._append(encode(result), self.limit_bytes * (1 - RESERVE if result.has_data else 1))
        except NotKept:
            if result.has_data:
                raise
            self._hold(result)

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

    def _hold(self, result: RunResult) -> None:
        if len(self._held) >= MOST_HELD:
            raise NotKept(f"{MOST_HELD:,} results wait in memory already")
        self._held[max([*self._held, *self._sizes], default=0) + 1] = result

    def remove(self, number: int) -> None:
        """Forget a result that is stored."""
        if self._held.pop(number, None) is None:
            self.size -= self._sizes.pop(number)
            try:
                with self._file:
                    self._file.execute("DELETE FROM results WHERE id = ?", (number,))
            except sqlite3.Error as error:
                # A disk that is read-only. The result is delivered again after a restart, and changes nothing then.
                logger.warning("result %d could not be removed from the spool: %s", number, error)

    def refuse(self, number: int, reason: str) -> None:
        """Set a result aside that cannot be stored as it is."""
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
            logger.warning("result %d could not be set aside: %s", number, error)

    def refused(self) -> list[tuple[int, str]]:
        """Return the numbers of results that were set aside, oldest first, each with the reason."""
        return list(self._file.execute("SELECT id, reason FROM refused ORDER BY id"))

    def close(self) -> None:
        """Release the file for another process."""
        self._file.close()


def encode(result: RunResult) -> bytes:
    return json.dumps(to_wire(result), separators=(",", ":")).encode()


def decode(body: bytes) -> RunResult:
    """Return a result as it was encoded; `UnreadableMessage` if it cannot be read."""
    try:
        message = json.loads(body)
    except ValueError as error:
        raise UnreadableMessage(f"this is not a result: {error}") from error
    return from_wire(RunResult, message)


def _open(path: Path) -> sqlite3.Connection:
    """Open a spool and lock it for as long as this process lives. A damaged file is set aside."""
    try:
        return _connect(path)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise SpoolTaken(f"another process has the spool {path}") from error
        raise
    except sqlite3.DatabaseError as error:
        aside = path.with_suffix(".damaged")
        logger.error("the spool %s is damaged (%s); it is kept as %s", path, error, aside.name)
        path.replace(aside)
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    # One thread uses it at a time, but not always the same one.
    file = sqlite3.connect(path, timeout=0, check_same_thread=False)
    try:
        path.chmod(0o600)
        # Pages of removed results are given back to the disk.
        file.execute("PRAGMA auto_vacuum = FULL")
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("PRAGMA synchronous = EXTRA")
        # Takes the lock, which is kept until the file is closed.
        file.executescript(f"BEGIN EXCLUSIVE; {SCHEMA} COMMIT")
    except sqlite3.Error:
        with contextlib.suppress(sqlite3.Error):
            file.close()
        raise
    return file
