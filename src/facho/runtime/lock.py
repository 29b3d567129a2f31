"""One engine a database: a second one must not start, let alone poll."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from django.db import connections

from facho.runtime.config import Config, ConfigError

# Any number, as long as every engine asks for the same one: "facho" in ASCII.
ADVISORY_LOCK = 0x666163686F


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
        self._file = path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise ConfigError(
                f"Another Facho engine{f' (process {holder})' if holder else ''} is running on "
                f"{self._config.database['NAME']}. Stop it first, or give this one another FACHO_DATA_DIR."
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

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
