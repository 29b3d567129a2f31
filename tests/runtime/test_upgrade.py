"""`facho migrate` on a database of an earlier version: as a person types it."""

import os
import subprocess
import sys

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from facho.runtime.upgrade import without_idle_limit
from servers import database_of_its_own

# Several processes one after the other, each of which starts Django, on a machine that may be busy.
pytestmark = pytest.mark.timeout(300)

KEY = Fernet.generate_key().decode()
RUN = "from facho.runtime.cli import main; main()"
TOO_OLD = "This version of Facho can only upgrade a database of version 0.5 or later."

# The table of readings is what tells such a database.
BEFORE_0_5 = """
from facho.runtime.cli import prepare
prepare()
from django.core.management import call_command
from django.db import connection
call_command("migrate", "telemetry", "0001", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE onu_history (id integer PRIMARY KEY)")
    cursor.execute("DELETE FROM django_migrations WHERE name IN ('0001_version_0_5', '0008_history_chunks')")
"""


def run(data, *arguments, code=RUN, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FACHO_", "DJANGO_")) and k != "DATABASE_URL"}
    environment = kept | {"FACHO_DATA_DIR": str(data), "FACHO_SECRET_KEYS": KEY} | more
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )


def test_a_database_before_0_5_is_refused_by_every_command(tmp_path, postgres_url):
    assert run(tmp_path, code=BEFORE_0_5).returncode == 0

    with database_of_its_own(postgres_url) as url:
        moved = run(tmp_path, "migrate-to", url, "--yes")
    for refused in (moved, run(tmp_path, "migrate"), run(tmp_path, "check"), run(tmp_path, "run")):
        assert refused.returncode == 1
        assert TOO_OLD in refused.stderr
        assert "Install Facho 0.5.0" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.django_db(transaction=True)
def test_a_database_of_0_5_knows_its_tables_by_the_migrations_of_that_version():
    executor = MigrationExecutor(connection)
    squashed = {key: each.replaces for key, each in executor.loader.disk_migrations.items() if each.replaces}
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(name="0001_version_0_5").delete()
    assert all(
        recorder.migration_qs.filter(app=app, name=name).exists() for each in squashed.values() for app, name in each
    )

    with without_idle_limit():
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        executor.check_replacements()

    assert plan == []
    assert len(squashed) == 6
    assert all(key in MigrationExecutor(connection).loader.applied_migrations for key in squashed)
    assert recorder.migration_qs.filter(name="0001_version_0_5").count() == 6
