"""Quotas, violations, plans and the log move to the app `coordinator`; not a table is touched."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('polling', '0002_what_a_run_covered'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[],
            state_operations=[
                migrations.DeleteModel('CoordinatorLog'),
                migrations.DeleteModel('ExecutionPlan'),
                migrations.DeleteModel('QuotaTracker'),
                migrations.DeleteModel('QuotaViolation'),
            ],
        ),
    ]
