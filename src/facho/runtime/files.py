"""File modes of the data directory: for the user that runs Facho, and nobody else."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from facho.runtime.config import KEY_FILE, Config

# Rights of the group and of others.
OTHERS = 0o077


def loose_paths(config: Config) -> list[Path]:
    """Return the files and directories of Facho that others can read or change."""
    loose = []
    for path in _own(config):
        # The journal of a database comes and goes.
        with suppress(FileNotFoundError):
            found = path.lstat()
            if found.st_mode & OTHERS and not stat.S_ISLNK(found.st_mode):
                loose.append(path)
    return loose


def tighten(config: Config) -> None:
    """Close files of earlier versions to others. Files of another user stay: `facho check` reports them."""
    for path in loose_paths(config):
        with suppress(FileNotFoundError):
            found = path.stat()
            # A directory like /tmp belongs to all users.
            if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
                path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)


def _own(config: Config) -> Iterator[Path]:
    """Yield the data directory and the files that Facho creates there, and the database."""
    # It may be a link.
    yield config.data_dir.resolve()
    yield from config.data_dir.glob(f"{KEY_FILE}*")
    yield from config.data_dir.glob("*.lock")
    if config.is_sqlite:
        database = Path(str(config.database["NAME"]))
        # With its journal and lock.
        yield from database.parent.glob(f"{database.name}*")
    for folder in (config.data_dir / "logs", config.spool_dir):
        if folder.is_dir():
            yield folder
            yield from folder.rglob("*")
