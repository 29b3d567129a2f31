"""Upgrade of the readings table of earlier versions into chunks.

One day of one OLT is one transaction, so it can be interrupted: the next start continues with the first day without
chunks. At the end the values of each field are counted in both forms, and the old table is dropped only if all counts
are equal. Facho does not start before this is done, so nothing else writes history.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.history import RAW, microseconds, start_of_day
from facho.apps.telemetry.models import HistoryChunk, HistoryDay, Onu
from facho.engine.chunks import FIELDS, Chunk, encode
from facho.store.history import ONUS_OF_CHUNK, Entries, Entry, Period

OLD = "onu_history"
DAY = timedelta(days=1)

# Readings of one ONU at one time: a value or None for each of FIELDS.
Row = Sequence[Any]


class NotConverted(Exception):
    """The counts before and after differ. The old table is unchanged."""


def is_pending(using: Any = connection) -> bool:
    return OLD in using.introspection.table_names()


def convert(report: Callable[[str, int, int], None]) -> str:
    """Convert the rest of the old table, drop it, and return a summary; empty if there was nothing to convert.

    `report` gets each step, and the number of converted readings and of all readings.
    """
    if not is_pending():
        return ""
    counts = ", ".join(f"count({field})" for field in FIELDS)
    [(rows, *values)] = _fetch(f"SELECT count(*), {counts} FROM {OLD}")  # noqa: S608 - names are ours
    before = Counter(dict(zip(FIELDS, values, strict=True)))
    done = 0
    for start in _days():
        report(f"Converting the history: {start:%Y-%m-%d}", done, rows)
        converted = set(HistoryChunk.objects.filter(start=start).values_list("olt_id", flat=True).distinct())
        for olt_id in Olt.objects.order_by("pk").values_list("pk", flat=True):
            if olt_id not in converted:
                _convert(olt_id, start)
        [(count,)] = _fetch(f"SELECT count(*) FROM {OLD} WHERE at >= %s AND at < %s", start, start + DAY)  # noqa: S608
        done += count
    report("Comparing the values before and after", done, rows)
    after = Counter(dict.fromkeys(FIELDS, 0))
    for field, data in HistoryChunk.objects.values_list("field", "data").iterator(chunk_size=200):
        after[field] += Chunk(bytes(data)).count()
    if before != after:
        differences = ", ".join(
            f"{field} had {before[field]:,} values and has {after[field]:,}"
            for field in FIELDS
            if before[field] != after[field]
        )
        # The old table is authoritative. The chunks are deleted, or the next try would count them too.
        HistoryChunk.objects.all().delete()
        HistoryDay.objects.all().delete()
        raise NotConverted(
            f"The history was not converted: {differences}. The table {OLD} is unchanged, and nothing "
            "is lost. Make sure that Facho is not running, and run `facho migrate` again."
        )
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {OLD}")
    return f"The history is converted: {rows:,} readings, {after.total():,} values, none lost"


def _fetch(statement: str, *times: datetime) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [connection.ops.adapt_datetimefield_value(at) for at in times])
        return list(cursor.fetchall())


def _time(value: Any) -> datetime:
    """Return a time from the database: SQLite has no zone, and a minimum is text."""
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _days() -> Iterator[datetime]:
    """Return the days with readings, the earliest first, by the index on time."""
    [(first,)] = _fetch(f"SELECT min(at) FROM {OLD}")  # noqa: S608
    while first is not None:
        start = start_of_day(_time(first))
        yield start
        [(first,)] = _fetch(f"SELECT min(at) FROM {OLD} WHERE at >= %s", start + DAY)  # noqa: S608


def _convert(olt_id: int, start: datetime) -> None:
    """Convert one day of one OLT, one block of ONUs at a time, to limit memory."""
    onu_ids = list(Onu.objects.filter(olt_id=olt_id).order_by("pk").values_list("pk", flat=True))
    period = Period(RAW, olt_id, start)
    for first in range(0, len(onu_ids), ONUS_OF_CHUNK):
        period.add(_entries(_readings(onu_ids[first : first + ONUS_OF_CHUNK], start)))
    with transaction.atomic():
        period.insert()


def _readings(onu_ids: Sequence[int], start: datetime) -> dict[int, dict[int, Row]]:
    """Return the readings of a day by time in microseconds, and by ONU."""
    rows = _fetch(
        f"SELECT onu_id, at, {', '.join(FIELDS)} FROM {OLD} "  # noqa: S608 - names are ours
        f"WHERE onu_id IN ({', '.join(map(str, onu_ids))}) AND at >= %s AND at < %s ORDER BY onu_id, at, id",
        start,
        start + DAY,
    )
    readings: dict[int, dict[int, Row]] = defaultdict(dict)
    for onu_id, at, *values in rows:
        time = microseconds(_time(at))
        # Two readings at the same time: keep both.
        while onu_id in readings[time]:
            time += 1
        readings[time][onu_id] = values
    return readings


def _entries(readings: dict[int, dict[int, Row]]) -> Entries:
    """Return readings as columns.

    The old table had NULL both for "not read" and for "no value". Here a field without any value in a run was not
    read by it. A reading without any value is kept as a state without value.
    """
    entries: Entries = defaultdict(list)
    for time, by_onu in readings.items():
        onu_ids = list(by_onu)
        columns: dict[str, Sequence[Any]] = {
            name: column
            for name, column in zip(FIELDS, zip(*by_onu.values(), strict=True), strict=True)
            if any(cell is not None for cell in column)
        }
        for name, column in (columns or {"state": [None] * len(onu_ids)}).items():
            entries[name].append(Entry(time, onu_ids, encode(FIELDS[name], column)))
    return entries
