from typing import Any

import django.core.validators
from django.db import migrations, models


def make_automatic(apps: Any, schema_editor: Any) -> None:
    """Let Facho find the window of OLTs that have the old default, 1. A number that somebody chose stays."""
    apps.get_model("inventory", "Olt").objects.filter(max_in_flight=1).update(max_in_flight=None)


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0006_questions'),
    ]

    operations = [
        migrations.AlterField(
            model_name='olt',
            name='max_in_flight',
            field=models.PositiveSmallIntegerField(blank=True, help_text='Maximum number of requests in flight to the OLT. Empty: adjusted automatically, up to the limit of the brand.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(64)], verbose_name='requests in flight'),
        ),
        migrations.RunPython(make_automatic, migrations.RunPython.noop),
    ]
