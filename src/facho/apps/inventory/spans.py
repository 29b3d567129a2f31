"""Formats of time spans."""

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from facho.apps.inventory.formats import decimal

MINUTE, HOUR, DAY = 60, 3600, 86400


def units() -> dict[str, str]:
    """Return the formats of a time span, by unit."""
    return {"s": _("{n} s"), "min": _("{n} min"), "h": _("{n} h"), "d": _("{n} d")}


def span(seconds: float) -> str:
    """Return a time span in its largest unit, as for ages: 12 s, 5 min, 3 h, 2 d."""
    seconds = max(seconds, 0)
    if seconds < MINUTE:
        return units()["s"].format(n=int(seconds))
    if seconds < HOUR:
        return units()["min"].format(n=int(seconds // MINUTE))
    if seconds < 2 * DAY:
        return units()["h"].format(n=int(seconds // HOUR))
    return units()["d"].format(n=int(seconds // DAY))


def ago(at: datetime) -> str:
    """Return the age of a time: 5 min ago."""
    return _("{span} ago").format(span=span((timezone.now() - at).total_seconds()))


def exact(seconds: float) -> str:
    """Return a duration: 0.42 s, 12.3 s, 2 min 5 s. The units are the same in both languages."""
    if seconds < 10:
        return f"{decimal(seconds, 2)} s"
    if seconds < MINUTE:
        return f"{decimal(seconds, 1)} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"


def interval(seconds: int) -> str:
    """Return an interval: 300 is 5 min, 90 is 1 min 30 s."""
    whole, rest = divmod(seconds, MINUTE)
    return f"{whole} min {rest} s" if rest and 0 < whole < 60 else span(seconds)
