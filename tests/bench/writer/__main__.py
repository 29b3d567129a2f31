"""What keeping a harvest takes by COPY, `executemany` and `bulk_create`, on SQLite and PostgreSQL. Not a test.

python tests/bench/writer [ROWS ...]
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import ways

sys.path.append(str(Path(__file__).resolve().parents[2]))

from servers import postgres

SIZES = (10, 100, 1000, 5000)
ROUNDS = 7
REMARK = (
    "ONUs a second, with state, power and their history; the quickest of all rounds, in which the ways take turns.\n"
    "x: how many times as fast as bulk_create in the same run. PostgreSQL does not wait for its disk here; SQLite does."
)
# Measures the one database that its environment names: Django has one set of settings a process.
CHILD = "--child"

Costs = Mapping[str, tuple[float, float]]


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
    print(f"\n{database:<12}{'rows':>6}  {'':<14}{'met first':>20}{'read again':>20}")
    for size, costs in json.loads(done.stdout).items():
        _print(int(size), costs)


def _print(size: int, costs: Costs) -> None:
    plain = next(iter(costs.values()))
    for name, cost in costs.items():
        shown = [f"{size / each:9.0f}/s {base / each:5.2f} x" for each, base in zip(cost, plain, strict=True)]
        print(f"{'':<12}{size:>6}  {name:<14}{shown[0]:>20}{shown[1]:>20}")


def _measure(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="facho-bench-") as folder:
        ways.installed(folder, os.environ.get("DATABASE_URL", ""))
        print(json.dumps({size: ways.measure(size, ROUNDS) for size in sizes}))


if __name__ == "__main__":
    main(sys.argv[1:])
