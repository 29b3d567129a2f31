"""Upgrade of the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.db import connection

from facho.apps.telemetry.search_index import create_index
from facho.runtime.config import ConfigError

# The table of readings. Version 0.5 dropped it after converting the history.
BEFORE_0_5 = "onu_history"
TOO_OLD = "This version of Facho can only upgrade a database of version 0.5 or later."
HOW_TO_UPGRADE = "Install Facho 0.5.0, run `facho migrate` with it, then install this version again."


def upgrade(*, verbosity: int) -> None:
    """Migrate the database."""
    if is_too_old(connection):
        raise ConfigError(f"{TOO_OLD} {HOW_TO_UPGRADE}")
    with without_idle_limit():
        call_command("migrate", verbosity=verbosity, interactive=False)
        # It may have been impossible before: see `checks.search`.
        create_index(connection)


def is_too_old(using: Any) -> bool:
    return BEFORE_0_5 in using.introspection.table_names()


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
