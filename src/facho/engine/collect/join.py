"""Joins what was read: raw values of many columns become rows of ONUs, by place and never by number."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from facho.engine.brand import Brand, Column, Decoder, IndexSpace, Place, Position
from facho.engine.model import KnownOnu, Reading
from facho.engine.oid import pack, unpack
from facho.engine.snmp import Missing, Value

logger = logging.getLogger(__name__)

# Where an ONU sits may be a value like any other: a column or a rule of its brand fills these.
PLACE_FIELDS = ("slot", "port", "onu")
PLACES = frozenset(PLACE_FIELDS)


class OnuRow:
    """One ONU, and what was read of it. A key that is not there was not read; None is the device's own "none"."""

    __slots__ = ("index", "is_onu", "is_read", "place", "port", "seen_as", "slot_port_onu", "values")

    def __init__(self, place: Place, index: str, seen_as: tuple[IndexSpace, bytes]) -> None:
        self.place = place
        self.index = index
        # The first index that named it, and in which space.
        self.seen_as = seen_as
        self.values: dict[str, Any] = {}
        if isinstance(place, Position):
            self.put(place.slot, place.port, place.onu)
        else:
            self.put(None, None, None)
        # The device said something of it, if only something that could not be decoded.
        self.is_read = False
        # None: only a column can tell, and it has not been read.
        self.is_onu: bool | None = True

    def put(self, slot: int | None, port: int | None, onu: int | None) -> None:
        """Note where it sits."""
        self.slot_port_onu = slot, port, onu
        self.port = slot, port

    def __str__(self) -> str:
        if self.slot_port_onu[2] is None:
            return f"ONU {self.index}"
        return "ONU " + "/".join("-" if part is None else str(part) for part in self.slot_port_onu)


