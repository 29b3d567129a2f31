"""Template tags of values: ages, badges, powers. A script updates the ages."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from facho.apps.dashboard import power
from facho.apps.inventory import spans
from facho.apps.inventory.formats import decimal, moment
from facho.apps.inventory.models import Olt
from facho.apps.polling.errors import first_line, in_words
from facho.apps.polling.models import CAUSE_CHOICES, Execution
from facho.apps.telemetry.models import Onu

register = template.Library()
register.filter("interval", spans.interval)
register.filter("error_words", in_words)

# No value is a dash, never 0. (A template that reads through a None passes an empty text.)
# A time among the values of a device, as it is stored.
STORED_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00")

NOTHING = mark_safe('<span class="none">–</span>')

# Changes of power below this are noise of the receivers.
NOTABLE_DB = 1.0

# Characters that fit into two lines.
TWO_LINES = 160

# Colours of states; others are grey.
TONES = {
    "SUCCESS": "ok",
    "PARTIAL": "warn",
    "FAILED": "bad",
    "INTERRUPTED": "warn",
    "RUNNING": "info",
    "online": "ok",
    "offline": "bad",
    "los": "bad",
    "dying_gasp": "bad",
    "auth_failed": "warn",
    "logging": "info",
    "syncing": "info",
    "degraded": "warn",
    "good": "ok",
    "dark": "bad",
    "reachable": "ok",
    "slow": "warn",
    "unreachable": "bad",
    "missing": "warn",
    "breaker": "bad",
    "answers": "warn",
    "critical": "bad",
    "major": "warn",
    "minor": "info",
    "LOW": "info",
    "MEDIUM": "warn",
    "HIGH": "bad",
    "CRITICAL": "bad",
}

LEVELS = {"rx": power.rx_level, "olt_rx": power.olt_rx_level, "tx": power.tx_level}


@register.simple_tag
def age(at: datetime | None) -> SafeString:
    """Show the age of a time."""
    if not at:
        return NOTHING
    return format_html('<time datetime="{}" data-age>{}</time>', at.isoformat(), spans.ago(at))


@register.simple_tag
def due(at: datetime | None) -> SafeString:
    """Show a future time."""
    if not at:
        return NOTHING
    ahead = (at - timezone.now()).total_seconds()
    shown = _("in {span}").format(span=spans.span(ahead)) if ahead > 0 else _("due now")
    return format_html('<time datetime="{}" data-due>{}</time>', at.isoformat(), shown)


@register.simple_tag
def clock_time(at: datetime | None) -> SafeString:
    """Show a time; the browser converts it to the user's zone."""
    if not at:
        return NOTHING
    return format_html('<time datetime="{}" data-clock>{}</time>', at.isoformat(), moment(at))


@register.simple_tag
def time_of_day(at: datetime | None) -> SafeString:
    """Show a time of today, in the user's zone."""
    if not at:
        return NOTHING
    return format_html(
        '<time datetime="{}" data-second>{}</time>', at.isoformat(), f"{timezone.localtime(at):%H:%M:%S}"
    )


@register.simple_tag
def badge(word: str, label: str = "") -> SafeString:
    """Show a state in its colour."""
    return format_html('<span class="badge {}">{}</span>', tone(word), label or word)


@register.simple_tag
def olt_badge(olt: Olt) -> SafeString:
    label = olt.get_reachability_display() if olt.enabled else _("disabled")
    if olt.deleting_since is not None:
        label = _("being deleted")
    return badge(olt.state, label)


@register.simple_tag
def breaker_badge(olt: Olt) -> SafeString | str:
    """Show an open breaker, or that the OLT answers and needs a manual close; otherwise nothing."""
    if olt.breaker_opened_at is None or not olt.enabled:
        return ""
    if olt.breaker_answered_at is not None:
        return badge("answers", _("answers again"))
    return badge("breaker", _("breaker open"))


@register.simple_tag
def onu_badge(onu: Onu) -> SafeString:
    """Show the state of an ONU, or the time since which it is missing."""
    if onu.missing_since is None:
        return badge(onu.state, onu.get_state_display())
    return format_html('{} <small class="since">{}</small>', badge("missing", _("missing")), age(onu.missing_since))


@register.simple_tag
def dbm(value: Any, kind: str = "rx") -> SafeString:
    """Show a power in the colour of its level."""
    if value is None or value == "":
        return NOTHING
    return format_html('<span class="dbm {}">{}</span>', LEVELS[kind](value), decimal(value, 2))


@register.simple_tag
def onu_power(onu: Onu) -> SafeString:
    """Show the received power of an ONU; of a dark one the last that it had, and its age."""
    if onu.state not in Onu.DARK:
        return dbm(onu.rx_dbm, "rx")
    if onu.rx_dbm is not None:
        return _earlier(decimal(onu.rx_dbm, 2), onu.power_at)
    return NOTHING if onu.last_rx_dbm is None else _earlier(decimal(onu.last_rx_dbm, 2), onu.last_rx_at)


