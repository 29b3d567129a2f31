"""Columns of executions in files."""

from django.utils.translation import gettext_lazy as _

from facho.apps.inventory import labels
from facho.apps.polling.errors import in_words
from facho.apps.polling.models import Execution
from facho.apps.rest.export import column, columns_of, label_of

EXECUTION_COLUMNS = (
    column("id", "id"),
    column("olt", _("OLT id"), "olt_id"),
    column("olt_name", _("OLT")),
    column("node", _("node id"), "node_id"),
    column("node_name", _("job"), said=lambda run: labels.job(run.node_name)),
    column("master_execution", _("execution of the master"), "master_execution_id"),
    column("trigger", label_of(Execution, "trigger"), said=lambda run: run.get_trigger_display()),
    *columns_of(Execution, "slot", "slots"),
    column("status", label_of(Execution, "status"), said=lambda run: run.get_status_display()),
    column("cause", label_of(Execution, "cause"), said=lambda run: run.get_cause_display()),
    *columns_of(Execution, "started_at", "ended_at"),
    column("lateness", _("late (s)")),
    column("duration", _("took (s)")),
    *columns_of(Execution, "readings"),
    column("completeness", label_of(Execution, "completeness"), said=lambda run: run.get_completeness_display()),
    *columns_of(Execution, "pdus", "retransmissions", "varbinds", "poller_id"),
    column("error", label_of(Execution, "error"), said=lambda run: in_words(run.error)),
)
