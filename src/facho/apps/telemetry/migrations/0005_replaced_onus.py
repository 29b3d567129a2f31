import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0003_breaker'),
        ('telemetry', '0004_history_by_day'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='onu',
            name='onu_once_per_olt',
        ),
        migrations.AddField(
            model_name='onu',
            name='place_taken',
            field=models.BooleanField(db_default=False, default=False, verbose_name='place taken'),
        ),
        migrations.AddField(
            model_name='onu',
            name='replaced_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='replaces', to='telemetry.onu', verbose_name='replaced by'),
        ),
        migrations.AddConstraint(
            model_name='onu',
            constraint=models.UniqueConstraint(condition=models.Q(('place_taken', False)), fields=('olt', 'index'), name='onu_holds_index_alone'),
        ),
    ]
