import django.db.models.deletion
import django.db.models.expressions
import facho.engine.model
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('inventory', '0001_initial'),
        ('jobs', '0001_initial'),
    ]

    operations = [
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
                ('cause', models.CharField(blank=True, choices=[('olt_busy', 'the OLT was busy'), ('no_free_poller', 'no poller was free'), ('scheduler_late', 'the scheduler was late'), ('engine_down', 'the engine was down'), ('stopped', 'the engine was stopped'), ('disabled', 'it was disabled'), ('unreachable', 'the OLT is unreachable'), ('lease_lost', 'the lease of the OLT was lost')], max_length=20, verbose_name='cause')),
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
        migrations.CreateModel(
            name='ExecutionPlan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('plan_data', models.JSONField(default=list, verbose_name='plan')),
                ('status', models.CharField(default='ACTIVE', max_length=12, verbose_name='status')),
                ('total_tasks', models.PositiveIntegerField(default=0)),
                ('completed_tasks', models.PositiveIntegerField(default=0)),
                ('failed_tasks', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='plans', to='inventory.olt')),
            ],
            options={
                'verbose_name': 'plan',
                'verbose_name_plural': 'plans',
                'db_table': 'execution_plans',
                'ordering': ['-period_start'],
            },
        ),
        migrations.CreateModel(
            name='QuotaTracker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task_type', models.CharField(max_length=100, verbose_name='job')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('quota_required', models.PositiveIntegerField(default=0, verbose_name='required')),
                ('quota_completed', models.PositiveIntegerField(default=0, verbose_name='completed')),
                ('quota_failed', models.PositiveIntegerField(default=0, verbose_name='failed')),
                ('quota_skipped', models.PositiveIntegerField(default=0, verbose_name='skipped')),
                ('quota_pending', models.PositiveIntegerField(default=0, verbose_name='pending')),
                ('total_duration_ms', models.PositiveBigIntegerField(default=0, verbose_name='total time (ms)')),
                ('status', models.CharField(default='IN_PROGRESS', max_length=20, verbose_name='status')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quotas', to='inventory.olt')),
            ],
            options={
                'verbose_name': 'quota',
                'verbose_name_plural': 'quotas',
                'db_table': 'quota_tracker',
                'ordering': ['-period_start', 'olt', 'task_type'],
            },
        ),
        migrations.CreateModel(
            name='QuotaViolation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('report', models.JSONField(default=dict, verbose_name='report')),
                ('severity', models.CharField(max_length=10, verbose_name='severity')),
                ('notified', models.BooleanField(default=False, verbose_name='notified')),
                ('notified_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='violations', to='inventory.olt')),
            ],
            options={
                'verbose_name': 'quota violation',
                'verbose_name_plural': 'quota violations',
                'db_table': 'quota_violations',
                'ordering': ['-period_start'],
            },
        ),
        migrations.CreateModel(
            name='CoordinatorLog',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_type', models.CharField(max_length=30, verbose_name='event')),
                ('level', models.CharField(max_length=10, verbose_name='level')),
                ('message', models.TextField(verbose_name='message')),
                ('details', models.JSONField(default=dict, verbose_name='details')),
                ('timestamp', models.DateTimeField(verbose_name='time')),
                ('olt', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='logs', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'log entry',
                'verbose_name_plural': 'log',
                'db_table': 'coordinator_logs',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['olt', 'timestamp'], name='log_by_olt'), models.Index(fields=['event_type', 'timestamp'], name='log_by_event'), models.Index(fields=['level', 'timestamp'], name='log_by_level')],
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
            model_name='executionattempt',
            constraint=models.UniqueConstraint(fields=('execution', 'number'), name='attempt_once'),
        ),
        migrations.AddIndex(
            model_name='executionplan',
            index=models.Index(fields=['olt', 'period_start'], name='plan_by_olt'),
        ),
        migrations.AddIndex(
            model_name='executionplan',
            index=models.Index(fields=['status'], name='plan_status'),
        ),
        migrations.AddIndex(
            model_name='quotatracker',
            index=models.Index(fields=['status'], name='quota_status'),
        ),
        migrations.AddConstraint(
            model_name='quotatracker',
            constraint=models.UniqueConstraint(fields=('olt', 'task_type', 'period_start'), name='one_quota_per_hour'),
        ),
        migrations.AddConstraint(
            model_name='quotatracker',
            constraint=models.CheckConstraint(condition=models.Q(('quota_required', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.F('quota_completed'), '+', models.F('quota_failed')), '+', models.F('quota_skipped')), '+', models.F('quota_pending')))), name='quota_balances'),
        ),
        migrations.AddIndex(
            model_name='quotaviolation',
            index=models.Index(fields=['olt', 'created_at'], name='violation_by_olt'),
        ),
        migrations.AddIndex(
            model_name='quotaviolation',
            index=models.Index(fields=['severity'], name='violation_severity'),
        ),
    ]
