"""`facho shell`: Django's shell with names for custom queries."""

from django.core.management.commands import shell

# Besides the models: engine types and query functions.
ALSO = (
    "facho.engine.events.Event",
    "facho.engine.model.Cause",
    "facho.engine.model.JobKind",
    "facho.engine.model.Status",
    "facho.engine.model.Trigger",
    "facho.engine.quota.quota.HOUR",
    "facho.engine.quota.quota.Severity",
    "facho.engine.quota.quota.hour_of",
    "facho.engine.scheduling.grid.next_check",
    "datetime.datetime",
    "datetime.timedelta",
    "django.db.models.Avg",
    "django.db.models.Count",
    "django.db.models.F",
    "django.db.models.Max",
    "django.db.models.Q",
    "django.utils.timezone",
)


class Shell(shell.Command):
    """Imports all models and engine types."""

    def get_auto_imports(self) -> list[str]:
        return [*(super().get_auto_imports() or ()), *ALSO]
