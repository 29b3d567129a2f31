"""An interval in a form: a number and its unit."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.apps.inventory.spans import span
from facho.apps.jobs.models import LONGEST_INTERVAL, SHORTEST_INTERVAL

UNITS = {"s": 1, "min": 60, "h": 3600}
UNIT_CHOICES = [("min", gettext_lazy("minutes")), ("s", gettext_lazy("seconds")), ("h", gettext_lazy("hours"))]


class IntervalForm(forms.Form):
    """A form with an interval. `interval_seconds` of the cleaned values is None if it is empty."""

    interval = forms.IntegerField(label=gettext_lazy("interval"), min_value=1, required=False)
    unit = forms.ChoiceField(label=gettext_lazy("unit"), choices=UNIT_CHOICES, required=False)

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        number = values.get("interval")
        seconds = None if number is None else number * UNITS[values.get("unit") or "min"]
        if seconds is not None and not SHORTEST_INTERVAL <= seconds <= LONGEST_INTERVAL:
            limits = {"shortest": span(SHORTEST_INTERVAL), "longest": span(LONGEST_INTERVAL)}
            self.add_error(
                "interval", ValidationError(_("Choose an interval of %(shortest)s to %(longest)s.") % limits)
            )
        return {**values, "interval_seconds": seconds}
