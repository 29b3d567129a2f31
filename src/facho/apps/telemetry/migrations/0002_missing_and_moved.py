from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0002_census_and_learned'),
        ('telemetry', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='onu',
            name='misses',
            field=models.PositiveIntegerField(default=0, verbose_name='misses'),
        ),
        migrations.AddField(
            model_name='onu',
            name='missing_since',
            field=models.DateTimeField(null=True, verbose_name='missing since'),
        ),
        migrations.AddField(
            model_name='onu',
            name='moved_at',
            field=models.DateTimeField(null=True, verbose_name='moved'),
        ),
        migrations.AddField(
            model_name='onu',
            name='moved_from',
            field=models.CharField(blank=True, default='', max_length=120, verbose_name='moved from'),
        ),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(condition=models.Q(('missing_since__isnull', False)), fields=['missing_since'], name='onu_missing'),
        ),
    ]
