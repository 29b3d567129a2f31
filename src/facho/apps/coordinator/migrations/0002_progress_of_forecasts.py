"""Progress of a running forecast."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("coordinator", "0001_version_0_5")]

    operations = [
        migrations.AddField(
            model_name="forecast",
            name="progress",
            field=models.PositiveSmallIntegerField(default=0, verbose_name="progress (%)"),
        )
    ]
