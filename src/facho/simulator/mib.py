"""MIB of an agent in SNMP order: columns of rows, compared as numbers.

Rows with a common index are stored once for all columns, so an OLT with a thousand ONUs and thirty columns is small,
and lookups are two bisections.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from facho.adapters.snmp.codec import encode_varbind
from facho.engine.oid import Arcs, Oid, arcs, from_arcs, pack
from facho.engine.snmp import Tag

Raw = int | bytes
# Column and row.
Place = tuple[int, int]


class MibRows:
    """An index: its numbers in order, and the subject of each: an ONU, a port, or 0 for a scalar."""

    def __init__(self, entries: Iterable[tuple[Arcs, int]], *, of_onus: bool = False) -> None:
        ordered = sorted(entries)
        self.of_onus = of_onus
        self.indexes = [index for index, _ in ordered]
        self.subjects = [subject for _, subject in ordered]
        self.suffixes = [pack(index) for index in self.indexes]
        self.by_suffix = {suffix: row for row, suffix in enumerate(self.suffixes)}

    def __len__(self) -> int:
        return len(self.indexes)


SCALAR = MibRows([((0,), 0)])


class MibColumn:
    """One object of an agent. `read` returns its value for a subject at a time; a `fixed` one is read only once.

    If `read` returns None there is no such row. Only a `sparse` column may do so.
    """

    def __init__(
        self,
        oid: Arcs,
        rows: MibRows,
        tag: Tag,
        read: Callable[[int, float], Raw | None],
        *,
        fixed: bool = False,
        optical: bool = False,
        sparse: bool = False,
    ) -> None:
        self.oid = oid
        self.prefix = from_arcs(oid)
        self.rows = rows
        self.tag = tag
        # Read live from each ONU, one after the other.
        self.optical = optical
        self.sparse = sparse
        self._read = read
        # Encoded on demand: an OLT that changes is created again, which must be fast.
        self._fixed: list[bytes | None] | None = [None] * len(rows) if fixed else None

    def name(self, row: int) -> Oid:
        return Oid(self.prefix + self.rows.suffixes[row])

    def varbind(self, row: int, now: float) -> bytes:
        """Return the encoded variable of a row at a time."""
        if self._fixed is None:
            return self._encode(row, now)
        encoded = self._fixed[row]
        if encoded is None:
            encoded = self._fixed[row] = self._encode(row, now)
        return encoded

    def is_absent(self, row: int, now: float) -> bool:
        """Return whether the row does not exist at this time."""
        return self.sparse and self._read(self.rows.subjects[row], now) is None

    def is_counter64(self, _row: int) -> bool:
        return self.tag == Tag.COUNTER64

    def _encode(self, row: int, now: float) -> bytes:
        return encode_varbind(self.name(row), self.tag, self._read(self.rows.subjects[row], now))


class Mib:
    """All columns of an agent, in order."""

    def __init__(self, columns: Iterable[MibColumn]) -> None:
        self.columns: Sequence[MibColumn] = sorted(columns, key=lambda column: column.oid)
        self.is_sparse = any(column.sparse for column in self.columns)
        self._oids = [column.oid for column in self.columns]
        for one, other in pairwise(self._oids):
            if other[: len(one)] == one:
                raise ValueError(f"columns overlap: {one} and {other}")
        self._by_prefix = {column.prefix: number for number, column in enumerate(self.columns)}
        self._prefix_sizes = sorted({len(prefix) for prefix in self._by_prefix}, reverse=True)

    def column_of(self, oid: Oid) -> int | None:
        """Return the column of an OID, whether or not the row exists."""
        for size in self._prefix_sizes:
            number = self._by_prefix.get(Oid(oid[:size]))
            if number is not None:
                return number
        return None

    def find(self, oid: Oid) -> Place | None:
        """Return the place of exactly this OID."""
        number = self.column_of(oid)
        if number is None:
            return None
        column = self.columns[number]
        row = column.rows.by_suffix.get(oid[len(column.prefix) :])
        return None if row is None else (number, row)

    def after(self, oid: Oid) -> Place | None:
        """Return the first place with a larger OID, or None at the end."""
        place = self.find(oid)
        if place:
            return self.step(place)
        numbers = arcs(oid)
        number = bisect_right(self._oids, numbers) - 1
        if number >= 0 and numbers[: len(self._oids[number])] == self._oids[number]:
            row = bisect_left(self.columns[number].rows.indexes, numbers[len(self._oids[number]) :])
            return self._settle(number, row)
        return self._settle(number + 1, 0)

    def step(self, place: Place) -> Place | None:
        """Return the next place."""
        number, row = place
        row += 1
        return (number, row) if row < len(self.columns[number].rows.indexes) else self._settle(number + 1, 0)

    def skip_column(self, place: Place) -> Place | None:
        """Return the first place of the following columns."""
        return self._settle(place[0] + 1, 0)

    def _settle(self, number: int, row: int) -> Place | None:
        while number < len(self.columns):
            if row < len(self.columns[number].rows):
                return number, row
            number, row = number + 1, 0
        return None
