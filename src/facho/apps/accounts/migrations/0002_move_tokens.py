"""Moves the tokens of rest_framework.authtoken to `api_tokens`. Their keys stay valid; only their hashes are stored."""

import hashlib

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.recorder import MigrationRecorder

OLD_TABLE = "authtoken_token"
VISIBLE_LENGTH = 6


def move(apps, schema_editor):
    connection = schema_editor.connection
    if OLD_TABLE in connection.introspection.table_names():
        old = apps.get_model("accounts", "OldToken")
        new = apps.get_model("accounts", "ApiToken")
        new.objects.bulk_create(
            new(
                user_id=token.user_id,
                name="Migrated token",
                key_hash=hashlib.sha256(token.key.encode()).hexdigest(),
                prefix=token.key[:VISIBLE_LENGTH],
                origin="migrated",
                created_at=token.created,
            )
            for token in old.objects.all()
        )
        schema_editor.delete_model(old)
    # Permissions on the old table go with its content types.
    apps.get_model("contenttypes", "ContentType").objects.filter(app_label="authtoken").delete()
    MigrationRecorder(connection).migration_qs.filter(app="authtoken").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_api_tokens"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        # The old table, for the ORM of this migration only.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="OldToken",
                    fields=[
                        ("key", models.CharField(max_length=40, primary_key=True, serialize=False)),
                        ("created", models.DateTimeField()),
                        (
                            "user",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={"db_table": OLD_TABLE},
                ),
            ],
        ),
        migrations.RunPython(move, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel(name="OldToken")]),
    ]
