"""`python3 dev.py scale`: a whole scale-out on this machine, to look at and to hurt.

PostgreSQL and Redis, simulated OLTs, a scheduler and one that stands by, two
workers and the web. Everything listens on loopback only, ends with us, however
we end, and leaves nothing behind.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from facho.runtime.config import ConfigError
from facho.runtime.demo import PASSWORD, USER
from facho.runtime.demo.running import simulated
from facho.runtime.serving import listen
from server_process import Launched, free_port
from servers import LaunchedPostgres, LaunchedRedis, NoServerError

HOST = "127.0.0.1"
WORKERS = 2
# A process that ended is started again after this time, long enough to watch the others continue.
START_AGAIN_AFTER = 20.0
SECONDS_TO_START = 120.0
# A worker finishes its runs, within this time.
SECONDS_TO_STOP = 30.0
LOOK_EVERY = 1.0
# It ends a role when its standard input ends, which only we hold open.
LAST_WILL = 'read -r _; kill -CONT "$0"; kill -KILL "$0"'


class Role:
    """One process of Facho, with a log file of its own."""

    def __init__(self, name: str, arguments: Sequence[str], ready: str, folder: Path, settings: Mapping[str, str]):
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", "facho.runtime.cli", *arguments]
        self._ready = ready
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", "FACHO_WORKER_NAME": name, **settings}
        self.start()

    def start(self) -> None:
        # In a session of its own: a Ctrl-C is for us, and we stop everybody in order.
        self.log.touch(mode=0o600)
        with self.log.open("ab") as output:
            pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            self._process = subprocess.Popen(self._command, env=self._environment, start_new_session=True, **pipes)
        will = ["sh", "-c", LAST_WILL, str(self.pid)]
        self._heir = subprocess.Popen(will, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def how_it_ended(self) -> str:
        status = self._process.wait()
        return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"

    def await_ready(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        while self._ready not in self.log.read_text(errors="replace"):
            if self.has_ended or time.monotonic() > deadline:
                raise ConfigError(f"{self.name} did not start:\n{self.log.read_text(errors='replace').strip()[-2000:]}")
            time.sleep(0.1)

    def ask_to_stop(self) -> None:
        self._process.terminate()

    def bury(self) -> None:
        """Wait for its end, as long as one waits for that, and make sure of it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_STOP)
        self._process.kill()
        self._process.wait()
        # It would kill another process with the same number by then.
        self._heir.kill()
        self._heir.communicate()


