"""Advice for violations and infeasible plans, in the user's language."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext

from facho.apps.coordinator.text import told
from facho.engine.events import Event
from facho.engine.quota.quota import ADVICE


def violation_advice(report: Mapping[str, Any]) -> list[str]:
    """Return the advice of a report; as stored if its code is no longer known."""
    return [_cure(each) for each in report.get("advice", ())]


def _cure(each: Mapping[str, Any]) -> str:
    try:
        return str(gettext(ADVICE[each["code"]]) % each.get("params", {}))
    except (KeyError, TypeError, ValueError):
        return str(each.get("sentence", ""))


def plan_advice(advice: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the advice of a plan, without unknown events."""
    return [sentence for each in advice if (sentence := _change(each))]


def _change(each: Mapping[str, Any]) -> str:
    try:
        return told(Event[each["event"]], each.get("params", {}))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
