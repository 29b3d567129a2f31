"""Reads columns of known ONUs by their index: what to ask of which ONU, and what became of it."""

from collections.abc import Iterable, Sequence

from facho.engine.brand import Brand, Column, IndexSpace
from facho.engine.collect.batches import BatchReader
from facho.engine.collect.harvest import Harvest, Row
from facho.engine.collect.requester import Requester
from facho.engine.collect.sentences import describe_rest
from facho.engine.model import KnownOnu
from facho.engine.oid import Oid, pack

# States in which an ONU has no light to measure: an OLT would wait for each of them in vain.
DARK = frozenset({"offline", "los", "dying_gasp", "disabled"})


class KnownRows:
    """Columns of the ONUs in the inventory. Dear ones are asked only of ONUs that may have an answer."""

    def __init__(
        self,
        columns: Sequence[Column],
        known: Sequence[KnownOnu],
        brand: Brand,
        *,
        harvest: Harvest,
        requester: Requester,
    ) -> None:
        self._harvest = harvest
        self._rows_per_get = brand.manners.rows_per_get
        self._strangers: list[str] = []
        onus = list(self._resolve(known, brand))
        self.onus = {row for row, _ in onus}
        cheap = [column for column in columns if not column.optical]
        dear = [column for column in columns if column.optical]
        self._dark = [(row, column) for row, onu in onus if onu.state in DARK for column in dear]
        lit = [row for row, onu in onus if onu.state not in DARK]
        # Cheap ones first: they are safe when the time runs out.
        self._turns = [
            Turn(cheap, [row for row, _ in onus], BatchReader(requester)),
            Turn(dear, lit, BatchReader(requester, optical=True)),
        ]

    def _resolve(self, known: Sequence[KnownOnu], brand: Brand) -> Iterable[tuple[Row, KnownOnu]]:
        for onu in known:
            row = _row_of(onu.index, brand, self._harvest)
            if row is None:
                self._strangers.append(f"{onu.index} is not the index of an ONU of {brand.label}, so it was not asked")
            else:
                yield row, onu

    async def read(self) -> None:
        """Ask for everything, the cheap columns first."""
        for turn in self._turns:
            await turn.read(self._rows_per_get)

    def store(self, reason: str) -> list[str]:
        """Put what was read into the harvest, and say what was not; `reason` tells why the run ended early."""
        for row, column in self._dark:
            self._harvest.add_value(row, column, None)
        sentences = list(self._strangers)
        for turn in self._turns:
            sentences += turn.store(self._harvest, reason)
        return sentences


class Turn:
    """Some columns for some ONUs, by one reader."""

    def __init__(self, columns: Sequence[Column], onus: Sequence[Row], reader: BatchReader) -> None:
        self._columns = columns
        self._onus = onus if columns else []
        self._reader = reader
        self._oids = [oids_of(columns, row) for row in self._onus]

    async def read(self, rows_per_get: int) -> None:
        """Ask for every value that has an OID."""
        rows = [[oid for oid in row if oid is not None] for row in self._oids]
        await self._reader.read([row for row in rows if row], rows_per_get)

    def store(self, harvest: Harvest, reason: str) -> list[str]:
        """Put the values into the harvest; return what failed, one by one, and what was not asked, in one sentence."""
        sentences = []
        unread = 0
        for row, oids in zip(self._onus, self._oids, strict=True):
            failures = [self._store_value(harvest, *each, row) for each in zip(self._columns, oids, strict=True)]
            unread += None in failures
            sentences += [failure for failure in failures if failure]
        if unread:
            fields = [column.field for column in self._columns]
            sentences.insert(0, describe_rest(fields, reason, unread, len(self._onus)))
        return sentences

    def _store_value(self, harvest: Harvest, column: Column, oid: Oid | None, row: Row) -> str | None:
        """Return what was wrong with it, as a sentence; None if it was not asked."""
        if oid is None:
            return f"{column.field} of {row}: the table has no index for it"
        if oid in self._reader.values:
            harvest.add_value(row, column, self._reader.values[oid])
            return ""
        if oid in self._reader.failed:
            return f"{column.field} of {row}: {self._reader.failed[oid]}"
        return None


def oids_of(columns: Sequence[Column], row: Row) -> list[Oid | None]:
    """Return the OIDs of an ONU's values; None where a table cannot have one. Each space has numbers of its own."""
    indices = {space: _index_in(space, row) for space in {column.space for column in columns}}
    return [None if (index := indices[column.space]) is None else Oid(column.oid + index) for column in columns]


def _index_in(space: IndexSpace, row: Row) -> bytes | None:
    try:
        return pack(space.encode(row.position))
    except ValueError:
        return None


def _row_of(index: str, brand: Brand, harvest: Harvest) -> Row | None:
    try:
        return harvest.row_of(brand.space, pack(map(int, index.split("."))))
    except ValueError:
        return None
