"""Load of the pool over time, reduced for a chart."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from facho.apps.polling.models import PollerStats

MINUTE = timedelta(minutes=1)

# Number of points that a wide chart can show.
MAX_POINTS = 480

# Maximum time span: there is a row per minute.
LONGEST = timedelta(days=31)

COLUMNS = ("timestamp", "total_pollers", "free_pollers", "busy_percentage", "queue_size", "delayed", "is_saturated")

Row = tuple[datetime, int, int, float, int, int, bool]


def pool_history(since: datetime, until: datetime) -> tuple[timedelta, list[dict[str, Any]]]:
    """Return the length of a point, and the points. Minutes without data are left out."""
    rows = PollerStats.objects.filter(timestamp__gte=since, timestamp__lt=until).order_by("timestamp")
    step = step_for(until - since)
    return step, points(rows.values_list(*COLUMNS).iterator(), since, step)


def step_for(span: timedelta) -> timedelta:
    """Return the shortest step in whole minutes that keeps a span within the maximum number of points."""
    return max(1, ceil(span / MINUTE / MAX_POINTS)) * MINUTE


def points(rows: Iterable[Row], since: datetime, step: timedelta) -> list[dict[str, Any]]:
    """Return one point per step with data. The worst minute counts, so that a peak does not vanish in a mean."""
    steps: dict[int, list[Row]] = {}
    for row in rows:
        steps.setdefault((row[0] - since) // step, []).append(row)
    made = []
    for number, found in steps.items():
        _, pollers, free, busy, queued, delayed, saturated = zip(*found, strict=True)
        point = {
            "at": since + number * step,
            "minutes": len(found),
            "total_pollers": min(pollers),
            "free_pollers": min(free),
            "busy_percentage": round(sum(busy) / len(busy), 1),
            "busiest": max(busy),
            "queue_size": max(queued),
            "delayed": max(delayed),
            "is_saturated": any(saturated),
        }
        made.append(point)
    return made
