"""History of ONUs: the only reader, for API and pages.

`series` reads one ONU over a period, `values_at` all ONUs of an OLT at one time.

A value is in a closed chunk, or in a run of an open day. Daily values are in closed months and open days in the same
way. Damaged rows are logged once per process and skipped.
"""

import logging
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from facho.apps.inventory.models import Replacement
from facho.apps.telemetry.models import HistoryChunk, HistoryDay, HistoryMonth, HistoryRun, Onu, PackedChunk, PackedRun
from facho.engine.batch import UNREAD
from facho.engine.chunks import DAILY, Chunk, CorruptChunk, Kind, RunColumns, decode, kind_of

logger = logging.getLogger(__name__)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)

# A value older than this does not count as the value at a time.
OLDEST_VALUE = DAY
# The OLT itself, beside the ids of its ONUs: no ONU has it.
OLT_ITSELF = 0
# Time of a cell that was not found, before all others.
NEVER_READ = -(2**63)

T = TypeVar("T", RunColumns, Chunk)

# Times in microseconds since the epoch, each with its cells by field.
Cells = dict[int, dict[str, Any]]

# Damaged rows that were logged, by table and id.
_reported: set[tuple[str, int]] = set()


class Level(NamedTuple):
    """The two tables of a resolution, and the start of a time's period."""

    open: type[PackedRun]
    closed: type[PackedChunk]
    start: Callable[[datetime], datetime]


