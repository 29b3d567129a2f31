"""One name for a database that does not answer, and a cause for a broker that does not."""

from django.db import migrations, models


def rename(apps, schema_editor):
    executions = apps.get_model("polling", "Execution").objects
    executions.filter(cause="database_away").update(cause="database_unavailable")
    executions.filter(error_class="DatabaseAway").update(error_class="DatabaseUnavailable")
    attempts = apps.get_model("polling", "ExecutionAttempt").objects
    attempts.filter(error_class="DatabaseAway").update(error_class="DatabaseUnavailable")


class Migration(migrations.Migration):
    dependencies = [("polling", "0007_device")]

    operations = [
        migrations.AlterField(
            model_name="execution",
            name="cause",
            field=models.CharField(
                blank=True,
                choices=[
                    ("olt_busy", "the OLT was busy"),
                    ("no_free_poller", "no poller was free"),
                    ("breaker_open", "the breaker of the OLT was open"),
                    ("scheduler_late", "the scheduler was late"),
                    ("engine_down", "the engine was down"),
                    ("stopped", "the engine was stopped"),
                    ("disabled", "it was disabled"),
                    ("unreachable", "the OLT is unreachable"),
                    ("lease_lost", "the lease of the OLT was lost"),
                    ("database_unavailable", "the database was unavailable"),
                    ("broker_unavailable", "Redis was unavailable"),
                ],
                max_length=20,
                verbose_name="cause",
            ),
        ),
        migrations.RunPython(rename, migrations.RunPython.noop, elidable=True),
    ]