@register.simple_tag
def onu_distance(onu: Onu) -> SafeString | str:
    """Show the distance of an ONU; of a dark one the last that it had, and its age."""
    # ZTE measures 0 m to an ONU without light.
    if onu.state in Onu.DARK and not onu.distance_m:
        return NOTHING if onu.last_distance_m is None else _earlier(_metres(onu.last_distance_m), onu.last_distance_at)
    return NOTHING if onu.distance_m is None else _metres(onu.distance_m)


def _metres(distance: float) -> str:
    return f"{decimal(distance, 0)} m"


def _earlier(value: str, at: datetime | None) -> SafeString:
    said = _("Before it went down")
    shown = format_html('{}<span class="unseen"> {}</span>', value, said)
    if at:
        shown = format_html("{} <small>{}</small>", shown, age(at))
    return format_html('<span class="earlier" title="{}">{}</span>', said, shown)


@register.simple_tag
def decibels(change: float | None) -> SafeString:
    """Show a change of power with its sign; one that is more than noise in its own colour."""
    if change is None:
        return NOTHING
    tone = "faint" if abs(change) < NOTABLE_DB else "loss" if change < 0 else "gain"
    return format_html('<span class="{}">{}{}</span>', tone, "+" * (change > 0), decimal(change, 2))


@register.filter
def tone(word: str) -> str:
    return TONES.get(word, "quiet")


@register.filter
def state_label(word: str) -> str:
    """Return the label of an OLT's state."""
    return _("disabled") if word == "disabled" else str(Olt.Reachability(word).label)


@register.filter
def seconds(value: float | None) -> str | SafeString:
    """Show a duration."""
    return NOTHING if value is None else spans.exact(value)


@register.simple_tag
def place_link(onu: Onu) -> SafeString:
    """Show the place of an ONU as a link to its port."""
    if onu.port is None:
        return format_html('<span class="mono">{}</span>', place(onu))
    port = reverse("dashboard:port", args=[onu.olt_id, onu.slot, onu.port])
    return format_html('<a class="mono over-row" href="{}">{}</a>', port, place(onu))


@register.simple_tag
def position_link(latitude: float, longitude: float) -> SafeString:
    """Show a position as a link to the map."""
    address = f"{reverse('dashboard:map')}#17/{latitude:.5f}/{longitude:.5f}"
    shown = f"{decimal(latitude, 5)}; {decimal(longitude, 5)}"
    return format_html('<a class="mono over-row" href="{}">{}</a>', address, shown)


@register.filter
def power_change(value: float) -> str:
    """Show a change of power with its sign and unit."""
    # Without the sign of a negative zero.
    shown = round(value, 1) + 0.0
    return f"{'+' if shown > 0 else ''}{decimal(shown, 1)} dB"


@register.filter
def bit_rate(value: float) -> str:
    """Show bit/s in the largest unit. The units are the same in both languages."""
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if value >= factor:
            return f"{decimal(value / factor, 1)} {unit}"
    return f"{decimal(value, 0)} bit/s"


@register.filter
def place(onu: Onu) -> str:
    """Return the place of an ONU, or its index if the place is unknown."""
    parts = (onu.slot, onu.port, onu.onu)
    return onu.index if None in parts else "/".join(map(str, parts))


@register.simple_tag
def unit_of(units: Mapping[str, str], name: str, value: object) -> str:
    """Return the unit after a value of a raw OID, or nothing."""
    unit = units.get(name, "")
    return f" {unit}" if unit and value not in (None, "") else ""


@register.filter
def plain(value: object) -> object:
    """Show a value of an ONU: counters in groups of three digits, no value as a dash, stored times as times."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, str) and STORED_TIME.fullmatch(value):
        # A device may send any text.
        with suppress(ValueError):
            return clock_time(datetime.fromisoformat(value))
    return intcomma(value) if isinstance(value, int) and not isinstance(value, bool) else value


@register.filter
def hours(value: int) -> str:
    """Return the name of a range of the power chart."""
    return _("{n} d").format(n=value // 24) if value > 24 else _("{n} h").format(n=value)


@register.filter
def waited(execution: Execution) -> list[tuple[str, float]]:
    """Return the waits of an execution, if they are long enough to mention."""
    labels = dict(CAUSE_CHOICES)
    return [(str(labels.get(cause, cause)), each) for cause, each in execution.waits.items() if each >= 1]


@register.filter
def trouble(master: Execution) -> str:
    """Return the error of a composite in one line, first of its master, then of its chain."""
    for run in (master, *master.links.all()):
        if run.error or run.cause:
            return first_line(run.error) or str(run.get_cause_display())
    return ""


@register.inclusion_tag("dashboard/_clipped.html")
def clipped(text: str, key: object, short: int = TWO_LINES) -> dict[str, Any]:
    """Show two lines of a text, and all of it on demand. `key` tells it from the other texts of the page."""
    return {"text": text, "key": key, "is_long": len(text) > short or text.count("\n") > 1}


@register.filter
def percent_of(part: int, whole: int) -> str:
    """Return a share for SVG: with a decimal point in every language."""
    return f"{100 * part / whole:.2f}%" if whole else "0%"
