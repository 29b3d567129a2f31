"""Text of log entries, in the user's language."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import get_language, gettext, ngettext

from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaViolation
from facho.apps.polling.errors import in_words
from facho.apps.polling.models import CAUSE_CHOICES
from facho.engine.events import Event

# Details that are terms of Facho, by name.
WORDS: Mapping[str, Mapping[str, Any]] = {
    "cause": dict(CAUSE_CHOICES),
    "severity": dict(QuotaViolation.Severity.choices),
    "reason": dict(ExecutionPlan.Reason.choices),
}

# Details that are times.
TIMES = frozenset({"slot", "at", "hour"})


def sentence(log: CoordinatorLog) -> str:
    """Return the text of a log entry; as stored if its event or a detail is no longer known."""
    try:
        return told(Event[log.event_type], log.details)
    except (KeyError, TypeError, ValueError, AttributeError):
        return log.message


def told(event: Event, details: Mapping[str, Any]) -> str:
    """Return the text of an event; `KeyError`, `TypeError` or `ValueError` if its details do not match."""
    if event.counts:
        # Older details may lack the count, which was one then.
        template = ngettext(event.singular, event.sentence, details.get(event.counts, 1))
    else:
        template = gettext(event.sentence)
    return template % spoken(details)


def spoken(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details for a message: terms in the user's language, times in the user's zone.

    A detail that is a whole sentence is stored in several languages: `subject`, and `subject_es` beside it.
    """
    language = get_language()
    said = {name: details.get(f"{name}_{language}", value) for name, value in details.items()}
    for name, value in said.items():
        if name in TIMES:
            said[name] = _time(value)
        elif name == "error":
            said[name] = in_words(str(value))
        elif name in WORDS and value in WORDS[name]:
            said[name] = str(WORDS[name][value])
    return said


def _time(value: Any) -> Any:
    """Return a time in the user's zone, with the name of the zone."""
    try:
        at = timezone.localtime(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return value
    return date_format(at, "Y-m-d H:i:s T")
