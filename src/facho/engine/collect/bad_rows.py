"""Rows that make a request fail: finding the column and row, and getting past them."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from facho.engine.brand import IndexSpace, Position
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.known_rows import Guide, port_arcs, readable
from facho.engine.collect.learned import Learned
from facho.engine.oid import Arcs, Oid, pack

# After this many bad columns in one row, if the others fail again, the whole row is bad.
ENOUGH = 2


class Inquiry:
    """Halves a failed request until the bad column stands alone. A column named by the agent is tried first.

    It may find no bad column: then the request had too many columns.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._parts: deque[list[ColumnWalk]] = deque()
        self._accused: ColumnWalk | None = None
        self._trusts_accusations = True
        self._bad = 0
        # Smallest number of columns that failed together.
        self._fewest = 0

    def next_part(self) -> list[ColumnWalk]:
        """Return the columns of the next request; none at the end."""
        return self._parts.popleft() if self._parts else []

    def look_into(self, together: list[ColumnWalk], error_index: int) -> bool:
        """Examine a failure of several columns. Returns False if nothing more can be found: all are bad.

        `error_index` counts from 1, as in SNMP; 0 names no column.
        """
        self.is_open = True
        if self._bad >= ENOUGH:
            return False
        if self._trusts_accusations and 0 < error_index <= len(together):
            self._accused = together[error_index - 1]
            self._parts.extendleft([[walk for walk in together if walk is not self._accused], [self._accused]])
            return True
        self._fewest = min(self._fewest or len(together), len(together))
        middle = len(together) // 2
        self._parts.extendleft([together[middle:], together[:middle]])
        return True

    def ask_again(self, walk: ColumnWalk) -> None:
        """Request one column again in another way before it is marked as bad."""
        self.is_open = True
        self._parts.appendleft([walk])

    def mark_ok(self, together: list[ColumnWalk]) -> None:
        """Mark columns as readable. An agent that wrongly named one of them is not trusted again."""
        if together == [self._accused]:
            self._trusts_accusations = False
        self._accused = None

    def mark_bad(self) -> None:
        """Mark a column as bad and handled."""
        self._bad += 1
        self._accused = None

    def close(self) -> int:
        """End the search. Returns the number of columns that was too large for the agent, or 0."""
        too_many = 0 if self._bad else self._fewest
        self.is_open = False
        self._bad = self._fewest = 0
        return too_many


# Known rows to skip in a row before the rest of the port is skipped: the agent may be dead.
MAX_STEPS = 3
# Numbers to try if the next row is unknown, and ports to try. Rows are rarely further apart.
MAX_GUESSES = 8
MAX_PORTS = 3
# Gaps in a column before it is marked as broken.
MAX_GAPS = 50


@dataclass(frozen=True, slots=True)
class Guess:
    """A position to try: after a row, or at the start of a port."""

    index: bytes
    is_port: bool = False


@dataclass(slots=True)
class Standstill:
    """Attempts since a column last found a row."""

    rows: int
    guesses: Iterator[Guess]
    # Known rows that were skipped.
    passed: list[bytes] = field(default_factory=list)
    has_left: bool = False
    last_guess: bytes | None = None


class Skipper:
    """Decides how a parked column continues. Skipped rows are remembered as poisoned.

    A guess that does not help is undone, so only the unreadable row is remembered.
    """

    def __init__(self, learned: Learned, space: IndexSpace, ports: Iterable[Arcs] = ()) -> None:
        self._learned = learned
        self._space = space
        self._ports = sorted(ports)
        self._standstills: dict[ColumnWalk, Standstill] = {}

    def lead_on(self, columns: Sequence[ColumnWalk], guide: Guide) -> None:
        """Let the parked columns continue.

        A column whose siblings still advance waits, since it may learn from them.
        """
        for walk in columns:
            if not walk.parked:
                continue
            trouble = self._standstills.get(walk)
            if trouble is None or trouble.rows != len(walk.rows):
                trouble = self._standstills[walk] = Standstill(len(walk.rows), self._guesses(walk))
            index = guide.next_row(walk, columns) if len(trouble.passed) < MAX_STEPS else None
            if len(walk.gaps) >= MAX_GAPS:
                walk.stop(walk.parked)
            elif index is not None:
                trouble.passed.append(index)
                self._learned.poison(Oid(walk.column.oid + index))
                walk.jump(index)
            elif not any(sibling.is_open for sibling in columns):
                self._guess(walk, trouble)

    def _guess(self, walk: ColumnWalk, trouble: Standstill) -> None:
        # The guesses so far did not help.
        for index in trouble.passed:
            self._learned.cure(Oid(walk.column.oid + index))
        if trouble.last_guess:
            self._learned.cure(Oid(walk.column.oid + trouble.last_guess))
            walk.gaps.pop(trouble.last_guess, None)
            trouble.last_guess = None
        if len(trouble.passed) >= MAX_STEPS and not trouble.has_left:
            # Several known rows fail: the problem is larger than a row.
            trouble.guesses = self._ports_to_try(walk)
        guess = next(trouble.guesses, None)
        trouble.has_left = trouble.has_left or (guess is not None and guess.is_port)
        if guess is None:
            walk.stop(walk.parked)
        elif guess.is_port:
            walk.leave_port(guess.index)
        else:
            trouble.last_guess = guess.index
            self._learned.poison(Oid(walk.column.oid + guess.index))
            walk.jump(guess.index, is_guess=True)

    def _guesses(self, walk: ColumnWalk) -> Iterator[Guess]:
        """Yield the numbers after the last row, then the next ports with their first numbers."""
        if walk.last or walk.after:
            last, first = readable(walk.last or walk.after), 1
        else:
            last, first = (*readable(walk.port), 0), 0
        if len(last) > 1 - first:
            yield from self._rows_behind(last, first)
        yield from self._ports_to_try(walk)

    def _ports_to_try(self, walk: ColumnWalk) -> Iterator[Guess]:
        """Yield the next ports, each with its first numbers; none if the walk covers one port only."""
        if not self._space.by_port or walk.port:
            return
        last = readable(walk.last or b"")
        here = port_arcs(self._space, last) if last else ()
        behind = self._ports[bisect_right(self._ports, here) :][:MAX_PORTS]
        if not behind and here:
            behind = [(*here[:-1], here[-1] + 1)]
        for port in behind:
            yield Guess(pack(port), is_port=True)
            yield from self._rows_behind((*port, 0), first=0)

    def _rows_behind(self, row: Arcs, first: int) -> Iterator[Guess]:
        """Yield possible next rows: the same place with the next ONU numbers."""
        # Tables may have more numbers after the ONU number.
        place = next((found for tail in ((), (1,)) if (found := self._position((*row, *tail))) is not None), None)
        for step in range(first, MAX_GUESSES + 1):
            arcs: Arcs = (*row[:-1], row[-1] + step)
            try:
                if place is not None:
                    arcs = self._space.encode(replace(place, onu=(place.onu or 0) + step))
                index = pack(arcs)
            except ValueError:
                continue
            yield Guess(index)

    def _position(self, row: Arcs) -> Position | None:
        # A port may have no ONU 0; any other number has the same index shape.
        for arcs in (row, tuple(arc or 1 for arc in row)):
            try:
                place = self._space.decode(arcs)
            except ValueError:
                continue
            if isinstance(place, Position) and place.onu is not None:
                return replace(place, onu=place.onu if arcs == row else 0)
        return None
