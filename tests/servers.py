"""PostgreSQL and Redis for the tests: those that were named, else our own on loopback, gone when the tests are.

with postgres() as server:
    server.url       # or None, and then
    server.reason    # says why there is none

with LaunchedRedis() as server:      # one that a test may hurt; LaunchedPostgres(durable=True) likewise
    server.kill()                    # or stop(), pause()
    server.start()                   # or resume(): on the same port, PostgreSQL with its data

python tests/servers.py pytest -q tests/store     # with DATABASE_URL and the names below set for the command
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from server_postgres import LaunchedPostgres, ask_postgres, database_of_its_own
from server_process import Launched, NoServerError
from server_redis import LaunchedRedis, ask_redis

# Set by somebody who has servers. The account of PostgreSQL must be allowed to create databases.
POSTGRES_URL_NAME = "FACHO_TEST_POSTGRES_URL"
REDIS_URL_NAME = "FACHO_TEST_REDIS_URL"

__all__ = [
    "POSTGRES_URL_NAME",
    "REDIS_URL_NAME",
    "LaunchedPostgres",
    "LaunchedRedis",
    "NamedServerDead",
    "NoServerError",
    "Server",
    "database_of_its_own",
    "postgres",
    "redis",
]


@dataclass(frozen=True, slots=True)
class Server:
    """Where the server is, or why there is none."""

    url: str | None
    reason: str = ""


class NamedServerDead(Exception):
    """A configured server is not there. It is not replaced by another one."""


def postgres() -> AbstractContextManager[Server]:
    return _named_or_own(POSTGRES_URL_NAME, ask_postgres, LaunchedPostgres)


def redis() -> AbstractContextManager[Server]:
    return _named_or_own(REDIS_URL_NAME, ask_redis, LaunchedRedis)


@contextmanager
def _named_or_own(name: str, ask: Callable[[str], None], launch: Callable[[], Launched]) -> Iterator[Server]:
    named = os.environ.get(name)
    if named:
        _check(name, named, ask)
        yield Server(named)
        return
    try:
        own = launch()
    except NoServerError as error:
        yield Server(None, str(error))
        return
    with own:
        yield Server(own.url)


def _check(name: str, url: str, ask: Callable[[str], None]) -> None:
    try:
        ask(url)
    except OSError as error:
        raise NamedServerDead(f"{name} is set, but nothing answers there: {error}") from error


def main(command: list[str]) -> int:
    """Run a command that is told where both servers are."""
    with postgres() as database, redis() as messages:
        if database.url is None or messages.url is None:
            sys.stderr.write(f"!!! SKIPPED: a server is missing. {database.reason or messages.reason}\n")
            return 1
        urls = {"DATABASE_URL": database.url, POSTGRES_URL_NAME: database.url, REDIS_URL_NAME: messages.url}
        return subprocess.run(command, env={**os.environ, **urls}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
