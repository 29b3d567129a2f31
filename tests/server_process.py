"""The life of a server of our own: one process, in one folder, on one port of loopback."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

SECONDS_TO_START = 30.0
SECONDS_TO_STOP = 10.0
# Below the ports that the system gives to clients. A client that tries repeatedly to connect to a server that is down
# would otherwise be given its port one day, and be connected to itself.
PORTS = range(16000, 32000)
# Tests that are killed cannot stop their servers. This waits for the end of its standard input, which only the tests
# hold open, and then does it for them.
LAST_WILL = 'read -r _; kill -CONT "$0"; kill -KILL "$0"; rm -rf "$1"'


class NoServerError(Exception):
    """There is none, and the message says why."""


class Launched(ABC):
    """Started when it is made. It may be stopped, killed or paused, and is back on the same port after `start`."""

    name: str
    # How it is asked to end at once, but in good order.
    stop_signal: signal.Signals

    def __init__(self, parent: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"facho-{self.name.lower()}-", dir=parent))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._heir: subprocess.Popen[bytes] | None = None
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @abstractmethod
    def prepare(self) -> None:
        """Make ready what the server needs, once; `NoServerError` if it cannot be had."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def ask(self) -> None:
        """Ask the server for anything; `OSError` if it does not answer."""

    def settings(self) -> str:
        """Return what the server is told on its standard input."""
        return ""

    def account(self) -> dict[str, Any]:
        """Return the arguments that start a process as the server's user."""
        return {}

    def start(self) -> None:
        """Start it, and wait until it answers."""
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            process = self._process = self._launch()
            self._heir = _make_heir(process.pid, self.folder)
            if self._answers(process, deadline):
                return
            gave_up = process.poll() is None or time.monotonic() > deadline
            self.kill()
            log = (self.folder / "log").read_text(errors="replace")
            # What a killed one left behind may need a moment to go.
            if gave_up or "still in use" not in log:
                raise NoServerError(f"{self.name} did not start: {log.strip()[-1000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it in good order."""
        if self._process is None:
            return
        self._process.send_signal(self.stop_signal)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_STOP)
        self.kill()

    def kill(self) -> None:
        """End it as a power cut does, with all that it started."""
        if self._process is None:
            return
        assert self._heir is not None
        self._heir.kill()
        self._heir.communicate()
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Let it hang: connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """End it and leave nothing behind."""
        if self._process is not None:
            self.resume()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, f"{self.name} does not run"
        children = _children(self._process.pid)
        self._process.send_signal(number)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, number)

    def _launch(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("wb") as output:
            process = subprocess.Popen(
                self.command(),
                **self.account(),
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                # A Ctrl-C is for the tests; they stop the server when they are done.
                start_new_session=True,
            )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as settings:
            settings.write(self.settings().encode())
        return process

    def _answers(self, process: "subprocess.Popen[bytes]", deadline: float) -> bool:
        """Wait until the server answers; False if it ends, or takes too long."""
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError):
                self.ask()
                return True
            time.sleep(0.02)
        return False


def _make_heir(pid: int, folder: Path) -> "subprocess.Popen[bytes]":
    """Return a process that ends the server when ours is gone."""
    command = ["sh", "-c", LAST_WILL, str(pid), str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)


def environment() -> dict[str, str]:
    """Return what a server needs to know of ours. Settings for clients of another server are not for it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise NoServerError(f"a hundred ports between {PORTS.start} and {PORTS.stop} are all in use")


def _children(pid: int) -> list[int]:
    """Return whom a process started, where the system tells it. Those of PostgreSQL live on for a while without it."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
