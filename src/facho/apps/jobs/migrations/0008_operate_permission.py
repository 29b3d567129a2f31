from django.db import migrations

NAMES = {
    'workflownode': 'Can enable and disable node and change its interval',
    'snmpjob': 'Can enable and disable job and change its interval',
}


def give(apps, schema_editor):
    """Give the new permissions to all who could enable nodes and jobs and change their intervals before."""
    database = schema_editor.connection.alias
    types = apps.get_model('contenttypes', 'ContentType').objects.using(database)
    permissions = apps.get_model('auth', 'Permission').objects.using(database)
    for model, name in NAMES.items():
        kind, _ = types.get_or_create(app_label='jobs', model=model)
        operate, _ = permissions.get_or_create(
            content_type=kind, codename=f'operate_{model}', defaults={'name': name}
        )
        for had in permissions.filter(content_type__app_label='jobs', codename=f'change_{model}'):
            operate.group_set.add(*had.group_set.all())
            operate.user_set.add(*had.user_set.all())


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0001_version_0_5'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='snmpjob',
            options={
                'ordering': ['brand', '-priority', 'name'],
                'permissions': [('operate_snmpjob', NAMES['snmpjob'])],
                'verbose_name': 'job',
                'verbose_name_plural': 'jobs',
            },
        ),
        migrations.AlterModelOptions(
            name='workflownode',
            options={
                'ordering': ['olt', 'job'],
                'permissions': [
                    ('run_workflownode', 'Can run node now'),
                    ('operate_workflownode', NAMES['workflownode']),
                ],
                'verbose_name': 'node',
                'verbose_name_plural': 'nodes',
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
