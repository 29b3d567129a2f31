"""The tables of version 0.5."""

import django.core.validators
import django.db.models.deletion
import facho.apps.inventory.models
import facho.apps.rest.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('inventory', '0001_initial'),
        ('inventory', '0002_census_and_learned'),
        ('inventory', '0003_breaker'),
        ('inventory', '0004_silent_attempts'),
        ('inventory', '0005_device'),
        ('inventory', '0006_questions'),
        ('inventory', '0007_automatic_window'),
        ('inventory', '0008_inventory_version'),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Olt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('brand', models.CharField(blank=True, choices=facho.apps.inventory.models.olt_brand_choices, default='', help_text='If empty, Facho identifies the OLT and applies the default jobs of its brand.', max_length=40, verbose_name='brand')),
                ('host', models.CharField(help_text='IP address or host name.', max_length=253, validators=[facho.apps.inventory.models.validate_host], verbose_name='address')),
                ('port', models.PositiveIntegerField(default=161, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(65535)], verbose_name='SNMP port')),
                ('location', models.CharField(blank=True, max_length=200, verbose_name='location')),
                ('enabled', models.BooleanField(default=True, help_text='Polling starts one minute after an OLT is enabled.', verbose_name='enabled')),
                ('version', models.CharField(choices=[('1', 'v1'), ('2c', 'v2c'), ('3', 'v3')], default='2c', max_length=2, verbose_name='SNMP version')),
                ('community', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='community')),
                ('v3_user', models.CharField(blank=True, max_length=100, verbose_name='v3 user')),
                ('v3_auth', models.CharField(blank=True, choices=[('', 'none'), ('SHA1', 'SHA-1'), ('SHA224', 'SHA-224'), ('SHA256', 'SHA-256'), ('SHA384', 'SHA-384'), ('SHA512', 'SHA-512')], max_length=10, verbose_name='v3 authentication')),
                ('v3_auth_key', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='v3 authentication password')),
                ('v3_priv', models.CharField(blank=True, choices=[('', 'none'), ('AES128', 'AES-128'), ('AES192', 'AES-192'), ('AES256', 'AES-256')], max_length=10, verbose_name='v3 privacy')),
                ('v3_priv_key', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='v3 privacy password')),
                ('max_in_flight', models.PositiveSmallIntegerField(blank=True, help_text='Maximum number of requests in flight to the OLT. Empty: adjusted automatically, up to the limit of the brand.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(64)], verbose_name='requests in flight')),
                ('max_pdus_per_second', models.FloatField(blank=True, help_text='Maximum number of requests per second. Empty: no limit.', null=True, validators=[django.core.validators.MinValueValidator(0.1)], verbose_name='requests per second')),
                ('reachability', models.CharField(choices=[('unknown', 'not polled yet'), ('reachable', 'reachable'), ('slow', 'slow'), ('unreachable', 'unreachable')], default='unknown', editable=False, max_length=12, verbose_name='reachability')),
                ('last_answer_at', models.DateTimeField(editable=False, null=True, verbose_name='last answer')),
                ('last_error', models.TextField(blank=True, editable=False, verbose_name='last error')),
                ('extra', models.JSONField(default=dict, editable=False, verbose_name='values of the OLT itself')),
                ('revision', models.PositiveBigIntegerField(default=1, editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('learned', models.JSONField(default=dict, editable=False)),
                ('suspect_since', models.DateTimeField(editable=False, null=True, verbose_name='suspect since')),
                ('breaker_answered_at', models.DateTimeField(editable=False, null=True, verbose_name='answered a probe')),
                ('breaker_opened_at', models.DateTimeField(editable=False, null=True, verbose_name='breaker open since')),
                ('breaker_probed_at', models.DateTimeField(editable=False, null=True, verbose_name='last probe')),
                ('failures', models.PositiveIntegerField(default=0, editable=False, verbose_name='attempts in a row without an answer')),
                ('addresses', models.TextField(db_default='', default='', editable=False, verbose_name='addresses of the host name')),
                ('device', models.CharField(db_default='', db_index=True, default='', editable=False, max_length=260, verbose_name='device')),
                ('resolved_name', models.CharField(db_default='', default='', editable=False, max_length=253)),
                ('inventory_version', models.BigIntegerField(db_default=0, default=0, editable=False)),
            ],
            options={
                'verbose_name': 'OLT',
                'verbose_name_plural': 'OLTs',
                'db_table': 'olts',
                'ordering': ['name'],
                'indexes': [models.Index(condition=models.Q(('resolved_name', ''), _negated=True), fields=['resolved_name'], name='olt_by_resolved_name')],
                'constraints': [models.CheckConstraint(condition=models.Q(('port__gte', 1), ('port__lte', 65535)), name='olt_port_range'), models.CheckConstraint(condition=models.Q(('max_in_flight__gte', 1)), name='olt_in_flight_positive')],
            },
        ),
        migrations.CreateModel(
            name='Question',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('try_job', 'try a job')], max_length=20, verbose_name='type')),
                ('body', models.JSONField(default=dict, verbose_name='question')),
                ('state', models.CharField(choices=[('pending', 'pending'), ('running', 'running'), ('answered', 'answered'), ('failed', 'failed'), ('expired', 'expired')], default='pending', max_length=10, verbose_name='state')),
                ('answer', models.JSONField(default=dict, verbose_name='answer')),
                ('error', models.TextField(blank=True, default='', verbose_name='error')),
                ('asked_at', models.DateTimeField(verbose_name='requested values')),
                ('answered_at', models.DateTimeField(null=True, verbose_name='answered')),
                ('expires_at', models.DateTimeField(verbose_name='expires')),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('olt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='inventory.olt', verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'question',
                'verbose_name_plural': 'questions',
                'db_table': 'questions',
                'ordering': ['-asked_at', '-id'],
                'indexes': [models.Index(condition=models.Q(('state', 'pending')), fields=['id'], name='question_pending'), models.Index(fields=['asked_at'], name='question_asked')],
            },
        ),
    ]
