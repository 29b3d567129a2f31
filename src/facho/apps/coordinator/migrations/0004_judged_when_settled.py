"""An hour with pending slots has no verdict: those that got one are judged again by the engine."""

from django.db import migrations, models
from django.db.models import Q


def judge_again(apps, schema_editor):
    rows = apps.get_model("coordinator", "QuotaTracker").objects.filter(quota_pending__gt=0)
    rows.exclude(status__in=["IN_PROGRESS", "INTERRUPTED"]).update(status="IN_PROGRESS")


class Migration(migrations.Migration):
    dependencies = [("coordinator", "0003_forecasts")]

    operations = [
        migrations.RunPython(judge_again, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            model_name="quotatracker",
            constraint=models.CheckConstraint(
                name="quota_judged_when_settled",
                condition=Q(status__in=["IN_PROGRESS", "INTERRUPTED"]) | Q(quota_pending=0),
            ),
        ),
    ]
