"""A spool on disk: what waits there survives whatever kills the process, in order, within a limit.

Each entry is a file of its own, named by a number that grows and by what it is
about. It is written beside its place and renamed into it when it is safe on the
disk, so an entry is either there as a whole or not there. One that was read
into the database but not yet removed is read again after a crash: whoever puts
entries in makes sure that twice is as good as once.

At the limit, harvests are refused first. The last part of it is kept for what
is small: how an execution ended is worth more than one more harvest, for it is
what everybody waits for. What is small and finds no place even there waits in
memory, as long as this process lives.
"""

import contextlib
import errno
import fcntl
import itertools
import logging
import os
import re
from pathlib import Path
from typing import Self

from facho.engine.errors import FachoError

logger = logging.getLogger(__name__)

MEGABYTE = 2**20
LIMIT = 256 * MEGABYTE

# The part of the limit that is only for small entries.
RESERVE = 1 / 16

# Small entries that wait in memory because the disk takes no more.
MOST_HELD = 10_000

# What could not be kept for a defect of ours is set aside, for somebody to look at: the newest of it.
REFUSED = "refused"
MOST_REFUSED = 50

LOCK = "lock"
UNFINISHED = ".tmp"
NAME = re.compile(r"(\d{12})-([a-z0-9-]+)\.json")


class NotKept(FachoError):
    """What was collected could not be kept: the database is away, and the spool takes no more."""


class SpoolTaken(FachoError):
    """Another process has this spool."""


class Spool:
    """Entries in order, each of them bytes with a label. Not for several threads, nor for several processes."""

    def __init__(self, folder: Path, limit_bytes: int = LIMIT) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        # How many bytes wait on the disk.
        self.size = 0
        # By number: what an entry is called, and how large its file is.
        self._names: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        # By number, what is in no file.
        self._held: dict[int, bytes] = {}
        for each in (folder, folder / REFUSED):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
            each.chmod(0o700)
        self._lock = _lock(folder / LOCK)
        self._find()
        last = max([*self._names, *map(_number, self.refused())], default=0)
        self._numbers = itertools.count(last + 1)

    @classmethod
    def take(cls, base: Path, limit_bytes: int = LIMIT) -> Self:
        """Take the first spool below a folder that no living process has; what a dead one left in it comes along."""
        for number in itertools.count(1):
            try:
                return cls(base / str(number), limit_bytes)
            except SpoolTaken:
                continue
        raise AssertionError("numbers never end")

    def _find(self) -> None:
        """Take over what is there, and remove what was never finished."""
        for path in sorted(self.folder.iterdir()):
            if path.suffix == UNFINISHED:
                path.unlink()
            elif NAME.fullmatch(path.name):
                self._add(_number(path.name), path.name, path.stat().st_size)

    def _add(self, number: int, name: str, size: int) -> None:
        self._names[number], self._sizes[number] = name, size
        self.size += size

    def __len__(self) -> int:
        return len(self._names)

    def first(self) -> int | None:
        """Return the number of what has waited longest."""
        return next(iter(self._names), None)

    def label(self, number: int) -> str:
        """Return what an entry is about, as it was called when it came."""
        return _label(self._names[number])

    def read(self, number: int) -> bytes:
        return self._held[number] if number in self._held else (self.folder / self._names[number]).read_bytes()

    def append(self, label: str, data: bytes, *, is_small: bool = False) -> None:
        """Put an entry behind the others, safe on the disk; `NotKept` says why it cannot be."""
        limit = self.limit_bytes if is_small else int(self.limit_bytes * (1 - RESERVE))
        if self.size + len(data) > limit:
            raise NotKept(f"the spool is full: {self.size / MEGABYTE:.1f} of {self.limit_bytes / MEGABYTE:.1f} MB")
        number, name = self._next(label)
        try:
            self._write(self.folder / name, data)
        except OSError as error:
            raise NotKept(f"the spool cannot be written: {error.strerror or error}") from error
        self._add(number, name, len(data))

    def _next(self, label: str) -> tuple[int, str]:
        number = next(self._numbers)
        return number, f"{number:012}-{label}.json"

    def hold(self, label: str, data: bytes) -> None:
        """Put an entry behind the others that the disk does not take; it dies with this process."""
        if len(self._held) >= MOST_HELD:
            raise NotKept(f"{MOST_HELD} entries wait in memory already")
        number, name = self._next(label)
        self._add(number, name, 0)
        self._held[number] = data

    def _write(self, path: Path, data: bytes) -> None:
        unfinished = path.with_suffix(UNFINISHED)
        try:
            _write_safely(unfinished, data)
            unfinished.replace(path)
            _sync_folder(self.folder)
        except OSError:
            for each in (unfinished, path):
                with contextlib.suppress(OSError):
                    each.unlink()
            raise

    def remove(self, number: int) -> None:
        """Forget an entry that has arrived."""
        name = self._forget(number)
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            # A disk that only reads. What is left there is read again after a restart, and changes nothing then.
            logger.warning("%s could not be removed from the spool: %s", name, error)

    def refuse(self, number: int) -> None:
        """Set an entry aside that nobody can use as it is."""
        held, path = self._held.get(number), self.folder / self._names[number]
        name = self._forget(number)
        try:
            if held is not None:
                path.write_bytes(held)
            path.replace(self.folder / REFUSED / name)
            for old in self.refused()[:-MOST_REFUSED]:
                (self.folder / REFUSED / old).unlink()
        except OSError as error:
            logger.warning("%s could not be set aside: %s", name, error)

    def refused(self) -> list[str]:
        """Return the names of what was set aside, oldest first."""
        return sorted(path.name for path in (self.folder / REFUSED).iterdir() if NAME.fullmatch(path.name))

    def refused_labels(self) -> list[str]:
        return [_label(name) for name in self.refused()]

    def _forget(self, number: int) -> str:
        self.size -= self._sizes.pop(number)
        self._held.pop(number, None)
        return self._names.pop(number)

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _label(name: str) -> str:
    return name.partition("-")[2].removesuffix(".json")


def _lock(path: Path) -> int:
    """Lock a spool for as long as this process lives, however it ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
            raise
        raise SpoolTaken(f"another process has the spool in {path.parent}") from error
    return descriptor


def _write_safely(path: Path, data: bytes) -> None:
    """Write a file, and return when it is on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
