"""Roles of Facho and simulated OLTs as real processes: started, hurt, ended, and asked what they said.

with Fleet(folder, olts=6, onus=120) as fleet, Stack(folder, fleet) as stack:
    stack.scheduler("scheduler-1")
    stack.worker("worker-1", pollers=3)
    wait_for(lambda: stack.database.rows("SELECT ..."), "something ran")
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row

from servers import LaunchedPostgres, LaunchedRedis

SETUP = Path(__file__).with_name("stack_setup.py")
KEYS = "dGVzdHMgb25seTogMzIgYnl0ZXMgb2Ygbm8gc2VjcmU="
# On a machine that does ten other things, in seconds.
SECONDS_TO_START = 90.0
# A worker finishes what it has, and waits a minute for a database that says nothing.
SECONDS_TO_STOP = 150.0
LOOK_EVERY = 0.1
# Processes of tests that are killed end by this: it waits for the end of its standard input, which we hold open.
LAST_WILL = 'read -r _; kill -CONT "$0"; kill -KILL "$0"'


class Stuck(AssertionError):
    """What was waited for did not come; the message says what that was."""


def wait_for(look: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """Look again and again until there is something to see, and return that."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise Stuck(f"{what}: not in {seconds:.0f} s")
        time.sleep(LOOK_EVERY)
    return seen


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what a process is told: nothing of ours but these settings."""
    ours = ("FACHO_", "DJANGO_", "DATABASE_URL", "PG")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return plain | {"PYTHONUNBUFFERED": "1", "FACHO_SECRET_KEYS": KEYS, **settings}


class Role:
    """One `facho` process. It may be killed, paused and started again; what it says goes to one file."""

    def __init__(self, name: str, arguments: list[str], settings: Mapping[str, str], log: Path, ready: str) -> None:
        self.name = name
        self.log = log
        self._arguments = arguments
        self._settings = settings
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None
        self._heir: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start it, and wait until it says that it is ready."""
        begin = self.launch()
        return self.await_ready(begin)

    def launch(self) -> int:
        """Start it, and return where in its log it begins."""
        assert not self.is_alive
        self._dismiss_heir()
        with self.log.open("ab") as output:
            begin = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "facho.runtime.cli", *self._arguments],
                env=environment(self._settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        will = ["sh", "-c", LAST_WILL, str(self.pid)]
        self._heir = subprocess.Popen(will, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return begin

    def await_ready(self, begin: int = 0) -> Self:
        def is_ready() -> bool:
            assert self.is_alive, f"{self.name} did not start:\n{self.said()[-3000:]}"
            return self._ready in self.said(begin)

        wait_for(is_ready, f"{self.name} is ready", SECONDS_TO_START)
        return self

    def said(self, begin: int = 0) -> str:
        with self.log.open("rb") as log:
            log.seek(begin)
            return log.read().decode(errors="replace")

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def ask_to_stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._bury(SECONDS_TO_STOP)

    def stop(self) -> int:
        """End it in good order, and return its exit status."""
        assert self._process is not None
        self.ask_to_stop()
        return self._bury(SECONDS_TO_STOP)

    def _bury(self, seconds: float) -> int:
        assert self._process is not None
        status = self._process.wait(seconds)
        self._dismiss_heir()
        return status

    def _dismiss_heir(self) -> None:
        # It would kill another process with the same number by then.
        if self._heir is not None:
            self._heir.kill()
            self._heir.communicate()
            self._heir = None

    def remove(self) -> None:
        """End it, however it stands."""
        if self.is_alive:
            self.resume()
            self.kill()
        self._dismiss_heir()


class Fleet:
    """Simulated OLTs in a process of their own, that write down each request."""

    def __init__(self, folder: Path, olts: int, onus: int) -> None:
        self.log = folder / "pdus.jsonl"
        command = [sys.executable, "-m", "facho.simulator", f"--olts={olts}", f"--onus={onus}", f"--log={self.log}"]
        # It ends with us, however we end: its standard input is ours.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.olts: list[dict[str, Any]] = json.loads(self._read())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def control(self, line: str) -> dict[str, Any]:
        """Change what is wrong with OLTs: `OLT-NORTE-02 latency=0.2`."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._read())
        assert answer["ok"], answer
        return answer

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Database:
    """Asks PostgreSQL with a connection of its own for each question: the server may have gone meanwhile."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rows(self, question: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self._url, row_factory=dict_row, connect_timeout=5) as connection:
            return connection.execute(question, values or None).fetchall()

    def do(self, statements: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statements)


class Stack:
    """PostgreSQL and Redis of our own, and as many roles on them as are started."""

    def __init__(self, folder: Path, fleet: Fleet, jobs: Mapping[str, Any], **settings: str) -> None:
        self.folder = folder
        self.fleet = fleet
        self.roles: dict[str, Role] = {}
        self._jobs = jobs
        self._settings = settings
        self._servers = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.postgres = stack.enter_context(LaunchedPostgres(durable=True))
            self.redis = stack.enter_context(LaunchedRedis())
            self.database = Database(self.postgres.url)
            stack.callback(self._remove_roles)
            self.set_up()
            self._servers = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def _remove_roles(self) -> None:
        for role in self.roles.values():
            with suppress(subprocess.TimeoutExpired):
                role.remove()

    def settings(self, **other: str) -> dict[str, str]:
        ours = {
            "FACHO_MODE": "scale",
            "DATABASE_URL": self.postgres.url,
            "FACHO_REDIS_URL": self.redis.url,
            "FACHO_DATA_DIR": str(self.folder / "data"),
        }
        return ours | self._settings | other

    def set_up(self) -> None:
        """Make the tables, the OLTs and their jobs."""
        set_up(self.fleet, self._jobs, self.settings())

    def scheduler(self, name: str, **settings: str) -> Role:
        return self._role(name, ["scheduler"], "The scheduler is on standby.", settings)

    def worker(self, name: str, pollers: int, **settings: str) -> Role:
        return self._role(name, ["worker", "-c", str(pollers)], "The worker has", settings)

    def web(self, name: str, port: int, **settings: str) -> Role:
        return self._role(name, ["web", f"--port={port}"], "Facho is listening on", settings)

    def _role(self, name: str, arguments: list[str], ready: str, settings: Mapping[str, str]) -> Role:
        whole = self.settings(FACHO_WORKER_NAME=name, **settings)
        self.roles[name] = role = Role(name, arguments, whole, self.folder / f"{name}.log", ready)
        role.launch()
        return role

    def await_ready(self) -> None:
        for role in self.roles.values():
            role.await_ready()

    def holder(self, key: str) -> str:
        """Return who holds a lease now, as it calls itself, or nothing."""
        found = self.database.rows("SELECT holder FROM leases WHERE key = %s AND expires_at > now()", key)
        return str(found[0]["holder"]) if found else ""

    def logs(self, last: int = 4000) -> str:
        """Return the end of what each role has said, for somebody who wants to know what went wrong."""
        return "\n".join(
            f"----- {role.name}\n{role.said()[-last:]}" for role in self.roles.values() if role.log.exists()
        )


def set_up(fleet: Fleet, jobs: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    """Make the tables, the OLTs and their jobs in the database that these settings name."""
    task = json.dumps({"olts": fleet.olts, "jobs": jobs})
    subprocess.run([sys.executable, SETUP], env=environment(settings), input=task, text=True, check=True)
