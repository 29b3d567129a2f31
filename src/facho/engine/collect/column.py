"""What has been read of one column in a walk, where it goes on, and whether it has come to its end."""

from collections.abc import Iterable

from facho.engine.brand import Column
from facho.engine.collect.join import OnuRow
from facho.engine.oid import Oid, unpack
from facho.engine.snmp import Missing, Value

# An agent that leads in a circle is left after this many answers in a row without a new row.
MAX_BARREN = 6

# More rows than any OLT has ONUs; what goes beyond is invented.
MAX_ROWS = 200_000

# Stands for the end of everything that an agent has.
NOTHING = Oid(b"\x00")


class ColumnWalk:
    """The walk over one column, or over what it has of one port. Open until it reaches its end or is stopped.

    Order is not relied upon: agents repeat OIDs and go backwards. A row counts
    once, and a walk goes on as long as new ones come.

    A port may be divided: a part goes on behind the row `after`, and ends with the
    row `until`. Each is empty where the part begins or ends with the port.
    """

    def __init__(
        self, column: Column, port: bytes = b"", *, from_start: bool = False, after: bytes = b"", until: bytes = b""
    ) -> None:
        self.column = column
        # The bytes that the indexes of the port begin with; none: the whole column.
        self.port = port
        self.after = after
        self.until = until
        self._after, self._until = unpack(after), unpack(until)
        # The first OID that was answered, and the one behind `until` where that row was not met; see `leads_to`.
        self._entry: Oid | None = None
        self._exit: Oid | None = None
        self._prefix = Oid(column.oid + port)
        # Raw values by the bytes of their index, in the order they came.
        self.rows: dict[bytes, Value] = {}
        # Whose successors are asked for next. The first port begins with the column, so that none before it is missed.
        self.cursor: Oid = Oid(column.oid + after) if after else column.oid if from_start else self._prefix
        self.is_complete = False
        self.stopped = ""
        # The rows that were passed over because they could not be read, and why.
        self.gaps: dict[bytes, str] = {}
        # Ports whose rest was given up, each by the last row that was read of it, and why.
        self.left: dict[bytes, str] = {}
        # It goes on behind a row that nobody has seen, to find out whether that is the one.
        self.is_guess = False
        # Why it waits to be led past a row that cannot be read.
        self.parked = ""
        # The rows that came before its port and behind it: other ports of the column begin there.
        self.neighbours: list[bytes] = []
        # Its rows as ONUs, once they have been joined with those of other columns.
        self.joined: list[OnuRow] | None = None
        # What the last answer had of the ports behind its own.
        self.spill: list[tuple[Oid, Value]] = []
        self.went_back = False
        self._barren = 0

    @property
    def is_open(self) -> bool:
        return not (self.is_complete or self.stopped or self.parked)

    @property
    def last(self) -> bytes | None:
        """Return the index of the last row that was new."""
        return next(reversed(self.rows), None)

    def stop(self, reason: str) -> None:
        """End the walk before its end. What was read is kept."""
        if self.is_open or self.parked:
            self.parked = ""
            self.stopped = reason

    def park(self, reason: str) -> None:
        """Wait until somebody knows which row it is that cannot be read."""
        if self.is_open:
            self.parked = reason

    def step_over(self, index: bytes, reason: str) -> None:
        """Go on behind a row that did in this run what it had done in earlier ones."""
        self.parked = reason
        self.jump(index)

    def jump(self, index: bytes, *, is_guess: bool = False) -> None:
        """Go on behind this row without reading it, for the reason it was parked for."""
        self.is_guess = is_guess
        self.gaps[index] = self.parked
        self.parked = ""
        self.cursor = Oid(self.column.oid + index)
        self._barren = 0
        if self.until and index == self.until:
            self._end(None)

    def leave_port(self, next_port: bytes) -> None:
        """Give up the rest of a port and go on with another one, which begins here."""
        self.is_guess = True
        if self.last is not None:
            self.left[self.last] = self.parked
        self.parked = ""
        self.cursor = Oid(self.column.oid + next_port)
        self._barren = 0

    def end(self) -> None:
        """Note that the agent has nothing behind the last row."""
        self._entry = self._entry or NOTHING
        self._end(NOTHING)

    def _end(self, exit_oid: Oid | None) -> None:
        if self.is_open:
            self.is_complete = True
            self._exit = exit_oid

    def absorb(self, answered: Iterable[tuple[Oid, Value]]) -> None:
        """Take this column's part of an answer: its variables, in order."""
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
            # A name without a value is no row, and neither is the column itself.
            if index and index not in rows and value.__class__ is not Missing:
                rows[index] = value
                newest = oid
            if is_part and index == self.until:
                # The next part goes on from here.
                self._end(None)
                return
        if lead is not None:
            self._move(newest, lead)

    def begins_before(self, oid: Oid) -> bool:
        """Return whether this walk begins with the port that an OID is of."""
        return not self.after and oid.startswith(self._prefix)

    def leads_to(self, following: "ColumnWalk") -> bool:
        """Return whether one walk over both parts would have taken the same way as the two.

        It would if this part came to the row that the next one started behind, or
        came out where the next one came in. A part with rows that could not be read
        is reported as incomplete anyway.
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
            self.stop("the agent went back to before this part of the port")
            return False
        if self._until and arcs > self._until:
            self._end(oid)
            return False
        return True

    def _leave(self, oid: Oid) -> None:
        if not is_behind(oid, self._prefix):
            if oid.startswith(self.column.oid) and self.cursor == self.column.oid:
                # Begun before its port: another one comes first.
                self.neighbours.append(oid[len(self.column.oid) :])
                self.cursor = self._prefix
                return
            self.went_back = True
            self.stop("the agent went back to before the column")
            return
        if self.port and oid.startswith(self.column.oid):
            self.neighbours.append(oid[len(self.column.oid) :])
        self._end(oid)

    def _move(self, newest: Oid | None, lead: Oid) -> None:
        """Go on behind the newest row; where there is none, ask once more, and then follow the agent for a while.

        Going on behind a repeated row could lead in a circle that the agent
        itself leaves when it is asked for the rows behind the last new one.
        """
        self._barren = 0 if newest else self._barren + 1
        self.is_guess = self.is_guess and newest is None
        if self._barren != 1:
            self.cursor = newest or lead
        if self._barren >= MAX_BARREN:
            self.stop(f"{MAX_BARREN} answers in a row brought nothing new")
        elif len(self.rows) >= MAX_ROWS:
            self.stop(f"the limit of {MAX_ROWS:,} rows was reached")


def is_behind(oid: Oid, other: Oid) -> bool:
    """Return whether an OID comes later than another. One that is cut off comes nowhere.

    Numbers are compared, not bytes and not text: 23 comes after 8, and a number
    from 128 on has more bytes than one below.
    """
    try:
        return unpack(oid) > unpack(other)
    except ValueError:
        return False
