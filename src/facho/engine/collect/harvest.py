"""Joins what was read: raw values of many columns become rows of ONUs, by position and never by number."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from facho.engine.brand import Brand, Column, Decoder, IndexSpace, Place, Position
from facho.engine.model import Reading
from facho.engine.oid import unpack
from facho.engine.snmp import Missing, Value

logger = logging.getLogger(__name__)


class Row:
    """One ONU, and what was read of it. A key that is not there was not read; None is the device's own "none"."""

    __slots__ = ("index", "is_read", "position", "values")

    def __init__(self, position: Position, index: str) -> None:
        self.position = position
        self.index = index
        self.values: dict[str, Any] = {}
        # The device said something of it, if only something that could not be decoded.
        self.is_read = False

    def __str__(self) -> str:
        return f"ONU {self.position.slot}/{self.position.port}/{self.position.onu}"


class Harvest:
    """All rows of a run. Each index of each space is worked out once, however many columns have it."""

    def __init__(self, brand: Brand) -> None:
        self._brand = brand
        self._rows: dict[Position, Row] = {}
        self._spaces: dict[IndexSpace, dict[bytes, Row | None]] = {}
        self._unreadable: dict[str, set[Row]] = {}
        self._remarks: list[str] = []

    def row_of(self, space: IndexSpace, index: bytes) -> Row | None:
        """Return the row with this index in this space; None if that is not an ONU."""
        known = self._spaces.setdefault(space, {})
        if index not in known:
            known[index] = self._resolve(space, index)
        return known[index]

    def _resolve(self, space: IndexSpace, index: bytes) -> Row | None:
        try:
            position = space.decode(unpack(index))
            if position is None:
                return None
            row = self._rows.get(position)
            if row is None:
                row = Row(position, ".".join(map(str, self._brand.space.encode(position))))
                self._rows[position] = row
        except ValueError:
            # Numbers that are cut off, or that no ONU can have.
            return None
        return row

    def name_of(self, space: IndexSpace, index: bytes) -> str:
        """Return what to call a row of a table in a sentence."""
        row = self.row_of(space, index)
        if row is not None:
            return str(row)
        try:
            return f"index {'.'.join(map(str, unpack(index)))}"
        except ValueError:
            return "a broken index"

    def add_column(self, column: Column, raw: Mapping[bytes, Value]) -> list[Row]:
        """Decode a column that was walked, and return the rows it has."""
        field, decode = column.field, column.decode
        known = self._spaces.setdefault(column.space, {})
        rows = []
        for index, value in raw.items():
            row = known[index] if index in known else self.row_of(column.space, index)
            if row is None:
                continue
            rows.append(row)
            row.is_read = True
            try:
                row.values[field] = None if value is None else decode(value)
            # A brand or an admin's OID may meet a type it does not expect; that costs one value, not the run.
            except Exception as error:
                self._note_unreadable(field, row, error)
        if raw and not rows:
            self._remarks.append(f"{field}: none of its {len(raw):,} rows is an ONU of {self._brand.label}")
        return rows

    def add_value(self, row: Row, column: Column, value: Value) -> None:
        """Decode one value that was asked for by its index."""
        row.is_read = True
        try:
            row.values[column.field] = decode_value(column.decode, value)
        # As above: one value, not the run.
        except Exception as error:
            self._note_unreadable(column.field, row, error)

    def _note_unreadable(self, what: str, row: Row, error: Exception) -> None:
        # Once a column: where one value has an odd type, a thousand have.
        if what not in self._unreadable:
            logger.warning("%s of %s could not be decoded", what, row, exc_info=error)
        self._unreadable.setdefault(what, set()).add(row)

    def fill(self, column: Column) -> None:
        """Note that a column was read to its end: ONUs that are not in it have no such value."""
        unreadable = self._unreadable.get(column.field, set())
        for row in self._rows.values():
            if row not in unreadable:
                row.values.setdefault(column.field, None)
                row.is_read = True

    def remarks(self) -> list[str]:
        """Return what an operator should know although every row was read."""
        unreadable = [f"{what}: could not be decoded for {len(rows):,} ONUs" for what, rows in self._unreadable.items()]
        return [*self._remarks, *unreadable]

    def readings(self, only: Collection[Row] | None = None) -> tuple[Reading, ...]:
        """Return the rows of which anything was read, with the brand's rules applied."""
        readings = []
        for row in self._rows.values():
            if row.is_read and (only is None or row in only):
                at = row.position
                readings.append(Reading(row.index, at.slot, at.port, at.onu, self._finish(row)))
        return tuple(readings)

    def _finish(self, row: Row) -> Mapping[str, Any]:
        if self._brand.finish is None:
            return row.values
        try:
            return self._brand.finish(row.values)
        # As above: the row stays as it was read.
        except Exception as error:
            self._note_unreadable("row", row, error)
            return row.values


def decode_value(decode: Decoder, value: Value) -> Any:
    """Return our value for the device's; what it does not have is None."""
    if value is None or value.__class__ is Missing:
        return None
    return decode(value)
