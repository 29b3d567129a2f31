"""Quotas, violations, plans and the log have an app of their own. Their tables stay where they are."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('inventory', '0002_census_and_learned'),
        ('polling', '0003_coordinator_moves_out'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[],
            state_operations=[
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
                    constraint=models.CheckConstraint(condition=models.Q(('quota_required', models.expressions.CombinedExpression(models.expressions.CombinedExpression(models.expressions.CombinedExpression(models.F('quota_completed'), '+', models.F('quota_failed')), '+', models.F('quota_skipped')), '+', models.F('quota_pending')))), name='quota_balances'),
                ),
                migrations.AddIndex(
                    model_name='quotaviolation',
                    index=models.Index(fields=['olt', 'created_at'], name='violation_by_olt'),
                ),
                migrations.AddIndex(
                    model_name='quotaviolation',
                    index=models.Index(fields=['severity'], name='violation_severity'),
                ),
            ],
        ),
    ]
