from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0008_inventory_version'),
    ]

    operations = [
        migrations.AlterField(
            model_name='olt',
            name='failures',
            field=models.PositiveIntegerField(default=0, editable=False, verbose_name='silent attempts in a row'),
        ),
    ]
