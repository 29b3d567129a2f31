"""Labels of the completeness of a run. The database does not change."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('polling', '0001_version_0_5'),
    ]

    operations = [
        migrations.AlterField(
            model_name='execution',
            name='completeness',
            field=models.CharField(blank=True, choices=[('COMPLETE', 'complete'), ('PARTIAL', 'partial'), ('EMPTY', 'empty')], max_length=10, verbose_name='completeness'),
        ),
    ]
