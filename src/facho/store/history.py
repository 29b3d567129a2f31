"""History of ONUs as rows: a run is appended in its own transaction, and a finished day becomes chunks.

Closing a day computes everything first. Then one short transaction deletes the runs by id and inserts the chunks and
daily values. If another process was faster, the number of deleted rows differs and nothing is changed. So a value is
always in a run or in a chunk. Runs that arrive later are merged by the next closing.
"""

import logging
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models.functions import TruncDay

from facho.apps.telemetry.history import (
    DAYS,
    RAW,
    Level,
    growth,
    microseconds,
    moment,
    restarts,
    start_of_day,
    start_of_month,
    unpacked,
)
from facho.apps.telemetry.models import HistoryDay, HistoryRun, PackedChunk
from facho.engine.batch import UNREAD
from facho.engine.chunks import (
    DAILY,
    FLOAT_BITS,
    NOT_READ,
    Cell,
    Chunk,
    Kind,
    PackedColumn,
    RunColumns,
    decode,
    encode,
    kind_of,
    pack_chunk,
    pack_run,
)
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# ONUs per chunk. Reading one series unpacks its whole chunk; the times are stored once for all.
ONUS_OF_CHUNK = 128

# Delay before a day is closed, because spooled results arrive late.
DAY_GRACE = timedelta(hours=1)
# A month is closed later, because the first day of the next month continues its counters.
MONTH_GRACE = timedelta(days=7)

# After closing a day of an OLT the thread is free for this many times the duration.
PAUSE_FACTOR = 3


def append(olt_id: int, at: datetime, onu_ids: Sequence[int], columns: Mapping[str, Sequence[Cell]]) -> bytes:
    """Store the readings of a run in the open transaction, and return them packed; empty if there are none.

    A cell is a value, None (no value) or UNREAD.
    """
    if not onu_ids or not columns:
        return b""
    data = pack_run(onu_ids, columns)
    table = connection.ops.quote_name(HistoryRun._meta.db_table)
    time = connection.ops.adapt_datetimefield_value(at)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (olt_id, at, data) VALUES (%s, %s, %s)",  # noqa: S608 - the name is ours
            [olt_id, time, data],
        )
    return data


class Closing:
    """Closes finished periods, one OLT after the other, with pauses for other work in the thread."""

    def __init__(self, *, thread: DbThread, clock: Clock) -> None:
        self._thread = thread
        self._clock = clock

    async def run(self, now: datetime) -> None:
        for level, olt_id, start in await self._thread.run(lambda: list(due(now))):
            begun = self._clock.monotonic()
            try:
                await self._thread.run(partial(close, level, olt_id, start))
            except Exception:
                # One OLT must not block the others. The next run tries it again.
                logger.exception("OLT %d: closing the history of %s failed", olt_id, start)
            await self._clock.sleep((self._clock.monotonic() - begun) * PAUSE_FACTOR)


def due(now: datetime) -> Iterator[tuple[Level, int, datetime]]:
    """Return the finished periods of each OLT that are not closed, the earliest first."""
    limits = (RAW, start_of_day(now - DAY_GRACE)), (DAYS, start_of_month(now - MONTH_GRACE))
    for level, limit in limits:
        runs = level.open._default_manager.filter(at__lt=limit)
        days = runs.annotate(day=TruncDay("at", tzinfo=UTC)).order_by().values_list("day", "olt_id").distinct()
        yield from sorted(
            {(level, olt_id, level.start(day)) for day, olt_id in days}, key=lambda each: (each[2], each[1])
        )


class Entry(NamedTuple):
    """A column of one field at one time, of some ONUs."""

    at: int
    onu_ids: Sequence[int]
    column: PackedColumn


# By field. For the same ONU and time, the later entry counts.
Entries = dict[str, list[Entry]]


