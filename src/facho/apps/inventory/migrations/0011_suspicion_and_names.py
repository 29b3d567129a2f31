import facho.apps.rest.names
from django.db import migrations, models


def name_suspicions(apps, schema_editor):
    """Until now the only reason was a mass disappearance."""
    apps.get_model("inventory", "Olt").objects.filter(suspect_since__isnull=False).update(suspect_reason="missing")


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0010_sites_and_tags'),
    ]

    operations = [
        migrations.AddField(
            model_name='olt',
            name='suspect_reason',
            field=models.CharField(blank=True, choices=[('missing', 'many ONUs disappeared at once'), ('too_many', 'more ONUs than the limit')], db_default='', default='', editable=False, max_length=10, verbose_name='suspect because of'),
        ),
        migrations.AlterField(
            model_name='olt',
            name='location',
            field=models.CharField(blank=True, max_length=200, validators=[facho.apps.rest.names.validate_name], verbose_name='location'),
        ),
        migrations.AlterField(
            model_name='olt',
            name='name',
            field=models.CharField(max_length=100, unique=True, validators=[facho.apps.rest.names.validate_name], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='olt',
            name='v3_user',
            field=models.CharField(blank=True, max_length=100, validators=[facho.apps.rest.names.validate_name], verbose_name='v3 user'),
        ),
        migrations.RunPython(name_suspicions, migrations.RunPython.noop),
    ]
