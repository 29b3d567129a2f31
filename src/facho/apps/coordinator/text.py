"""What a row of the log says, in the language of the reader."""

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

# Details that are a word of our own vocabulary, by what they are called in a sentence.
WORDS: Mapping[str, Mapping[str, Any]] = {
    "cause": dict(CAUSE_CHOICES),
    "severity": dict(QuotaViolation.Severity.choices),
    "reason": dict(ExecutionPlan.Reason.choices),
}

# Details that are a time.
TIMES = frozenset({"slot", "at", "hour"})


def sentence(log: CoordinatorLog) -> str:
    """Return what a log entry says; as it was written where its event, or one of its details, is not known any more."""
    try:
        return told(Event[log.event_type], log.details)
    except (KeyError, TypeError, ValueError, AttributeError):
        return log.message


def told(event: Event, details: Mapping[str, Any]) -> str:
    """Return what an event says; `KeyError`, `TypeError` or `ValueError` where its details do not fill its sentence."""
    if event.counts:
        # Older details may not say how many; there was one then.
        template = ngettext(event.singular, event.sentence, details.get(event.counts, 1))
    else:
        template = gettext(event.sentence)
    return template % spoken(details)


def spoken(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as sentences have them: words of ours in the reader's language, times in the reader's zone.

    A detail that is a whole sentence is kept in several languages: `subject`, and `subject_es` beside it.
    """
    language = get_language()
    return {name: _spoken(name, details.get(f"{name}_{language}", value)) for name, value in details.items()}


def _spoken(name: str, value: Any) -> Any:
    if name in TIMES:
        return _time(value)
    if name == "error":
        return in_words(str(value))
    word = WORDS[name].get(value) if name in WORDS else None
    return value if word is None else str(word)


def _time(value: Any) -> Any:
    """Return a time in the zone of the reader, and which zone that is: the same sentence may be read elsewhere."""
    try:
        at = timezone.localtime(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return value
    return date_format(at, "Y-m-d H:i:s T")
