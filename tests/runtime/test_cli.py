"""The `facho` command as a person types it: what it says, its exit status, and never a traceback."""

import fcntl
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

PASSWORD = "hunter2"


def environment(data, **more):
    """Return an environment that knows of no other installation."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FACHO_", "DJANGO_")) and k != "DATABASE_URL"}
    return kept | {"FACHO_DATA_DIR": str(data)} | more


def facho(*arguments, data, code=None, **more):
    command = [sys.executable, *(["-c", code] if code else ["-m", "facho.runtime.cli"]), *arguments]
    return subprocess.run(command, env=environment(data, **more), capture_output=True, text=True, timeout=60)


def refused(*arguments, **more):
    """Run a command that must end with a sentence, and return that."""
    result = facho(*arguments, **more)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("facho: ")
    return result.stderr


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    """An installation as `facho migrate` leaves it."""
    data = tmp_path_factory.mktemp("installation") / "data"
    result = facho("migrate", data=data)
    assert result.returncode == 0, result.stderr
    return data


@pytest.fixture
def installed(migrated, tmp_path):
    """A copy of it, for one test to change."""
    return shutil.copytree(migrated, tmp_path / "data")


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return tmp_path_factory.mktemp("empty")


def test_a_check_makes_no_data_directory(tmp_path):
    said = refused("check", data=tmp_path / "deleted")

    assert "deleted does not exist" in said
    assert "`facho migrate`" in said
    assert list(tmp_path.iterdir()) == []


def test_a_forecast_of_an_installation_needs_nothing_but_the_command(migrated):
    nothing = facho("forecast", "--hours", "1", data=migrated)

    assert nothing.returncode == 2
    assert nothing.stderr.startswith("facho: There is nothing to poll")


def test_a_forecast_of_a_database_that_is_not_there_says_what_to_do(tmp_path):
    result = facho("forecast", "--hours", "1", data=tmp_path / "new")

    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "facho migrate" in result.stderr


def rows(data, query):
    with sqlite3.connect(data / "facho.sqlite3") as database:
        found = database.execute(query).fetchall()
    database.close()
    return found


def test_a_new_installation_from_nothing_to_a_user(installed):
    made = facho(
        "createsuperuser", "--username=noc", "--noinput", data=installed, DJANGO_SUPERUSER_PASSWORD="s3cret-password"
    )
    checked = facho("check", data=installed)

    assert (made.returncode, made.stderr) == (0, "")
    assert rows(installed, "SELECT username, is_superuser FROM auth_user") == [("noc", 1)]
    assert checked.returncode == 0
    assert "No problems found" in checked.stdout
    assert sorted(path.name for path in installed.iterdir()) == ["facho.sqlite3", "secret.keys"]


def test_a_weak_password_is_refused_and_the_rules_are_named(installed):
    said = refused("createsuperuser", "--username=noc", "--noinput", data=installed, DJANGO_SUPERUSER_PASSWORD="12345")

    assert "It must contain at least 10 characters." in said
    assert "12345" not in said
    assert rows(installed, "SELECT username FROM auth_user") == []


def test_locks_are_ended(installed):
    with sqlite3.connect(installed / "facho.sqlite3") as database:
        database.execute(
            "INSERT INTO axes_accessattempt (username, ip_address, user_agent, http_accept, path_info, attempt_time,"
            " get_data, post_data, failures_since_start) VALUES ('noc', '192.0.2.1', '', '', '', datetime(), '', '', 5)"
        )
    database.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        targets = f"file,syslog+tcp://127.0.0.1:{server.getsockname()[1]}"
        unlocked = facho("unlock", "noc", data=installed, FACHO_CHANGES_LOG=targets)
        connection, _address = server.accept()
        with connection:
            sent = connection.makefile().read()
    assert unlocked.stdout == "5 failed logins were forgotten.\n"
    # Also to where changes are sent: the command waits for that.
    written = (installed / "logs" / "changes-cli.log").read_text()
    assert json.loads(written)["action"] == "unlocked"
    assert sent.endswith(written)
    assert facho("unlock", "--all", data=installed).stdout == "There were no failed logins to forget.\n"


def test_a_user_who_is_there_already_is_not_made_twice(installed):
    for expected in (0, 1):
        result = facho(
            "createsuperuser",
            "--username=noc",
            "--noinput",
            data=installed,
            DJANGO_SUPERUSER_PASSWORD="s3cret-words",
        )
        assert result.returncode == expected

    assert "already taken" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["check", "createsuperuser", "rotate-keys"])
def test_a_database_that_was_never_migrated_is_said(tmp_path, command):
    assert "Run `facho migrate`" in refused(command, data=tmp_path)


@pytest.mark.parametrize("command", ["migrate", "check"])
def test_a_database_that_is_unavailable_is_said_without_its_password(empty, command):
    said = refused(command, data=empty, DATABASE_URL=f"postgresql://facho:{PASSWORD}@127.0.0.1:1/facho")

    assert "cannot be reached" in said
    assert "DATABASE_URL" in said
    assert PASSWORD not in said


@pytest.mark.parametrize("command", ["run", "migrate", "check", "createsuperuser", "rotate-keys"])
def test_a_bad_port_is_one_sentence_for_every_command(empty, command):
    said = refused(command, data=empty, FACHO_PORT="web")

    assert said == ("facho: FACHO_PORT is 'web'. Write a whole number from 1 to 65535, or unset it (default: 8000).\n")


@pytest.mark.parametrize("command", ["run", "migrate"])
def test_a_data_directory_that_cannot_be_written_to_is_one_sentence(tmp_path, command):
    (tmp_path / "file").touch()

    said = refused(command, data=tmp_path / "file" / "data")

    assert "cannot be written to" in said
    assert said.count("\n") == 1


def test_a_demonstration_says_it_too(tmp_path):
    (tmp_path / "file").touch()

    assert "cannot be written to" in refused("demo", f"--data={tmp_path / 'file' / 'data'}", data=tmp_path)


def test_a_misspelt_setting_stops_the_start(migrated):
    said = refused("run", data=migrated, FACHO_POLERS="20")

    assert said == "facho: FACHO_POLERS is not a setting of Facho. Did you mean FACHO_POLLERS?\n"


def test_a_port_in_use_is_one_sentence(installed):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        said = refused("run", f"--port={port}", data=installed)

    assert f"Port {port} on 127.0.0.1 cannot be used (Address already in use)" in said
    assert "--port" in said


def test_a_second_engine_on_the_same_database_is_refused_with_the_first_ones_process(installed):
    with (installed / "facho.sqlite3.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()

        said = refused("run", data=installed)

    assert "Another Facho engine (process 4711) is running" in said


def test_keys_are_rotated_end_to_end(installed):
    before = (installed / "secret.keys").read_text()
    make_olt(installed)

    rotated = facho("rotate-keys", data=installed)

    new, old = (installed / "secret.keys").read_text().split()
    assert rotated.stdout.startswith("The secrets of 1 OLTs, channels and users are now encrypted")
    assert f"{old}\n" == before
    assert decrypts(installed, new)
    assert not decrypts(installed, old)
    assert facho("check", data=installed).returncode == 0


def test_secrets_of_another_key_are_said_and_nothing_is_rotated(installed):
    make_olt(installed)
    (installed / "secret.keys").write_text(f"{Fernet.generate_key().decode()}\n")
    before = (installed / "secret.keys").read_text(), rows(installed, "SELECT community FROM olts")

    said = refused("rotate-keys", data=installed)

    assert "OLT-CENTRAL-01" in said
    assert "cannot be decrypted with the current keys" in said
    assert ((installed / "secret.keys").read_text(), rows(installed, "SELECT community FROM olts")) == before


def make_olt(data):
    code = (
        "import django, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'facho.runtime.settings'; django.setup()\n"
        "from facho.apps.inventory.models import Olt\n"
        "Olt.objects.create(name='OLT-CENTRAL-01', brand='huawei', host='127.0.0.1', community='public')"
    )
    assert facho(data=data, code=code).returncode == 0


def decrypts(data, key):
    ((token,),) = rows(data, "SELECT community FROM olts")
    try:
        return Fernet(key).decrypt(token) == b"public"
    except Exception:
        return False


def test_postgresql_without_its_driver_is_one_sentence(empty):
    code = (
        "import sys; sys.modules['psycopg'] = sys.modules['psycopg2'] = None\n"
        "from facho.runtime.cli import main; main(['check'])"
    )

    said = refused(data=empty, code=code, DATABASE_URL=f"postgresql://facho:{PASSWORD}@127.0.0.1:1/facho")

    assert "facho[postgres]" in said


def test_help_and_version_need_no_installation(tmp_path):
    version = facho("--version", data=tmp_path / "nothing")

    assert version.stdout.startswith("facho 0.")
    assert facho("--help", data=tmp_path / "nothing").returncode == 0
    assert not (tmp_path / "nothing").exists()


def test_a_process_without_keys_has_one_that_nobody_else_knows(empty):
    code = "from facho.runtime import settings; print(settings.FACHO_SECRET_KEYS, settings.SECRET_KEY)"

    first, second = (facho(data=empty / "unprepared", code=code).stdout for _ in range(2))

    assert first
    assert first != second


def queries(page):
    """Return the queries that a page has for `facho shell`."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text()
    return re.findall(r"^    ((?:\w+)\.objects\..*)$", text, re.MULTILINE)


def test_the_shell_has_all_that_the_queries_of_the_pages_need(migrated):
    english, spanish = queries("operations.md"), queries("operations.es.md")
    assert english == spanish
    assert len(english) == 6

    code = "\n".join(f"print(len({query}))" for query in english)
    result = facho("shell", "-c", code, data=migrated)

    assert (result.returncode, result.stdout.split()) == (0, ["0"] * 6), result.stderr


def test_the_shell_prints_what_it_has_imported(migrated):
    result = subprocess.run(
        [sys.executable, "-m", "facho.runtime.cli", "shell"],
        env=environment(migrated),
        input="print(Status.RUNNING)",
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert result.returncode == 0, result.stderr
    assert "objects imported automatically" in result.stdout
    assert "from facho.apps.coordinator.models import" in result.stdout
    assert "from facho.engine.model import Cause, JobKind, Status, Trigger" in result.stdout
    assert result.stdout.rstrip().endswith("RUNNING")
