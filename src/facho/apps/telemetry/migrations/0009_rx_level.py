"""Index received powers by whole decibels, so that most updates leave all indexes alone."""

import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.lookups
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0001_version_0_5'),
        ('telemetry', '0001_version_0_5'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='onu',
            name='onu_rx',
        ),
        migrations.AddField(
            model_name='onu',
            name='rx_level',
            field=models.GeneratedField(db_persist=True, expression=models.Case(models.When(models.Q(('rx_dbm__range', (-1000, 1000)), _negated=True), then=None), models.When(django.db.models.lookups.GreaterThan(django.db.models.functions.comparison.Cast('rx_dbm', models.IntegerField()), models.F('rx_dbm')), then=django.db.models.expressions.CombinedExpression(django.db.models.functions.comparison.Cast('rx_dbm', models.IntegerField()), '-', models.Value(1))), default=django.db.models.functions.comparison.Cast('rx_dbm', models.IntegerField())), output_field=models.IntegerField(null=True)),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['rx_level'], name='onu_rx_level'),
        ),
    ]
