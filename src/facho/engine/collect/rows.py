"""Reads columns of known ONUs by their index: what to ask of which ONU, and what became of it."""

from collections.abc import Iterator, Sequence

from facho.engine.brand import Column, IndexSpace
from facho.engine.collect.batches import BatchReader
from facho.engine.collect.harvest import Harvest, Row
from facho.engine.collect.sentences import describe_rest
from facho.engine.model import Completeness, Coverage
from facho.engine.oid import Oid, pack
from facho.engine.snmp import Missing


class Turn:
    """Some columns for some ONUs, by one reader."""

    def __init__(self, columns: Sequence[Column], onus: Sequence[Row], reader: BatchReader) -> None:
        self.columns = columns
        self._onus = onus if columns else []
        self._reader = reader
        self._oids = oids_of(columns, self._onus)
        # Values that could not be read: column, ONU, reason.
        self.failures: list[tuple[str, str, str]] = []
        self._failed: set[Row] = set()
        self._unread: set[Row] = set()

    @property
    def onus(self) -> Sequence[Row]:
        return self._onus

    @property
    def done(self) -> int:
        """How many ONUs have had their turn."""
        return len(self._onus) - self._reader.rows_left

    @property
    def has_values(self) -> bool:
        """Whether the OLT has any value of any of these ONUs."""
        return any(value is not None and value.__class__ is not Missing for value in self._reader.values.values())

    async def read(self) -> None:
        """Ask for every value that has an OID."""
        rows = ([oid for oid in row if oid is not None] for row in self._oids)
        await self._reader.read(row for row in rows if row)

    def names_of(self, column: Column) -> Iterator[tuple[Oid, Row]]:
        """Return the names that were asked for in a column, and the ONU that each belongs to."""
        if column in self.columns:
            place = self.columns.index(column)
            for row, oids in zip(self._onus, self._oids, strict=True):
                if (oid := oids[place]) is not None:
                    yield oid, row

    def store(self, harvest: Harvest, reason: str) -> list[str]:
        """Put the values into the harvest; return what was not asked, in a sentence, and note what failed."""
        gone = 0
        # The optics of an ONU may have no row while it is off.
        may_be_gone = len(self.columns) > 1 and not any(column.optical for column in self.columns)
        for row, oids in zip(self._onus, self._oids, strict=True):
            if may_be_gone and self._is_gone(oids):
                gone += 1
                harvest.doubt(row)
            for column, oid in zip(self.columns, oids, strict=True):
                self._store_value(harvest, column, oid, row)
        fields = [column.field for column in self.columns]
        if gone:
            harvest.remark(f"{', '.join(fields)}: the OLT has no row of {gone:,} ONUs that are known")
        return [describe_rest(fields, reason, len(self._unread), len(self._onus))] if self._unread else []

    def coverage(self) -> list[Coverage]:
        """Return how much of each column there is on each port."""
        ports: dict[tuple[int | None, int | None], list[Row]] = {}
        for row in self._onus:
            ports.setdefault(row.port, []).append(row)
        lines = []
        for port, rows in ports.items():
            broken = [row for row in rows if row in self._failed or row in self._unread]
            state = Completeness.PARTIAL if broken else Completeness.COMPLETE
            reason = f"{len(broken):,} of {len(rows):,} ONUs could not be read" if broken else ""
            count = len(rows) - len(broken)
            lines += [Coverage(column.field, *port, state, count, reason) for column in self.columns]
        return lines

    def _is_gone(self, oids: Sequence[Oid | None]) -> bool:
        """Say whether the table has nothing at all of an ONU."""
        missing = Missing.NO_SUCH_INSTANCE
        return all(oid is not None and self._reader.values.get(oid) is missing for oid in oids)

    def _store_value(self, harvest: Harvest, column: Column, oid: Oid | None, row: Row) -> None:
        if oid is None:
            self._note_failure(column, row, "the table has no index for it")
        elif oid in self._reader.values:
            harvest.add_value(row, column, self._reader.values[oid])
        elif oid in self._reader.failed:
            self._note_failure(column, row, self._reader.failed[oid])
        else:
            self._unread.add(row)

    def _note_failure(self, column: Column, row: Row, reason: str) -> None:
        self.failures.append((column.field, str(row), reason))
        self._failed.add(row)


def oids_of(columns: Sequence[Column], onus: Sequence[Row]) -> list[list[Oid | None]]:
    """Return the OIDs of each ONU's values; None where a table cannot have one. Each space has numbers of its own."""
    spaces = list(dict.fromkeys(column.space for column in columns))
    places = [(column.oid, spaces.index(column.space)) for column in columns]
    rows: list[list[Oid | None]] = []
    for onu in onus:
        indices = [_index_in(space, onu) for space in spaces]
        rows.append([None if (index := indices[place]) is None else Oid(oid + index) for oid, place in places])
    return rows


def _index_in(space: IndexSpace, row: Row) -> bytes | None:
    if row.seen_as[0] is space:
        return row.seen_as[1]
    try:
        return pack(space.encode(row.place))
    except ValueError:
        return None
