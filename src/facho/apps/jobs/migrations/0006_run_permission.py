from django.db import migrations
from django.db.models import Q

# Users with one of these could run a node: through API and pages with the first, in the admin with the second.
COULD_RUN = ('change_workflownode', 'change_workflow')


def give(apps, schema_editor):
    """Give the new permission to all who could run a node before."""
    database = schema_editor.connection.alias
    types = apps.get_model('contenttypes', 'ContentType').objects.using(database)
    permissions = apps.get_model('auth', 'Permission').objects.using(database)
    node_type, _ = types.get_or_create(app_label='jobs', model='workflownode')
    run, _ = permissions.get_or_create(
        content_type=node_type, codename='run_workflownode', defaults={'name': 'Can run node now'}
    )
    before = Q(content_type__app_label='jobs', codename__in=COULD_RUN)
    for had in permissions.filter(before):
        run.group_set.add(*had.group_set.all())
        run.user_set.add(*had.user_set.all())


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0005_default_priority_by_kind'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='workflownode',
            options={
                'ordering': ['olt', 'job'],
                'permissions': [('run_workflownode', 'Can run node now')],
                'verbose_name': 'node',
                'verbose_name_plural': 'nodes',
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
