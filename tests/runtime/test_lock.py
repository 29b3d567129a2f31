"""One engine a database: the second is refused with the process of the first, and no death leaves the lock behind."""

import os
import signal
import subprocess
import sys

import pytest

from facho.runtime import config
from facho.runtime.config import ConfigError
from facho.runtime.lock import EngineLock

HOLD = (
    "import os, sys; from facho.runtime import config; from facho.runtime.lock import EngineLock\n"
    "with EngineLock(config.load(os.environ)):\n"
    "    print('held', flush=True); sys.stdin.read()"
)


def configured(folder, url=""):
    return config.load({"FACHO_DATA_DIR": str(folder), "DATABASE_URL": url})


@pytest.fixture
def other_process(tmp_path):
    """A process that holds the lock of the database in `tmp_path`."""
    environment = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"} | {"FACHO_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_engine_is_refused_with_the_process_of_the_first(tmp_path, other_process):
    with pytest.raises(ConfigError) as refusal, EngineLock(configured(tmp_path)):
        pytest.fail("two hold it")

    assert f"(process {other_process.pid})" in str(refusal.value)
    assert "FACHO_DATA_DIR" in str(refusal.value)


def test_an_engine_that_was_killed_leaves_no_lock_behind(tmp_path, other_process):
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()

    with EngineLock(configured(tmp_path)):
        assert (tmp_path / "facho.sqlite3.lock").read_text() == f"{os.getpid()}\n"


def test_an_engine_that_ended_gives_the_lock_back(tmp_path):
    for _ in range(2):
        with EngineLock(configured(tmp_path)):
            pass


def test_an_engine_that_failed_gives_the_lock_back(tmp_path):
    with pytest.raises(RuntimeError), EngineLock(configured(tmp_path)):
        raise RuntimeError("a defect")

    with EngineLock(configured(tmp_path)):
        pass


def test_another_database_is_another_lock(tmp_path):
    with EngineLock(configured(tmp_path)), EngineLock(configured(tmp_path, f"sqlite:///{tmp_path}/other.sqlite3")):
        pass


def test_another_name_for_the_same_database_is_the_same_lock(tmp_path):
    (tmp_path / "facho.sqlite3").touch()
    (tmp_path / "link.sqlite3").symlink_to(tmp_path / "facho.sqlite3")

    with EngineLock(configured(tmp_path)), pytest.raises(ConfigError, match="Another Facho engine"):
        EngineLock(configured(tmp_path, f"sqlite:///{tmp_path}/link.sqlite3")).__enter__()


def test_a_refused_engine_does_not_spoil_what_the_first_has_written(tmp_path, other_process):
    for _ in range(2):
        with pytest.raises(ConfigError, match=str(other_process.pid)):
            EngineLock(configured(tmp_path)).__enter__()
