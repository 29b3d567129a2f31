"""A version of the ONUs of an OLT, so that processes can keep them in memory."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0007_automatic_window'),
    ]

    operations = [
        migrations.AddField(
            model_name='olt',
            name='inventory_version',
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
