"""A database of an earlier version: the history of the admin is in the record of changes."""

import json

import pytest
from builders import T0
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from facho.apps.changes.models import Change
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import Workflow
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = json.dumps([{"changed": {"fields": ["Name", "SNMP port"]}}])


def migrate(target):
    with without_idle_limit():
        MigrationExecutor(connection).migrate(target)


@pytest.fixture
def old_database():
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes("changes")
    migrate([("changes", None)])
    yield latest
    migrate(latest)


def add_entry(user, model, flag, message, object_id="7"):
    kind = ContentType.objects.get_for_model(model, for_concrete_model=False)
    LogEntry.objects.create(
        action_time=T0,
        user=user,
        content_type=kind,
        object_id=object_id,
        object_repr="OLT-CENTRAL-01",
        action_flag=flag,
        change_message=message,
    )


def test_the_history_of_the_admin_becomes_changes(old_database):
    boss = User.objects.create(username="boss")
    add_entry(boss, Olt, ADDITION, "Added by the demonstration.")
    add_entry(boss, Workflow, CHANGE, MESSAGE)
    add_entry(boss, User, DELETION, "", object_id="not a number")
    add_entry(boss, User, DELETION, "", object_id="9" * 19)

    migrate(old_database)

    rows = Change.objects.order_by("id").values_list("action", "object_type", "object_id", "olt_id", "note")
    assert list(rows) == [
        ("created", "inventory.olt", 7, 7, "Added by the demonstration."),
        ("changed", "inventory.olt", 7, 7, "Changed Name and SNMP port."),
        ("deleted", "auth.user", None, None, ""),
        ("deleted", "auth.user", None, None, ""),
    ]
    change = Change.objects.last()
    assert (change.at, change.actor, change.user_id, change.interface) == (T0, "boss", boss.pk, "admin")
    assert not LogEntry.objects.exists()
