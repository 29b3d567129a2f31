"""Database upgrade: migrations, then steps that are too long for one transaction."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.core.management import call_command
from django.db import connection

from facho.apps.telemetry.search_index import create_index
from facho.runtime.commands.screen import ProgressBar, out
from facho.runtime.config import Config, ConfigError
from facho.runtime.lock import EngineLock
from facho.store import history_upgrade


def upgrade(config: Config, *, verbosity: int, is_locked: bool) -> None:
    """Migrate, and convert the history of earlier versions. `is_locked`: the caller holds the lock of the engine."""
    with without_idle_limit():
        call_command("migrate", verbosity=verbosity, interactive=False)
        # It may have been impossible before: see `checks.search`.
        create_index(connection)
    if not history_upgrade.is_pending():
        return
    lock: AbstractContextManager[object] = nullcontext() if is_locked else EngineLock(config)
    progress = ProgressBar()

    def report(step: str, done: int, readings: int) -> None:
        if progress.is_shown:
            progress.show(step, done, readings, "readings")
        else:
            # The journal of a service needs lines.
            out(f"{step}, {done:,} of {readings:,} readings")
            sys.stdout.flush()

    with lock, progress:
        try:
            summary = history_upgrade.convert(report)
        except history_upgrade.NotConverted as error:
            raise ConfigError(str(error)) from error
    out(summary)


@contextmanager
def without_idle_limit() -> Iterator[None]:
    """Allow idle transactions of any length on this connection.

    PostgreSQL ends others after 5 seconds, so that a paused process holds no lock. Between two statements of a
    migration Django may compute for longer on a small machine.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET idle_in_transaction_session_timeout")
