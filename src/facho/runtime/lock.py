"""Locks: one engine per database, and one worker per name."""

import asyncio
import fcntl
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from django.core import checks
from django.db import Error, connections

from facho.engine.ports import Clock
from facho.runtime.config import Config, ConfigError
from facho.store.engine_lock import give_back, holder_of_lease, take_for_engine

logger = logging.getLogger(__name__)

# Seconds between checks of the server lock.
KEEP_EVERY = 1.0

# A role that takes a lease holds the lock for some milliseconds; a longer holder is another engine.
TRIES, TRY_EVERY = 5, 0.1


class TakenError(Exception):
    """Another process has the lock; `str()` is its process id, if known."""


def lock_file(path: Path) -> IO[str]:
    """Return an open file that holds a lock until it is closed or its process ends."""
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
    """Refuse a second process of the same role and name on this machine: it would use the same log."""
    try:
        return lock_file(config.data_dir / f"{role}-{config.worker_name}.lock")
    except TakenError as error:
        raise ConfigError(
            f"Another {role} named {config.worker_name} (process {error}) runs on this machine. "
            "Set a different FACHO_WORKER_NAME for each one."
        ) from error


def roles_at_work(server: Any) -> list[checks.CheckMessage]:
    """Find processes of scale-out, which do not know the leases of an embedded engine."""
    holder = holder_of_lease(server)
    if holder is None:
        return []
    return [
        checks.Error(
            f"Scale-out processes are using this database, such as {holder}.",
            hint="Set FACHO_MODE=scale to join them, or stop them. Leases of a killed process expire after half a "
            "minute.",
            id="facho.E006",
        )
    ]


class EngineLock:
    """Held while the engine runs, and released by the system when it ends.

    On PostgreSQL it also excludes the roles of scale-out: see `store/engine_lock.py`.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._file: IO[str] | None = None
        self._connection: Any = None
        # Server session that has the lock.
        self._session: int | None = None
        self._told_away = False

    def __enter__(self) -> Self:
        if self._config.is_sqlite:
            name = str(self._config.database["NAME"])
            try:
                # Beside the real file, even if it is reached by a link.
                self._file = lock_file(Path(f"{Path(name).resolve()}.lock"))
            except TakenError as error:
                raise ConfigError(
                    f"Another Facho engine{f' (process {error})' if str(error) else ''} is running on "
                    f"{name}. Stop it first, or set another FACHO_DATA_DIR."
                ) from None
            return self
        # A separate connection without a maximum age, because the lock lives as long as the connection.
        self._connection = connections.create_connection("default")
        self._connection.settings_dict = {**self._connection.settings_dict, "CONN_MAX_AGE": None}
        try:
            self.take()
        except BaseException:
            self._connection.close()
            raise
        return self

    def take(self) -> None:
        """Take or confirm the server lock; `ConfigError` if the database belongs to another process."""
        for _ in range(TRIES):
            if take_for_engine(self._connection):
                break
            time.sleep(TRY_EVERY)
        else:
            raise ConfigError(
                "Another Facho engine is running on this database. Stop it first, or use another database."
            )
        session = self._connection.connection.info.backend_pid
        if session != self._session:
            # With the lock held, no process can take a lease.
            for message in roles_at_work(self._connection):
                raise ConfigError(f"{message.msg} {message.hint}")
            self._session = session

    async def keep(self, clock: Clock) -> None:
        """Keep the lock forever; `ConfigError` if another process got the database after we lost it.

        A server that restarts or closes our connection releases the lock, and we take it again. Nothing starts in the
        meantime, because that needs the same server.
        """
        if self._connection is None:
            # A file stays locked until it is closed.
            await asyncio.Event().wait()
        self._connection.inc_thread_sharing()
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lock")
        try:
            while True:
                await clock.sleep(KEEP_EVERY)
                await asyncio.get_running_loop().run_in_executor(thread, self._retake)
        finally:
            thread.shutdown(wait=False)

    def _retake(self) -> None:
        try:
            self._connection.close_if_unusable_or_obsolete()
            self.take()
            self._told_away = False
        except Error as error:
            if not self._told_away:
                logger.warning("the engine lock cannot be checked because the database is unavailable: %s", error)
            self._told_away = True

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
        if self._connection is not None:
            # A server may need a moment to notice a closed connection.
            with suppress(Error):
                give_back(self._connection)
            self._connection.close()
