"""`facho migrate` on a database of an earlier version, with readings in the old table: as a person types it."""

import os
import signal
import subprocess
import sys

import pytest
from cryptography.fernet import Fernet

from servers import database_of_its_own

# Several processes one after the other, each of which starts Django, on a machine that may be busy.
pytestmark = pytest.mark.timeout(300)

KEY = Fernet.generate_key().decode()
RUN = "from facho.runtime.cli import main; main()"
ROWS = 3 * 2 * 24 * 10

# The migrations of the earlier version, and what it would have written.
OLD = """
from datetime import UTC, datetime, timedelta
from facho.runtime.cli import prepare
prepare()
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
loader = MigrationLoader(connection)
for label in {label for label, _ in loader.graph.leaf_nodes()} - {"telemetry"}:
    call_command("migrate", label, verbosity=0)
call_command("migrate", "telemetry", "0006", verbosity=0)
models = loader.project_state(("telemetry", "0006_repair_replaced_onus")).apps
Olt, Onu, OnuHistory = (models.get_model(name) for name in ("inventory.Olt", "telemetry.Onu", "telemetry.OnuHistory"))
now = datetime(2026, 3, 1, tzinfo=UTC)
for number in range(2):
    olt = Olt.objects.create(name=f"OLT-{number}", host=f"127.0.0.{number + 1}", brand="huawei")
    for index in range(10):
        onu = Onu.objects.create(olt=olt, index=str(index), first_seen_at=now, read_at=now)
        OnuHistory.objects.bulk_create(
            OnuHistory(onu=onu, at=now + timedelta(hours=hour), state="online", rx_dbm=-20.0 - hour / 100)
            for hour in range(72)
        )
"""

# Dies in the middle of the second day, between two statements of a transaction.
KILLED = """
import os, signal
from facho.runtime import cli
genuine = cli.refuse_on_errors
def replace(**options):
    genuine(**options)
    from facho.store.history import HistoryDay, Period
    insert, calls = Period.insert, []
    def insert_or_die(period):
        calls.append(period)
        if len(calls) == 4:
            period._level.closed._default_manager.bulk_create(period._chunks)
            os.kill(os.getpid(), signal.SIGKILL)
        insert(period)
    Period.insert = insert_or_die
cli.refuse_on_errors = replace
cli.main()
"""

COUNT = """
from facho.runtime.cli import prepare
prepare()
from datetime import UTC, datetime
from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu
ever = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
rows = [row for onu in Onu.objects.all() for row in series(onu.pk, ["state", "rx_dbm"], *ever)]
print(len(rows), sum(round(row["rx_dbm"] * 100) for row in rows), {row["state"] for row in rows})
"""


def run(data, *arguments, code=RUN, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FACHO_", "DJANGO_")) and k != "DATABASE_URL"}
    environment = kept | {"FACHO_DATA_DIR": str(data), "FACHO_SECRET_KEYS": KEY} | more
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def database(request):
    """The settings that name an empty database."""
    if request.param == "sqlite":
        yield {}
    else:
        with database_of_its_own(request.getfixturevalue("postgres_url")) as url:
            yield {"DATABASE_URL": url}


def test_a_database_of_an_earlier_version_is_converted_also_after_a_kill(tmp_path, database):
    made = run(tmp_path, code=OLD, **database)
    assert made.returncode == 0, made.stderr

    killed = run(tmp_path, "migrate", code=KILLED, **database)
    check = run(tmp_path, "check", **database)
    refused = run(tmp_path, "createsuperuser", "--username", "noc", "--noinput", **database)
    migrated = run(tmp_path, "migrate", **database)
    again = run(tmp_path, "migrate", **database)

    assert killed.returncode == -signal.SIGKILL
    assert "Converting the history: 2026-03-02" in killed.stdout
    assert "The database is not up to date." in check.stderr
    assert "The database is not up to date." in refused.stderr
    assert migrated.returncode == 0, migrated.stderr
    assert f"The history is converted: {ROWS:,} readings, {2 * ROWS:,} values, none lost" in migrated.stdout
    assert "history" not in again.stdout
    counted = run(tmp_path, code=COUNT, **database)
    total = sum(20 * (-2000 - hour) for hour in range(72))
    assert counted.stdout.strip() == f"{ROWS} {total} {{'online'}}"


@pytest.mark.long
def test_a_database_that_is_not_converted_is_not_moved(tmp_path, postgres_url):
    assert run(tmp_path, code=OLD).returncode == 0
    assert run(tmp_path, "migrate", code=KILLED).returncode == -signal.SIGKILL

    with database_of_its_own(postgres_url) as url:
        moved = run(tmp_path, "migrate-to", url, "--yes")

    assert moved.returncode == 1
    assert "The source is not up to date. Run `facho migrate` on it first." in moved.stderr