class Harvest:
    """All rows of a run. Each index of each space is worked out once, however many columns have it."""

    def __init__(self, brand: Brand, known: Sequence[KnownOnu] = ()) -> None:
        self._brand = brand
        self._known = {onu.index: onu for onu in known}
        self._needs_placing = any(column.places for column in brand.columns.values())
        self._rows: dict[Place, OnuRow] = {}
        self._spaces: dict[IndexSpace, dict[bytes, OnuRow | None]] = {}
        self._unreadable: dict[str, set[OnuRow]] = {}
        self._remarks: list[str] = []
        # Fields of columns for which the agent had any value of an ONU.
        self.answered: set[str] = set()
        # The OLT has no row of them any more: what is known of them stays as it is.
        self._doubtful: set[OnuRow] = set()
        # Which of the place fields the rules of the brand filled: each combination that occurred.
        self.placed: set[frozenset[str]] = set()

    @property
    def rows(self) -> Iterable[OnuRow]:
        """Return the ONUs so far."""
        return [row for row in self._rows.values() if row.is_onu]

    @property
    def is_plain(self) -> bool:
        """Return whether every value could be decoded, every ONU has rows, and the rules treat places alike."""
        return not self._unreadable and not self._doubtful and len(self.placed) < 2

    def row_of(self, space: IndexSpace, index: bytes) -> OnuRow | None:
        """Return the row with this index in this space; None if that is not an ONU."""
        known = self._spaces.setdefault(space, {})
        if index not in known:
            known[index] = self._resolve(space, index)
        return known[index]

    def row_named(self, index: str) -> OnuRow | None:
        """Return the row of an ONU by the index that names it in the inventory."""
        try:
            return self.row_of(self._brand.space, pack(map(int, index.split("."))))
        except ValueError:
            return None

    def place_of(self, index: str) -> Place | None:
        """Return where an ONU of the inventory sits, as far as its index tells, without making a row of it."""
        try:
            return self._brand.space.decode(tuple(map(int, index.split("."))))
        except ValueError:
            return None

    def _resolve(self, space: IndexSpace, index: bytes) -> OnuRow | None:
        row = self.peek(space, index)
        if row is not None:
            self._rows[row.place] = row
        return row

    def peek(self, space: IndexSpace, index: bytes) -> OnuRow | None:
        """Return the row with this index, without making it an ONU of this run if it is not one."""
        try:
            arcs = unpack(index)
            place = space.decode(arcs)
            if place is None or place in self._rows:
                return self._rows[place] if place else None
            named = arcs if space is self._brand.space else self._brand.space.encode(place)
            row = OnuRow(place, ".".join(map(str, named)), (space, index))
        except ValueError:
            # Numbers that are cut off, or that no ONU can have.
            return None
        self._recall(row)
        return row

    def _recall(self, row: OnuRow) -> None:
        """Fill in what the index does not tell, by what is known of the ONU from earlier."""
        if isinstance(row.place, Position):
            return
        onu = self._known.get(row.index)
        if onu is not None:
            row.put(onu.slot, onu.port, onu.onu)
        elif self._needs_placing:
            row.is_onu = None

    def name_of(self, space: IndexSpace, index: bytes) -> str:
        """Return what to call a row of a table in a sentence."""
        row = self.peek(space, index)
        if row is not None:
            return str(row)
        try:
            return f"index {'.'.join(map(str, unpack(index)))}"
        except ValueError:
            return "a broken index"

    def add_column(self, column: Column, raw: Mapping[bytes, Value]) -> list[OnuRow]:
        """Decode a column that was walked, and return the rows it has."""
        field, decode, places = column.field, column.decode, column.places
        known = self._spaces.setdefault(column.space, {})
        rows = []
        # A column of numbers has few different ones: each is decoded once.
        numbers: dict[Value, Any] = {None: None}
        for index, value in raw.items():
            row = known[index] if index in known else self.row_of(column.space, index)
            if row is None:
                continue
            rows.append(row)
            row.is_read = True
            try:
                if value in numbers:
                    decoded = numbers[value]
                else:
                    decoded = decode(value)
                    if value.__class__ is int:
                        numbers[value] = decoded
            # A brand or an admin's OID may meet a type it does not expect; that costs one value, not the run.
            except Exception as error:
                self._note_unreadable(field, row, error)
                continue
            if places:
                _put(row, decoded)
            else:
                row.values[field] = decoded
        if rows:
            self.answered.add(field)
        return rows

    def add_value(self, row: OnuRow, column: Column, value: Value) -> None:
        """Decode one value that was asked for by its index."""
        row.is_read = True
        if value is not None and value.__class__ is not Missing:
            self.answered.add(column.field)
        try:
            decoded = decode_value(column.decode, value)
        # As above: one value, not the run.
        except Exception as error:
            self._note_unreadable(column.field, row, error)
            return
        if not column.places:
            row.values[column.field] = decoded
        elif decoded is not None:
            _put(row, decoded)

    def _note_unreadable(self, what: str, row: OnuRow, error: Exception) -> None:
        # Once a column: where one value has an odd type, a thousand have.
        if what not in self._unreadable:
            logger.warning("%s of %s could not be decoded", what, row, exc_info=error)
        self._unreadable.setdefault(what, set()).add(row)

    def fill(self, column: Column, ports: Collection[tuple[int | None, int | None]] | None = None) -> None:
        """Note that a column was read to its end, on these ports or on all: ONUs that are not in it have no value."""
        if column.places:
            return
        unreadable = self._unreadable.get(column.field, set())
        for row in self._rows.values():
            if row not in unreadable and (ports is None or row.port in ports):
                row.values.setdefault(column.field, None)
                row.is_read = True

    def doubt(self, row: OnuRow) -> None:
        """Note that a table has nothing at all of an ONU that should be in it."""
        self._doubtful.add(row)

    def remark(self, sentence: str) -> None:
        """Note what an operator should know although every row was read."""
        self._remarks.append(sentence)

    def remarks(self) -> list[str]:
        """Return what an operator should know although every row was read."""
        unreadable = [f"{what}: could not be decoded for {len(rows):,} ONUs" for what, rows in self._unreadable.items()]
        return [*self._remarks, *unreadable]

    def readings(self, only: Collection[OnuRow] | None = None) -> tuple[Reading, ...]:
        """Return the ONUs of which anything was read, with the brand's rules applied."""
        return tuple(
            self._reading(row)
            for row in self._rows.values()
            if row.is_read and row.is_onu and (only is None or row in only) and not self._is_gone(row)
        )

    def _is_gone(self, row: OnuRow) -> bool:
        return row in self._doubtful and all(value is None for value in row.values.values())

    def _reading(self, row: OnuRow) -> Reading:
        values = dict(self._finish(row))
        placed = frozenset(values.keys() & PLACES)
        self.placed.add(placed)
        if not placed:
            return Reading(row.index, *row.slot_port_onu, values)
        slot, port, onu = (values.pop(name, told) for name, told in zip(PLACE_FIELDS, row.slot_port_onu, strict=True))
        return Reading(row.index, slot, port, onu, values)

    def _finish(self, row: OnuRow) -> Mapping[str, Any]:
        if self._brand.finish is None:
            return row.values
        try:
            return self._brand.finish(row.values)
        # As above: the row stays as it was read.
        except Exception as error:
            self._note_unreadable("row", row, error)
            return row.values


def _put(row: OnuRow, place: Position | None) -> None:
    """Take the place of an ONU from a column; None says that the row is no ONU."""
    row.is_onu = place is not None
    if place is not None:
        row.put(place.slot, place.port, place.onu)


def decode_value(decode: Decoder, value: Value) -> Any:
    """Return our value for the device's; what it does not have is None."""
    if value is None or value.__class__ is Missing:
        return None
    return decode(value)
