"""Power of one ONU over time, reduced for a chart."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from facho.apps.telemetry.history import series
from facho.apps.telemetry.models import Onu

POWERS = ("rx_dbm", "olt_rx_dbm", "tx_dbm")

# Number of points that a wide chart can show.
MAX_POINTS = 480

DAY = timedelta(days=1)

# A longer chart shows daily values, which are kept longer than readings.
LONGEST_RAW = 31 * DAY


def power_history(onu_id: int, since: datetime, until: datetime) -> dict[str, Any]:
    """Return the points of each power as [milliseconds, dBm], and the dark times of the ONU as [from, to].

    A day of a long chart is its lowest value, like any other reduced point.
    """
    is_long = until - since > LONGEST_RAW
    rows = series(onu_id, ("state", *POWERS), since, until, DAY if is_long else None)
    bucket = (until - since) / MAX_POINTS
    points = {
        name: [(row["at"], row[name]["min"] if is_long else row[name]) for row in rows if row[name] is not None]
        for name in POWERS
    }
    return {
        "from": _milliseconds(since),
        "to": _milliseconds(until),
        "series": {name: thin(found, bucket) for name, found in points.items()},
        "dark": dark_spans(((row["at"], row["state"]) for row in rows), until),
    }


def thin(points: Sequence[tuple[datetime, float]], bucket: timedelta) -> list[list[float]]:
    """Return at most one point per bucket: the lowest, because drops matter."""
    lowest: dict[int, tuple[datetime, float]] = {}
    if len(points) > MAX_POINTS:
        for at, dbm in points:
            key = int((at - points[0][0]) / bucket)
            if key not in lowest or dbm < lowest[key][1]:
                lowest[key] = (at, dbm)
        points = list(lowest.values())
    return [[_milliseconds(at), dbm] for at, dbm in points]


def dark_spans(states: Iterable[tuple[datetime, str | None]], until: datetime) -> list[list[int]]:
    """Return the dark times, from the first dark reading to the next one with light."""
    spans: list[list[int]] = []
    since: datetime | None = None
    for at, state in states:
        if state is None:
            continue
        if state in Onu.DARK and since is None:
            since = at
        elif state not in Onu.DARK and since is not None:
            spans.append([_milliseconds(since), _milliseconds(at)])
            since = None
    if since is not None:
        spans.append([_milliseconds(since), _milliseconds(until)])
    return spans


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)
