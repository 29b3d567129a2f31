"""History of all ONUs of a port, read as columns: daily power, its change, and the traffic now."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from facho.apps.telemetry.history import DAY, DAYS, growth, microseconds, moment, restarts, start_of_day, unpacked
from facho.apps.telemetry.models import HistoryRun
from facho.engine.batch import UNREAD
from facho.engine.chunks import Chunk, Kind, RunColumns, decode, kind_of

# Daily mean of each ONU. Its minimum would compare a dip of seconds with a reading.
POWER = "rx_dbm:mean"

# A day is summarised after its end, so the last one may not exist yet. Then the one before it is used.
DAYS_BACK = timedelta(days=1)

COUNTERS = ("in_octets", "out_octets")
# Traffic from older readings is not that of now.
TRAFFIC_SPAN = timedelta(hours=3)
RUNS_AT_ONCE = 20
# Runs with counters of most ONUs to look at. More than two, because an ONU may have failed in one.
MOST_FULL_RUNS = 3

# Less than that is the temperature of a day.
DROP = -1.0

# Values by id of the ONU.
Values = dict[int, float]


def daily_values(
    olt_id: int, onu_ids: Collection[int], name: str, since: datetime, until: datetime
) -> dict[datetime, Values]:
    """Return a daily value of some ONUs for each day of a period, by day."""
    if not onu_ids:
        return {}
    days: dict[datetime, Values] = {}
    # In this order: a month that is closed in between is found twice, and not missed.
    for day, values in (*_open_days(olt_id, name, since, until), *_closed_days(olt_id, onu_ids, name, since, until)):
        wanted = {onu: value for onu, value in values if onu in onu_ids and value is not None and value is not UNREAD}
        days.setdefault(day, {}).update(wanted)
    return {day: values for day, values in sorted(days.items()) if values}


Found = Iterator[tuple[datetime, Iterator[tuple[int, Any]]]]


def _open_days(olt_id: int, name: str, since: datetime, until: datetime) -> Found:
    rows = DAYS.open._default_manager.filter(olt_id=olt_id, at__range=(since, until))
    for pk, at, data in rows.values_list("pk", "at", "data"):
        day = unpacked(RunColumns, DAYS.open, pk, data)
        if day is not None and name in day.forms:
            yield at, zip(day.onu_ids, decode(kind_of(name), day.column(name)), strict=True)


def _closed_days(olt_id: int, onu_ids: Collection[int], name: str, since: datetime, until: datetime) -> Found:
    rows = DAYS.closed._default_manager.filter(
        olt_id=olt_id,
        field=name,
        start__range=(DAYS.start(since), until),
        first_onu__lte=max(onu_ids),
        last_onu__gte=min(onu_ids),
    )
    first, last = microseconds(since), microseconds(until)
    for pk, data in rows.values_list("pk", "data"):
        chunk = unpacked(Chunk, DAYS.closed, pk, data)
        if chunk is None:
            continue
        for at, column in zip(chunk.times, chunk.columns(), strict=True):
            if first <= at <= last:
                yield moment(at), zip(chunk.onu_ids, decode(kind_of(name), column), strict=True)


@dataclass(frozen=True, slots=True)
class PowerChange:
    """Change of power in dB since a day, of the ONUs that have a value now and had one on that day."""

    day: datetime
    count: int
    mean: float
    worst: float
    # The ONU whose power fell most.
    fallen: int
    fall: float

    @property
    def is_drop(self) -> bool:
        return self.fall <= DROP


def power_changes(olt_id: int, current: Mapping[int, float], now: datetime) -> list[PowerChange | None]:
    """Return the changes of power since yesterday and since a week ago; None where no day can be compared."""
    changes = []
    for days in (1, 7):
        last = start_of_day(now) - days * DAY
        found = daily_values(olt_id, current.keys(), POWER, last - DAYS_BACK, last)
        changes.append(_change(max(found), current, found[max(found)]) if found else None)
    return changes


def _change(day: datetime, current: Mapping[int, float], before: Values) -> PowerChange:
    after = {onu: current[onu] for onu in before}
    differences = {onu: after[onu] - before[onu] for onu in before}
    fallen = min(differences, key=lambda onu: (differences[onu], onu))
    return PowerChange(
        day=day,
        count=len(before),
        mean=sum(differences.values()) / len(differences),
        worst=min(after.values()) - min(before.values()),
        fallen=fallen,
        fall=differences[fallen],
    )


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of a port in bit/s between its last two readings. In: from the ONUs."""

    in_bps: float
    out_bps: float
    count: int
    since: datetime
    until: datetime


class Reading(NamedTuple):
    """Counters of an ONU at one time."""

    at: datetime
    in_octets: int
    out_octets: int


def traffic(olt_id: int, onu_ids: Collection[int], now: datetime) -> Traffic | None:
    """Return the sum over the ONUs with two readings; None if the counters are not read often enough."""
    readings = _last_readings(olt_id, onu_ids, now)
    pairs = [each for each in readings.values() if len(each) == 2]
    if not pairs:
        return None
    in_bps = out_bps = 0.0
    for last, first in pairs:
        seconds = (last.at - first.at).total_seconds()
        in_bps += 8 * growth(first.in_octets, last.in_octets) / seconds
        out_bps += 8 * growth(first.out_octets, last.out_octets) / seconds
    return Traffic(
        in_bps=in_bps,
        out_bps=out_bps,
        count=len(pairs),
        since=min(first.at for _last, first in pairs),
        until=max(last.at for last, _first in pairs),
    )


def _last_readings(olt_id: int, onu_ids: Collection[int], now: datetime) -> dict[int, list[Reading]]:
    """Return the last two readings of the counters of each ONU, the later one first."""
    readings: dict[int, list[Reading]] = {}
    full_runs = 0
    for at, run in _runs_with_counters(olt_id, now):
        columns = [decode(Kind.COUNTER, run.column(name)) for name in COUNTERS]
        of_port = [row for row in zip(run.onu_ids, *columns, strict=True) if row[0] in onu_ids]
        for onu, *octets in of_port:
            had = readings.setdefault(onu, [])
            if not {None, UNREAD} & set(octets) and len(had) < 2 and (not had or at < had[0].at):
                had.append(Reading(at, *octets))
        full_runs += 2 * len(of_port) >= len(onu_ids)
        if full_runs == MOST_FULL_RUNS:
            break
    return readings


def _runs_with_counters(olt_id: int, now: datetime) -> Iterator[tuple[datetime, RunColumns]]:
    """Return the last runs that read the counters, the latest first."""
    since = max([now - TRAFFIC_SPAN, *restarts(olt_id, now - TRAFFIC_SPAN, now)])
    rows = HistoryRun.objects.filter(olt_id=olt_id, at__range=(since, now)).order_by("-at", "-pk")
    start = 0
    while some := list(rows.values_list("pk", "at", "data")[start : start + RUNS_AT_ONCE]):
        start += RUNS_AT_ONCE
        for pk, at, data in some:
            run = unpacked(RunColumns, HistoryRun, pk, data)
            if run is not None and run.forms.keys() >= set(COUNTERS):
                yield at, run
