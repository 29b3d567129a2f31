"""`python3 dev.py scale` as a person meets it: a whole scale-out, that leaves nothing behind however it ends."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from installation import Installation

import scale
from server_process import free_port
from servers import NoServerError

# Ten processes are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)

COMMAND = Path(scale.__file__)
SECONDS_TO_END = 60.0


class Staged(Installation):
    """A running `dev.py scale`, spoken to over HTTP and listened to on its terminal."""

    def start(self) -> "Staged":
        command = [sys.executable, COMMAND, f"--port={self.port}", "--olts=2", "--onus=60"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.welcome = self.hear("Ctrl-C stops everything")
        return self

    def hear(self, words: str) -> str:
        """Return all that it says until it says these words."""
        said = ""
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said += line
            if words in line:
                return said
        raise AssertionError(f"it ended without saying {words!r}:\n{said}")

    def hear_who_is_active(self) -> str:
        return self.hear("is the active scheduler").splitlines()[-1].split()[0]

    def turns(self) -> list[str]:
        """Return who became the scheduler, by the log of the coordinator, the last first."""
        rows = self.get("logs/", event="SCHEDULER_TOOK_OVER")["results"]
        return [row["message"].partition("/")[0] for row in rows]

    def pid(self, name: str) -> int:
        found = re.search(rf"{name} +process (\d+)", self.welcome)
        assert found, self.welcome
        return int(found[1])


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Staged]:
    staged = Staged(tmp_path)
    try:
        yield staged.start()
    finally:
        if staged.is_running:
            staged.stop()
        staged.process.stdout.close()


def descendants(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [each for child in children for each in descendants(child)]


def handles_of(pids: list[int]) -> list[int]:
    """Return what tells of the end of processes; one that has just ended by itself is none of them."""
    handles = []
    for pid in pids:
        with suppress(ProcessLookupError):
            handles.append(os.pidfd_open(pid))
    return handles


def all_end(handles: list[int]) -> bool:
    """Return whether all processes have ended, at the latest after a while."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    for _ in range(len(handles)):
        for handle, _event in poll.poll(SECONDS_TO_END * 1000):
            poll.unregister(handle)
            handles.remove(handle)
            os.close(handle)
        if not handles:
            return True
    return False


def workers_of(staged: Staged) -> set[str]:
    return {poller["worker"].partition("/")[0] for poller in staged.get("pollers/")["pollers"]}


def test_it_polls_a_standby_takes_over_and_ctrl_c_leaves_nothing_behind(staged: Staged):
    staged.wait_for(lambda: staged.get("onus/", page_size=1)["count"] >= 50)
    # One worker may have read all of them before the other has reported.
    staged.wait_for(lambda: workers_of(staged) == {"worker-1", "worker-2"})
    logs = re.findall(r"\S+\.log", staged.welcome)
    modes = {Path(log).stat().st_mode & 0o777 for log in logs}
    first = staged.hear_who_is_active()
    # What is told is written every few seconds.
    staged.wait_for(staged.turns)
    os.kill(staged.pid(first), signal.SIGKILL)
    second = staged.hear_who_is_active()
    turns = staged.wait_for(lambda: len(staged.turns()) > 1 and staged.turns())
    handles = handles_of(descendants(staged.process.pid))

    os.kill(staged.process.pid, signal.SIGINT)
    staged.hear("Everything has stopped.")

    assert (len(logs) >= 5, modes) == (True, {0o600})
    assert turns == [second, first]
    assert {first, second} == {"scheduler-1", "scheduler-2"}
    assert all_end(handles)
    assert staged.process.wait(SECONDS_TO_END) == 0


def test_kill_9_takes_everything_along(staged: Staged):
    handles = handles_of(descendants(staged.process.pid))

    staged.kill()

    # Five roles, two servers, simulated OLTs, and those who see to it that all of these end.
    assert len(handles) > 10
    assert all_end(handles)


@pytest.fixture
def _own_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command not take over the signals of the tests."""
    monkeypatch.setattr(scale.signal, "signal", lambda number, handler: None)


@pytest.mark.usefixtures("_own_signals")
def test_a_port_that_is_taken_is_said_before_anything_starts(capsys, monkeypatch):
    monkeypatch.setattr(scale, "LaunchedPostgres", lambda **_: pytest.fail("it started a server"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        status = scale.main([f"--port={port}"])

    assert status == 1
    assert f"Port {port} on 127.0.0.1 cannot be used" in capsys.readouterr().err


@pytest.mark.usefixtures("_own_signals")
def test_a_server_that_cannot_be_had_is_said_in_a_sentence(capsys, monkeypatch):
    def missing(**_: object) -> None:
        raise NoServerError("no PostgreSQL is installed (looked in PATH)")

    monkeypatch.setattr(scale, "LaunchedPostgres", missing)

    status = scale.main([f"--port={free_port()}"])

    assert status == 1
    assert capsys.readouterr().err == "scale: no PostgreSQL is installed (looked in PATH)\n"


@pytest.mark.usefixtures("_own_signals")
@pytest.mark.parametrize("name", ["port", "olts", "onus"])
def test_a_number_that_makes_no_sense_is_said(capsys, name):
    status = scale.main([f"--{name}=0"])

    assert status == 1
    assert capsys.readouterr().err == f"scale: --{name} is 0. Write 1 or more.\n"
