from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('alerts', '0002_rules_about_chosen_olts'),
    ]

    operations = [
        migrations.AlterField(
            model_name='alert',
            name='first_told_at',
            field=models.DateTimeField(null=True, verbose_name='first told'),
        ),
        migrations.AlterField(
            model_name='alert',
            name='last_told_at',
            field=models.DateTimeField(null=True, verbose_name='last told'),
        ),
    ]
