from django.db import migrations


def give(apps, schema_editor):
    """Give the new permission to all who could enable and disable OLTs before."""
    database = schema_editor.connection.alias
    types = apps.get_model('contenttypes', 'ContentType').objects.using(database)
    permissions = apps.get_model('auth', 'Permission').objects.using(database)
    kind, _ = types.get_or_create(app_label='inventory', model='olt')
    operate, _ = permissions.get_or_create(
        content_type=kind,
        codename='operate_olt',
        defaults={'name': 'Can enable and disable OLT and close its breaker'},
    )
    for had in permissions.filter(content_type__app_label='inventory', codename='change_olt'):
        operate.group_set.add(*had.group_set.all())
        operate.user_set.add(*had.user_set.all())


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0001_version_0_5'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='olt',
            options={
                'ordering': ['name'],
                'permissions': [('operate_olt', 'Can enable and disable OLT and close its breaker')],
                'verbose_name': 'OLT',
                'verbose_name_plural': 'OLTs',
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
