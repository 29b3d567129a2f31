"""Quotas, violations, plans and the log name a database that does not answer as executions do."""

from django.db import migrations
from django.db.models import TextField
from django.db.models.functions import Cast

OLD, NEW = "database_away", "database_unavailable"


def rename(apps, schema_editor):
    _rename_keys(apps.get_model("coordinator", "QuotaTracker"), "causes")
    _rename_keys(apps.get_model("coordinator", "QuotaViolation"), "report")
    logs = apps.get_model("coordinator", "CoordinatorLog")
    for log in logs.objects.filter(details__cause=OLD).iterator():
        log.details["cause"] = NEW
        log.save(update_fields=["details"])
    plans = apps.get_model("coordinator", "ExecutionPlan")
    text = Cast("plan_data", TextField())
    for plan in plans.objects.annotate(text=text).filter(text__contains=OLD).only("plan_data").iterator(100):
        for entry in plan.plan_data:
            for link in (entry, *entry.get("chain", ())):
                if link.get("cause") == OLD:
                    link["cause"] = NEW
        plan.save(update_fields=["plan_data"])


def _rename_keys(model, column):
    """Rename the cause in the numbers by cause of a row: the column itself, or the part of a report."""
    path = "causes" if column == "causes" else "report__causes"
    for row in model.objects.filter(**{f"{path}__has_key": OLD}).iterator():
        causes = getattr(row, column) if column == "causes" else row.report["causes"]
        causes[NEW] = causes.get(NEW, 0) + causes.pop(OLD)
        row.save(update_fields=[column])


class Migration(migrations.Migration):
    dependencies = [("coordinator", "0005_replanning")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop, elidable=True)]
