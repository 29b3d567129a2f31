"""The tables of version 0.5."""

import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('coordinator', '0001_taken_over_from_polling'),
        ('coordinator', '0002_quotas_plans_and_violations'),
        ('coordinator', '0003_forecasts'),
        ('coordinator', '0004_judged_when_settled'),
        ('coordinator', '0005_replanning'),
        ('coordinator', '0006_database_unavailable'),
        ('coordinator', '0007_mean_durations'),
    ]

    dependencies = [
        ('inventory', '0001_version_0_5'),
        ('jobs', '0001_version_0_5'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                'indexes': [models.Index(fields=['olt', 'timestamp'], name='log_by_olt'), models.Index(fields=['event_type', 'timestamp'], name='log_by_event'), models.Index(fields=['level', 'timestamp'], name='log_by_level'), models.Index(fields=['timestamp'], name='log_by_time')],
            },
        ),
        migrations.CreateModel(
            name='ExecutionPlan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('plan_data', models.JSONField(default=list, verbose_name='plan')),
                ('status', models.CharField(choices=[('ACTIVE', 'active'), ('COMPLETED', 'completed'), ('SUPERSEDED', 'superseded'), ('ABORTED', 'aborted')], default='ACTIVE', max_length=12, verbose_name='status')),
                ('total_tasks', models.PositiveIntegerField(default=0, verbose_name='slots')),
                ('completed_tasks', models.PositiveIntegerField(default=0, verbose_name='completed')),
                ('failed_tasks', models.PositiveIntegerField(default=0, verbose_name='failed')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('advice', models.JSONField(default=list, verbose_name='advice')),
                ('fingerprint', models.CharField(default='', max_length=64)),
                ('is_feasible', models.BooleanField(default=True, verbose_name='feasible')),
                ('needed_seconds', models.FloatField(default=0, verbose_name='needed (s)')),
                ('utilisation', models.FloatField(default=0, verbose_name='utilisation (%)')),
                ('failures_in_row', models.PositiveIntegerField(default=0, verbose_name='failures in a row')),
                ('reason', models.CharField(blank=True, choices=[('hour', 'new hour'), ('changed', 'jobs changed'), ('durations', 'runs take longer or shorter than planned'), ('reachability', 'the OLT stopped or started answering'), ('failures', 'several runs failed')], default='', max_length=12, verbose_name='reason')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='plans', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'plan',
                'verbose_name_plural': 'plans',
                'db_table': 'execution_plans',
                'ordering': ['-period_start', 'olt', '-id'],
                'indexes': [models.Index(fields=['olt', 'period_start'], name='plan_by_olt'), models.Index(fields=['status'], name='plan_status'), models.Index(condition=models.Q(('failures_in_row__gte', 3), ('status', 'ACTIVE')), fields=['olt'], name='plan_failing')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'ACTIVE')), fields=('olt', 'period_start'), name='one_active_plan_per_hour')],
            },
        ),
        migrations.CreateModel(
            name='Forecast',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('requested_at', models.DateTimeField(auto_now_add=True, verbose_name='requested')),
                ('params', models.JSONField(default=dict, verbose_name='parameters')),
                ('status', models.CharField(choices=[('PENDING', 'pending'), ('RUNNING', 'running'), ('DONE', 'done'), ('FAILED', 'failed')], default='PENDING', max_length=8, verbose_name='status')),
                ('result', models.JSONField(null=True, verbose_name='result')),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('started_at', models.DateTimeField(null=True, verbose_name='started')),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='forecasts', to=settings.AUTH_USER_MODEL, verbose_name='by')),
            ],
            options={
                'verbose_name': 'forecast',
                'verbose_name_plural': 'forecasts',
                'db_table': 'forecasts',
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'RUNNING')), fields=('status',), name='one_forecast_at_a_time')],
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
                ('status', models.CharField(choices=[('IN_PROGRESS', 'in progress'), ('COMPLETED', 'completed'), ('PARTIAL', 'partial'), ('QUOTA_NOT_MET', 'quota not met'), ('FAILED', 'failed'), ('INTERRUPTED', 'interrupted')], default='IN_PROGRESS', max_length=20, verbose_name='status')),
                ('causes', models.JSONField(default=dict, verbose_name='causes')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('avg_duration_ms', models.PositiveBigIntegerField(null=True, verbose_name='mean duration of a run (ms)')),
                ('node', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='quotas', to='jobs.workflownode', verbose_name='node')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quotas', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'quota',
                'verbose_name_plural': 'quotas',
                'db_table': 'quota_tracker',
                'ordering': ['-period_start', 'olt', 'task_type'],
                'indexes': [models.Index(fields=['status'], name='quota_status'), models.Index(fields=['period_start'], name='quota_by_hour'), models.Index(fields=['olt', 'period_start'], name='quota_by_olt')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'task_type', 'period_start'), name='one_quota_per_hour'), models.CheckConstraint(condition=models.Q(('quota_required', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.F('quota_completed'), '+', models.F('quota_failed')), '+', models.F('quota_skipped')), '+', models.F('quota_pending')))), name='quota_balances'), models.CheckConstraint(condition=models.Q(('status__in', ['IN_PROGRESS', 'INTERRUPTED']), ('quota_pending', 0), _connector='OR'), name='quota_judged_when_settled')],
            },
        ),
        migrations.CreateModel(
            name='QuotaViolation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period_start', models.DateTimeField(verbose_name='from')),
                ('period_end', models.DateTimeField(verbose_name='to')),
                ('report', models.JSONField(default=dict, verbose_name='report')),
                ('severity', models.CharField(choices=[('LOW', 'low'), ('MEDIUM', 'medium'), ('HIGH', 'high'), ('CRITICAL', 'critical')], max_length=10, verbose_name='severity')),
                ('notified', models.BooleanField(default=False, verbose_name='notified')),
                ('notified_at', models.DateTimeField(null=True, verbose_name='notified at')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('task_type', models.CharField(default='', max_length=100, verbose_name='job')),
                ('node', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='violations', to='jobs.workflownode', verbose_name='node')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='violations', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'quota violation',
                'verbose_name_plural': 'quota violations',
                'db_table': 'quota_violations',
                'ordering': ['-period_start', 'olt', 'task_type'],
                'indexes': [models.Index(fields=['olt', 'created_at'], name='violation_by_olt'), models.Index(fields=['severity'], name='violation_severity'), models.Index(fields=['notified'], name='violation_notified')],
                'constraints': [models.UniqueConstraint(fields=('olt', 'task_type', 'period_start'), name='one_violation_per_hour')],
            },
        ),
    ]
