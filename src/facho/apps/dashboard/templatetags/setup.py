"""Template tags of the pages about the set-up: log, jobs, users."""

from datetime import timedelta

from django import template
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from facho.apps.coordinator.event_labels import event_label, level_label
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.coordinator.text import sentence
from facho.apps.dashboard.field_times import field_time
from facho.apps.dashboard.templatetags.facho import badge
from facho.apps.inventory import labels
from facho.apps.polling.models import Execution

register = template.Library()
register.filter("event_name", event_label)
register.filter("log_sentence", sentence)
register.filter("column_names", labels.columns)

# Colours of levels. An entry to inform has none.
LEVEL_TONES = {"WARNING": "PARTIAL", "ERROR": "FAILED", "CRITICAL": "FAILED"}

# An entry is written at the end of a run, which lasts minutes; the entries of a run are written until shortly after it.
BEFORE, AFTER = timedelta(minutes=15), timedelta(minutes=1)


@register.simple_tag
def log_level(level: str) -> SafeString:
    return badge(LEVEL_TONES.get(level, ""), level_label(level))


@register.simple_tag
def executions_around(entry: CoordinatorLog) -> str:
    """Return the query of the executions of an OLT at the time of an entry."""
    at = entry.timestamp
    span = {"slot_after": field_time(at - BEFORE), "slot_before": field_time(at + AFTER)}
    return urlencode({"olt": str(entry.olt_id or ""), **span})


@register.simple_tag
def log_around(run: Execution) -> str:
    """Return the query of the log entries of an OLT during a run."""
    ended = run.ended_at or run.retry_at or run.slot + BEFORE
    begun = min(run.slot, run.started_at or run.slot)
    return urlencode(
        {"olt": str(run.olt_id), "time_after": field_time(begun), "time_before": field_time(ended + AFTER)}
    )
