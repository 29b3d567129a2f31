"""History of one ONU over a period, reduced for charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from django.utils.dateparse import parse_datetime

from facho.apps.telemetry.history import mean, restarts, series
from facho.apps.telemetry.models import Onu

POWERS = ("rx_dbm", "olt_rx_dbm", "tx_dbm")
GAUGES = (*POWERS, "temperature_c")
COUNTERS = ("in_octets", "out_octets")

# Number of points that a wide chart can show.
MAX_POINTS = 480

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

# A longer chart shows daily values, which are kept longer than readings.
LONGEST_RAW = 31 * DAY

# The mean of a port in a longer chart is that of its days: its ONUs have many readings.
LONGEST_MEAN_OF_RUNS = 2 * DAY

# Ranges of the page.
RANGES = {"24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "1y": 365 * DAY}
USUAL = "24h"

# A pause between readings is a gap if it is longer than so many usual ones. Usual is the second longest of those on one
# side: a job whose interval was changed has no gap before or after the change, and one gap does not hide another.
USUAL_PAUSES = 3
PAUSES_BESIDE = 5

# A counter of 32 bits starts from 0 after this. At a restart it does so from any value.
WRAP = 2**32

Point = tuple[datetime, float]


@dataclass(frozen=True, slots=True)
class Period:
    """Time shown by the charts. `name` is empty for one that ends at another time than now."""

    since: datetime
    until: datetime
    name: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str], now: datetime) -> "Period":
        """Return the period of an address: `range`, or `from` and `to`. Invalid values are ignored."""
        since, until = _moment(query.get("from", "")), _moment(query.get("to", ""))
        if since is not None and since < (until or now) <= now + DAY and (until or now) - since <= 2 * RANGES["1y"]:
            return cls(since, until or now)
        name = query.get("range", "")
        name = name if name in RANGES else USUAL
        return cls(now - RANGES[name], now, name)

    @property
    def span(self) -> timedelta:
        return self.until - self.since

    def moved(self, steps: int) -> "Period":
        """Return the period of the same length, so many lengths later."""
        return Period(self.since + steps * self.span, self.until + steps * self.span)

    @property
    def query(self) -> str:
        """Return it as the query of an address."""
        if self.name:
            return f"range={self.name}"
        return "&".join(f"{name}={at:%Y-%m-%dT%H:%M:%SZ}" for name, at in (("from", self.since), ("to", self.until)))


def _moment(text: str) -> datetime | None:
    try:
        at = parse_datetime(text)
    except ValueError:
        return None
    if at is None or not 2000 <= at.year <= 2100:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class OnuHistory:
    """Points of each chart line, and the times at which the state was read."""

    lines: Mapping[str, Sequence[Point]]
    read: Sequence[datetime]


def onu_history(onu: Onu, period: Period) -> OnuHistory:
    """Read the history of an ONU. A day of a long period is its lowest power and its highest temperature."""
    is_long = period.span > LONGEST_RAW
    rows = series(onu.pk, ("state", *GAUGES, *COUNTERS), period.since, period.until, DAY if is_long else None)
    lines: dict[str, Sequence[Point]] = {}
    bucket = period.span / MAX_POINTS
    for name in GAUGES:
        lowest = name in POWERS
        part = "min" if lowest else "max"
        points = [(row["at"], row[name][part] if is_long else row[name]) for row in rows if row[name] is not None]
        lines[name] = thin(points, bucket, min if lowest else max)
    starts = restarts(onu.olt_id, period.since, period.until)
    for name in COUNTERS:
        counts = [(row["at"], row[name]) for row in rows if row[name] is not None]
        rates = [(at, each["sum"] * 8 / 86400) for at, each in counts] if is_long else bits_per_second(counts, starts)
        lines[name] = thin(rates, bucket, max)
    lines["port_rx_dbm"] = port_mean(onu, period)
    read = [row["at"] for row in rows if row["state"] is not None]
    return OnuHistory(lines, read or [row["at"] for row in rows])


def port_mean(onu: Onu, period: Period) -> list[Point]:
    """Return the mean of the received power of the ONUs on the port, in each run or on each day."""
    if onu.port is None:
        return []
    neighbours = Onu.objects.filter(olt_id=onu.olt_id, slot=onu.slot, port=onu.port).values_list("pk", flat=True)
    by_day = period.span > LONGEST_MEAN_OF_RUNS
    points = mean(onu.olt_id, list(neighbours), "rx_dbm", period.since, period.until, by_day=by_day)
    # The mean of a day belongs to its middle.
    return [(at + DAY / 2, value) for at, value in points] if by_day else points


def thin(points: Sequence[Point], bucket: timedelta, choose: Callable[..., Point] = min) -> Sequence[Point]:
    """Return at most one point per bucket: the lowest or the highest, because extremes matter."""
    if len(points) <= MAX_POINTS:
        return points
    buckets: dict[int, list[Point]] = {}
    for point in points:
        buckets.setdefault(int((point[0] - points[0][0]) / bucket), []).append(point)
    return [choose(each, key=lambda point: point[1]) for each in buckets.values()]


def gaps(times: Sequence[datetime], shortest: timedelta = timedelta(), bounds: int = 0) -> list[int]:
    """Return the positions of the times that come after a gap, which is longer than `shortest`.

    The first and the last `bounds` times are those of the period, not of readings: the pauses there are never usual.
    """
    pauses = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    end = len(pauses) - bounds

    def usual(position: int) -> float:
        before = pauses[max(position - PAUSES_BESIDE, bounds) : position]
        after = pauses[position + 1 : min(position + 1 + PAUSES_BESIDE, end)]
        only = pauses[position] if bounds <= position < end else 0.0
        return max((sorted(each)[-2:][0] for each in (before, after) if each), default=only)

    floor = max(shortest.total_seconds(), USUAL_PAUSES * min(pauses[bounds:end], default=0.0))
    return [
        position + 1
        for position, pause in enumerate(pauses)
        if pause > floor and pause > USUAL_PAUSES * usual(position)
    ]


def bits_per_second(counts: Sequence[tuple[datetime, int]], starts: Sequence[datetime] = ()) -> list[Point]:
    """Return the rate between each two readings of a counter, at the time of the second one.

    There is none over a gap, nor over a restart of the counter: one of `starts`, or a lower value. A counter that
    never exceeds 32 bits and falls wrapped, if its rate is then at most twice the highest one beside it; otherwise it
    restarted.
    """
    after_gap = set(gaps([at for at, _ in counts]))
    is_short = max((value for _, value in counts), default=0) < WRAP
    steps = [
        (later, after - before, (later - earlier).total_seconds())
        for position, ((earlier, before), (later, after)) in enumerate(pairwise(counts), 1)
        if earlier < later and position not in after_gap and not any(earlier < start <= later for start in starts)
    ]
    highest = max((growth / seconds for _at, growth, seconds in steps if growth >= 0), default=0.0)
    rates = []
    for at, growth, seconds in steps:
        octets = growth
        if growth < 0 and is_short and (growth + WRAP) / seconds <= 2 * highest:
            octets += WRAP
        if octets >= 0:
            rates.append((at, octets * 8 / seconds))
    return rates


def breaks(points: Sequence[Point]) -> list[int]:
    """Return the times of the points after a gap, for a script: in milliseconds."""
    times = [at for at, _ in points]
    return [milliseconds(times[position]) for position in gaps(times)]


def as_json(points: Sequence[Point]) -> list[list[float]]:
    """Return points for a script: milliseconds and values."""
    return [[milliseconds(at), round(value, 3)] for at, value in points]


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)
