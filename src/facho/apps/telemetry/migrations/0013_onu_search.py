"""Texts by which ONUs are found, and their index.

A PostgreSQL without the extension pg_trgm gets no index here: see `facho check` and `runtime/upgrade.py`.
"""

import django.db.models.deletion
from django.db import migrations, models

from facho.apps.telemetry.search import TEXT_FIELDS, text_of
from facho.apps.telemetry.search_index import create_index, drop_index

BATCH = 10_000


def fill(apps, schema_editor):
    """Write the text of each ONU. Keys page through the table: no statement holds all of it."""
    connection = schema_editor.connection
    onus = apps.get_model('telemetry', 'Onu').objects.using(connection.alias).order_by('pk')
    last = 0
    while rows := list(onus.filter(pk__gt=last).values_list('pk', 'olt_id', *TEXT_FIELDS)[:BATCH]):
        last = rows[-1][0]
        write(connection, [(pk, olt, text_of(*values)) for pk, olt, *values in rows])


def write(connection, rows):
    with connection.cursor() as cursor:
        if connection.vendor == 'postgresql':
            with cursor.copy('COPY onu_search (onu_id, olt_id, text) FROM STDIN') as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            cursor.executemany('INSERT INTO onu_search (onu_id, olt_id, text) VALUES (%s, %s, %s)', rows)


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0011_suspicion_and_names'),
        ('telemetry', '0012_power_events'),
    ]

    operations = [
        migrations.CreateModel(
            name='OnuSearch',
            fields=[
                ('onu', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='telemetry.onu', verbose_name='ONU')),
                ('text', models.TextField()),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'db_table': 'onu_search',
                'default_permissions': (),
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunPython(
            lambda apps, schema_editor: create_index(schema_editor.connection),
            lambda apps, schema_editor: drop_index(schema_editor.connection),
        ),
    ]
