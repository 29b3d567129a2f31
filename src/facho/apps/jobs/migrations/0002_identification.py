from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='snmpjob',
            name='kind',
            field=models.CharField(choices=[('discovery', 'discovery'), ('get', 'get'), ('walk', 'walk'), ('table', 'table'), ('identify', 'identification')], max_length=12, verbose_name='type'),
        ),
    ]
