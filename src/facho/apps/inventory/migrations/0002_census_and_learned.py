import facho.apps.inventory.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='olt',
            name='learned',
            field=models.JSONField(default=dict, editable=False),
        ),
        migrations.AddField(
            model_name='olt',
            name='suspect_since',
            field=models.DateTimeField(editable=False, null=True, verbose_name='suspect since'),
        ),
        migrations.AlterField(
            model_name='olt',
            name='brand',
            field=models.CharField(blank=True, choices=facho.apps.inventory.models.olt_brand_choices, default='', help_text='If empty, Facho identifies the OLT and applies the default jobs of its brand.', max_length=40, verbose_name='brand'),
        ),
    ]
