"""History in compressed chunks instead of a row for each reading.

The table of readings stays as long as it has any: `store/history_upgrade.py` converts it after the migrations, in
steps that can be interrupted, and drops it.
"""

import django.db.models.deletion
from django.db import migrations, models


def drop_empty(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute('SELECT EXISTS (SELECT 1 FROM onu_history)')
        (has_rows,) = cursor.fetchone()
        if not has_rows:
            cursor.execute('DROP TABLE onu_history')


def make_empty(apps, schema_editor):
    """Make the old table again, for a database that has no history to lose."""
    for name in ('HistoryRun', 'HistoryChunk', 'HistoryDay', 'HistoryMonth'):
        if apps.get_model('telemetry', name).objects.exists():
            raise RuntimeError('Chunks cannot become readings again. Restore a backup of the earlier version instead.')
    if 'onu_history' not in schema_editor.connection.introspection.table_names():
        schema_editor.create_model(apps.get_model('telemetry', 'OnuHistory'))


def store_plainly(apps, schema_editor):
    """Keep PostgreSQL from trying to compress what is compressed."""
    if schema_editor.connection.vendor != 'postgresql':
        return
    with schema_editor.connection.cursor() as cursor:
        for name in ('runs', 'chunks', 'days', 'months'):
            cursor.execute(f'ALTER TABLE onu_history_{name} ALTER COLUMN data SET STORAGE EXTERNAL')


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0007_automatic_window'),
        ('telemetry', '0007_freshness_per_port_and_events'),
    ]

    operations = [
        migrations.CreateModel(
            name='HistoryChunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('field', models.CharField(max_length=24)),
                ('start', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('first_onu', models.BigIntegerField()),
                ('last_onu', models.BigIntegerField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt')),
            ],
            options={
                'db_table': 'onu_history_chunks',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='HistoryDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt')),
            ],
            options={
                'db_table': 'onu_history_days',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='HistoryMonth',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('field', models.CharField(max_length=24)),
                ('start', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('first_onu', models.BigIntegerField()),
                ('last_onu', models.BigIntegerField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt')),
            ],
            options={
                'db_table': 'onu_history_months',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='HistoryRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('data', models.BinaryField()),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt')),
            ],
            options={
                'db_table': 'onu_history_runs',
                'abstract': False,
            },
        ),
        migrations.RunPython(drop_empty, make_empty),
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel(name='OnuHistory')]),
        migrations.RunPython(store_plainly, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='historychunk',
            index=models.Index(fields=['olt', 'field', 'start', 'first_onu', 'last_onu'], name='historychunk_by_onu'),
        ),
        migrations.AddIndex(
            model_name='historychunk',
            index=models.Index(fields=['last_at'], name='historychunk_by_time'),
        ),
        migrations.AddIndex(
            model_name='historyday',
            index=models.Index(fields=['olt', 'at'], name='historyday_by_olt'),
        ),
        migrations.AddIndex(
            model_name='historyday',
            index=models.Index(fields=['at'], name='historyday_by_time'),
        ),
        migrations.AddIndex(
            model_name='historymonth',
            index=models.Index(fields=['olt', 'field', 'start', 'first_onu', 'last_onu'], name='historymonth_by_onu'),
        ),
        migrations.AddIndex(
            model_name='historymonth',
            index=models.Index(fields=['last_at'], name='historymonth_by_time'),
        ),
        migrations.AddIndex(
            model_name='historyrun',
            index=models.Index(fields=['olt', 'at'], name='historyrun_by_olt'),
        ),
        migrations.AddIndex(
            model_name='historyrun',
            index=models.Index(fields=['at'], name='historyrun_by_time'),
        ),
    ]
