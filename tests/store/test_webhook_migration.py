"""A database of an earlier version: addresses of webhooks were stored in the clear."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from facho.alerts.models import Channel
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("alerts", "0003_apprise_url")]
URL = "https://hooks.example.net/" + "s3cret" * 70


def migrate(target):
    with without_idle_limit():
        MigrationExecutor(connection).migrate(target)


@pytest.fixture
def old_channel():
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes("alerts")
    migrate(BEFORE)
    return executor.loader.project_state(BEFORE).apps.get_model("alerts", "Channel"), latest


def test_the_address_of_a_webhook_is_encrypted_by_the_upgrade(old_channel):
    old, latest = old_channel
    old.objects.create(name="NOC", kind="webhook", url=URL)
    old.objects.create(name="mail", kind="email", smtp_port=25)

    migrate(latest)

    with connection.cursor() as cursor:
        cursor.execute("SELECT url FROM alert_channels ORDER BY name")
        stored = [row[0] for row in cursor.fetchall()]
    assert ["s3cret" in url for url in stored] == [False, False]
    assert {row.name: row.url.reveal() for row in Channel.objects.all()} == {"NOC": URL, "mail": ""}
