"""`facho sim` and who asks it, each as a process of its own, as a person starts them."""

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
        while "Ctrl-C ends it" not in self._read():
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