def close(level: Level, olt_id: int, start: datetime) -> None:
    """Pack the runs of a period into chunks, merged with its existing chunks."""
    end = level.start(start + timedelta(days=32 if level is DAYS else 1))
    chunk_rows = level.closed._default_manager.filter(olt_id=olt_id, start=start)
    run_rows = level.open._default_manager.filter(olt_id=olt_id, at__gte=start, at__lt=end).order_by("at", "pk")
    entries: Entries = defaultdict(list)
    chunk_ids = []
    for pk, field, data in chunk_rows.values_list("pk", "field", "data"):
        chunk = unpacked(Chunk, level.closed, pk, data)
        if chunk is not None:
            chunk_ids.append(pk)
            entries[field] += map(Entry, chunk.times, [chunk.onu_ids] * len(chunk.times), chunk.columns())
    run_ids = []
    known_ids: dict[bytes, list[int]] = {}
    for pk, at, data in run_rows.values_list("pk", "at", "data"):
        run = unpacked(RunColumns, level.open, pk, data)
        if run is not None:
            run_ids.append(pk)
            # Runs of an OLT mostly have the same ids, so they share one list.
            ids = known_ids.get(run.packed_ids) or known_ids.setdefault(run.packed_ids, run.onu_ids)
            for field in run.forms:
                entries[field].append(Entry(microseconds(at), ids, run.column(field)))
    if not run_ids:
        return
    period = Period(level, olt_id, start)
    period.add(entries)
    with transaction.atomic():
        deleted, _ = level.open._default_manager.filter(pk__in=run_ids).delete()
        replaced, _ = level.closed._default_manager.filter(pk__in=chunk_ids).delete()
        if (deleted, replaced) != (len(run_ids), len(chunk_ids)):
            logger.info("OLT %d: another process has closed %s", olt_id, start)
            transaction.set_rollback(True)
            return
        period.insert()


class Period:
    """A period of one OLT as chunks, and a day also as daily values. Only `insert` writes."""

    def __init__(self, level: Level, olt_id: int, start: datetime) -> None:
        self._level, self._olt_id, self._start = level, olt_id, start
        self._chunks: list[PackedChunk] = []
        self._daily: dict[str, dict[int, Cell]] = {}
        self._before = _last_counters(olt_id, start) if level is RAW else {}
        # When the counters started again.
        self._starts = self._restarts() if level is RAW else []

    def add(self, entries: Entries) -> None:
        """Pack all values of some ONUs."""
        for field in sorted(entries):
            onu_ids, times, columns = _aligned(kind_of(field), entries[field])
            for first in range(0, len(onu_ids), ONUS_OF_CHUNK):
                block = slice(first, first + ONUS_OF_CHUNK)
                ids = onu_ids[block]
                cut = [PackedColumn(form, numbers[block], mask[block]) for form, numbers, mask in columns]
                # Times without a value of these ONUs are left out.
                read = [place for place, column in enumerate(cut) if column.mask.count(NOT_READ) < len(ids)]
                if read:
                    chunk = self._level.closed(olt_id=self._olt_id, field=field, start=self._start)
                    chunk.first_onu, chunk.last_onu = ids[0], ids[-1]
                    chunk.last_at = moment(times[read[-1]])
                    chunk.data = pack_chunk(ids, [times[place] for place in read], [cut[place] for place in read])
                    self._chunks.append(chunk)
                if self._level is RAW:
                    before = self._before.get(field, {})
                    for part in self._between_starts(field, times, cut):
                        _summarise(self._daily, field, ids, part, before)
                        before = {}

    def _restarts(self) -> list[int]:
        """Return when the counters started again in this day, or since the last counters before it."""
        found = restarts(self._olt_id, self._start - timedelta(days=1), self._start + timedelta(days=1))
        if any(each < self._start for each in found):
            # They may be of the old device.
            self._before = {}
        return [microseconds(each) for each in found if each >= self._start]

    def _between_starts(self, field: str, times: Sequence[int], columns: Sequence[PackedColumn]) -> list[Any]:
        """Return the columns of a field; those of a counter in parts between which it started again."""
        if not self._starts or kind_of(field) is not Kind.COUNTER:
            return [columns]
        edges = [0, *(bisect_left(times, start) for start in self._starts), len(times)]
        return [columns[first:last] for first, last in pairwise(edges)]

    def insert(self) -> None:
        """Write in the open transaction. Daily values of the same day are replaced."""
        self._level.closed._default_manager.bulk_create(self._chunks)
        onu_ids = sorted(set().union(*self._daily.values()))
        if onu_ids:
            columns = {name: [cells.get(onu, UNREAD) for onu in onu_ids] for name, cells in self._daily.items()}
            HistoryDay.objects.filter(olt_id=self._olt_id, at=self._start).delete()
            HistoryDay.objects.create(olt_id=self._olt_id, at=self._start, data=pack_run(onu_ids, columns))


def _aligned(kind: Kind, entries: Sequence[Entry]) -> tuple[list[int], list[int], list[PackedColumn]]:
    """Return all ONUs by id, all times, and for each time a column with a cell per ONU, in one form."""
    distinct = {id(entry.onu_ids): entry.onu_ids for entry in entries}
    onu_ids = sorted(set().union(*distinct.values()))
    places = {onu_id: place for place, onu_id in enumerate(onu_ids)}
    by_time: dict[int, list[Entry]] = defaultdict(list)
    for entry, column in zip(entries, _of_one_form(kind, [entry.column for entry in entries]), strict=True):
        by_time[entry.at].append(entry._replace(column=column))
    times = sorted(by_time)
    return onu_ids, times, [_spread(onu_ids, places, by_time[at]) for at in times]


