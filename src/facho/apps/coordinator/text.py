"""What a row of the log says, in the language of the reader."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from facho.apps.coordinator.models import CoordinatorLog, QuotaViolation
from facho.apps.polling.models import CAUSE_CHOICES
from facho.engine.events import Event

# Details that are a word of our own vocabulary, by what they are called in a sentence.
WORDS: Mapping[str, Mapping[str, Any]] = {
    "cause": dict(CAUSE_CHOICES),
    "severity": dict(QuotaViolation.Severity.choices),
}

# Details that are a time.
TIMES = frozenset({"slot", "at", "hour"})


def sentence(log: CoordinatorLog) -> str:
    """Return what a log entry says; as it was written where its event, or one of its details, is not known any more."""
    try:
        return gettext(Event[log.event_type].sentence) % spoken(log.details)
    except (KeyError, TypeError, ValueError, AttributeError):
        return log.message


def spoken(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as sentences have them: words of ours in the reader's language, times in the reader's zone."""
    return {name: _said(name, value) for name, value in details.items()}


def _said(name: str, value: Any) -> Any:
    if name in TIMES:
        return _time(value)
    word = WORDS[name].get(value) if name in WORDS else None
    return value if word is None else str(word)


def _time(value: Any) -> Any:
    """Return a time in the zone of the reader, and which zone that is: the same sentence may be read elsewhere."""
    try:
        at = timezone.localtime(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return value
    return date_format(at, "Y-m-d H:i:s T")
