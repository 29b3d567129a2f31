"""Kinds of rules and their settings, in one list for the form, the API and the evaluation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.coordinator.event_labels import EVENT_LABELS
from facho.apps.coordinator.models import QuotaViolation
from facho.engine.events import Event

# Events of alerts themselves; a rule on them would react to its own messages.
OF_ALERTS = {Event.ALERT_RAISED.name, Event.ALERT_RECOVERED.name}
EVENT_CHOICES = tuple((event.name, EVENT_LABELS[event]) for event in Event if event.name not in OF_ALERTS)


class RuleKind(models.TextChoices):
    """Conditions that a rule can watch."""

    OLT_UNREACHABLE = "olt_unreachable", _("OLT unreachable")
    VIOLATION = "violation", _("quota violation")
    PORT_DARK = "port_dark", _("PON port down")
    LOW_POWER = "low_power", _("low power")
    MASS_VANISHING = "mass_vanishing", _("mass disappearance")
    POOL_SATURATED = "pool_saturated", _("pollers saturated")
    QUEUE_DELAYED = "queue_delayed", _("queue delayed")
    SCHEDULER_STALLED = "scheduler_stalled", _("scheduler stalled")
    EVENT = "event", _("log event")


# Kinds about one OLT each, which can be limited to some OLTs.
OF_OLTS = frozenset(
    {
        RuleKind.OLT_UNREACHABLE,
        RuleKind.VIOLATION,
        RuleKind.PORT_DARK,
        RuleKind.LOW_POWER,
        RuleKind.MASS_VANISHING,
        RuleKind.EVENT,
    }
)


@dataclass(frozen=True, slots=True)
class Param:
    """One setting: a number within bounds, a choice, or several choices."""

    label: Any
    default: Any
    help: Any = ""
    least: float = 0
    most: float = 0
    is_whole: bool = True
    choices: tuple[tuple[str, Any], ...] = ()
    several: bool = False

    def clean(self, value: Any) -> Any:
        """Return the value to store; `ValidationError` if it is invalid."""
        if self.several:
            if not isinstance(value, list | tuple) or not value:
                raise ValidationError(gettext("Choose at least one."))
            return sorted({self._clean_choice(each) for each in value})
        if self.choices:
            return self._clean_choice(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not self.least <= value <= self.most or (self.is_whole and value != int(value)):
            bounds = {"least": f"{self.least:g}", "most": f"{self.most:g}"}
            kind = gettext("a whole number") if self.is_whole else gettext("a number")
            raise ValidationError(gettext("Write %(kind)s from %(least)s to %(most)s.") % {"kind": kind, **bounds})
        return int(value) if self.is_whole else float(value)

    def _clean_choice(self, value: Any) -> str:
        known = [name for name, _label in self.choices]
        if value not in known:
            raise ValidationError(gettext("Choose one of: %(choices)s.") % {"choices": ", ".join(known)})
        return str(value)


PARAMS: Mapping[str, Mapping[str, Param]] = {
    RuleKind.VIOLATION: {
        "min_severity": Param(
            _("Minimum severity"),
            "MEDIUM",
            _(
                "By the share of runs completed in an hour: low below 80 %, medium below 60 %, high at 50 % or "
                "less, critical below 25 %."
            ),
            choices=tuple(QuotaViolation.Severity.choices),
        )
    },
    RuleKind.PORT_DARK: {
        "dark_onus": Param(_("ONUs"), 4, _("Minimum number of ONUs of a port that are down."), least=1, most=1024),
        "dark_percent": Param(
            _("Percent"),
            50,
            _("Minimum percentage of the ONUs of the port that are down. Both limits must be reached."),
            least=1,
            most=100,
        ),
    },
    RuleKind.LOW_POWER: {
        "below_dbm": Param(
            _("Below (dBm)"), -27.0, _("Power received by an ONU, in dBm."), least=-50, most=10, is_whole=False
        ),
        "hysteresis_db": Param(
            _("Hysteresis (dB)"),
            1.0,
            _("The alert is resolved when the power rises this much above the limit, in dB."),
            most=10,
            is_whole=False,
        ),
        "low_onus": Param(_("ONUs"), 1, _("Minimum number of ONUs of a port."), least=1, most=1024),
    },
    RuleKind.QUEUE_DELAYED: {
        "delayed": Param(_("Nodes"), 10, _("More delayed nodes than this number."), most=100_000),
        "minutes": Param(_("Minutes"), 5, _("For this many minutes without interruption."), least=1, most=1440),
    },
    RuleKind.SCHEDULER_STALLED: {
        "stalled_seconds": Param(
            _("Seconds"), 30, _("Seconds without a report. The scheduler reports every second."), least=10, most=3600
        )
    },
    RuleKind.EVENT: {
        "event_types": Param(
            _("Events"), (), _("Events of the log that raise an alert."), choices=EVENT_CHOICES, several=True
        ),
        "event_minutes": Param(
            _("Minutes"),
            15,
            _("Repeated events of the same OLT within this time, in minutes, are one alert."),
            least=1,
            most=1440,
        ),
    },
}


def clean_params(kind: str, given: Any) -> dict[str, Any]:
    """Return all settings of a kind, with defaults for missing ones; `ValidationError` by name."""
    if not isinstance(given, dict):
        raise ValidationError(gettext("Write an object with names and values."))
    known = PARAMS.get(kind, {})
    errors = [
        gettext("%(kind)s has no setting %(name)s.") % {"kind": kind, "name": name} for name in given.keys() - known
    ]
    cleaned = {}
    for name, param in known.items():
        try:
            cleaned[name] = param.clean(given.get(name, param.default))
        except ValidationError as error:
            errors.append(f"{name}: {error.messages[0]}")
    if errors:
        raise ValidationError(sorted(errors))
    return cleaned