def _of_one_form(kind: Kind, columns: Sequence[PackedColumn]) -> Sequence[PackedColumn]:
    """Return columns with the same digits or words. Few periods differ from their first run."""
    if all(column.form == columns[0].form for column in columns):
        return columns
    form, numbers, mask = encode(kind, [cell for column in columns for cell in decode(kind, column)])
    same, end = [], 0
    for column in columns:
        start, end = end, end + len(column.numbers)
        same.append(PackedColumn(form, numbers[start:end], mask[start:end]))
    return same


def _spread(onu_ids: list[int], places: Mapping[int, int], entries: Sequence[Entry]) -> PackedColumn:
    """Return the readings of one time as a column over all ONUs."""
    if len(entries) == 1 and entries[0].onu_ids == onu_ids:
        return entries[0].column
    numbers, mask = array("q", bytes(8 * len(onu_ids))), bytearray([NOT_READ]) * len(onu_ids)
    for entry in entries:
        _, given, missing = entry.column
        for onu_id, number, is_missing in zip(entry.onu_ids, given, missing or bytes(len(given)), strict=True):
            if is_missing != NOT_READ:
                numbers[places[onu_id]], mask[places[onu_id]] = number, is_missing
    return PackedColumn(entries[0].column.form, numbers, bytes(mask) if any(mask) else b"")


# --- Daily values.


def _summarise(
    daily: dict[str, dict[int, Cell]],
    field: str,
    onu_ids: Sequence[int],
    columns: Sequence[PackedColumn],
    before: Mapping[int, int],
) -> None:
    """Add the daily values of a field, by ONU. ONUs without a value that day are left out."""
    if not columns:
        return
    kind, form = kind_of(field), columns[0].form
    parts = {part: daily.setdefault(f"{field}:{part}", {}) for part in DAILY[kind]}
    series: Iterable[Sequence[int]] = zip(*(column.numbers for column in columns), strict=True)
    if any(column.mask for column in columns):
        blank = bytes(len(onu_ids))
        masks = zip(*(column.mask or blank for column in columns), strict=True)
        series = (
            [number for number, missing in zip(numbers, mask, strict=True) if not missing] if any(mask) else numbers
            for numbers, mask in zip(series, masks, strict=True)
        )
    for onu_id, numbers in zip(onu_ids, series, strict=True):
        if numbers:
            for part, cell in _summary(kind, form, numbers, before.get(onu_id)).items():
                # The growth of a counter that started again is that of its parts.
                earlier = parts[part].get(onu_id, 0) if part == "sum" else 0
                parts[part][onu_id] = cell + earlier if earlier else cell


def _summary(kind: Kind, form: Any, numbers: Sequence[int], before: int | None) -> Mapping[str, Cell]:
    if kind is Kind.COUNTER:
        values = [numbers[0] if before is None else before, *numbers]
        # Most counters only grow, and sorting an ordered list is cheap.
        grows = values == sorted(values)
        grown = values[-1] - values[0] if grows else sum(map(growth, values, numbers))
        return {"sum": grown, "last": numbers[-1]}
    if kind is Kind.WORD:
        return {"last": form[numbers[-1]]}
    if form == FLOAT_BITS:
        return _extremes(decode(kind, PackedColumn(form, array("q", numbers), b"")), 1)
    return _extremes(numbers, 10**form)


def _extremes(numbers: Sequence[float], factor: int) -> Mapping[str, Cell]:
    mean = sum(numbers) / len(numbers) / factor
    # Most brands deliver at most three digits.
    return {"min": min(numbers) / factor, "mean": round(mean, 3), "max": max(numbers) / factor, "count": len(numbers)}


def _last_counters(olt_id: int, start: datetime) -> dict[str, dict[int, int]]:
    """Return the last value of each counter before a day, from the last day that has one."""
    earlier = HistoryDay.objects.filter(olt_id=olt_id, at__lt=start).order_by("-at")
    row = earlier.values_list("pk", "data").first()
    day = unpacked(RunColumns, HistoryDay, *row) if row else None
    last: dict[str, dict[int, int]] = {}
    if day is not None:
        for name in day.forms:
            if name.endswith("_octets:last"):
                cells = zip(day.onu_ids, decode(Kind.COUNTER, day.column(name)), strict=True)
                known = {onu_id: cell for onu_id, cell in cells if cell is not None and cell is not UNREAD}
                last[name.partition(":")[0]] = known
    return last
