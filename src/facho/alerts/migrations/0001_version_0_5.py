"""The tables of version 0.5."""

import django.core.validators
import django.db.models.deletion
import facho.alerts.models
import facho.apps.rest.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('alerts', '0001_initial'),
        ('alerts', '0002_rules_about_chosen_olts'),
    ]

    dependencies = [
        ('inventory', '0001_version_0_5'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('kind', models.CharField(choices=[('webhook', 'webhook'), ('email', 'e-mail'), ('telegram', 'Telegram'), ('slack', 'Slack or compatible')], max_length=10, verbose_name='type')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('language', models.CharField(choices=[('en', 'English'), ('es', 'Español')], default='en', help_text='Language of the messages.', max_length=2, verbose_name='language')),
                ('url', models.CharField(blank=True, help_text='Messages are sent to this address as JSON, with POST.', max_length=500, verbose_name='address')),
                ('signing_secret', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='signing secret')),
                ('smtp_host', models.CharField(blank=True, max_length=253, verbose_name='mail server')),
                ('smtp_port', models.PositiveIntegerField(default=587, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(65535)], verbose_name='port')),
                ('smtp_security', models.CharField(choices=[('starttls', 'STARTTLS'), ('tls', 'TLS'), ('none', 'none')], default='starttls', max_length=10, verbose_name='security')),
                ('smtp_user', models.CharField(blank=True, max_length=200, verbose_name='user')),
                ('smtp_password', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='password')),
                ('mail_from', models.CharField(blank=True, max_length=254, verbose_name='sender')),
                ('mail_to', models.TextField(blank=True, help_text='Addresses, separated by commas.', verbose_name='recipients')),
                ('bot_token', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='bot token')),
                ('chat_id', models.CharField(blank=True, help_text='Chat number, or @name of a public channel.', max_length=100, verbose_name='chat')),
                ('telegram_url', models.CharField(blank=True, help_text='Empty: https://api.telegram.org', max_length=200, verbose_name='Telegram API')),
                ('slack_url', facho.apps.rest.fields.SecretField(blank=True, default='', verbose_name='webhook address')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'channel',
                'verbose_name_plural': 'channels',
                'db_table': 'alert_channels',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Rule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, verbose_name='name')),
                ('kind', models.CharField(choices=[('olt_unreachable', 'OLT unreachable'), ('violation', 'quota violation'), ('port_dark', 'PON port down'), ('low_power', 'low power'), ('mass_vanishing', 'mass disappearance'), ('pool_saturated', 'pollers saturated'), ('queue_delayed', 'queue delayed'), ('scheduler_stalled', 'scheduler stalled'), ('event', 'log event')], max_length=20, verbose_name='watches for')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('params', models.JSONField(blank=True, default=dict, verbose_name='settings')),
                ('severity', models.CharField(choices=[('info', 'info'), ('warning', 'warning'), ('critical', 'critical')], default='warning', max_length=10, verbose_name='severity')),
                ('tells_recovery', models.BooleanField(default=True, help_text='Sent to the channels that received the first message.', verbose_name='notify when resolved')),
                ('recover_after_seconds', models.PositiveIntegerField(default=60, help_text='The problem must be gone for this time before the alert is resolved. Avoids a message for each flap.', validators=[django.core.validators.MaxValueValidator(86400)], verbose_name='resolved after (s)')),
                ('repeat_minutes', models.PositiveIntegerField(default=0, help_text='Until the alert is resolved or acknowledged. 0: never.', validators=[django.core.validators.MaxValueValidator(10080)], verbose_name='repeat every (min)')),
                ('most_per_hour', models.PositiveIntegerField(default=20, help_text='Further alerts are only listed. 0: no limit.', verbose_name='maximum messages per hour')),
                ('quiet_from', models.TimeField(blank=True, null=True, verbose_name='quiet from')),
                ('quiet_to', models.TimeField(blank=True, null=True, verbose_name='quiet until')),
                ('quiet_zone', models.CharField(default=facho.alerts.models.local_zone, help_text='Time zone of the quiet hours.', max_length=64, validators=[facho.alerts.models.validate_zone], verbose_name='time zone')),
                ('quiet_mode', models.CharField(choices=[('hold', 'send when they end'), ('drop', 'drop')], default='hold', help_text='Critical alerts are always sent immediately.', max_length=4, verbose_name='in quiet hours')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('is_narrowed', models.BooleanField(default=False, editable=False)),
                ('channels', models.ManyToManyField(blank=True, help_text='Without a channel, alerts are only listed here.', related_name='rules', to='alerts.channel', verbose_name='channels')),
                ('olts', models.ManyToManyField(blank=True, help_text='Empty: all of them.', related_name='alert_rules', to='inventory.olt', verbose_name='OLTs')),
            ],
            options={
                'verbose_name': 'rule',
                'verbose_name_plural': 'rules',
                'db_table': 'alert_rules',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rule_name', models.CharField(max_length=100, verbose_name='rule')),
                ('kind', models.CharField(choices=[('olt_unreachable', 'OLT unreachable'), ('violation', 'quota violation'), ('port_dark', 'PON port down'), ('low_power', 'low power'), ('mass_vanishing', 'mass disappearance'), ('pool_saturated', 'pollers saturated'), ('queue_delayed', 'queue delayed'), ('scheduler_stalled', 'scheduler stalled'), ('event', 'log event')], max_length=20, verbose_name='type')),
                ('severity', models.CharField(choices=[('info', 'info'), ('warning', 'warning'), ('critical', 'critical')], max_length=10, verbose_name='severity')),
                ('key', models.CharField(max_length=200)),
                ('slot', models.IntegerField(null=True, verbose_name='slot')),
                ('port', models.IntegerField(null=True, verbose_name='port')),
                ('params', models.JSONField(default=dict, verbose_name='details')),
                ('opened_at', models.DateTimeField(verbose_name='opened')),
                ('last_seen_at', models.DateTimeField(verbose_name='last seen')),
                ('absent_since', models.DateTimeField(null=True)),
                ('recovered_at', models.DateTimeField(null=True, verbose_name='recovered')),
                ('count', models.PositiveIntegerField(default=1, verbose_name='times')),
                ('first_told_at', models.DateTimeField(null=True, verbose_name='first sent')),
                ('last_told_at', models.DateTimeField(null=True, verbose_name='last sent')),
                ('acknowledged_at', models.DateTimeField(null=True, verbose_name='acknowledged')),
                ('acknowledged_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='acknowledged by')),
                ('olt', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='inventory.olt', verbose_name='OLT')),
                ('rule', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='alerts', to='alerts.rule', verbose_name='rule')),
            ],
            options={
                'verbose_name': 'alert',
                'verbose_name_plural': 'alerts',
                'db_table': 'alerts',
                'ordering': ['-opened_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel_name', models.CharField(max_length=100, verbose_name='channel')),
                ('news', models.CharField(choices=[('raised', 'raised'), ('repeated', 'repeated'), ('recovered', 'recovered'), ('test', 'test')], max_length=10, verbose_name='type')),
                ('status', models.CharField(choices=[('PENDING', 'pending'), ('SENT', 'sent'), ('FAILED', 'failed'), ('SUPPRESSED', 'suppressed')], default='PENDING', max_length=10, verbose_name='status')),
                ('reason', models.CharField(blank=True, choices=[('quiet_hours', 'quiet hours'), ('rate_limit', 'rate limit'), ('untold', 'resolved before the message was sent'), ('unwatched', 'no longer watched'), ('unwanted', 'not requested by the rule'), ('channel_disabled', 'channel disabled')], default='', max_length=20, verbose_name='reason')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('created_at', models.DateTimeField(verbose_name='created')),
                ('due_at', models.DateTimeField(verbose_name='due')),
                ('next_try_at', models.DateTimeField(null=True, verbose_name='next try')),
                ('sent_at', models.DateTimeField(null=True, verbose_name='sent at')),
                ('response_code', models.IntegerField(null=True, verbose_name='answer')),
                ('error', models.TextField(blank=True, default='', verbose_name='error')),
                ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='alerts.alert', verbose_name='alert')),
                ('channel', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='deliveries', to='alerts.channel', verbose_name='channel')),
            ],
            options={
                'verbose_name': 'delivery',
                'verbose_name_plural': 'deliveries',
                'db_table': 'alert_deliveries',
                'ordering': ['-id'],
                'indexes': [models.Index(condition=models.Q(('status', 'PENDING')), fields=['next_try_at'], name='delivery_pending'), models.Index(fields=['due_at'], name='delivery_by_due'), models.Index(fields=['channel', 'id'], name='delivery_by_channel')],
            },
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(condition=models.Q(('recovered_at__isnull', True)), fields=['opened_at'], name='alert_open'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['opened_at'], name='alert_by_time'),
        ),
        migrations.AddIndex(
            model_name='alert',
            index=models.Index(fields=['olt', 'opened_at'], name='alert_by_olt'),
        ),
        migrations.AddConstraint(
            model_name='alert',
            constraint=models.UniqueConstraint(condition=models.Q(('recovered_at__isnull', True)), fields=('rule', 'key'), name='one_open_alert_per_key'),
        ),
    ]
