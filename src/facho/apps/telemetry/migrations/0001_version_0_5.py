"""The tables of version 0.5."""

import django.db.models.deletion
import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('telemetry', '0001_initial'),
        ('telemetry', '0002_missing_and_moved'),
        ('telemetry', '0003_one_index_by_onu'),
        ('telemetry', '0004_history_by_day'),
        ('telemetry', '0005_replaced_onus'),
        ('telemetry', '0006_repair_replaced_onus'),
        ('telemetry', '0007_freshness_per_port_and_events'),
        ('telemetry', '0008_history_chunks'),
    ]

    dependencies = [
        ('inventory', '0001_version_0_5'),
    ]

    operations = [
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
        migrations.CreateModel(
            name='Onu',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.CharField(help_text='The OID suffix that names it on its OLT.', max_length=120, verbose_name='index')),
                ('slot', models.IntegerField(null=True, verbose_name='slot')),
                ('port', models.IntegerField(null=True, verbose_name='port')),
                ('onu', models.IntegerField(null=True, verbose_name='ONU')),
                ('serial', models.CharField(max_length=64, null=True, verbose_name='serial')),
                ('mac', models.CharField(max_length=17, null=True, verbose_name='MAC')),
                ('name', models.CharField(max_length=255, null=True, verbose_name='name')),
                ('description', models.CharField(max_length=255, null=True, verbose_name='description')),
                ('admin_state', models.CharField(max_length=12, null=True, verbose_name='administrative state')),
                ('state', models.CharField(choices=[('online', 'online'), ('offline', 'offline'), ('los', 'loss of signal'), ('dying_gasp', 'power lost'), ('auth_failed', 'not authorised'), ('logging', 'logging in'), ('syncing', 'synchronising'), ('degraded', 'degraded'), ('disabled', 'disabled'), ('unknown', 'unknown')], default='unknown', max_length=12, verbose_name='state')),
                ('rx_dbm', models.FloatField(null=True, verbose_name='received power (dBm)')),
                ('tx_dbm', models.FloatField(null=True, verbose_name='sent power (dBm)')),
                ('olt_rx_dbm', models.FloatField(null=True, verbose_name='received by the OLT (dBm)')),
                ('distance_m', models.FloatField(null=True, verbose_name='distance (m)')),
                ('down_cause', models.CharField(max_length=40, null=True, verbose_name='down cause')),
                ('last_up', models.DateTimeField(null=True, verbose_name='last up')),
                ('last_down', models.DateTimeField(null=True, verbose_name='last down')),
                ('model', models.CharField(max_length=100, null=True, verbose_name='model')),
                ('software', models.CharField(max_length=100, null=True, verbose_name='software')),
                ('line_profile', models.CharField(max_length=100, null=True, verbose_name='line profile')),
                ('service_profile', models.CharField(max_length=100, null=True, verbose_name='service profile')),
                ('temperature_c', models.FloatField(null=True, verbose_name='temperature (°C)')),
                ('voltage_v', models.FloatField(null=True, verbose_name='voltage (V)')),
                ('in_octets', models.BigIntegerField(null=True, verbose_name='octets from the ONU')),
                ('out_octets', models.BigIntegerField(null=True, verbose_name='octets to the ONU')),
                ('extra', models.JSONField(default=dict, verbose_name='more')),
                ('first_seen_at', models.DateTimeField(verbose_name='first seen')),
                ('misses', models.PositiveIntegerField(default=0, verbose_name='misses')),
                ('missing_since', models.DateTimeField(null=True, verbose_name='missing since')),
                ('moved_at', models.DateTimeField(null=True, verbose_name='moved')),
                ('moved_from', models.CharField(blank=True, default='', max_length=120, verbose_name='moved from')),
                ('place_taken', models.BooleanField(db_default=False, default=False, verbose_name='place taken')),
                ('own_read_at', models.DateTimeField(null=True)),
                ('own_state_at', models.DateTimeField(null=True)),
                ('own_power_at', models.DateTimeField(null=True)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='onus', to='inventory.olt', verbose_name='OLT')),
                ('replaced_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='replaces', to='telemetry.onu', verbose_name='replaced by')),
                ('pon_port', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='onus', to='telemetry.ponport', verbose_name='PON port')),
            ],
            options={
                'verbose_name': 'ONU',
                'verbose_name_plural': 'ONUs',
                'db_table': 'onu_data',
                'ordering': ['olt', 'slot', 'port', 'onu'],
            },
        ),
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
                'indexes': [models.Index(fields=['olt', 'field', 'start', 'first_onu', 'last_onu'], name='historychunk_by_onu'), models.Index(fields=['last_at'], name='historychunk_by_time')],
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
                'indexes': [models.Index(fields=['olt', 'at'], name='historyday_by_olt'), models.Index(fields=['at'], name='historyday_by_time')],
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
                'indexes': [models.Index(fields=['olt', 'field', 'start', 'first_onu', 'last_onu'], name='historymonth_by_onu'), models.Index(fields=['last_at'], name='historymonth_by_time')],
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
                'indexes': [models.Index(fields=['olt', 'at'], name='historyrun_by_olt'), models.Index(fields=['at'], name='historyrun_by_time')],
            },
        ),
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
                'indexes': [models.Index(fields=['onu', 'at'], name='event_by_onu'), models.Index(fields=['olt', 'at'], name='event_by_olt'), models.Index(fields=['field', 'at'], name='event_by_field'), models.Index(fields=['at'], name='event_by_time')],
            },
        ),
        migrations.AddConstraint(
            model_name='ponport',
            constraint=models.UniqueConstraint(models.F('olt'), django.db.models.functions.comparison.Coalesce('slot', models.Value(-1)), django.db.models.functions.comparison.Coalesce('port', models.Value(-1)), name='pon_port_once_per_olt'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['olt', 'slot', 'port', 'onu'], name='onu_place'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['serial'], name='onu_serial'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['state'], name='onu_state'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['rx_dbm'], name='onu_rx'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(condition=models.Q(('missing_since__isnull', False)), fields=['missing_since'], name='onu_missing'),
        ),
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.UniqueConstraint(condition=models.Q(('place_taken', False)), fields=('olt', 'index'), name='onu_holds_index_alone'),
        ),
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.CheckConstraint(condition=models.Q(('pon_port__isnull', False), ('own_read_at__isnull', False), _connector='OR'), name='onu_was_read'),
        ),
    ]
