"""What writing a run takes when nothing, some or all of its values changed, on SQLite and PostgreSQL. Not a test.

python tests/bench/writer [ONUS ...]
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import ways

sys.path.append(str(Path(__file__).resolve().parents[2]))

from servers import postgres

SIZES = (1024,)
ROUNDS = 40
REMARK = (
    f"Microseconds of CPU per value, runs of {len(ways.COLUMNS)} columns, without the history. "
    "PostgreSQL: ours + the server's.\n"
    "kept: the inventory is in memory. loaded: it is read from the database before each run. first: all ONUs are new."
)
# Measures the one database that its environment names: Django has one set of settings a process.
CHILD = "--child"


def main(arguments: list[str]) -> None:
    if arguments[:1] == [CHILD]:
        _measure([int(size) for size in arguments[1:]])
        return
    sizes = [int(size) for size in arguments] or list(SIZES)
    print(REMARK)
    _run("SQLite", sizes)
    with postgres() as server:
        if server.url is None:
            sys.exit(f"bench: there is no PostgreSQL: {server.reason}")
        with _database(server.url) as url:
            _run("PostgreSQL", sizes, url)


@contextmanager
def _database(server: str) -> Iterator[str]:
    """Make a database for us alone: the server may be somebody's own."""
    name = f"facho_bench_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name}")


def _run(database: str, sizes: list[int], url: str = "") -> None:
    command = [sys.executable, str(Path(__file__).parent), CHILD, *map(str, sizes)]
    done = subprocess.run(
        command, env={**os.environ, "DATABASE_URL": url}, stdout=subprocess.PIPE, text=True, check=True
    )
    print(f"\n{database:<12}{'ONUs':>6}  {'':<18}{'kept':>16}{'loaded':>16}{'first':>16}")
    for size, cases in json.loads(done.stdout).items():
        for case, costs in cases.items():
            shown = [f"{ours:.2f}" + (f" + {server:.2f}" if url else "") for ours, server in map(costs.get, WAYS)]
            print(f"{'':<12}{size:>6}  {case:<18}" + "".join(f"{each:>16}" for each in shown))


WAYS = ("kept", "loaded", "first")


def _measure(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        ways.installed(folder, os.environ.get("DATABASE_URL", ""))
        print(json.dumps({size: ways.measure(size, ROUNDS) for size in sizes}))


if __name__ == "__main__":
    main(sys.argv[1:])
