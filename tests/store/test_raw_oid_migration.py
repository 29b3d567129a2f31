"""A database of an earlier version gets units of raw OIDs, room for their names, and marks of OLTs, without a loss."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJobOid
from facho.apps.telemetry.models import HistoryChunk
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

APPS = ("inventory", "jobs", "telemetry")
BEFORE = [("inventory", "0013_site_coordinates"), ("jobs", "0009_plain_names"), ("telemetry", "0016_onu_positions")]


def migrate(target):
    with without_idle_limit():
        MigrationExecutor(connection).migrate(target)


@pytest.fixture
def old():
    executor = MigrationExecutor(connection)
    latest = [node for app in APPS for node in executor.loader.graph.leaf_nodes(app)]
    migrate(BEFORE)
    yield executor.loader.project_state(BEFORE).apps, latest
    migrate(latest)


def test_what_was_stored_stays(old):
    earlier, latest = old
    olt = earlier.get_model("inventory", "Olt").objects.create(name="OLT-SUR-03", brand="huawei", host="127.0.0.1")
    job = earlier.get_model("jobs", "SnmpJob").objects.create(name="Own", brand="huawei", kind="get", priority=40)
    earlier.get_model("jobs", "SnmpJobOid").objects.create(job=job, name="bias", oid="1.3.6.1", decode="integer")
    now = timezone.now()
    columns = {"olt_id": olt.pk, "start": now, "last_at": now, "first_onu": 1, "last_onu": 2, "data": b"packed"}
    earlier.get_model("telemetry", "HistoryChunk").objects.create(field="rx_dbm", **columns)

    migrate(latest)

    assert Olt.objects.get().deleting_since is None
    assert SnmpJobOid.objects.get().unit == ""
    assert bytes(HistoryChunk.objects.get().data) == b"packed"
    HistoryChunk.objects.create(field="oid." + 60 * "x" + ":count", **columns)
