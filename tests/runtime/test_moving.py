"""`facho migrate-to` as a person types it: from SQLite, and from PostgreSQL, into a PostgreSQL that is empty."""

import datetime
import fcntl
import ipaddress
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import moving_stage
import psycopg
import pytest
from cryptography.fernet import Fernet

from servers import database_of_its_own

# Several processes one after the other, each of which starts Django, on a machine that may be busy.
pytestmark = pytest.mark.timeout(300)

STAGE = Path(moving_stage.__file__)
KEY = Fernet.generate_key().decode()
EVERYTHING = "SELECT * FROM "
RUN = "from facho.runtime.cli import main; main()"


# Run as `facho`, with a part of it replaced once Django is there.
REPLACED = """
from facho.runtime import cli
genuine_refusal = cli.refuse_on_errors
def replace(**options):
    genuine_refusal(**options)
    from facho.runtime import migrate_to
    {replacement}
cli.refuse_on_errors = replace
cli.main()
"""
# So that a table has several, and rows refer to others in a later one.
SMALL_BATCHES = REPLACED.format(replacement="migrate_to.BATCH = 2")
# What is done to each row on its way.
ROWS = """
    genuine = migrate_to._rows
    def rows(model):
        names = [field.attname for field in model._meta.concrete_fields if not field.generated]
        for row in genuine(model):
            row = dict(zip(names, row))
            {change}
            yield tuple(row.values())
    migrate_to._rows = rows
"""


def run(data, *arguments, code=RUN, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FACHO_", "DJANGO_")) and k != "DATABASE_URL"}
    environment = kept | {"FACHO_DATA_DIR": str(data), "FACHO_SECRET_KEYS": KEY} | more
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )


def move(data, target, **more):
    return run(data, "migrate-to", target, "--yes", **more)


def refused(result):
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


def fill(data, **more):
    code = f"import runpy; runpy.run_path({str(STAGE)!r}, run_name='__main__')"
    result = run(data, code=code, DJANGO_SETTINGS_MODULE="facho.runtime.settings", **more)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """An installation on SQLite without an empty table."""
    data = tmp_path_factory.mktemp("installation") / "data"
    assert run(data, "migrate").returncode == 0
    fill(data)
    return data


@pytest.fixture
def installed(filled, tmp_path):
    """A copy of it, for one test to change."""
    return shutil.copytree(filled, tmp_path / "data")


@pytest.fixture(scope="module")
def moved(filled, postgres_url):
    """Where it was moved to, what the source was before, and what was said. For tests that only look."""
    with database_of_its_own(postgres_url) as url:
        before = dump(filled)
        yield url, before, move(filled, url, code=SMALL_BATCHES)


@pytest.fixture(scope="module")
def blank(filled, postgres_url):
    """A database as `facho migrate` leaves it, to make others of."""
    with database_of_its_own(postgres_url) as url:
        assert run(filled, "migrate", DATABASE_URL=url).returncode == 0
        yield url


@pytest.fixture
def target(blank):
    with moving_stage.copy_of(blank) as url:
        yield url


@pytest.fixture
def second(moved):
    """An installation on PostgreSQL that a test may change."""
    url, _, _ = moved
    with moving_stage.copy_of(url) as copy:
        yield copy


def dump(data):
    with sqlite3.connect(data / "facho.sqlite3") as source:
        lines = list(source.iterdump())
    source.close()
    return lines


def in_sqlite(data, table):
    with sqlite3.connect(data / "facho.sqlite3") as source:
        found = comparable(source.execute(EVERYTHING + table))
    source.close()
    return found


def in_postgres(url, table):
    with psycopg.connect(url) as target:
        return comparable(target.execute(EVERYTHING + table))


def comparable(cursor):
    """Return rows by column, without order, and in what both databases can say."""
    names = [column[0] for column in cursor.description]
    rows = [{name: plain(value) for name, value in zip(names, row, strict=True)} for row in cursor.fetchall()]
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def plain(value):
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, datetime.time):
        return value.strftime("%H:%M:%S")
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, ipaddress.IPv4Address):
        return str(value)
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return value


def count(url, table):
    with psycopg.connect(url) as target:
        return len(target.execute(EVERYTHING + table).fetchall())


def test_every_row_of_every_table_arrives_as_it_was(filled, moved):
    url, before, result = moved

    assert result.returncode == 0, result.stderr
    assert "DIFFERENT" not in result.stdout
    for table in moving_stage.filled_tables():
        there = in_sqlite(filled, table)
        assert there, f"{table} is empty, and proves nothing"
        assert in_postgres(url, table) == there
    assert dump(filled) == before


def test_new_rows_get_new_ids(second):
    with psycopg.connect(second) as moved:
        (largest,) = moved.execute("SELECT max(id) FROM onu_history_runs").fetchone()
        insert = "INSERT INTO onu_history_runs (olt_id, at, data) SELECT id, now(), '' FROM olts LIMIT 1 RETURNING id"
        (reading,) = moved.execute(insert).fetchone()
        (last_group,) = moved.execute("SELECT max(id) FROM auth_group").fetchone()
        (group,) = moved.execute("INSERT INTO auth_group (name) VALUES ('new') RETURNING id").fetchone()

    assert reading == largest + 1
    assert group == last_group + 1


