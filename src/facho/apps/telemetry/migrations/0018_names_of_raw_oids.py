"""Room for the name of a raw OID in the history.

SQLite ignores the length of a column, and Django would copy the tables, which may have gigabytes. PostgreSQL changes
only its catalogue.
"""

from django.db import migrations, models


def widen(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for name in ("HistoryChunk", "HistoryMonth"):
        table = schema_editor.quote_name(apps.get_model("telemetry", name)._meta.db_table)
        schema_editor.execute(f"ALTER TABLE {table} ALTER COLUMN field TYPE varchar(80)")


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0017_tsdb_outbox")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(widen, migrations.RunPython.noop)],
            state_operations=[
                migrations.AlterField("historychunk", "field", models.CharField(max_length=80)),
                migrations.AlterField("historymonth", "field", models.CharField(max_length=80)),
            ],
        )
    ]
