"""Files of Facho are for the user that runs it, also those of earlier versions."""

import os
import stat

import pytest
from test_cli import facho

from facho.runtime import config, files

FILES = ["secret.keys", "facho.sqlite3", "facho.sqlite3-wal", "worker-1.lock", "logs/facho.log.1", "spool/1.sqlite3"]


def modes(folder):
    paths = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder.parent)): stat.S_IMODE(path.lstat().st_mode) for path in paths}


@pytest.fixture
def old(tmp_path):
    """Files as earlier versions made them, and two that are not of Facho."""
    data = tmp_path / "data"
    for name in [*FILES, "notes.txt"]:
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        path.chmod(0o644)
    for folder in (data, data / "logs", data / "spool"):
        folder.chmod(0o755)
    (data / "logs" / "elsewhere").symlink_to(data / "notes.txt")
    return config.load({"FACHO_DATA_DIR": str(data), "FACHO_SECRET_KEYS": os.environ["FACHO_SECRET_KEYS"]})


def test_looser_modes_are_found_and_closed(old):
    names = {"", "logs", "spool", *FILES}

    found = {str(path.relative_to(old.data_dir)).removeprefix(".") for path in files.loose_paths(old)}
    files.tighten(old)

    assert found == names
    assert files.loose_paths(old) == []
    assert modes(old.data_dir)["data"] == 0o700
    assert modes(old.data_dir)["data/facho.sqlite3"] == 0o600
    assert modes(old.data_dir)["data/notes.txt"] == 0o644


def test_a_directory_of_all_users_stays_open(tmp_path):
    tmp_path.chmod(0o1777)
    loaded = config.load({"FACHO_DATA_DIR": str(tmp_path)})

    files.tighten(loaded)

    assert files.loose_paths(loaded) == [tmp_path]
    tmp_path.chmod(0o700)


def test_a_check_reports_them_and_a_start_closes_them(tmp_path):
    data = tmp_path / "data"
    made = facho("migrate", data=data)
    new = modes(data)
    data.chmod(0o750)
    (data / "facho.sqlite3").chmod(0o640)

    check = facho("check", data=data)
    after_check = modes(data)
    facho("shell", "-c", "pass", data=data)

    assert made.returncode == 0
    assert {mode for name, mode in new.items() if name != "data"} == {0o600}
    assert (check.returncode, new["data"]) == (1, 0o700)
    assert f"can read or change {data}. Run: chmod 700 {data}" in check.stderr
    assert f"chmod 600 {data / 'facho.sqlite3'}" in check.stderr
    assert (after_check["data"], after_check["data/facho.sqlite3"]) == (0o750, 0o640)
    assert modes(data) == new
