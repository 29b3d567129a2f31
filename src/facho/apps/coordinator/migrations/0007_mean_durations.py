"""The mean time of the runs of an hour as a column, also of hours that are over; quotas by OLT and hour."""

from django.db import migrations, models
from django.db.models import F


def fill(apps, schema_editor):
    runs = F("quota_completed") + F("quota_failed")
    rows = apps.get_model("coordinator", "QuotaTracker").objects.annotate(runs=runs).filter(runs__gt=0)
    # Whole numbers are divided without a rest; this rounds.
    rows.update(avg_duration_ms=(F("total_duration_ms") * 2 + runs) / (runs * 2))


class Migration(migrations.Migration):
    dependencies = [("coordinator", "0006_database_unavailable")]

    operations = [
        migrations.AddField(
            model_name="quotatracker",
            name="avg_duration_ms",
            field=models.PositiveBigIntegerField(null=True, verbose_name='mean duration of a run (ms)'),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name="quotatracker", index=models.Index(fields=["olt", "period_start"], name="quota_by_olt")
        ),
    ]
