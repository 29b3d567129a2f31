"""Joins columns: raw values become rows of ONUs, by place and never by number."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from facho.engine.brand import Brand, Column, IndexSpace, Place, Position
from facho.engine.collect.plan import decode_value
from facho.engine.escapes import LONGEST_TEXT, shortened
from facho.engine.limits import MOST_ONUS
from facho.engine.model import KnownOnu, Reading
from facho.engine.oid import pack, unpack
from facho.engine.snmp import Missing, Value

logger = logging.getLogger(__name__)

# The place of an ONU may be a value: a column or a rule of the brand sets these fields.
PLACES = frozenset({"slot", "port", "onu"})


class OnuRow:
    """Values of one ONU. A missing key was not read; None means that the device has no value."""

    __slots__ = ("index", "is_onu", "is_read", "place", "port", "seen_as", "slot_port_onu", "values")

    def __init__(self, place: Place, index: str, seen_as: tuple[IndexSpace, bytes]) -> None:
        self.place = place
        self.index = index
        # First index that named it, and its space.
        self.seen_as = seen_as
        self.values: dict[str, Any] = {}
        if isinstance(place, Position):
            self.put(place.slot, place.port, place.onu)
        else:
            self.put(None, None, None)
        # The device returned a value for it, even if it could not be decoded.
        self.is_read = False
        # None: unknown until a certain column is read.
        self.is_onu: bool | None = True

    def put(self, slot: int | None, port: int | None, onu: int | None) -> None:
        """Set the place."""
        self.slot_port_onu = slot, port, onu
        self.port = slot, port

    def __str__(self) -> str:
        if self.slot_port_onu[2] is None:
            return f"ONU {self.index}"
        return "ONU " + "/".join("-" if part is None else str(part) for part in self.slot_port_onu)


class Harvest:
    """All rows of a run. Each index of each space is parsed once for all columns."""

    def __init__(self, brand: Brand, known: Sequence[KnownOnu] = (), most_onus: int = MOST_ONUS) -> None:
        self._brand = brand
        self._most_onus = most_onus
        # New ONUs beyond the limit, by index.
        self._refused: set[str] = set()
        self._known = {onu.index: onu for onu in known}
        self._needs_placing = any(column.places for column in brand.columns.values())
        self._rows: dict[Place, OnuRow] = {}
        self._spaces: dict[IndexSpace, dict[bytes, OnuRow | None]] = {}
        self._unreadable: dict[str, set[OnuRow]] = {}
        # ONUs whose text was too long, by field.
        self._long: dict[str, set[OnuRow]] = {}
        self._remarks: list[str] = []
        # Fields for which the agent returned any value.
        self.answered: set[str] = set()
        # ONUs without a row in the OLT; their known values stay.
        self._doubtful: set[OnuRow] = set()
        # Combinations of place fields that the rules of the brand set.
        self.placed: set[frozenset[str]] = set()

    @property
    def rows(self) -> list[OnuRow]:
        """Return the ONUs so far."""
        return [row for row in self._rows.values() if row.is_onu]

    @property
    def is_plain(self) -> bool:
        """Return whether every value was decoded and fits, every ONU has rows, and the rules treat places alike."""
        return not self._unreadable and not self._long and not self._doubtful and len(self.placed) < 2

    def row_of(self, space: IndexSpace, index: bytes) -> OnuRow | None:
        """Return the row with this index in this space; None if it is not an ONU."""
        known = self._spaces.setdefault(space, {})
        if index not in known:
            row = known[index] = self.peek(space, index)
            if row is not None and row.place not in self._rows:
                if row.index not in self._known and len(self._rows) >= self._most_onus:
                    self._refused.add(row.index)
                    row = known[index] = None
                else:
                    self._rows[row.place] = row
        return known[index]

    def refusals(self) -> list[str]:
        """Return the sentence about ONUs that were left out, if there are any."""
        said = f"the OLT reports more than {self._most_onus:,} ONUs; the others were left out"
        return [said] if self._refused else []

    @property
    def excess(self) -> int:
        """Return how many new ONUs were left out because there were too many."""
        return len(self._refused)

    def row_named(self, index: str) -> OnuRow | None:
        """Return the row of an ONU by the index that names it in the inventory."""
        try:
            return self.row_of(self._brand.space, pack(map(int, index.split("."))))
        except ValueError:
            return None

    def place_of(self, index: str) -> Place | None:
        """Return the place of a known ONU, as far as its index contains it, without creating a row."""
        try:
            return self._brand.space.decode(tuple(map(int, index.split("."))))
        except ValueError:
            return None

    def peek(self, space: IndexSpace, index: bytes) -> OnuRow | None:
        """Return the row with this index, without adding it to the ONUs of this run."""
        try:
            arcs = unpack(index)
            place = space.decode(arcs)
            if place is None or place in self._rows:
                return self._rows[place] if place else None
            named = arcs if space is self._brand.space else self._brand.space.encode(place)
            name = ".".join(map(str, named))
            # The text of the inventory, so that the jobs of an OLT share one per ONU.
            row = OnuRow(place, self._known[name].index if name in self._known else name, (space, index))
        except ValueError:
            # Truncated numbers, or numbers that no ONU can have.
            return None
        if not isinstance(row.place, Position):
            # Its index does not contain its place.
            onu = self._known.get(row.index)
            if onu is not None:
                row.put(onu.slot, onu.port, onu.onu)
            elif self._needs_placing:
                row.is_onu = None
        return row

    def name_of(self, space: IndexSpace, index: bytes) -> str:
        """Return the name of a row for messages."""
        row = self.peek(space, index)
        if row is not None:
            return str(row)
        try:
            return f"index {'.'.join(map(str, unpack(index)))}"
        except ValueError:
            return "a broken index"

    def add_column(self, column: Column, raw: Mapping[bytes, Value]) -> list[OnuRow]:
        """Decode a walked column and return its rows."""
        field, decode, places = column.field, column.decode, column.places
        known = self._spaces.setdefault(column.space, {})
        rows = []
        # A column of numbers has few different values; each is decoded once.
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
            # An unexpected type in a brand's or admin's OID costs one value, not the run.
            except Exception as error:
                self._note_unreadable(field, row, error)
                continue
            if places:
                _put(row, decoded)
                continue
            if decoded.__class__ is str and len(decoded) > LONGEST_TEXT:
                decoded = self._cut(field, row, decoded)
            row.values[field] = decoded
        if rows:
            self.answered.add(field)
        return rows

    def add_value(self, row: OnuRow, column: Column, value: Value) -> None:
        """Decode one value that was requested by index."""
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
            is_long = isinstance(decoded, str) and len(decoded) > LONGEST_TEXT
            row.values[column.field] = self._cut(column.field, row, decoded) if is_long else decoded
        elif decoded is not None:
            _put(row, decoded)

    def _cut(self, field: str, row: OnuRow, text: str) -> str:
        self._long.setdefault(field, set()).add(row)
        return shortened(text, LONGEST_TEXT)

    def _note_unreadable(self, what: str, row: OnuRow, error: Exception) -> None:
        # Once per column: an odd type usually occurs in all its values.
        if what not in self._unreadable:
            logger.warning("%s of %s could not be decoded", what, row, exc_info=error)
        self._unreadable.setdefault(what, set()).add(row)

    def fill(self, column: Column, ports: Collection[tuple[int | None, int | None]] | None = None) -> None:
        """Record that a column was read to the end, on these ports or on all: ONUs that are not in it have no value."""
        if column.places:
            return
        unreadable = self._unreadable.get(column.field, set())
        for row in self._rows.values():
            if row not in unreadable and (ports is None or row.port in ports):
                row.values.setdefault(column.field, None)
                row.is_read = True

    def doubt(self, row: OnuRow) -> None:
        """Record that a table has no row of an ONU that should be in it."""
        self._doubtful.add(row)

    def remark(self, sentence: str) -> None:
        """Add a remark for the operator, although every row was read."""
        self._remarks.append(sentence)

    def remarks(self) -> list[str]:
        """Return the remarks for the operator."""
        unreadable = [f"{what}: could not be decoded for {len(rows):,} ONUs" for what, rows in self._unreadable.items()]
        long = [f"{what}: cut to {LONGEST_TEXT} characters for {len(rows):,} ONUs" for what, rows in self._long.items()]
        return [*self._remarks, *unreadable, *long]

    def readings(self, only: Collection[OnuRow] | None = None) -> tuple[Reading, ...]:
        """Return the ONUs with values, after the brand's rules."""
        readings = []
        for row in self._rows.values():
            is_gone = row in self._doubtful and all(value is None for value in row.values.values())
            if is_gone or not (row.is_read and row.is_onu and (only is None or row in only)):
                continue
            finished: Mapping[str, Any] = row.values
            if self._brand.finish is not None:
                try:
                    finished = self._brand.finish(row.values)
                # As above: the row stays as it was read.
                except Exception as error:
                    self._note_unreadable("row", row, error)
            values = dict(finished)
            self.placed.add(frozenset(values.keys() & PLACES))
            slot, port, onu = row.slot_port_onu
            place = values.pop("slot", slot), values.pop("port", port), values.pop("onu", onu)
            readings.append(Reading(row.index, *place, values))
        return tuple(readings)


def _put(row: OnuRow, place: Position | None) -> None:
    """Set the place of an ONU from a column; None means that the row is not an ONU."""
    row.is_onu = place is not None
    if place is not None:
        row.put(place.slot, place.port, place.onu)
