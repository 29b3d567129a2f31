from typing import Any

from django.db import migrations

import facho.apps.rest.fields
from facho.apps.rest.fields import Secret


def encrypt(apps: Any, schema_editor: Any) -> None:
    channels = apps.get_model("alerts", "Channel").objects.using(schema_editor.connection.alias)
    for channel in channels.only("url"):
        # Still in the clear.
        channels.filter(pk=channel.pk).update(url=Secret.of(channel.url.token))


class Migration(migrations.Migration):
    dependencies = [("alerts", "0003_apprise_url")]

    operations = [
        migrations.AlterField(
            model_name="channel",
            name="url",
            field=facho.apps.rest.fields.SecretField(
                blank=True,
                default="",
                help_text="Messages are sent to this address as JSON, with POST.",
                verbose_name="address",
            ),
        ),
        migrations.RunPython(encrypt, migrations.RunPython.noop),
    ]
