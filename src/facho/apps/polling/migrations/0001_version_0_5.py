"""The tables of version 0.5."""

import django.db.models.deletion
import facho.engine.model
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('polling', '0001_initial'),
        ('polling', '0002_what_a_run_covered'),
        ('polling', '0003_coordinator_moves_out'),
        ('polling', '0004_retries'),
        ('polling', '0005_leases'),
        ('polling', '0006_database_away'),
        ('polling', '0007_device'),
        ('polling', '0008_database_unavailable'),
        ('polling', '0009_clock_set'),
        ('polling', '0010_free_and_started'),
    ]

    dependencies = [
        ('inventory', '0001_version_0_5'),
        ('jobs', '0001_version_0_5'),
    ]

    operations = [
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('key', models.CharField(max_length=270, primary_key=True, serialize=False, verbose_name='what')),
                ('holder', models.CharField(max_length=200, verbose_name='holder')),
                ('token', models.BigIntegerField(verbose_name='token')),
                ('expires_at', models.DateTimeField(verbose_name='expires')),
                ('revoked', models.BooleanField(default=False, verbose_name='revoked')),
            ],
            options={
                'verbose_name': 'lease',
                'verbose_name_plural': 'leases',
                'db_table': 'leases',
                'ordering': ['key'],
            },
        ),
        migrations.CreateModel(
            name='Poller',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('poller_id', models.PositiveIntegerField(unique=True, verbose_name='poller')),
                ('worker', models.CharField(blank=True, max_length=200, verbose_name='worker')),
                ('status', models.CharField(choices=[('FREE', 'free'), ('BUSY', 'busy')], default='FREE', max_length=4, verbose_name='status')),
                ('current_olt_id', models.BigIntegerField(null=True, verbose_name='OLT')),
                ('current_node_id', models.BigIntegerField(null=True, verbose_name='node')),
                ('link', models.PositiveSmallIntegerField(null=True, verbose_name='link')),
                ('links', models.PositiveSmallIntegerField(null=True, verbose_name='links')),
                ('busy_since', models.DateTimeField(null=True, verbose_name='busy since')),
                ('busy_time', models.FloatField(default=0, verbose_name='time busy (s)')),
                ('total_time', models.FloatField(default=0, verbose_name='total time (s)')),
                ('tasks_completed', models.PositiveBigIntegerField(default=0, verbose_name='composites run')),
                ('tasks_delayed', models.PositiveBigIntegerField(default=0, verbose_name='of these late')),
                ('updated_at', models.DateTimeField(verbose_name='reported')),
                ('host', models.CharField(blank=True, max_length=200, verbose_name='machine')),
                ('created_at', models.DateTimeField(null=True, verbose_name='started')),
            ],
            options={
                'verbose_name': 'poller',
                'verbose_name_plural': 'pollers',
                'db_table': 'pollers',
                'ordering': ['poller_id'],
            },
        ),
        migrations.CreateModel(
            name='PollerStats',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('timestamp', models.DateTimeField(unique=True, verbose_name='time')),
                ('total_pollers', models.PositiveIntegerField(verbose_name='pollers')),
                ('busy_pollers', models.PositiveIntegerField(verbose_name='busy')),
                ('busy_percentage', models.FloatField(verbose_name='busy (%)')),
                ('queue_size', models.PositiveIntegerField(verbose_name='queue')),
                ('delayed', models.PositiveIntegerField(verbose_name='delayed')),
                ('is_saturated', models.BooleanField(verbose_name='saturated')),
                ('total_tasks_completed', models.PositiveBigIntegerField(verbose_name='composites run')),
                ('total_tasks_delayed', models.PositiveBigIntegerField(verbose_name='of these late')),
                ('free_pollers', models.PositiveIntegerField(verbose_name='free')),
            ],
            options={
                'verbose_name': 'pool statistics',
                'verbose_name_plural': 'pool statistics',
                'db_table': 'poller_stats',
                'ordering': ['-timestamp'],
            },
        ),
        migrations.CreateModel(
            name='Execution',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node_name', models.CharField(max_length=100, verbose_name='job')),
                ('poller_id', models.PositiveIntegerField(null=True, verbose_name='poller')),
                ('trigger', models.CharField(choices=[('schedule', 'schedule'), ('manual', 'manual')], default=facho.engine.model.Trigger['SCHEDULE'], max_length=10, verbose_name='started by')),
                ('slot', models.DateTimeField(verbose_name='due')),
                ('slots', models.PositiveIntegerField(default=1, verbose_name='slots')),
                ('status', models.CharField(choices=[('PENDING', 'pending'), ('RUNNING', 'running'), ('SUCCESS', 'success'), ('PARTIAL', 'partial'), ('FAILED', 'failed'), ('INTERRUPTED', 'interrupted'), ('SKIPPED', 'skipped')], default=facho.engine.model.Status['PENDING'], max_length=12, verbose_name='status')),
                ('cause', models.CharField(blank=True, choices=[('olt_busy', 'the OLT was busy'), ('no_free_poller', 'no poller was free'), ('breaker_open', 'the breaker of the OLT was open'), ('scheduler_late', 'the scheduler was late'), ('engine_down', 'the engine was down'), ('stopped', 'the engine was stopped'), ('disabled', 'it was disabled'), ('unreachable', 'the OLT is unreachable'), ('lease_lost', 'the lease of the OLT was lost'), ('database_unavailable', 'the database was unavailable'), ('broker_unavailable', 'Redis was unavailable'), ('clock_set', 'the clock was set forward')], max_length=20, verbose_name='cause')),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('error_class', models.CharField(blank=True, max_length=60, verbose_name='error type')),
                ('waits', models.JSONField(default=dict, verbose_name='waited')),
                ('claimed_at', models.DateTimeField(null=True, verbose_name='claimed')),
                ('started_at', models.DateTimeField(null=True, verbose_name='started')),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended')),
                ('lease_token', models.BigIntegerField(null=True)),
                ('readings', models.PositiveIntegerField(default=0, verbose_name='ONUs read')),
                ('completeness', models.CharField(blank=True, choices=[('COMPLETE', 'COMPLETE'), ('PARTIAL', 'PARTIAL'), ('EMPTY', 'EMPTY')], max_length=10, verbose_name='completeness')),
                ('pdus', models.PositiveIntegerField(default=0, verbose_name='requests')),
                ('retransmissions', models.PositiveIntegerField(default=0, verbose_name='retransmitted requests')),
                ('varbinds', models.PositiveIntegerField(default=0, verbose_name='values')),
                ('bytes_sent', models.PositiveBigIntegerField(default=0, verbose_name='octets sent')),
                ('bytes_received', models.PositiveBigIntegerField(default=0, verbose_name='octets received')),
                ('rtt_p50', models.FloatField(null=True, verbose_name='round trip, median (s)')),
                ('rtt_p95', models.FloatField(null=True, verbose_name='round trip, 95 % (s)')),
                ('coverage', models.JSONField(default=dict, verbose_name='coverage')),
                ('failed_onus', models.JSONField(default=list, verbose_name='failed ONUs')),
                ('peak_in_flight', models.PositiveIntegerField(default=0, verbose_name='maximum in flight')),
                ('rtt_p99', models.FloatField(null=True, verbose_name='round trip, 99 % (s)')),
                ('sizes', models.JSONField(default=dict, verbose_name='request sizes')),
                ('retry_at', models.DateTimeField(null=True, verbose_name='tried again')),
                ('device', models.CharField(max_length=260, null=True, verbose_name='device')),
                ('master_execution', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='links', to='polling.execution', verbose_name='master')),
                ('node', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='executions', to='jobs.workflownode', verbose_name='node')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='executions', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'execution',
                'verbose_name_plural': 'executions',
                'db_table': 'snmp_executions',
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='ExecutionAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(verbose_name='attempt')),
                ('status', models.CharField(choices=[('PENDING', 'pending'), ('RUNNING', 'running'), ('SUCCESS', 'success'), ('PARTIAL', 'partial'), ('FAILED', 'failed'), ('INTERRUPTED', 'interrupted'), ('SKIPPED', 'skipped')], max_length=12, verbose_name='status')),
                ('error_class', models.CharField(blank=True, max_length=60, verbose_name='error type')),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('started_at', models.DateTimeField(verbose_name='started')),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended')),
                ('pdus', models.PositiveIntegerField(default=0, verbose_name='requests')),
                ('execution', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='polling.execution')),
            ],
            options={
                'verbose_name': 'attempt',
                'verbose_name_plural': 'attempts',
                'db_table': 'execution_attempts',
                'ordering': ['execution', 'number'],
            },
        ),
        migrations.AddIndex(
            model_name='execution',
            index=models.Index(fields=['olt', '-slot'], name='execution_by_olt'),
        ),
        migrations.AddIndex(
            model_name='execution',
            index=models.Index(fields=['-slot'], name='execution_by_slot'),
        ),
        migrations.AddIndex(
            model_name='execution',
            index=models.Index(condition=models.Q(('status__in', ['PENDING', 'RUNNING'])), fields=['status'], name='execution_open'),
        ),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.UniqueConstraint(fields=('node', 'slot'), name='one_execution_per_slot'),
        ),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'RUNNING')), fields=('olt',), name='one_running_execution_per_olt'),
        ),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'RUNNING'), _negated=True), ('started_at__isnull', False), _connector='OR'), name='a_running_execution_has_started'),
        ),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'RUNNING')), fields=('device',), name='one_running_execution_per_device'),
        ),
        migrations.AddConstraint(
            model_name='executionattempt',
            constraint=models.UniqueConstraint(fields=('execution', 'number'), name='attempt_once'),
        ),
    ]
