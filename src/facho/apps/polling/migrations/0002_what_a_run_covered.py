from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('polling', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='execution',
            name='coverage',
            field=models.JSONField(default=dict, verbose_name='coverage'),
        ),
        migrations.AddField(
            model_name='execution',
            name='failed_onus',
            field=models.JSONField(default=list, verbose_name='failed ONUs'),
        ),
        migrations.AddField(
            model_name='execution',
            name='peak_in_flight',
            field=models.PositiveIntegerField(default=0, verbose_name='maximum in flight'),
        ),
        migrations.AddField(
            model_name='execution',
            name='rtt_p99',
            field=models.FloatField(null=True, verbose_name='round trip, 99 % (s)'),
        ),
        migrations.AddField(
            model_name='execution',
            name='sizes',
            field=models.JSONField(default=dict, verbose_name='request sizes'),
        ),
    ]