@pytest.mark.long
def test_from_one_postgresql_to_another(filled, second, target):
    result = move(filled, target, DATABASE_URL=second)

    assert result.returncode == 0, result.stderr
    for table in ("snmp_executions", "olts", "onu_history_chunks"):
        assert in_postgres(target, table) == in_postgres(second, table) != []


def test_a_target_that_has_something_is_refused(filled, second):
    said = refused(move(filled, second))

    assert "The target is not empty" in said
    assert "createdb" in said


@pytest.mark.long
def test_a_target_with_tables_of_others_is_refused(filled, target):
    with psycopg.connect(target) as other:
        other.execute("CREATE TABLE customers (id int)")

    assert "not Facho's, such as customers" in refused(move(filled, target))


def test_nobody_moves_an_installation_whose_engine_runs(installed, target):
    with (installed / "facho.sqlite3.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert "Another Facho engine is running" in refused(move(installed, target))


@pytest.mark.long
def test_nobody_moves_away_from_a_server_on_which_roles_are_at_work(filled, target, second):
    with psycopg.connect(second) as source:
        source.execute("UPDATE leases SET expires_at = now() + interval '1 hour'")

    assert "Facho is running on the source" in refused(move(filled, target, DATABASE_URL=second))


def test_secrets_that_our_keys_do_not_open_stay_where_they_are(filled, target):
    said = refused(move(filled, target, FACHO_SECRET_KEYS=Fernet.generate_key().decode()))

    assert "cannot be decrypted with the current keys" in said
    assert "With other keys the secrets would be lost" in said


@pytest.mark.long
def test_a_source_that_is_behind_is_refused(tmp_path, target):
    (tmp_path / "facho.sqlite3").touch()

    assert "Run `facho migrate` on it first" in refused(move(tmp_path, target))


def test_a_source_that_is_not_there_is_refused_and_not_made(tmp_path, target):
    assert "There is no database in" in refused(move(tmp_path, target))
    assert not (tmp_path / "facho.sqlite3").exists()


def test_the_target_must_be_postgresql(filled, tmp_path):
    assert "The target must be PostgreSQL" in refused(move(filled, f"sqlite:///{tmp_path}/other.sqlite3"))


@pytest.mark.long
def test_a_database_is_not_moved_into_itself(filled, target):
    assert "the same database" in refused(move(filled, target, DATABASE_URL=target))


@pytest.mark.long
def test_without_anybody_to_ask_it_must_be_meant(filled, target):
    said = refused(run(filled, "migrate-to", target))

    assert "--yes" in said
    assert target.split("@")[0] not in said


def test_a_row_that_postgresql_does_not_take_is_named_and_nothing_is_copied(installed, target):
    with sqlite3.connect(installed / "facho.sqlite3") as source:
        (key,) = source.execute("SELECT id FROM onu_data ORDER BY id LIMIT 1 OFFSET 1").fetchone()
        source.execute("UPDATE onu_data SET serial = ? WHERE id = ?", ["x" * 5000, key])
    source.close()

    said = refused(move(installed, target))

    assert f"Row {key} of onu_data" in said
    assert "value too long" in said
    assert "xxxx" not in said
    assert count(target, "olts") == 0


def changed(change):
    return REPLACED.format(replacement=ROWS.format(change=change))


@pytest.mark.long
def test_ctrl_c_in_the_middle_leaves_an_empty_target_that_can_be_used_again(filled, target):
    stopped = move(filled, target, code=changed("if 'rx_dbm' in row: raise KeyboardInterrupt"))

    assert stopped.returncode == 130, stopped.stderr
    assert "the command can be run again" in stopped.stderr
    assert count(target, "olts") == 0
    assert move(filled, target).returncode == 0
    assert count(target, "olts") == moving_stage.ROWS


@pytest.mark.parametrize(
    ("change", "table", "columns"),
    [
        pytest.param(
            "if 'worker' in row and row['poller_id'] == 2: continue", "pollers", "busy_since", id="a row is missing"
        ),
        pytest.param("if 'distance_m' in row: row['rx_dbm'] = 0.0", "onu_data", "rx_dbm", id="a number is another"),
        pytest.param("if 'distance_m' in row: row['name'] = ''", "onu_data", "name", id="a text is another"),
    ],
)
def test_what_does_not_arrive_as_it_was_is_found_and_not_kept(filled, target, change, table, columns):
    result = move(filled, target, code=changed(change))

    assert "The copy differs from the source" in refused(result)
    (line,) = [line for line in result.stdout.splitlines() if "DIFFERENT" in line]
    assert line.startswith(table)
    assert columns in line
    assert count(target, "olts") == 0
