from django.db import migrations, models

import facho.apps.rest.fields


class Migration(migrations.Migration):
    dependencies = [
        ("alerts", "0001_version_0_5"),
    ]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="apprise_url",
            # A default of the database, for processes of the earlier version.
            field=facho.apps.rest.fields.SecretField(
                blank=True, db_default="", default="", verbose_name="Apprise URL"
            ),
        ),
        migrations.AlterField(
            model_name="channel",
            name="kind",
            field=models.CharField(
                choices=[
                    ("webhook", "webhook"),
                    ("email", "e-mail"),
                    ("telegram", "Telegram"),
                    ("slack", "Slack or compatible"),
                    ("apprise", "Apprise URL"),
                ],
                max_length=10,
                verbose_name="type",
            ),
        ),
    ]
