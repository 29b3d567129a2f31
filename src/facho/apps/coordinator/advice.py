"""What to do about a violation or a plan that does not fit, in the language of the reader."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext

from facho.apps.coordinator.text import told
from facho.engine.events import Event
from facho.engine.quota.quota import ADVICE


def violation_advice(report: Mapping[str, Any]) -> list[str]:
    """Return what a report tells people to do; as it was written where its code is not known any more."""
    return [_cure(each) for each in report.get("advice", ())]


def _cure(each: Mapping[str, Any]) -> str:
    try:
        return str(gettext(ADVICE[each["code"]]) % each.get("params", {}))
    except (KeyError, TypeError, ValueError):
        return str(each.get("sentence", ""))


def plan_advice(advice: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what would make an hour long enough, but for what this Facho has no words for."""
    return [sentence for each in advice if (sentence := _change(each))]


def _change(each: Mapping[str, Any]) -> str:
    try:
        return told(Event[each["event"]], each.get("params", {}))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
