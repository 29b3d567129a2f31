"""Simulated OLTs as processes of their own: a fleet, or one as a person starts it, and who asks it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("FACHO_", "DJANGO_"))}


class Sim:
    """A running `facho sim`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        greeting = self._read()
        found = re.search(r"answers on (127\.0\.0\.1):(\d+)", greeting)
        assert found, greeting
        self.host, self.port = found[1], int(found[2])
        while "Ctrl-C stops it" not in self._read():
            pass

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def type(self, line: str) -> str:
        """Type a line, and return what it says to that."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def asked(self) -> int:
        """Return how often it was asked, by its own log."""
        found = re.search(r"pdus: (\d+)", self.type("log"))
        assert found
        return int(found[1])

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def sim(folder: Path, *words: str) -> Iterator[Sim]:
    environment = ENVIRONMENT | {"FACHO_DATA_DIR": str(folder / "nothing"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "facho.runtime.cli", "sim", "--port=0", *words]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        try:
            yield Sim(process)
        finally:
            process.kill()


def collect(folder: Path, *words: str) -> tuple[int, Any]:
    """Return status and JSON of `facho collect`."""
    environment = ENVIRONMENT | {"FACHO_DATA_DIR": str(folder / "nothing")}
    command = [sys.executable, "-m", "facho.runtime.cli", "collect", "--json", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout)


class Fleet:
    """Simulated OLTs in a process of their own, which outlives any Facho that asks them."""

    def __init__(self, log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "facho.simulator", "--olts=3", "--onus=180", f"--log={log}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.olts: list[dict[str, Any]] = json.loads(self._process.stdout.readline())

    def say(self, line: str) -> dict[str, Any]:
        """Do something to an OLT, as `facho.simulator.control` has it, and return what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert answer["ok"], answer
        return answer

    def close(self) -> None:
        self._process.communicate("")
