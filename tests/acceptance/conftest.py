"""Whole installations, started once a module: they cost seconds."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installation import Installation
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps a loop in this thread, and Django would refuse to read rows beside it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A demonstration as the README starts it, on a port of its own."""
    data = tmp_path_factory.mktemp("demo")
    installation = Installation(data, "demo", f"--data={data}").start()
    yield installation
    assert installation.stop() == 0


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


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path / "pdus.jsonl")
    yield fleet
    fleet.close()


@pytest.fixture
def facho(tmp_path: Path) -> Iterator[Installation]:
    """An empty installation with a user."""
    installation = Installation(tmp_path / "data", "run")
    installation.manage("migrate")
    installation.manage("createsuperuser", "--username=demo", "--noinput")
    installation.start()
    yield installation
    if installation.process is not None and installation.process.poll() is None:
        installation.stop()