def start_of_day(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def start_of_month(at: datetime) -> datetime:
    return start_of_day(at).replace(day=1)


RAW = Level(HistoryRun, HistoryChunk, start_of_day)
DAYS = Level(HistoryDay, HistoryMonth, start_of_month)


def microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def unpacked(kind: type[T], model: type[PackedRun | PackedChunk], pk: int, data: bytes | memoryview) -> T | None:
    """Return the content of a row; None if it is damaged, which is logged once."""
    try:
        return kind(bytes(data))
    except CorruptChunk as error:
        table = model._meta.db_table
        if (table, pk) not in _reported:
            _reported.add((table, pk))
            logger.error("row %d of %s is damaged and was skipped: %s", pk, table, error)
        return None


def series(
    onu_id: int, fields: Sequence[str], since: datetime, until: datetime, step: timedelta | None = None
) -> list[dict[str, Any]]:
    """Return the readings of an ONU in a time span: see `series_of`."""
    olt_id = Onu.objects.values_list("olt_id", flat=True).get(pk=onu_id)
    return series_of(olt_id, onu_id, fields, since, until, step)


def series_of(
    olt_id: int, onu_id: int, fields: Sequence[str], since: datetime, until: datetime, step: timedelta | None = None
) -> list[dict[str, Any]]:
    """Return the readings of an ONU, or of the OLT itself, earliest first: `at` and a value per field.

    With a step they are buckets: `at` is the start of one, and a field is an object with minimum, mean and maximum of
    a gauge, or the growth of a counter. A state is the last one. Steps of whole days use daily values, which are kept
    longer.
    """
    if step is None:
        cells = _cells(RAW, olt_id, onu_id, fields, since, until)
        return [{"at": moment(at), **dict.fromkeys(fields), **cells[at]} for at in sorted(cells)]
    since = EPOCH + (since - EPOCH) // step * step
    has_counters = any(kind_of(field) is Kind.COUNTER for field in fields)
    buckets = Buckets(fields, step, restarts(olt_id, since, until) if has_counters else ())
    if step % DAY:
        buckets.add_readings(_cells(RAW, olt_id, onu_id, fields, since, until))
    else:
        names = [f"{field}:{part}" for field in fields for part in DAILY[kind_of(field)]]
        buckets.add_days(_cells(DAYS, olt_id, onu_id, names, since, until))
        open_days: Cells = {}
        _add_open(open_days, RAW, olt_id, onu_id, fields, since, until)
        buckets.add_readings(open_days)
    return buckets.rows()


def restarts(olt_id: int, since: datetime, until: datetime) -> list[datetime]:
    """Return when all counters of an OLT started again, because its device was replaced: earliest first.

    Those of another device may be higher, which would look like traffic.
    """
    found = Replacement.objects.filter(olt=olt_id, at__range=(since, until)).order_by("at")
    return list(found.values_list("at", flat=True))


def mean(
    olt_id: int, onu_ids: Collection[int], field: str, since: datetime, until: datetime, *, by_day: bool = False
) -> list[tuple[datetime, float]]:
    """Return the mean of a gauge over several ONUs of an OLT in each run, or on each day, the earliest first.

    Runs that read few of the ONUs, such as those of a single one, are left out.
    """
    level, name = (DAYS, f"{field}:mean") if by_day else (RAW, field)
    values: dict[int, list[float]] = {}
    for at, cells in _of_several(level, olt_id, frozenset(onu_ids), name, since, until):
        values.setdefault(at, []).extend(cell for cell in cells if cell is not None and cell is not UNREAD)
    most = max(map(len, values.values()), default=0)
    return [(moment(at), sum(each) / len(each)) for at, each in sorted(values.items()) if 2 * len(each) > most]


def _of_several(
    level: Level, olt_id: int, onu_ids: frozenset[int], name: str, since: datetime, until: datetime
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the cells of several ONUs, in open runs and then in closed chunks."""
    if not onu_ids:
        return
    runs = level.open._default_manager.filter(olt_id=olt_id, at__range=(since, until))
    places: dict[bytes, list[int]] = {}
    for pk, at, data in runs.values_list("pk", "at", "data").iterator():
        run = unpacked(RunColumns, level.open, pk, data)
        if run is None or name not in run.forms:
            continue
        if run.packed_ids not in places:
            places[run.packed_ids] = [place for place, onu_id in enumerate(run.onu_ids) if onu_id in onu_ids]
        if chosen := places[run.packed_ids]:
            # ONUs of a port are mostly neighbours.
            cells = run.cells(name, slice(chosen[0], chosen[-1] + 1))
            yield microseconds(at), [cells[place - chosen[0]] for place in chosen]
    chunks = level.closed._default_manager.filter(
        olt_id=olt_id,
        field=name,
        start__range=(level.start(since), until),
        first_onu__lte=max(onu_ids),
        last_onu__gte=min(onu_ids),
    )
    first, last = microseconds(since), microseconds(until)
    for pk, data in chunks.values_list("pk", "data"):
        chunk = unpacked(Chunk, level.closed, pk, data)
        chosen = [] if chunk is None else [place for place, onu_id in enumerate(chunk.onu_ids) if onu_id in onu_ids]
        if chunk is None or not chosen:
            continue
        for time, column in zip(chunk.times, chunk.columns(), strict=True):
            if first <= time <= last:
                cells = decode(kind_of(name), column)
                yield time, [cells[place] for place in chosen]


def _cells(level: Level, olt_id: int, onu_id: int, fields: Sequence[str], since: datetime, until: datetime) -> Cells:
    cells: Cells = {}
    # In this order: a period that is closed in between is found twice, and not missed.
    _add_open(cells, level, olt_id, onu_id, fields, since, until)
    _add_closed(cells, level, olt_id, onu_id, fields, since, until)
    return cells


def _add_closed(
    cells: Cells, level: Level, olt_id: int, onu_id: int, fields: Sequence[str], since: datetime, until: datetime
) -> None:
    rows = level.closed._default_manager.filter(
        olt_id=olt_id,
        field__in=fields,
        start__range=(level.start(since), until),
        first_onu__lte=onu_id,
        last_onu__gte=onu_id,
    )
    first, last = microseconds(since), microseconds(until)
    for pk, field, data in rows.values_list("pk", "field", "data"):
        chunk = unpacked(Chunk, level.closed, pk, data)
        column = chunk.series(onu_id) if chunk else None
        if chunk is None or column is None:
            continue
        for at, cell in zip(chunk.times, decode(kind_of(field), column), strict=True):
            if cell is not UNREAD and first <= at <= last:
                cells.setdefault(at, {}).setdefault(field, cell)


def _add_open(
    cells: Cells, level: Level, olt_id: int, onu_id: int, fields: Sequence[str], since: datetime, until: datetime
) -> None:
    rows = level.open._default_manager.filter(olt_id=olt_id, at__range=(since, until)).order_by("at", "pk")
    # Runs of an OLT mostly have the same ONUs, so positions are cached.
    positions: dict[bytes, int | None] = {}
    for pk, at, data in rows.values_list("pk", "at", "data").iterator():
        run = unpacked(RunColumns, level.open, pk, data)
        if run is None:
            continue
        if run.packed_ids not in positions:
            positions[run.packed_ids] = run.onu_ids.index(onu_id) if onu_id in run.onu_ids else None
        position = positions[run.packed_ids]
        if position is None:
            continue
        for field in fields:
            if field in run.forms and (cell := run.cell(field, position)) is not UNREAD:
                cells.setdefault(microseconds(at), {})[field] = cell


class LastCells:
    """Last cell of a field of each ONU, with its time: entry i is of the i-th ONU. UNREAD if there is none."""

    def __init__(self, onu_ids: Sequence[int]) -> None:
        self._places = {onu_id: place for place, onu_id in enumerate(onu_ids)}
        self.cells: list[Any] = [UNREAD] * len(onu_ids)
        # In microseconds since the epoch.
        self.times = [NEVER_READ] * len(onu_ids)
        self.unread = set(onu_ids)

    def offer(self, onu_id: int, cell: Any, at: int) -> None:
        """Take a cell if it is later than the known one."""
        place = self._places.get(onu_id)
        if place is not None and cell is not UNREAD and at > self.times[place]:
            self.cells[place], self.times[place] = cell, at
            self.unread.discard(onu_id)

    def older_than(self, at: int) -> list[int]:
        """Return the ids of the ONUs without a cell since a time."""
        return [onu_id for onu_id, place in self._places.items() if self.times[place] < at]


def values_at(olt_id: int, onu_ids: Sequence[int], fields: Sequence[str], at: datetime) -> dict[str, LastCells]:
    """Return the last cells of ONUs at a time, at most `OLDEST_VALUE` old, by field.

    It unpacks only what may hold them: open runs from the latest back, the chunks of that day, and those of the day
    before for ONUs that were not read on that day.
    """
    found = {field: LastCells(onu_ids) for field in fields}
    # In this order, as for a series.
    _find_in_runs(found, olt_id, at)
    day = start_of_day(at)
    for field, last in found.items():
        _find_in_chunks(field, last, olt_id, day, onu_ids, at)
        if older := last.older_than(microseconds(day)):
            _find_in_chunks(field, last, olt_id, day - DAY, older, at)
    return found


def _find_in_runs(found: Mapping[str, LastCells], olt_id: int, at: datetime) -> None:
    rows = HistoryRun.objects.filter(olt_id=olt_id, at__range=(at - OLDEST_VALUE, at)).order_by("-at", "-pk")
    positions: dict[bytes, dict[int, int]] = {}
    for pk, run_at, data in rows.values_list("pk", "at", "data").iterator(chunk_size=20):
        wanted = [field for field, last in found.items() if last.unread]
        if not wanted:
            return
        run = unpacked(RunColumns, HistoryRun, pk, data)
        if run is None:
            continue
        if run.packed_ids not in positions:
            positions[run.packed_ids] = {onu_id: position for position, onu_id in enumerate(run.onu_ids)}
        for field in wanted:
            if field in run.forms:
                cells, last = decode(kind_of(field), run.column(field)), found[field]
                for onu_id in last.unread & positions[run.packed_ids].keys():
                    last.offer(onu_id, cells[positions[run.packed_ids][onu_id]], microseconds(run_at))


def _find_in_chunks(
    field: str, last: LastCells, olt_id: int, day: datetime, onu_ids: Sequence[int], at: datetime
) -> None:
    if not onu_ids:
        return
    rows = HistoryChunk.objects.filter(
        olt_id=olt_id, field=field, start=day, first_onu__lte=max(onu_ids), last_onu__gte=min(onu_ids)
    )
    oldest = microseconds(at - OLDEST_VALUE)
    for pk, data in rows.values_list("pk", "data"):
        chunk = unpacked(Chunk, HistoryChunk, pk, data)
        if chunk is not None:
            column, times = chunk.last(microseconds(at))
            for onu_id, cell, read_at in zip(chunk.onu_ids, decode(kind_of(field), column), times, strict=True):
                if read_at >= oldest:
                    last.offer(onu_id, cell, read_at)


def nearest_readings(olt_id: int, at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the times of the last run before and the first run after a time that are still in the history."""
    runs = HistoryRun.objects.filter(olt_id=olt_id).order_by("at")
    chunks = HistoryChunk.objects.filter(olt_id=olt_id, field="state").order_by("start")
    earlier = [runs.filter(at__lte=at).values_list("at", flat=True).last()]
    later = [runs.filter(at__gt=at).values_list("at", flat=True).first()]
    # Two days: that of the time may have readings on one side of it only.
    for pk, data in [
        *chunks.filter(start__lte=at).reverse().values_list("pk", "data")[:2],
        *chunks.filter(start__gt=at - DAY).values_list("pk", "data")[:2],
    ]:
        chunk = unpacked(Chunk, HistoryChunk, pk, data)
        if chunk is not None:
            place = bisect_right(chunk.times, microseconds(at))
            earlier += map(moment, chunk.times[:place][-1:])
            later += map(moment, chunk.times[place:][:1])
    return max(filter(None, earlier), default=None), min(filter(None, later), default=None)


def has_daily_values(olt_id: int, at: datetime) -> bool:
    """Return whether there are daily values of the day of a time, which are kept longer than readings."""
    days = HistoryDay.objects.filter(olt_id=olt_id, at=start_of_day(at))
    return days.exists() or HistoryMonth.objects.filter(olt_id=olt_id, start=start_of_month(at)).exists()


class Buckets:
    """Buckets of a chart: extremes of a field, and the parts of its mean."""

    def __init__(self, fields: Sequence[str], step: timedelta, restarts: Sequence[datetime] = ()) -> None:
        self._fields = fields
        self._restarts = [microseconds(each) for each in restarts]
        self._step = step // MICROSECOND
        self._buckets: dict[int, dict[str, dict[str, Any]]] = {}
        # Last value of each counter and its time, for its growth.
        self._counters: dict[str, tuple[int, int]] = {}

    def add_readings(self, cells: Cells) -> None:
        for at in sorted(cells):
            for field, cell in cells[at].items():
                if cell is None:
                    continue
                # In the form of a day.
                if kind_of(field) is Kind.GAUGE:
                    parts = {"min": cell, "mean": cell, "max": cell, "count": 1}
                elif kind_of(field) is Kind.WORD:
                    parts = {"last": cell}
                else:
                    before = self._counters.get(field)
                    self._counters[field] = at, cell
                    continues = before is not None and not any(before[0] < each <= at for each in self._restarts)
                    parts = {"sum": growth(before[1], cell) if before and continues else 0, "last": cell}
                self._add(at, field, parts)

    def add_days(self, cells: Cells) -> None:
        """Add daily values, by names such as `rx_dbm:min`."""
        for at in sorted(cells):
            for field in self._fields:
                parts: dict[str, Any] = {part: cells[at].get(f"{field}:{part}") for part in DAILY[kind_of(field)]}
                if any(value is not None for value in parts.values()):
                    if kind_of(field) is Kind.COUNTER:
                        self._counters[field] = at, parts["last"]
                    self._add(at, field, parts)

    def _add(self, at: int, field: str, parts: dict[str, Any]) -> None:
        bucket = self._buckets.setdefault(at // self._step * self._step, {})
        have, kind = bucket.get(field), kind_of(field)
        if have is None or kind is Kind.WORD:
            bucket[field] = parts
        elif kind is Kind.COUNTER:
            bucket[field] = {"sum": have["sum"] + parts["sum"], "last": parts["last"]}
        else:
            count = have["count"] + parts["count"]
            bucket[field] = {
                "min": min(have["min"], parts["min"]),
                "mean": (have["mean"] * have["count"] + parts["mean"] * parts["count"]) / count,
                "max": max(have["max"], parts["max"]),
                "count": count,
            }

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"at": moment(at), **{field: _shown(field, bucket.get(field)) for field in self._fields}}
            for at, bucket in sorted(self._buckets.items())
        ]


def growth(before: int, after: int) -> int:
    """Return the growth of a counter. A lower value means a restart from 0."""
    return after - before if after >= before else after


def _shown(field: str, parts: dict[str, Any] | None) -> Any:
    if parts is None:
        return None
    kind = kind_of(field)
    if kind is Kind.WORD:
        return parts["last"]
    if kind is Kind.COUNTER:
        return {"sum": parts["sum"]}
    return {"min": parts["min"], "mean": round(parts["mean"], 3), "max": parts["max"]}