class Absences:
    """Processes that are down, and since when. Each is started again after a while."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def note(self, name: str, sentence: str) -> bool:
        """Report once that a process is down; return whether to start it again."""
        if name not in self._since:
            self._since[name] = time.monotonic()
            say(f"{sentence}; it is started again in {START_AGAIN_AFTER:.0f} s.")
        return time.monotonic() - self._since[name] > START_AGAIN_AFTER

    def is_back(self, name: str, sentence: str) -> None:
        if self._since.pop(name, None) is not None:
            say(sentence)


class Stage:
    """Everything that runs."""

    def __init__(self, postgres: LaunchedPostgres, redis: LaunchedRedis, folder: Path) -> None:
        self.servers: tuple[Launched, ...] = (postgres, redis)
        self.roles: list[Role] = []
        self._postgres = postgres
        self._folder = folder
        self._absences = Absences()
        self._active = ""

    def start(self, port: int, pollers: int) -> None:
        """Start all roles at once, and wait until each is ready."""
        folder, own_port = self._folder, lambda: {"FACHO_METRICS_PORT": str(free_port())}
        for number in (1, 2):
            name = f"scheduler-{number}"
            self.roles.append(Role(name, ["scheduler"], "The scheduler is on standby.", folder, own_port()))
        for number in range(1, WORKERS + 1):
            arguments = ["worker", "-c", str(pollers)]
            self.roles.append(Role(f"worker-{number}", arguments, "The worker has", folder, own_port()))
        self.roles.append(Role("web", ["web", f"--port={port}"], "Facho is listening on", folder, {}))
        for role in self.roles:
            role.await_ready()

    def stop(self) -> None:
        """Stop who gives out work before who does it."""
        say("Stopping. Workers finish what they have begun ...")
        for role in self.roles:
            role.ask_to_stop()
        for role in self.roles:
            role.bury()

    def watch(self) -> None:
        """Tell what changes, until a signal ends it."""
        while True:
            for role in self.roles:
                self._look_after(role)
            for server in self.servers:
                self._look_at(server)
            active = self.active()
            if active and active != self._active:
                say(f"{active} is the active scheduler.")
                self._active = active
            time.sleep(LOOK_EVERY)

    def _look_after(self, role: Role) -> None:
        if role.has_ended and self._absences.note(role.name, f"{role.name} ended {role.how_it_ended}"):
            role.bury()
            role.start()
            self._absences.is_back(role.name, f"{role.name} is back, as process {role.pid}.")

    def _look_at(self, server: Launched) -> None:
        try:
            server.ask()
            self._absences.is_back(server.name, f"{server.name} answers again.")
        except OSError:
            if self._absences.note(server.name, f"{server.name} does not answer"):
                server.kill()
                server.start()

    def active(self) -> str:
        """Return the name of the scheduler whose turn it is, by the lease in the database."""
        question = "SELECT holder FROM leases WHERE key = 'scheduler' AND expires_at > now()"
        try:
            with psycopg.connect(self._postgres.url, connect_timeout=2) as connection:
                found = connection.execute(question).fetchone()
        except psycopg.Error:
            return ""
        return str(found[0]).partition("/")[0] if found else ""


def main(words: Sequence[str] | None = None) -> int:
    """Run until a signal ends it. What cannot be had is said in a sentence."""
    arguments = _parser().parse_args(words)
    # A shell that starts it in the background lets it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        _run(arguments)
    except (ConfigError, NoServerError) as error:
        sys.stderr.write(f"scale: {error}\n")
        return 1
    except KeyboardInterrupt:
        say("Everything has stopped.")
    return 0


def _stop(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dev.py scale", description="Run a whole scale-out on simulated OLTs.")
    parser.add_argument("--port", type=int, default=8000, help="port of the pages (default %(default)s)")
    parser.add_argument("--olts", type=int, default=6, help="number of simulated OLTs (default %(default)s)")
    parser.add_argument("--onus", type=int, default=2100, help="minimum total number of ONUs (default %(default)s)")
    parser.add_argument("--data", type=Path, help="keep the logs in a new folder of this one")
    return parser


def _run(arguments: argparse.Namespace) -> None:
    for name in ("port", "olts", "onus"):
        if getattr(arguments, name) < 1:
            raise ConfigError(f"--{name} is {getattr(arguments, name)}. Write 1 or more.")
    # Nothing is started for a port that somebody else has.
    listen(HOST, arguments.port, "--port").close()
    say("Starting PostgreSQL, Redis, simulated OLTs and five processes of Facho ...")
    with ExitStack() as stack:
        folder = stack.enter_context(_folder(arguments.data))
        postgres = stack.enter_context(LaunchedPostgres(durable=True))
        redis = stack.enter_context(LaunchedRedis())
        _tell_settings(postgres, redis, folder)
        fleet = stack.enter_context(simulated(arguments.olts, arguments.onus, datetime.now(UTC)))
        _set_up(fleet)
        stage = Stage(postgres, redis, folder)
        stack.callback(stage.stop)
        stage.start(arguments.port, pollers=max(3, -(-arguments.olts // WORKERS)))
        _welcome(stage, fleet, arguments.port, folder, is_kept=arguments.data is not None)
        stage.watch()


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    """Make a folder for this start alone.

    What an earlier one left to be written belongs to a database that is gone.
    """
    if wanted is not None:
        folder = wanted.absolute() / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}"
        try:
            folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise ConfigError(
                f"The folder {folder} cannot be made ({error.strerror}). Name another with --data."
            ) from error
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="facho-scale-", ignore_cleanup_errors=True) as name:
        will = 'read -r _; sleep 1; rm -rf "$0"'
        with subprocess.Popen(["sh", "-c", will, name], stdin=subprocess.PIPE, start_new_session=True) as heir:
            try:
                yield Path(name)
            finally:
                heir.kill()


def _tell_settings(postgres: LaunchedPostgres, redis: LaunchedRedis, folder: Path) -> None:
    """Let this process and all that it starts know these servers, and nothing of another installation."""
    foreign = ("FACHO_", "DJANGO_", "DATABASE_URL", "PG")
    for name in [name for name in os.environ if name.startswith(foreign)]:
        del os.environ[name]
    os.environ |= {
        "FACHO_MODE": "scale",
        "FACHO_HOST": HOST,
        "FACHO_DATA_DIR": str(folder),
        "FACHO_REDIS_URL": redis.url,
        "DATABASE_URL": postgres.url,
    }


def _set_up(fleet: list[dict[str, Any]]) -> None:
    from facho.runtime.cli import prepare

    prepare()
    from django.db import connections

    from facho.runtime.demo.setting_up import set_up
    from facho.runtime.upgrade import upgrade

    upgrade(verbosity=0)
    set_up(fleet)
    connections.close_all()


def _welcome(stage: Stage, fleet: list[dict[str, Any]], port: int, folder: Path, *, is_kept: bool) -> None:
    first, second, worker, other, _ = (role.pid for role in stage.roles)
    active = stage.active()
    killed = second if active == stage.roles[1].name else first
    site = f"http://{HOST}:{port}"
    lines = [f"    {role.name:<12}process {role.pid:<8}{role.log}" for role in stage.roles]
    lines += [f"    {server.name:<12}{HOST}:{server.port}" for server in stage.servers]
    sys.stdout.write(
        f"\n  Facho polls {len(fleet)} simulated OLTs with {sum(olt['onus'] for olt in fleet)} ONUs, in roles.\n\n"
        f"    Look at     {site}/\n"
        f"    Log in      {USER} / {PASSWORD}\n"
        f"    API         {site}/api/v1/docs/\n\n" + "\n".join(lines) + "\n\n  Try\n\n"
        f"    kill -9 {killed:<8} the active scheduler: the other takes over within ten seconds, and it is said here\n"
        f"    kill -9 {worker:<8} a worker: its pollers leave, and what it ran ends INTERRUPTED within a minute\n"
        f"    kill {other:<11} the other worker: it finishes what it has begun, and goes\n\n"
        f"  Who ends is started again after {START_AGAIN_AFTER:.0f} s. Who was active, and when, is in the log:\n"
        f"  {site}/admin/coordinator/coordinatorlog/\n\n"
        f"  Ctrl-C stops everything. The next start begins anew{'; the logs stay' if is_kept else ''}.\n\n"
    )
    sys.stdout.flush()


def say(sentence: str) -> None:
    sys.stdout.write(f"  {sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
