"""When ONUs were read moves to their ports; ONUs keep a time of their own where it differs. Events get a table.

No time is lost: the effective times are the same before and after, and the way back restores the columns.
"""

import django.db.models.deletion
import django.db.models.functions.comparison
from django.db import migrations, models

TIMES = ('read_at', 'state_at', 'power_at')

# An ONU that was never read although its port was.
NEVER = {'sqlite': "'1970-01-01 00:00:00'", 'postgresql': "timestamptz '1970-01-01 00:00:00+00'"}

SAME_PORT = (
    'pon_ports.olt_id = onu_data.olt_id AND COALESCE(pon_ports.slot, -1) = COALESCE(onu_data.slot, -1)'
    ' AND COALESCE(pon_ports.port, -1) = COALESCE(onu_data.port, -1)'
)


def to_ports(apps, schema_editor):
    never = NEVER[schema_editor.connection.vendor]
    # A NULL equals a NULL here, and a NULL beside a time is NEVER.
    own = ', '.join(
        f'own_{name} = CASE WHEN COALESCE(own_{name}, {never}) = COALESCE(pon_ports.{name}, {never}) THEN NULL'
        f' ELSE COALESCE(own_{name}, {never}) END'
        for name in TIMES
    )
    newest = ', '.join(f'MAX(own_{name})' for name in TIMES)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO pon_ports (olt_id, slot, port, {", ".join(TIMES)})'
            f' SELECT olt_id, slot, port, {newest} FROM onu_data GROUP BY olt_id, slot, port'
        )
        if schema_editor.connection.vendor == 'postgresql':
            cursor.execute('ANALYZE pon_ports')
        cursor.execute(f'UPDATE onu_data SET pon_port_id = pon_ports.id, {own} FROM pon_ports WHERE {SAME_PORT}')
        check_references(cursor)


def to_onus(apps, schema_editor):
    never = NEVER[schema_editor.connection.vendor]
    own = ', '.join(f'own_{name} = NULLIF(COALESCE(own_{name}, pon_ports.{name}), {never})' for name in TIMES)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(f'UPDATE onu_data SET pon_port_id = NULL, {own} FROM pon_ports WHERE pon_port_id = pon_ports.id')
        check_references(cursor)


def check_references(cursor):
    """Check references now: PostgreSQL alters no table while it has any left to check."""
    if cursor.db.vendor == 'postgresql':
        cursor.execute('SET CONSTRAINTS ALL IMMEDIATE')
        cursor.execute('SET CONSTRAINTS ALL DEFERRED')


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0007_automatic_window'),
        ('telemetry', '0006_repair_replaced_onus'),
    ]

    operations = [
        migrations.CreateModel(
            name='OnuEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(verbose_name='time')),
                ('field', models.CharField(choices=[('presence', 'presence'), ('place', 'place'), ('serial', 'serial'), ('mac', 'MAC'), ('state', 'state'), ('down_cause', 'down cause')], max_length=12, verbose_name='field')),
                ('old', models.CharField(max_length=120, verbose_name='before')),
                ('new', models.CharField(max_length=120, verbose_name='after')),
                ('cause', models.CharField(max_length=160, verbose_name='cause')),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='onu_events', to='inventory.olt', verbose_name='OLT')),
                ('onu', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='telemetry.onu', verbose_name='ONU')),
            ],
            options={
                'verbose_name': 'ONU event',
                'verbose_name_plural': 'ONU events',
                'db_table': 'onu_events',
                'ordering': ['-at', '-id'],
                'indexes': [
                    models.Index(fields=['onu', 'at'], name='event_by_onu'),
                    models.Index(fields=['olt', 'at'], name='event_by_olt'),
                    models.Index(fields=['field', 'at'], name='event_by_field'),
                    models.Index(fields=['at'], name='event_by_time'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PonPort',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slot', models.IntegerField(null=True, verbose_name='slot')),
                ('port', models.IntegerField(null=True, verbose_name='port')),
                ('read_at', models.DateTimeField(null=True, verbose_name='last read')),
                ('state_at', models.DateTimeField(null=True, verbose_name='state read')),
                ('power_at', models.DateTimeField(null=True, verbose_name='power read')),
                ('olt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pon_ports', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'PON port',
                'verbose_name_plural': 'PON ports',
                'db_table': 'pon_ports',
            },
        ),
        migrations.AddConstraint(
            model_name='ponport',
            constraint=models.UniqueConstraint(models.F('olt'), django.db.models.functions.comparison.Coalesce('slot', models.Value(-1)), django.db.models.functions.comparison.Coalesce('port', models.Value(-1)), name='pon_port_once_per_olt'),
        ),
        migrations.RenameField('onu', 'read_at', 'own_read_at'),
        migrations.RenameField('onu', 'state_at', 'own_state_at'),
        migrations.RenameField('onu', 'power_at', 'own_power_at'),
        migrations.AlterField(
            model_name='onu',
            name='own_read_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='onu',
            name='own_state_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='onu',
            name='own_power_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='onu',
            name='pon_port',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='onus', to='telemetry.ponport', verbose_name='PON port'),
        ),
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.CheckConstraint(condition=models.Q(('pon_port__isnull', False), ('own_read_at__isnull', False), _connector='OR'), name='onu_was_read'),
        ),
        migrations.RunPython(to_ports, to_onus),
    ]
