"""`facho` as a fixture, in an environment that knows of no installation."""

import pytest

from command_stage import Command


@pytest.fixture
def facho(capsys, monkeypatch, tmp_path):
    """Run a command of `facho` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FACHO_DATA_DIR", str(tmp_path / "nothing"))
    return Command(capsys)
