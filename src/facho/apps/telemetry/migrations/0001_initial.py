import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('inventory', '0001_initial'),
    ]

    operations = [
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
                ('read_at', models.DateTimeField(verbose_name='last read')),
                ('state_at', models.DateTimeField(null=True, verbose_name='state read')),
                ('power_at', models.DateTimeField(null=True, verbose_name='power read')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='onus', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'ONU',
                'verbose_name_plural': 'ONUs',
                'db_table': 'onu_data',
                'ordering': ['olt', 'slot', 'port', 'onu'],
            },
        ),
        migrations.CreateModel(
            name='OnuHistory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(verbose_name='read')),
                ('state', models.CharField(max_length=12, null=True, verbose_name='state')),
                ('rx_dbm', models.FloatField(null=True, verbose_name='received power (dBm)')),
                ('tx_dbm', models.FloatField(null=True, verbose_name='sent power (dBm)')),
                ('olt_rx_dbm', models.FloatField(null=True, verbose_name='received by the OLT (dBm)')),
                ('temperature_c', models.FloatField(null=True, verbose_name='temperature (°C)')),
                ('in_octets', models.BigIntegerField(null=True, verbose_name='octets from the ONU')),
                ('out_octets', models.BigIntegerField(null=True, verbose_name='octets to the ONU')),
                ('onu', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='history', to='telemetry.onu')),
            ],
            options={
                'verbose_name': 'reading',
                'verbose_name_plural': 'readings',
                'db_table': 'onu_history',
                'ordering': ['-at'],
            },
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
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.UniqueConstraint(fields=('olt', 'index'), name='onu_once_per_olt'),
        ),
        migrations.AddIndex(
            model_name='onuhistory',
            index=models.Index(fields=['onu', 'at'], name='history_by_onu'),
        ),
        migrations.AddIndex(
            model_name='onuhistory',
            index=models.Index(fields=['at'], name='history_by_time'),
        ),
    ]
