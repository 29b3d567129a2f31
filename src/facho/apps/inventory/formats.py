"""Numbers and times as text, in the format of the user's region."""

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format, number_format


def decimal(value: float, places: int) -> str:
    """Return a number with these decimals and its thousands grouped: 1,234.50."""
    return number_format(round(value, places), places, use_l10n=True, force_grouping=True)


def whole(value: float) -> str:
    """Return a number without decimals: 1,234."""
    return decimal(value, 0)


def moment(at: datetime) -> str:
    """Return a time to the second, in the current zone."""
    local = timezone.localtime(at)
    return f"{date_format(local, 'DATE_FORMAT')}, {date_format(local, 'H:i:s')}"


def moment_and_zone(at: datetime) -> str:
    """Return the same with the name of the zone, for a text that is read elsewhere."""
    return f"{moment(at)} {date_format(timezone.localtime(at), 'T')}"


def hour(at: datetime) -> str:
    """Return a time to the minute, in the current zone."""
    local = timezone.localtime(at)
    return f"{date_format(local, 'DATE_FORMAT')}, {date_format(local, 'H:i')}"
