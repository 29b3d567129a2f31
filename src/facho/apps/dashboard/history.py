"""The power of one ONU over time, thinned so that a chart can carry a month of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from facho.apps.dashboard.queries import DARK_STATES
from facho.apps.telemetry.history import series

POWERS = ("rx_dbm", "olt_rx_dbm", "tx_dbm")

# As many as a wide chart has pixels to tell apart.
MAX_POINTS = 480

DAY = timedelta(days=1)

# A longer chart shows daily values, which are kept longer than readings.
LONGEST_RAW = 31 * DAY


def power_history(onu_id: int, since: datetime, until: datetime) -> dict[str, Any]:
    """Return the points of each power as [milliseconds, dBm], and when the ONU was dark, as [from, to].

    A day of a long chart is its lowest value, as any other thinned point is.
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
    """Return at most one point a bucket: the lowest, because a drop of light is what one looks for."""
    lowest: dict[int, tuple[datetime, float]] = {}
    if len(points) > MAX_POINTS:
        for at, dbm in points:
            key = int((at - points[0][0]) / bucket)
            if key not in lowest or dbm < lowest[key][1]:
                lowest[key] = (at, dbm)
        points = list(lowest.values())
    return [[_milliseconds(at), dbm] for at, dbm in points]


def dark_spans(states: Iterable[tuple[datetime, str | None]], until: datetime) -> list[list[int]]:
    """Return when the ONU was dark, from the first reading that said so to the first that did not."""
    spans: list[list[int]] = []
    since: datetime | None = None
    for at, state in states:
        if state is None:
            continue
        if state in DARK_STATES and since is None:
            since = at
        elif state not in DARK_STATES and since is not None:
            spans.append([_milliseconds(since), _milliseconds(at)])
            since = None
    if since is not None:
        spans.append([_milliseconds(since), _milliseconds(until)])
    return spans


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)
