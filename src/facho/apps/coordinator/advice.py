"""Advice for violations and infeasible plans, in the user's language."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from django.utils.translation import gettext

from facho.apps.coordinator.text import spoken, told
from facho.engine.events import Event
from facho.engine.quota.quota import ADVICE


def violation_advice(report: Mapping[str, Any]) -> list[str]:
    """Return the advice of a report; as stored if its code is no longer known."""
    sentences = []
    for each in report.get("advice", ()):
        try:
            sentences.append(str(gettext(ADVICE[each["code"]]) % spoken(each.get("params", {}))))
        except (KeyError, TypeError, ValueError):
            sentences.append(str(each.get("sentence", "")))
    return sentences


def plan_advice(advice: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the advice of a plan, without unknown events."""
    sentences = []
    for each in advice:
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            sentences.append(told(Event[each["event"]], each.get("params", {})))
    return sentences
