"""Columns of the log in files."""

from django.utils.translation import gettext_lazy as _

from facho.apps.coordinator.event_labels import event_label, level_label
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.coordinator.text import sentence
from facho.apps.rest.export import column, columns_of, label_of

LOG_COLUMNS = (
    column("id", "id"),
    *columns_of(CoordinatorLog, "timestamp"),
    column("level", label_of(CoordinatorLog, "level"), said=lambda entry: level_label(entry.level)),
    column("event", label_of(CoordinatorLog, "event_type"), "event_type", lambda entry: event_label(entry.event_type)),
    column("olt", _("OLT id"), "olt_id"),
    column("olt_name", _("OLT")),
    column("sentence", _("what happened"), "message", sentence),
    column("message", _("in the log file")),
)
