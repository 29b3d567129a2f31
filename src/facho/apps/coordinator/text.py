"""Text of log entries, in the user's language."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import get_language, gettext, ngettext

from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaViolation
from facho.apps.inventory import labels
from facho.apps.inventory.formats import decimal, moment_and_zone
from facho.apps.polling.errors import error_type, in_words
from facho.apps.polling.models import CAUSE_CHOICES
from facho.engine.events import Event

# Details that are terms of Facho, by name.
WORDS: Mapping[str, Mapping[str, Any]] = {
    "cause": dict(CAUSE_CHOICES),
    "severity": dict(QuotaViolation.Severity.choices),
    "reason": dict(ExecutionPlan.Reason.choices),
    "task": labels.JOBS,
    "lengthen": labels.JOBS,
    "drop": labels.JOBS,
}
LISTS_OF_JOBS = frozenset({"tasks", "others"})

# A number of a message, which is shown in the format of the user's region.
_NUMBER = re.compile(r"%\((\w+)\)(?:\.(\d)f|d)")

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
    return _NUMBER.sub(lambda found: _formatted(details[found[1]], found[2]), template) % spoken(details)


def _formatted(value: Any, places: str | None) -> str:
    return decimal(value, int(places or 0))


def spoken(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details for a message: terms in the user's language, times in the user's zone.

    A detail that is a whole sentence is stored in several languages: `subject`, and `subject_es` beside it.
    """
    # Without the region: es-419 is es.
    language = (get_language() or "en").split("-")[0]
    said = {name: details.get(f"{name}_{language}", value) for name, value in details.items()}
    for name, value in said.items():
        if name in TIMES:
            said[name] = _time(value)
        elif name == "error":
            said[name] = error_type(in_words(str(value)))
        elif name in LISTS_OF_JOBS and isinstance(value, str):
            said[name] = ", ".join(map(_job, value.split(", ")))
        elif name in WORDS and (word := WORDS[name].get(value)) is not None:
            said[name] = str(word)
    return said


def _job(text: str) -> str:
    """Return the label of a job that may be followed by a number in brackets: State (5 min)."""
    name, bracket, rest = text.partition(" (")
    return f"{labels.job(name)}{bracket}{rest}"


def _time(value: Any) -> Any:
    """Return a time with the name of its zone."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return moment_and_zone(at)
