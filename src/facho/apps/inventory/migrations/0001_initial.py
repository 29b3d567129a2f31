import django.core.validators
import facho.apps.rest.fields
import facho.apps.inventory.models
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Olt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('brand', models.CharField(choices=facho.apps.inventory.models.brand_choices, max_length=40, verbose_name='brand')),
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
                ('max_in_flight', models.PositiveSmallIntegerField(default=1, help_text='How many requests the OLT may have to answer at once. Most want one.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(64)], verbose_name='requests in flight')),
                ('max_pdus_per_second', models.FloatField(blank=True, help_text='Maximum number of requests per second. Empty: no limit.', null=True, validators=[django.core.validators.MinValueValidator(0.1)], verbose_name='requests per second')),
                ('reachability', models.CharField(choices=[('unknown', 'not polled yet'), ('reachable', 'reachable'), ('slow', 'slow'), ('unreachable', 'unreachable')], default='unknown', editable=False, max_length=12, verbose_name='reachability')),
                ('last_answer_at', models.DateTimeField(editable=False, null=True, verbose_name='last answer')),
                ('last_error', models.TextField(blank=True, editable=False, verbose_name='last error')),
                ('extra', models.JSONField(default=dict, editable=False, verbose_name='values of the OLT itself')),
                ('revision', models.PositiveBigIntegerField(default=1, editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'OLT',
                'verbose_name_plural': 'OLTs',
                'db_table': 'olts',
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('port__gte', 1), ('port__lte', 65535)), name='olt_port_range'), models.CheckConstraint(condition=models.Q(('max_in_flight__gte', 1)), name='olt_in_flight_positive')],
            },
        ),
    ]
