"""Recorded answers of an agent: a list of variables, with the interface of a MIB.

Sorted by default. In file order it may go backwards and repeat an OID, as some devices do.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from facho.adapters.snmp.codec import encode_varbind
from facho.adapters.snmp.snmprec import Record
from facho.engine.oid import Oid, arcs, pack
from facho.engine.snmp import Tag
from facho.simulator.mib import Place


class RecordedRows:
    """Variables of a recording, counted from 0. Faults that count rows count these."""

    of_onus = True

    def __init__(self, size: int) -> None:
        self.subjects = range(size)

    def __len__(self) -> int:
        return len(self.subjects)


class RecordedColumn:
    """All variables of a recording, as one column of many types."""

    prefix = Oid(b"")
    optical = False

    def __init__(self, records: Sequence[Record], remember: dict[Oid, int]) -> None:
        self.rows = RecordedRows(len(records))
        self._names = [record.oid for record in records]
        self._tags = [record.tag for record in records]
        self._encoded = [encode_varbind(*record) for record in records]
        self._remember = remember

    def name(self, row: int) -> Oid:
        return self._names[row]

    def varbind(self, row: int, _now: float) -> bytes:
        name = self._names[row]
        if name in self._remember:
            self._remember[name] = row
        return self._encoded[row]

    def is_absent(self, _row: int, _now: float) -> bool:
        return False

    def is_counter64(self, row: int) -> bool:
        return self._tags[row] == Tag.COUNTER64


class RecordedMib:
    """Variables of a recording. Of several with the same OID, the agent continues after the last one it returned."""

    is_sparse = False

    def __init__(self, records: Sequence[Record], *, keep_order: bool = False) -> None:
        if not keep_order:
            by_oid = {record.oid: record for record in reversed(records)}
            records = sorted(by_oid.values(), key=lambda record: arcs(record.oid))
        repeated = [oid for oid, times in Counter(record.oid for record in records).items() if times > 1]
        self._rows = {record.oid: row for row, record in reversed(list(enumerate(records)))}
        self._last = {oid: self._rows[oid] for oid in repeated}
        self.columns = [RecordedColumn(records, self._last)]
        self._sorted = sorted((arcs(oid), row) for oid, row in self._rows.items())
        self._parents = {_parent(oid) for oid in self._rows}

    def column_of(self, oid: Oid) -> int | None:
        """Return 0 if the recording has something beside this OID. A recording does not show where columns start."""
        return 0 if _parent(oid) in self._parents else None

    def find(self, oid: Oid) -> Place | None:
        row = self._last.get(oid, self._rows.get(oid))
        return None if row is None else (0, row)

    def after(self, oid: Oid) -> Place | None:
        """Return the place after this OID, or that of the smallest larger one."""
        place = self.find(oid)
        if place:
            return self.step(place)
        at = bisect_right(self._sorted, (arcs(oid), len(self._sorted)))
        return (0, self._sorted[at][1]) if at < len(self._sorted) else None

    def step(self, place: Place) -> Place | None:
        row = place[1] + 1
        return (0, row) if row < len(self.columns[0].rows) else None

    def skip_column(self, place: Place) -> Place | None:
        """Return the next place: only a single variable is skipped."""
        return self.step(place)


def _parent(oid: Oid) -> bytes:
    """Return the OID without its last number."""
    return pack(arcs(oid)[:-1])
