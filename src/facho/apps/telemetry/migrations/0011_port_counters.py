"""Ports get counters of their ONUs, and ONUs the start of their state. Both are filled from what is stored.

Every ONU has a row of its port: migration 0007 gave it one, and so does the run that finds an ONU.
"""

from django.db import migrations, models
from django.utils import timezone

STATES = (
    'online', 'offline', 'los', 'dying_gasp', 'auth_failed', 'logging', 'syncing', 'degraded', 'disabled', 'unknown',
)
DARK = "('offline', 'los', 'dying_gasp')"

# The definitions are those of `store/inventory.py`.
COUNTERS = {
    'total': 'TRUE',
    'missing': 'missing_since IS NOT NULL',
    'held': 'missing_since IS NULL AND misses > 0',
    'weak': f'missing_since IS NULL AND rx_dbm < -27.0 AND state NOT IN {DARK}',
    **{state: f"missing_since IS NULL AND state = '{state}'" for state in STATES},
}

# The last event that started the state: a change from one dark state to another does not. Without one, the time that
# the device reports. Without that, the state is as old as the ONU, if there are events of the whole time since; they
# are kept for some months only. Otherwise nobody knows, and it stays NULL, as it does for a state that is not known.
STATE_SINCE = f"""
    SELECT onu_data.id, COALESCE(changed.at, CASE
        WHEN state IN {DARK} AND last_down <= %s AND (last_up IS NULL OR last_up <= last_down) THEN last_down
        WHEN state = 'online' AND last_up <= %s AND (last_down IS NULL OR last_down <= last_up) THEN last_up
        WHEN first_seen_at >= (SELECT MIN(at) FROM onu_events) THEN first_seen_at
    END) AS began
    FROM onu_data LEFT JOIN (
        SELECT onu_id, MAX(at) AS at FROM onu_events
        WHERE field = 'state' AND NOT (old IN {DARK} AND new IN {DARK}) GROUP BY onu_id
    ) AS changed ON changed.onu_id = onu_data.id
    WHERE state <> 'unknown'
"""


def fill(apps, schema_editor):
    connection = schema_editor.connection
    counts = ', '.join(f'COUNT(*) FILTER (WHERE {condition}) AS {name}' for name, condition in COUNTERS.items())
    assigned = ', '.join(f'{name} = counted.{name}' for name in COUNTERS)
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE pon_ports SET {assigned}'
            f' FROM (SELECT pon_port_id, {counts} FROM onu_data GROUP BY pon_port_id) AS counted'
            ' WHERE counted.pon_port_id = pon_ports.id'
        )
        cursor.execute(
            f'UPDATE onu_data SET state_since = known.began FROM ({STATE_SINCE}) AS known'
            ' WHERE known.id = onu_data.id AND known.began IS NOT NULL',
            [now, now],
        )


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0010_history_labels'),
    ]

    operations = [
        # Made again at the end: an index less to update for each ONU.
        migrations.RemoveIndex(model_name='onu', name='onu_state'),
        migrations.AddField(
            model_name='onu',
            name='state_since',
            field=models.DateTimeField(null=True, verbose_name='state since'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='auth_failed',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='not authorised'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='degraded',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='degraded'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='disabled',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='disabled'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='dying_gasp',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='power lost'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='held',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='not found'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='logging',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='logging in'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='los',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='loss of signal'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='missing',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='missing'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='offline',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='offline'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='online',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='online'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='syncing',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='synchronising'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='total',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='ONUs'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='unknown',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='unknown'),
        ),
        migrations.AddField(
            model_name='ponport',
            name='weak',
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name='low power'),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='onu',
            index=models.Index(fields=['state', 'state_since'], name='onu_state'),
        ),
    ]
