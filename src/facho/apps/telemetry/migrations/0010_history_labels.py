"""Names of the history tables. The database does not change."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0009_rx_level'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='historychunk',
            options={'verbose_name': 'history of a day', 'verbose_name_plural': 'history of days'},
        ),
        migrations.AlterModelOptions(
            name='historyday',
            options={'verbose_name': 'daily summary', 'verbose_name_plural': 'daily summaries'},
        ),
        migrations.AlterModelOptions(
            name='historymonth',
            options={'verbose_name': 'daily summaries of a month', 'verbose_name_plural': 'daily summaries of months'},
        ),
        migrations.AlterModelOptions(
            name='historyrun',
            options={'verbose_name': 'history of a run', 'verbose_name_plural': 'history of runs'},
        ),
    ]
