"""History of whole OLTs, for files: which periods have values, and the values of some ONUs in one of them.

Each query reads a small part and leaves no statement or transaction open, so a long export does not hold up the writer.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max, Min
from django.db.models.functions import TruncDay

from facho.apps.telemetry.history import Level, microseconds, unpacked
from facho.engine.batch import UNREAD
from facho.engine.chunks import Chunk, RunColumns, decode, kind_of

# Packed rows read by one query: up to some MB.
ROWS = 50

# Cells of an ONU, one per name, by time in microseconds since the epoch.
Lines = dict[int, list[Any]]


@dataclass(slots=True)
class Readings:
    """Cells of some ONUs, by id and time. A cell is a value, None (read, no value) or UNREAD."""

    onus: dict[int, Lines]
    # Number of damaged rows.
    damaged: int = 0


def period_starts(level: Level, olt_id: int, since: datetime, until: datetime) -> list[datetime]:
    """Return the starts of the days or months of an OLT that have values from `since` to before `until`."""
    runs = level.open._default_manager.filter(olt_id=olt_id, at__gte=since, at__lt=until)
    days = runs.annotate(day=TruncDay("at", tzinfo=UTC)).order_by().values_list("day", flat=True).distinct()
    chunks = level.closed._default_manager.filter(
        olt_id=olt_id, start__gte=level.start(since), start__lt=until, last_at__gte=since
    )
    closed = chunks.order_by().values_list("start", flat=True).distinct()
    return sorted({level.start(at) for at in [*days, *closed]})


def known_span(level: Level) -> tuple[datetime, datetime] | None:
    """Return the times of the first and the last values, the first to its day or month; None if there are none."""
    runs = level.open._default_manager.aggregate(first=Min("at"), last=Max("at"))
    chunks = level.closed._default_manager.aggregate(first=Min("start"), last=Max("last_at"))
    firsts = [found["first"] for found in (runs, chunks) if found["first"]]
    lasts = [found["last"] for found in (runs, chunks) if found["last"]]
    return (min(firsts), max(lasts)) if firsts else None


@dataclass(frozen=True, slots=True)
class Part:
    """Values of an OLT from `since` to before `until`, within one day or month."""

    level: Level
    olt_id: int
    since: datetime
    until: datetime
    # Fields, or daily values such as `rx_dbm:min`, with their place in a line.
    places: Mapping[str, int] = field(default_factory=dict)

    def of(self, onu_ids: Sequence[int]) -> Readings:
        """Return the readings of ONUs with ascending ids."""
        found = Readings({onu_id: {} for onu_id in onu_ids})
        # In this order: a period that is closed in between is found twice, and not missed.
        self._add_runs(found)
        self._add_chunks(found, onu_ids[0], onu_ids[-1])
        return found

    def _add_runs(self, found: Readings) -> None:
        model = self.level.open
        runs = model._default_manager.filter(olt_id=self.olt_id, at__gte=self.since, at__lt=self.until)
        # Runs of an OLT mostly have the same ONUs, so their positions are cached.
        positions: dict[bytes, slice] = {}
        for pk, at, data in _in_turn(model, runs.order_by("at", "pk"), "at"):
            run = unpacked(RunColumns, model, pk, data)
            if run is None:
                found.damaged += 1
                continue
            part = positions.get(run.packed_ids)
            if part is None:
                chosen = [place for place, onu_id in enumerate(run.onu_ids) if onu_id in found.onus]
                part = positions[run.packed_ids] = slice(min(chosen, default=0), max(chosen, default=-1) + 1)
            for name in run.forms.keys() & self.places if part.stop else ():
                self._put(found, microseconds(at), run.onu_ids[part], name, run.cells(name, part), is_run=True)

    def _add_chunks(self, found: Readings, first_onu: int, last_onu: int) -> None:
        model = self.level.closed
        chunks = model._default_manager.filter(
            olt_id=self.olt_id, start=self.level.start(self.since), field__in=list(self.places)
        ).filter(first_onu__lte=last_onu, last_onu__gte=first_onu)
        first, last = microseconds(self.since), microseconds(self.until)
        for pk, name, data in _in_turn(model, chunks.order_by("pk"), "field"):
            chunk = unpacked(Chunk, model, pk, data)
            if chunk is None:
                found.damaged += 1
                continue
            span = slice(bisect_left(chunk.times, first), bisect_left(chunk.times, last))
            for time, column in zip(chunk.times[span], chunk.columns()[span], strict=True):
                self._put(found, time, chunk.onu_ids, name, decode(kind_of(name), column), is_run=False)

    def _put(
        self, found: Readings, time: int, onu_ids: Sequence[int], name: str, cells: Sequence[Any], *, is_run: bool
    ) -> None:
        """Add the cells of one name. For one ONU and time the last run counts, and a run counts more than a chunk."""
        place, onus = self.places[name], found.onus
        for onu_id, cell in zip(onu_ids, cells, strict=True):
            if cell is not UNREAD and (lines := onus.get(onu_id)) is not None:
                line = lines.get(time)
                if line is None:
                    line = lines[time] = [UNREAD] * len(self.places)
                if is_run or line[place] is UNREAD:
                    line[place] = cell


def _in_turn(model: Any, rows: Any, name: str) -> Iterator[tuple[int, Any, bytes]]:
    """Yield id, a column and data of rows, some at once. Rows that were deleted meanwhile are left out."""
    ids = list(rows.values_list("pk", flat=True))
    for start in range(0, len(ids), ROWS):
        part = ids[start : start + ROWS]
        found = {row[0]: row for row in model._default_manager.filter(pk__in=part).values_list("pk", name, "data")}
        yield from (found[pk] for pk in part if pk in found)
