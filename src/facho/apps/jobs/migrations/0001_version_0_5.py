"""The tables of version 0.5."""

import django.core.validators
import django.db.models.deletion
import facho.apps.inventory.models
import facho.apps.jobs.columns
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('jobs', '0001_initial'),
        ('jobs', '0002_identification'),
        ('jobs', '0003_durations_and_retries'),
        ('jobs', '0004_blank_runs'),
        ('jobs', '0005_default_priority_by_kind'),
        ('jobs', '0006_run_permission'),
        ('jobs', '0007_keep_followers'),
    ]

    dependencies = [
        ('inventory', '0001_version_0_5'),
    ]

    operations = [
        migrations.CreateModel(
            name='Workflow',
            fields=[
            ],
            options={
                'verbose_name': 'workflow',
                'verbose_name_plural': 'workflows',
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('inventory.olt',),
        ),
        migrations.CreateModel(
            name='SnmpJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, verbose_name='name')),
                ('brand', models.CharField(choices=facho.apps.inventory.models.brand_choices, max_length=40, verbose_name='brand')),
                ('kind', models.CharField(choices=[('discovery', 'discovery'), ('get', 'get'), ('walk', 'walk'), ('table', 'table'), ('identify', 'identification')], max_length=12, verbose_name='type')),
                ('columns', models.JSONField(blank=True, default=list, help_text='Names of columns of the brand, such as rx_dbm.', verbose_name='columns')),
                ('interval_seconds', models.PositiveIntegerField(default=300, validators=[django.core.validators.MinValueValidator(10), django.core.validators.MaxValueValidator(604800)], verbose_name='interval (s)')),
                ('priority', models.PositiveSmallIntegerField(blank=True, default=None, help_text='Higher is more urgent. Empty: 90 for a discovery, 40 for other jobs.', validators=[django.core.validators.MaxValueValidator(100)], verbose_name='priority')),
                ('timeout_seconds', models.PositiveIntegerField(default=300, help_text='A run stops after this time, in seconds, and keeps the values read until then.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(3600)], verbose_name='time limit (s)')),
                ('retries', models.PositiveSmallIntegerField(default=2, help_text='Additional attempts after a failed run, before the next slot.', validators=[django.core.validators.MaxValueValidator(10)], verbose_name='retries')),
                ('retry_delay_seconds', models.PositiveIntegerField(default=120, help_text='The poller and the OLT are free during this time.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(3600)], verbose_name='delay between retries (s)')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('follows', models.ForeignKey(blank=True, help_text='Runs right after this job, in the same poller, without its own schedule.', null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='followers', to='jobs.snmpjob', verbose_name='follows')),
            ],
            options={
                'verbose_name': 'job',
                'verbose_name_plural': 'jobs',
                'db_table': 'snmp_jobs',
                'ordering': ['brand', '-priority', 'name'],
            },
        ),
        migrations.CreateModel(
            name='SnmpJobOid',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, validators=[django.core.validators.RegexValidator('^[a-z][a-z0-9_]*$', 'Lowercase letters, digits and _, beginning with a letter.')], verbose_name='name')),
                ('oid', models.CharField(max_length=400, validators=[facho.apps.jobs.columns.validate_oid], verbose_name='OID')),
                ('decode', models.CharField(choices=facho.apps.jobs.columns.raw_decoder_choices, max_length=20, verbose_name='read as')),
                ('scalar', models.BooleanField(default=False, help_text='One value of the OLT itself, not a column with one value per ONU.', verbose_name='scalar')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='oids', to='jobs.snmpjob')),
            ],
            options={
                'verbose_name': 'raw OID',
                'verbose_name_plural': 'raw OIDs',
                'db_table': 'snmp_job_oids',
                'ordering': ['job', 'id'],
            },
        ),
        migrations.CreateModel(
            name='WorkflowNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('own_interval_seconds', models.PositiveIntegerField(blank=True, help_text='Empty: same as the job.', null=True, validators=[django.core.validators.MinValueValidator(10), django.core.validators.MaxValueValidator(604800)], verbose_name='own interval (s)')),
                ('own_priority', models.PositiveSmallIntegerField(blank=True, help_text='Empty: same as the job.', null=True, validators=[django.core.validators.MaxValueValidator(100)], verbose_name='own priority')),
                ('own_enabled', models.BooleanField(blank=True, help_text='Empty: same as the job.', null=True, verbose_name='enabled here')),
                ('next_run_at', models.DateTimeField(editable=False, null=True, verbose_name='next run')),
                ('last_run_at', models.DateTimeField(editable=False, null=True, verbose_name='last run')),
                ('run_requested_at', models.DateTimeField(editable=False, null=True, verbose_name='run requested')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('durations', models.JSONField(default=dict, editable=False)),
                ('blank_runs', models.JSONField(default=dict, editable=False)),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='jobs.snmpjob', verbose_name='job')),
                ('master', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='chain', to='jobs.workflownode', verbose_name='master')),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nodes', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'node',
                'verbose_name_plural': 'nodes',
                'db_table': 'snmp_job_hosts',
                'ordering': ['olt', 'job'],
                'permissions': [('run_workflownode', 'Can run node now')],
            },
        ),
        migrations.AddConstraint(
            model_name='snmpjob',
            constraint=models.UniqueConstraint(fields=('brand', 'name'), name='job_name_once_per_brand'),
        ),
        migrations.AddConstraint(
            model_name='snmpjob',
            constraint=models.CheckConstraint(condition=models.Q(('interval_seconds__gte', 10)), name='job_interval_positive'),
        ),
        migrations.AddConstraint(
            model_name='snmpjob',
            constraint=models.CheckConstraint(condition=models.Q(('follows', models.F('id')), _negated=True), name='job_not_its_own_chain'),
        ),
        migrations.AddConstraint(
            model_name='snmpjoboid',
            constraint=models.UniqueConstraint(fields=('job', 'name'), name='job_oid_name_once'),
        ),
        migrations.AddIndex(
            model_name='workflownode',
            index=models.Index(fields=['next_run_at'], name='node_next_run'),
        ),
        migrations.AddConstraint(
            model_name='workflownode',
            constraint=models.UniqueConstraint(fields=('olt', 'job'), name='job_once_per_olt'),
        ),
        migrations.AddConstraint(
            model_name='workflownode',
            constraint=models.CheckConstraint(condition=models.Q(('master__isnull', True), ('next_run_at__isnull', True), _connector='OR'), name='chained_node_has_no_schedule'),
        ),
        migrations.AddConstraint(
            model_name='workflownode',
            constraint=models.CheckConstraint(condition=models.Q(('own_interval_seconds__isnull', True), ('own_interval_seconds__gte', 10), _connector='OR'), name='node_interval_positive'),
        ),
        migrations.AddConstraint(
            model_name='workflownode',
            constraint=models.CheckConstraint(condition=models.Q(('master__isnull', True), models.Q(('master', models.F('id')), _negated=True), _connector='OR'), name='node_not_its_own_master'),
        ),
    ]
