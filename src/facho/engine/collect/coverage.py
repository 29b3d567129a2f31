"""Coverage: how much of each column was read on each port. It decides which absences count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from facho.engine.brand import Column, Place, Position
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.join import Harvest, OnuRow
from facho.engine.collect.known_rows import port_arcs, readable
from facho.engine.collect.messages import Gap, Stop
from facho.engine.model import Completeness, Coverage
from facho.engine.oid import Arcs

# Slot and port; (None, None) if the index does not contain them.
Port = tuple[int | None, int | None]


class ColumnCoverage:
    """Coverage of one column, from all walks over its parts."""

    def __init__(self, column: Column, walks: Sequence[ColumnWalk], harvest: Harvest) -> None:
        self.column = column
        self._walks = walks
        self._harvest = harvest
        self.rows: list[OnuRow] = []
        # Ports not read to the end, with the reason. None stands for everything after.
        self.broken: dict[Port | None, str] = {}
        self.gaps: list[tuple[bytes, str]] = []
        # Ports whose rest was not read. Of a gap, only the row itself is unknown.
        self._unseen: set[Port | None] = set()

    def store(self) -> None:
        """Add the rows to the harvest and compute the coverage."""
        for walk in self._walks:
            self.rows += self._harvest.add_column(self.column, walk.rows) if walk.joined is None else walk.joined
            for index, reason in walk.gaps.items():
                self.gaps.append((index, reason))
                self.broken[self._port_at(index, walk)] = reason
            for index, reason in walk.left.items():
                self.note_unseen(self._port_at(index, walk), reason)
            if walk.stopped:
                port = self._port_at(walk.last, walk)
                self.note_unseen(port, walk.stopped)
                if not walk.port or port is None:
                    # A walk over the whole column could have continued in any port.
                    self.note_unseen(None, walk.stopped)
        count = sum(len(walk.rows) for walk in self._walks)
        if count and not self.rows:
            self._harvest.remark(f"{self.column.field}: none of its {count:,} rows belongs to a known ONU")

    def fill(self) -> None:
        """Set None for ONUs that are not in a completely read column."""
        if not self.broken:
            self._harvest.fill(self.column)
        elif None not in self.broken:
            ports = {row.port for row in self._harvest.rows}
            self._harvest.fill(self.column, ports - self.broken.keys())

    def note_unseen(self, port: Port | None, reason: str) -> None:
        """Record that a port has more rows than were read."""
        self.broken[port] = reason
        self._unseen.add(port)

    @property
    def is_whole(self) -> bool:
        """Return whether every row was read, in any order."""
        return not any(walk.gaps or walk.left or walk.stopped for walk in self._walks)

    def _port_at(self, index: bytes | None, walk: ColumnWalk) -> Port | None:
        """Return the port of a row, or of the last row before it."""
        for each in (index, walk.last, walk.port and walk.port + b"\x01"):
            row = self._harvest.peek(self.column.space, each) if each else None
            if row is not None:
                return row.port
        return None

    def would_have_seen(self, place: Place | None) -> bool:
        """Return whether an existing ONU would have been read in this run."""
        if not self.broken:
            return True
        if not isinstance(place, Position) or (place.slot, place.port) in self._unseen or place in self._gap_places:
            return False
        if None not in self._unseen:
            return True
        # Only if the stopped walk had passed the port.
        try:
            port = self.column.space.encode(replace(place, onu=None))
        except ValueError:
            return False
        return bool(port) and port < self._frontier

    @cached_property
    def _gap_places(self) -> set[Place]:
        rows = (self._harvest.peek(self.column.space, index) for index, _ in self.gaps)
        return {row.place for row in rows if row is not None}

    @cached_property
    def _frontier(self) -> Arcs:
        """Return the port where a walk over the whole column stopped, if its rows were in order."""
        rows = [readable(index) for index in self._walks[0].rows]
        if len(self._walks) > 1 or not rows or rows != sorted(rows):
            return ()
        return port_arcs(self.column.space, rows[-1])

    def entries(self) -> list[Coverage]:
        """Return an entry for each port with rows or expected rows, and one for the column if needed."""
        field = self.column.field
        counts = Counter(row.port for row in self.rows)
        lines = []
        for port in dict.fromkeys((*counts, *(port for port in self.broken if port is not None))):
            reason = self.broken.get(port, "")
            state = Completeness.PARTIAL if port in self.broken else Completeness.COMPLETE
            lines.append(Coverage(field, *port, state, counts[port], reason))
        if None in self.broken:
            lines.append(Coverage(field, None, None, Completeness.PARTIAL, 0, self.broken[None]))
        elif not lines:
            lines.append(Coverage(field, None, None, Completeness.EMPTY))
        return lines

    def stops(self) -> list[Stop]:
        """Return where the column was not read to its end."""
        name_of, space = self._harvest.name_of, self.column.space
        return [
            Stop(
                self.column.field,
                walk.stopped,
                None if walk.last is None else name_of(space, walk.last),
                len(walk.rows),
            )
            for walk in self._walks
            if walk.stopped
        ]

    @property
    def left(self) -> list[Gap]:
        """Return the rows after which the rest of a port was given up."""
        name_of, space = self._harvest.name_of, self.column.space
        return [
            (self.column.field, name_of(space, index), reason)
            for walk in self._walks
            for index, reason in walk.left.items()
        ]

    @property
    def failures(self) -> list[Gap]:
        """Return the skipped rows."""
        name_of, space = self._harvest.name_of, self.column.space
        return [(self.column.field, name_of(space, index), reason) for index, reason in self.gaps]


def missing_by_count(anchor: ColumnCoverage, counts: Mapping[Position, int]) -> list[str]:
    """Return a message for each port that reports more ONUs than it lists: a truncated walk looks like an end."""
    listed = Counter(row.port for row in anchor.rows)
    sentences = []
    for place, count in counts.items():
        port = place.slot, place.port
        if listed[port] < count and port not in anchor.broken:
            reason = f"the port counts {count:,} ONUs and lists {listed[port]:,}"
            anchor.note_unseen(port, reason)
            sentences.append(f"{anchor.column.field} of port {port[0]}/{port[1]}: {reason[4:]}")
    return sentences
