from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('coordinator', '0007_mean_durations'),
    ]

    operations = [
        migrations.AlterField(
            model_name='quotatracker',
            name='avg_duration_ms',
            field=models.PositiveBigIntegerField(null=True, verbose_name='mean time of a run (ms)'),
        ),
        migrations.AlterField(
            model_name='quotatracker',
            name='total_duration_ms',
            field=models.PositiveBigIntegerField(default=0, verbose_name='time in all (ms)'),
        ),
    ]
