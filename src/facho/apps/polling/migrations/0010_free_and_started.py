"""When a poller started, and how many were free. Rows of before have what follows from the rest, or null."""

from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Greatest


def fill(apps, schema_editor):
    free = Greatest(F("total_pollers"), F("busy_pollers")) - F("busy_pollers")
    apps.get_model("polling", "PollerStats").objects.update(free_pollers=free)


class Migration(migrations.Migration):
    dependencies = [("polling", "0009_clock_set")]

    operations = [
        migrations.AddField(
            model_name="poller", name="created_at", field=models.DateTimeField(null=True, verbose_name="started")
        ),
        migrations.AddField(
            model_name="pollerstats",
            name="free_pollers",
            field=models.PositiveIntegerField(default=0, verbose_name="free"),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
