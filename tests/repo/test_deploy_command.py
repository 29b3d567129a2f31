"""`deploy/systemd/facho`, by which root uses Facho with the settings of the units, is run here as a shell runs it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy" / "systemd" / "facho"
PAGES = [ROOT / "docs" / f"{page}{end}.md" for page in ("scale-out", "operations") for end in ("", ".es")]

# What a script may use of the machine, without being root on it: each says what it was asked for.
PROGRAMS = {
    "id": "echo ${FAKE_UID:-0}",
    "install": 'echo "install $*"',
    "runuser": 'echo "runuser $*"; umask; exec env',
}

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell here")


@pytest.fixture
def facho(tmp_path):
    """Return what runs the script with these lines in its file of settings."""
    for name, does in PROGRAMS.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    settings = tmp_path / "facho.env"
    script = tmp_path / "script"
    script.write_text(SCRIPT.read_text().replace("/etc/facho/facho.env", str(settings)))

    def run(lines, *words, **environment):
        settings.write_text(lines)
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", script, *words], env={"PATH": path, **environment}, capture_output=True, text=True, timeout=20
        )

    return run


def test_it_becomes_the_user_of_the_units_with_their_directory(facho):
    result = facho("", "check")

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:3] == [
        "install -d -o facho -g facho -m 0700 /var/lib/facho",
        "runuser -u facho -- /opt/facho/bin/facho check",
        "0077",
    ]
    assert "FACHO_DATA_DIR=/var/lib/facho" in result.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("FACHO_POLLERS=20", "FACHO_POLLERS=20", id="plain"),
        pytest.param("DATABASE_URL=postgresql://f:a$b@db1/x?a=b&c=d", None, id="characters of a shell"),
        pytest.param("FACHO_METRICS_TOKEN=two words; `id`", None, id="words and commands"),
        pytest.param('FACHO_LANGUAGE="es"', "FACHO_LANGUAGE=es", id="quoted, as systemd allows"),
        pytest.param("FACHO_LANGUAGE='es'", "FACHO_LANGUAGE=es", id="quoted otherwise"),
    ],
)
def test_settings_arrive_as_they_are_written(facho, line, said):
    # The last line of a file may end without a line break.
    result = facho(f"# FACHO_MODE=scale\n\n{line}", "check")

    assert result.returncode == 0, result.stderr
    assert (said or line) in result.stdout.splitlines()
    assert "FACHO_MODE" not in result.stdout


def test_a_password_of_the_caller_goes_along(facho):
    result = facho("FACHO_LANGUAGE=en\n", "migrate-to", "postgresql://facho@db1/facho", PGPASSWORD="no secret")

    assert "PGPASSWORD=no secret" in result.stdout.splitlines()
    assert "-- /opt/facho/bin/facho migrate-to postgresql://facho@db1/facho\n" in result.stdout


def test_who_is_not_root_is_told_so(facho):
    result = facho("", "check", FAKE_UID="1000")

    assert result.returncode == 1
    assert result.stdout == ""
    assert "Use sudo." in result.stderr


def test_it_can_be_run_and_has_the_places_of_the_units():
    text, unit = SCRIPT.read_text(), (SCRIPT.parent / "facho.service").read_text()

    assert os.access(SCRIPT, os.X_OK)
    for place in ("/etc/facho/facho.env", "/var/lib/facho", "/opt/facho/bin/facho"):
        assert place in text
        assert place in unit


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_have_no_other_way_to_these_settings(page):
    text = page.read_text()

    assert "systemd-run" not in text
    assert re.findall(r"deploy/systemd/facho /usr/local/bin/facho|/usr/local/bin/facho", text)
