"""Sessions with user, activity and address; two-factor authentication; failed logins.

Sessions in Django's table end: their users log in again. The table is removed together with the traces of its app.
"""

import django.db.models.deletion
import django.utils.timezone
import facho.apps.rest.fields
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.recorder import MigrationRecorder


def forget_sessions_app(apps, schema_editor):
    apps.get_model("contenttypes", "ContentType").objects.filter(app_label="sessions").delete()
    # An earlier version creates its table again.
    MigrationRecorder(schema_editor.connection).migration_qs.filter(app="sessions").delete()


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_roles'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('axes', '0010_accessattemptexpiration'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='TwoFactor',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='two_factor', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('secret', facho.apps.rest.fields.SecretField()),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('last_step', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'two_factor',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='FailedLogin',
            fields=[
            ],
            options={
                'verbose_name': 'failed login',
                'verbose_name_plural': 'failed logins',
                'proxy': True,
                'default_permissions': ('view', 'delete'),
                'indexes': [],
                'constraints': [],
            },
            bases=('axes.accessattempt',),
        ),
        migrations.CreateModel(
            name='UserSession',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_activity_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_address', models.CharField(max_length=45, null=True)),
                ('user_agent', models.CharField(default='', max_length=255)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'user_sessions',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='RecoveryCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code_hash', models.CharField(max_length=64)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'db_table': 'recovery_codes',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'code_hash'), name='one_recovery_code')],
            },
        ),
        migrations.RunSQL("DROP TABLE IF EXISTS django_session", migrations.RunSQL.noop),
        migrations.RunPython(forget_sessions_app, migrations.RunPython.noop),
    ]
