"""Creates the groups of the five roles. Their permissions are set after each `migrate`: see `accounts/roles.py`."""

from itertools import count

from django.db import migrations

ROLES = ["Viewer", "Support", "Operator", "Engineer", "Admin"]

# Models that every logged-in user could read until now.
READ = [
    ("inventory", ["olt"]),
    ("telemetry", ["onu", "onuevent"]),
    ("jobs", ["snmpjob", "snmpjoboid", "workflow", "workflownode"]),
    ("polling", ["execution", "executionattempt", "poller", "pollerstats"]),
    ("coordinator", ["quotatracker", "quotaviolation", "executionplan", "forecast", "coordinatorlog"]),
    ("alerts", ["alert", "rule", "channel", "delivery"]),
]


def create(apps, schema_editor):
    database = schema_editor.connection.alias
    groups = apps.get_model("auth", "Group").objects.using(database)
    for group in groups.filter(name__in=ROLES):
        # A group that an admin made: it keeps its members and permissions.
        group.name = next(name for name in _free_names(group.name) if not groups.filter(name=name).exists())
        group.save(update_fields=["name"])
    viewer, *_others = [groups.create(name=name) for name in ROLES]
    users = apps.get_model("auth", "User").objects.using(database)
    viewer.user_set.add(*users.filter(is_active=True, is_superuser=False))
    # A token that is limited to a group could read, too.
    permissions = apps.get_model("auth", "Permission").objects.using(database)
    for app, models in READ:
        readable = permissions.filter(content_type__app_label=app, codename__in=[f"view_{model}" for model in models])
        for group in groups.filter(api_tokens__isnull=False).distinct():
            group.permissions.add(*readable)


def _free_names(name):
    yield f"{name} (earlier)"
    yield from (f"{name} (earlier {number})" for number in count(2))


def delete(apps, schema_editor):
    apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias).filter(name__in=ROLES).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_move_tokens"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [migrations.RunPython(create, delete)]
