"""Leases and running executions are counted by device. Leases of OLTs, which nobody takes any more, are deleted."""

from django.db import migrations, models


def delete_leases_of_olts(apps, schema_editor):
    apps.get_model("polling", "Lease").objects.filter(key__startswith="olt:").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0005_device"),
        ("jobs", "0003_durations_and_retries"),
        ("polling", "0006_database_away"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="device",
            field=models.CharField(max_length=260, null=True, verbose_name="device"),
        ),
        migrations.AlterField(
            model_name="lease",
            name="key",
            field=models.CharField(max_length=270, primary_key=True, serialize=False, verbose_name="what"),
        ),
        migrations.AddConstraint(
            model_name="execution",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "RUNNING")),
                fields=("device",),
                name="one_running_execution_per_device",
            ),
        ),
        migrations.RunPython(delete_leases_of_olts, migrations.RunPython.noop),
    ]
