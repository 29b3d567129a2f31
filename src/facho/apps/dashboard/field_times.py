"""Times in the filters of lists: in the zone of the installation, as a field of a form has them."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from facho.apps.inventory.formats import moment

FORMAT = "%Y-%m-%dT%H:%M:%S"


def field_time(at: datetime) -> str:
    """Return a time as the value of a filter, to the second."""
    return timezone.localtime(at).strftime(FORMAT)


def time_words(value: str, _request: Any) -> str:
    """Return the value of a filter as times are shown; as it is if it is no time, or only a day."""
    try:
        at = parse_datetime(value) if "T" in value else None
        return value if at is None else moment(at if timezone.is_aware(at) else timezone.make_aware(at))
    except (ValueError, OverflowError):
        return value
