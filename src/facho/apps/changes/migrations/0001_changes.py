import django.utils.timezone
from django.db import migrations, models

# SQLite loses the trigger if a later migration makes the table again; such a migration must create it again.
SQLITE = """
CREATE TRIGGER changes_append_only BEFORE UPDATE ON changes
BEGIN SELECT RAISE(ABORT, 'the record of changes is append-only'); END
"""
POSTGRESQL = """
CREATE FUNCTION changes_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the record of changes is append-only'; END $$;
CREATE TRIGGER changes_append_only BEFORE UPDATE ON changes
FOR EACH ROW EXECUTE FUNCTION changes_append_only()
"""


def refuse_updates(_apps, schema_editor):
    schema_editor.execute(SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL)


def allow_updates(_apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION changes_append_only CASCADE")


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='time')),
                ('actor', models.CharField(blank=True, max_length=200, verbose_name='who')),
                ('user_id', models.BigIntegerField(null=True, verbose_name='user')),
                ('token', models.CharField(blank=True, max_length=200, verbose_name='token')),
                ('address', models.CharField(blank=True, max_length=45, verbose_name='address')),
                ('interface', models.CharField(choices=[('page', 'page'), ('admin', 'admin'), ('api', 'API'), ('import', 'import'), ('cli', 'command line'), ('engine', 'engine')], max_length=10, verbose_name='through')),
                ('action', models.CharField(choices=[('created', 'created'), ('changed', 'changed'), ('deleted', 'deleted'), ('run_requested', 'run requested'), ('tried', 'job tried'), ('breaker_opened', 'breaker opened'), ('breaker_closed', 'breaker closed'), ('acknowledged', 'acknowledged'), ('test_requested', 'test requested'), ('sent_again', 'sent again'), ('revoked', 'revoked'), ('login', 'login'), ('login_failed', 'login failed'), ('locked_out', 'locked out'), ('logout', 'logout'), ('unlocked', 'unlocked'), ('sessions_ended', 'sessions ended'), ('two_factor_on', 'two-factor authentication turned on'), ('two_factor_off', 'two-factor authentication turned off'), ('keys_rotated', 'keys rotated')], max_length=20, verbose_name='action')),
                ('object_type', models.CharField(blank=True, max_length=60, verbose_name='object type')),
                ('object_id', models.BigIntegerField(null=True, verbose_name='object')),
                ('object_name', models.CharField(blank=True, max_length=200, verbose_name='object')),
                ('fields', models.JSONField(default=dict, verbose_name='fields')),
                ('note', models.TextField(blank=True, verbose_name='note')),
                ('request_id', models.CharField(blank=True, max_length=64, verbose_name='request')),
                ('olt_id', models.BigIntegerField(null=True, verbose_name='OLT')),
            ],
            options={
                'verbose_name': 'change',
                'verbose_name_plural': 'changes',
                'db_table': 'changes',
                'ordering': ['-id'],
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['at'], name='change_by_time'), models.Index(fields=['object_type', 'object_id', 'id'], name='change_by_object'), models.Index(fields=['actor', 'id'], name='change_by_actor'), models.Index(fields=['olt_id', 'id'], name='change_by_olt'), models.Index(fields=['interface', 'id'], name='change_by_interface')],
            },
        ),
        migrations.RunPython(refuse_updates, allow_updates),
    ]
