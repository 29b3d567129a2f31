"""The power of one ONU over time, thinned so that a chart can carry a month of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from facho.apps.dashboard.queries import DARK_STATES
from facho.apps.telemetry.models import OnuHistory

POWERS = ("rx_dbm", "olt_rx_dbm", "tx_dbm")

# As many as a wide chart has pixels to tell apart.
MAX_POINTS = 480

# A month of readings every minute.
MAX_ROWS = 45_000

Row = tuple[datetime, str | None, float | None, float | None, float | None]


def power_history(onu_id: int, since: datetime, until: datetime) -> dict[str, Any]:
    """Return the points of each power as [milliseconds, dBm], and when the ONU was dark, as [from, to]."""
    rows = list(
        OnuHistory.objects.filter(onu_id=onu_id, at__gte=since, at__lte=until)
        .order_by("at")
        .values_list("at", "state", *POWERS)[:MAX_ROWS]
    )
    bucket = (until - since) / MAX_POINTS
    return {
        "from": _milliseconds(since),
        "to": _milliseconds(until),
        "series": {
            name: thin([(row[0], row[position]) for row in rows if row[position] is not None], bucket)
            for position, name in enumerate(POWERS, 2)
        },
        "dark": dark_spans(((row[0], row[1]) for row in rows), until),
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
