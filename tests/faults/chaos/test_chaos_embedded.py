"""One process on SQLite: killed at any moment, with its disk full or its database locked, it loses no slot."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from chaos_story import JOBS
from chaos_verdict import from_sqlite, left_open, summary, wrongs

from server_process import free_port
from stack import Fleet, environment, set_up, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

SEED = int(os.environ.get("CHAOS_SEED", "1"))
KILLS = int(os.environ.get("CHAOS_KILLS", "20"))
NURSERY = Path(__file__).with_name("embedded_nursery.py")
# The longest life, in seconds: runs take a part of one, so any step of one may be the last.
LONGEST_LIFE = 1.6
# SQLite waits 20 s for a lock before it gives up.
LOCKED = 24.0
FULL = 8.0


class Engines:
    """Embedded engines, one after the other, on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "data" / "facho.sqlite3"
        self.log = folder / "engine.log"
        settings = {"FACHO_DATA_DIR": str(folder / "data"), "FACHO_PORT": str(free_port()), "FACHO_POLLERS": "6"}
        self.fleet = Fleet(folder, olts=6, onus=150)
        self.fleet.control("OLT-NORTE-02 per_pdu=0.15")
        set_up(self.fleet, JOBS, settings)
        with self.log.open("wb") as output:
            self._nursery = subprocess.Popen(
                [sys.executable, NURSERY],
                env=environment(settings),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self.pid = 0

    def start(self) -> None:
        """Start one, and return at once: it may die before it is ready."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write("one more\n")
        self._nursery.stdin.flush()
        self.pid = int(self._nursery.stdout.readline())

    def end(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)
        wait_for(lambda: not self.is_alive, f"engine {self.pid} is gone")

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def ask(self, question: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.database, timeout=60)) as connection:
            return connection.execute(question, values).fetchall()

    def until_it_works(self) -> None:
        """Wait for a success of a run that is not there yet, on each OLT that answers."""
        last = self.ask("SELECT max(id) FROM snmp_executions")[0][0] or 0
        question = "SELECT count(DISTINCT olt_id) FROM snmp_executions WHERE id > ? AND status = 'SUCCESS'"
        wait_for(lambda: self.ask(question, last)[0][0] == 5, "all OLTs that answer are read again")

    def close(self) -> None:
        self._nursery.terminate()
        self._nursery.communicate()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.fleet.__exit__()


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    with closing(Engines(tmp_path_factory.mktemp("embedded"))) as engines:
        yield engines


@pytest.fixture
def engines(installation):
    """An engine that runs, on data that others have run on before."""
    installation.start()
    installation.until_it_works()
    yield installation
    # Shown if it fails.
    sys.stdout.write(installation.log.read_text()[-5000:])
    if installation.is_alive:
        installation.end(signal.SIGKILL)


def judge(engines):
    """Stop the engine in good order, and judge."""
    engines.end(signal.SIGTERM)
    evidence = from_sqlite(engines.database, engines.fleet.log)
    sys.stdout.write(f"{summary(evidence)}\n")
    assert wrongs(evidence) == []
    assert left_open(evidence) == []
    return evidence


def test_an_engine_that_is_killed_at_any_moment_loses_nothing(engines):
    random = Random(SEED)

    for _ in range(KILLS):
        time.sleep(random.uniform(0, LONGEST_LIFE))
        engines.end(signal.SIGKILL)
        engines.start()

    engines.until_it_works()
    evidence = judge(engines)
    assert [row for row in evidence.executions if row["cause"] == "engine_down"]


def test_a_database_that_is_locked_for_longer_than_anybody_waits_costs_no_slot(engines):
    with closing(sqlite3.connect(engines.database, timeout=60, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(LOCKED)
        other.execute("ROLLBACK")

    engines.until_it_works()
    assert engines.is_alive
    judge(engines)


def test_a_disk_that_takes_no_more_for_a_while_costs_no_slot(engines):
    _, most = resource.prlimit(engines.pid, resource.RLIMIT_FSIZE)
    # No file may grow, none may even be written: what an engine sees of a disk that is full.
    resource.prlimit(engines.pid, resource.RLIMIT_FSIZE, (0, most))
    time.sleep(FULL)
    resource.prlimit(engines.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, most))

    engines.until_it_works()
    assert engines.is_alive
    judge(engines)
