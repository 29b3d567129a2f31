"""State of one column in a walk: rows read, cursor, end."""

from collections.abc import Iterable

from facho.engine.brand import Column
from facho.engine.collect.join import OnuRow
from facho.engine.oid import Oid, unpack
from facho.engine.snmp import Missing, Value

# Answers in a row without a new row before the walk stops: the agent may loop.
MAX_BARREN = 6

# Marks the end of the agent's MIB.
NOTHING = Oid(b"\x00")


class ColumnWalk:
    """Walk over one column, or over one port of it. Open until it reaches its end or is stopped.

    Order is not required: agents repeat OIDs and go backwards. A row counts once, and a walk continues while new rows
    arrive.

    A port may be split: a part starts after the row `after` and ends with the row `until`. Each is empty where the
    part starts or ends with the port.
    """

    def __init__(
        self, column: Column, port: bytes = b"", *, from_start: bool = False, after: bytes = b"", until: bytes = b""
    ) -> None:
        self.column = column
        # Prefix of the port's indexes; empty: the whole column.
        self.port = port
        self.after = after
        self.until = until
        self._after, self._until = unpack(after), unpack(until)
        # First OID of the answers, and the first OID after `until` if that row was not found; see `leads_to`.
        self._entry: Oid | None = None
        self._exit: Oid | None = None
        self._prefix = Oid(column.oid + port)
        # Raw values by index bytes, in order of arrival.
        self.rows: dict[bytes, Value] = {}
        # OID to continue after. The first port starts with the column, so that no port before it is missed.
        self.cursor: Oid = Oid(column.oid + after) if after else column.oid if from_start else self._prefix
        self.is_complete = False
        self.stopped = ""
        # Unreadable rows that were skipped, with the reason.
        self.gaps: dict[bytes, str] = {}
        # Ports whose rest was skipped, by their last row, with the reason.
        self.left: dict[bytes, str] = {}
        # True while it continues after an unseen row as a guess.
        self.is_guess = False
        # Reason for waiting at an unreadable row.
        self.parked = ""
        # Rows before and after its port; other ports of the column start there.
        self.neighbours: list[bytes] = []
        # Its rows as ONUs, after they were joined with other columns.
        self.joined: list[OnuRow] | None = None
        # Variables of the last answer that belong to later ports.
        self.spill: list[tuple[Oid, Value]] = []
        self.went_back = False
        self._barren = 0

    @property
    def is_open(self) -> bool:
        return not (self.is_complete or self.stopped or self.parked)

    @property
    def last(self) -> bytes | None:
        """Return the index of the last new row."""
        return next(reversed(self.rows), None)

    def stop(self, reason: str) -> None:
        """Stop the walk before its end. Rows read so far are kept."""
        if self.is_open or self.parked:
            self.parked = ""
            self.stopped = reason

    def park(self, reason: str) -> None:
        """Wait until the unreadable row is found."""
        if self.is_open:
            self.parked = reason

    def jump(self, index: bytes, *, is_guess: bool = False) -> None:
        """Continue after this row without reading it, with the reason it was parked for."""
        self.is_guess = is_guess
        self.gaps[index] = self.parked
        self.parked = ""
        self.cursor = Oid(self.column.oid + index)
        self._barren = 0
        if self.until and index == self.until:
            self._end(None)

    def leave_port(self, next_port: bytes) -> None:
        """Skip the rest of a port and continue with the port that starts here."""
        self.is_guess = True
        if self.last is not None:
            self.left[self.last] = self.parked
        self.parked = ""
        self.cursor = Oid(self.column.oid + next_port)
        self._barren = 0

    def end(self) -> None:
        """Record that the agent has nothing after the last row."""
        self._entry = self._entry or NOTHING
        self._end(NOTHING)

    def _end(self, exit_oid: Oid | None) -> None:
        if self.is_open:
            self.is_complete = True
            self._exit = exit_oid

    def absorb(self, answered: Iterable[tuple[Oid, Value]]) -> None:
        """Add this column's variables of an answer, in order."""
        prefix, rows = self._prefix, self.rows
        length = len(self.column.oid)
        newest = lead = None
        is_part = bool(self.after or self.until)
        rest = iter(answered)
        for oid, value in rest:
            if value is Missing.END_OF_MIB_VIEW:
                self.end()
                return
            if self._entry is None:
                self._entry = oid
            if not oid.startswith(prefix):
                self._leave(oid)
                if self.port and self.is_complete:
                    self.spill = [(oid, value), *rest]
                return
            index = oid[length:]
            if is_part and not self._is_inside(oid, index):
                return
            lead = oid
            # A name without a value is not a row, and neither is the column itself.
            if index and index not in rows and value.__class__ is not Missing:
                rows[index] = value
                newest = oid
            if is_part and index == self.until:
                # The next part starts here.
                self._end(None)
                return
        if lead is not None:
            self._move(newest, lead)

    def begins_before(self, oid: Oid) -> bool:
        """Return whether this walk starts with the port of an OID."""
        return not self.after and oid.startswith(self._prefix)

    def leads_to(self, following: "ColumnWalk") -> bool:
        """Return whether one walk over both parts would have taken the same path.

        True if this part reached the row that the next one started after, or ended where the next one started. A part
        with unreadable rows is reported as incomplete anyway.
        """
        if any(walk.gaps or walk.left or walk.stopped for walk in (self, following)):
            return True
        return self._exit is None or self._exit == following._entry

    def _is_inside(self, oid: Oid, index: bytes) -> bool:
        """Return whether a row of the port belongs to this part; if not, end the part."""
        if index == self.until:
            return True
        try:
            arcs = unpack(index)
        except ValueError:
            return True
        if self._after and arcs <= self._after:
            self.went_back = True
            self.stop("the agent returned a row before this part of the port")
            return False
        if self._until and arcs > self._until:
            self._end(oid)
            return False
        return True

    def _leave(self, oid: Oid) -> None:
        if not is_behind(oid, self._prefix):
            if oid.startswith(self.column.oid) and self.cursor == self.column.oid:
                # Started before its port: another port comes first.
                self.neighbours.append(oid[len(self.column.oid) :])
                self.cursor = self._prefix
                return
            self.went_back = True
            self.stop("the agent returned a row before the column")
            return
        if self.port and oid.startswith(self.column.oid):
            self.neighbours.append(oid[len(self.column.oid) :])
        self._end(oid)

    def _move(self, newest: Oid | None, lead: Oid) -> None:
        """Continue after the newest row. Without a new row, repeat once, then follow the agent for a while.

        Continuing after a repeated row could loop; the agent itself leaves the loop when it is asked for the rows
        after the last new one.
        """
        self._barren = 0 if newest else self._barren + 1
        self.is_guess = self.is_guess and newest is None
        if self._barren != 1:
            self.cursor = newest or lead
        if self._barren >= MAX_BARREN:
            self.stop(f"{MAX_BARREN} answers in a row had no new rows")


def is_behind(oid: Oid, other: Oid) -> bool:
    """Return whether an OID is after another one. A truncated OID is after none.

    Compares numbers, not bytes or text: 23 is after 8, and numbers from 128 on have more bytes.
    """
    try:
        return unpack(oid) > unpack(other)
    except ValueError:
        return False
