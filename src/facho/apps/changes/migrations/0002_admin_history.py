"""Converts the history of the admin into the record of changes."""

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.db import migrations
from django.utils import translation

ACTIONS = {ADDITION: "created", CHANGE: "changed", DELETION: "deleted"}

# A workflow is an OLT with its nodes.
TYPES = {"jobs.workflow": "inventory.olt"}

BATCH = 1000

# Digits of an id that a column of the database takes. The history has ids as texts.
MOST_DIGITS = 18


def convert(apps, schema_editor):
    entries = apps.get_model("admin", "LogEntry").objects.using(schema_editor.connection.alias)
    changes = apps.get_model("changes", "Change")
    rows = entries.order_by("pk").values_list(
        "action_time", "user__username", "user_id", "content_type__app_label", "content_type__model", "object_id",
        "object_repr", "action_flag", "change_message",
    )
    batch = []
    for at, actor, user_id, app, model, object_id, name, flag, message in rows.iterator(chunk_size=BATCH):
        label = f"{app}.{model}" if app else ""
        object_type = TYPES.get(label, label)
        number = int(object_id) if (object_id or "").isdecimal() and len(object_id) <= MOST_DIGITS else None
        batch.append(
            changes(
                at=at,
                actor=actor,
                user_id=user_id,
                interface="admin",
                action=ACTIONS.get(flag, "changed"),
                object_type=object_type,
                object_id=number,
                object_name=name[:200],
                note=sentence(message),
                olt_id=number if object_type == "inventory.olt" else None,
            )
        )
        if len(batch) == BATCH:
            changes.objects.using(schema_editor.connection.alias).bulk_create(batch)
            batch = []
    changes.objects.using(schema_editor.connection.alias).bulk_create(batch)
    entries.all().delete()


def sentence(message):
    """Return a stored message as the admin showed it, such as "Changed Name and Port."."""
    with translation.override("en"):
        return str(LogEntry(change_message=message).get_change_message())


class Migration(migrations.Migration):
    dependencies = [
        ("changes", "0001_changes"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(convert, migrations.RunPython.noop)]
