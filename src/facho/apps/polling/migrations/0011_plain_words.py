from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('polling', '0010_free_and_started'),
    ]

    operations = [
        migrations.AlterField(
            model_name='execution',
            name='peak_in_flight',
            field=models.PositiveIntegerField(default=0, verbose_name='most in flight'),
        ),
        migrations.AlterField(
            model_name='execution',
            name='sizes',
            field=models.JSONField(default=dict, verbose_name='sizes of requests'),
        ),
    ]
