"""One engine a database, and one worker a name: a second one must not start, let alone poll."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from django.db import connections

from facho.runtime.config import Config, ConfigError

# Any number, as long as every engine asks for the same one: "facho" in ASCII.
ADVISORY_LOCK = 0x666163686F


class TakenError(Exception):
    """Somebody else has the lock; `str()` of it is the number of that process, as far as it is known."""


def lock_file(path: Path) -> IO[str]:
    """Return the open file that holds a lock until it is closed, or its process ends, however it ends."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise TakenError(holder) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def lock_role(config: Config, role: str) -> IO[str]:
    """Refuse a second process of the same role and name on this machine: it would use the same spool and log."""
    try:
        return lock_file(config.data_dir / f"{role}-{config.worker_name}.lock")
    except TakenError as error:
        raise ConfigError(
            f"Another {role} named {config.worker_name} (process {error}) runs on this machine. "
            "Give each a name of its own in FACHO_WORKER_NAME."
        ) from error


class EngineLock:
    """Held by the engine as long as it lives, and given up by the system when it dies, however it dies."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._file: IO[str] | None = None
        self._connection: Any = None

    def __enter__(self) -> Self:
        if self._config.is_sqlite:
            # Beside the file itself, by whatever name it was found.
            self._lock_file(Path(f"{Path(str(self._config.database['NAME'])).resolve()}.lock"))
        else:
            self._lock_server()
        return self

    def _lock_file(self, path: Path) -> None:
        try:
            self._file = lock_file(path)
        except TakenError as error:
            raise ConfigError(
                f"Another Facho engine{f' (process {error})' if str(error) else ''} is running on "
                f"{self._config.database['NAME']}. Stop it first, or give this one another FACHO_DATA_DIR."
            ) from None

    def _lock_server(self) -> None:
        # A connection of its own: the lock lives as long as the connection does.
        self._connection = connections.create_connection("default")
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [ADVISORY_LOCK])
            (taken,) = cursor.fetchone()
        if not taken:
            self._connection.close()
            raise ConfigError(
                "Another Facho engine is running on this database. Stop it first, or use another database."
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if self._connection is not None:
            self._connection.close()
