"""One text for the device of each OLT. Host names get theirs from the engine: a migration does not wait for DNS."""

from django.db import migrations, models

from facho.engine.device import device_at, host_name, ip_address


def fill_devices(apps, schema_editor):
    model = apps.get_model("inventory", "Olt")
    rows = list(model.objects.only("host", "port"))
    for row in rows:
        row.device = device_at(ip_address(row.host) or host_name(row.host), row.port)
    model.objects.bulk_update(rows, ["device"], batch_size=250)


class Migration(migrations.Migration):
    dependencies = [
        ("inventory", "0004_silent_attempts"),
    ]

    operations = [
        migrations.AddField(
            model_name="olt",
            name="addresses",
            field=models.TextField(
                db_default="", default="", editable=False, verbose_name="addresses of the host name"
            ),
        ),
        migrations.AddField(
            model_name="olt",
            name="device",
            field=models.CharField(
                db_default="", db_index=True, default="", editable=False, max_length=260, verbose_name="device"
            ),
        ),
        migrations.AddField(
            model_name="olt",
            name="resolved_name",
            field=models.CharField(db_default="", default="", editable=False, max_length=253),
        ),
        migrations.AddIndex(
            model_name="olt",
            index=models.Index(
                condition=models.Q(("resolved_name", ""), _negated=True),
                fields=["resolved_name"],
                name="olt_by_resolved_name",
            ),
        ),
        migrations.RunPython(fill_devices, migrations.RunPython.noop),
    ]
