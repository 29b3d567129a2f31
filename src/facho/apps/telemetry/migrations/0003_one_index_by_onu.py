"""The index of the foreign key goes: `history_by_onu` begins with the same column, and each costs every reading a write.

Only the index is dropped. Django would copy the whole table on SQLite, which may hold millions of rows.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0002_missing_and_moved'),
    ]

    operations = [
        migrations.RunSQL(
            'DROP INDEX IF EXISTS onu_history_onu_id_a36b68e3',
            'CREATE INDEX onu_history_onu_id_a36b68e3 ON onu_history (onu_id)',
            state_operations=[
                migrations.AlterField(
                    model_name='onuhistory',
                    name='onu',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='history', to='telemetry.onu'),
                ),
            ],
        ),
    ]
