"""Rows that spoil a request: which column and row it is, and how a walk gets past it."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from facho.engine.brand import IndexSpace, Position
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.known_rows import Guide, port_arcs, readable
from facho.engine.collect.learned import Learned
from facho.engine.oid import Arcs, Oid, pack

# When so many columns were found guilty of one row, and the others fail again, it is the row: all of it.
ENOUGH = 2


class Inquiry:
    """Halves what failed until the guilty column stands alone; where the agent names one, it is asked first.

    It may find nobody: then the request had too many columns, not a bad one.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._parts: deque[list[ColumnWalk]] = deque()
        self._accused: ColumnWalk | None = None
        self._trusts_accusations = True
        self._guilty = 0
        # The fewest columns that failed together.
        self._fewest = 0

    def next_part(self) -> list[ColumnWalk]:
        """Return the columns to ask now; none if there is nothing left to ask."""
        return self._parts.popleft() if self._parts else []

    def look_into(self, together: list[ColumnWalk], error_index: int) -> bool:
        """Go into a failure of several columns; False if there is nothing to find out any more: all are guilty.

        `error_index` counts from 1, as agents do; 0 accuses nobody.
        """
        self.is_open = True
        if self._guilty >= ENOUGH:
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
        """Ask for one column once more, in another way, before it is judged."""
        self.is_open = True
        self._parts.appendleft([walk])

    def acquit(self, together: list[ColumnWalk]) -> None:
        """Note that these answered. An agent that accused one of them wrongly is not believed again."""
        if together == [self._accused]:
            self._trusts_accusations = False
        self._accused = None

    def convict(self) -> None:
        """Note that a column was at fault, and has been dealt with."""
        self._guilty += 1
        self._accused = None

    def close(self) -> int:
        """End the inquiry; return how many columns were too many for the agent, or 0 if that was not it."""
        too_many = 0 if self._guilty else self._fewest
        self.is_open = False
        self._guilty = self._fewest = 0
        return too_many


# How many known rows in a row are passed over before the rest of the port is: an agent that has died cannot be led on.
MAX_STEPS = 3
# How many numbers are tried where nobody knows the next row, and how many ports. Rows are seldom further apart.
MAX_GUESSES = 8
MAX_PORTS = 3
# How often a column is led past a row before it is called broken.
MAX_GAPS = 50


@dataclass(frozen=True, slots=True)
class Guess:
    """Where to go on blindly: behind a row, or at the beginning of a port."""

    index: bytes
    is_port: bool = False


class Standstill:
    """What was tried since a column last found a row."""

    def __init__(self, rows: int, guesses: Iterator[Guess]) -> None:
        self.rows = rows
        # Known rows that it was led past.
        self.passed: list[bytes] = []
        self.has_left = False
        self.guesses = guesses
        self.last_guess: bytes | None = None


class Skipper:
    """Decides how a parked column goes on. What it passes over is remembered as poisoned.

    A guess that does not help is taken back, so the one that does is the row
    that could not be read, and nobody else is blamed.
    """

    def __init__(self, learned: Learned, space: IndexSpace, ports: Iterable[Arcs] = ()) -> None:
        self._learned = learned
        self._space = space
        self._ports = sorted(ports)
        self._standstills: dict[ColumnWalk, Standstill] = {}

    def lead_on(self, columns: Sequence[ColumnWalk], guide: Guide) -> None:
        """Let every parked column go on that can. One whose siblings still go on may learn from them yet."""
        for walk in columns:
            if not walk.parked:
                continue
            trouble = self._standstill(walk)
            index = guide.next_row(walk, columns) if len(trouble.passed) < MAX_STEPS else None
            if len(walk.gaps) >= MAX_GAPS:
                walk.stop(walk.parked)
            elif index is not None:
                trouble.passed.append(index)
                self._learned.poison(Oid(walk.column.oid + index))
                walk.jump(index)
            elif not any(sibling.is_open for sibling in columns):
                self._guess(walk, trouble)

    def _standstill(self, walk: ColumnWalk) -> Standstill:
        trouble = self._standstills.get(walk)
        if trouble is None or trouble.rows != len(walk.rows):
            trouble = self._standstills[walk] = Standstill(len(walk.rows), self._guesses(walk))
        return trouble

    def _guess(self, walk: ColumnWalk, trouble: Standstill) -> None:
        self._take_back(walk, trouble)
        if len(trouble.passed) >= MAX_STEPS and not trouble.has_left:
            # Several rows that are known to be there: it is more than a row.
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

    def _take_back(self, walk: ColumnWalk, trouble: Standstill) -> None:
        """Blame nobody for what was tried in vain."""
        for index in (*trouble.passed, *([trouble.last_guess] if trouble.last_guess else [])):
            self._learned.cure(Oid(walk.column.oid + index))
        if trouble.last_guess:
            walk.gaps.pop(trouble.last_guess, None)
            trouble.last_guess = None

    def _guesses(self, walk: ColumnWalk) -> Iterator[Guess]:
        """Yield the numbers behind the last row, then the next ports and their first numbers."""
        if walk.last or walk.after:
            last, first = readable(walk.last or walk.after), 1
        else:
            last, first = (*readable(walk.port), 0), 0
        if len(last) > 1 - first:
            yield from self._rows_behind(last, first)
        yield from self._ports_to_try(walk)

    def _ports_to_try(self, walk: ColumnWalk) -> Iterator[Guess]:
        """Yield the next ports, each with its first numbers; none if the walk is of one port only."""
        last = readable(walk.last or b"")
        if not self._space.by_port or walk.port:
            return
        for port in self._ports_behind(port_arcs(self._space, last) if last else ()):
            yield Guess(pack(port), is_port=True)
            yield from self._rows_behind((*port, 0), first=0)

    def _rows_behind(self, row: Arcs, first: int) -> Iterator[Guess]:
        """Yield rows that may follow: the same place with the next numbers for its ONU."""
        # Tables may add numbers behind that of the ONU.
        place = next((found for tail in ((), (1,)) if (found := self._position((*row, *tail))) is not None), None)
        for step in range(first, MAX_GUESSES + 1):
            if place is None:
                yield Guess(pack((*row[:-1], row[-1] + step)))
            elif (index := self._index(place, step)) is not None:
                yield Guess(index)

    def _position(self, row: Arcs) -> Position | None:
        # A port may have no ONU 0; any other number shows the shape of its indexes as well.
        for arcs in (row, tuple(arc or 1 for arc in row)):
            try:
                place = self._space.decode(arcs)
            except ValueError:
                continue
            if isinstance(place, Position) and place.onu is not None:
                return replace(place, onu=place.onu if arcs == row else 0)
        return None

    def _index(self, place: Position, step: int) -> bytes | None:
        try:
            return pack(self._space.encode(replace(place, onu=(place.onu or 0) + step)))
        except ValueError:
            return None

    def _ports_behind(self, port: Arcs) -> Sequence[Arcs]:
        behind = self._ports[bisect_right(self._ports, port) :][:MAX_PORTS]
        return behind or ([(*port[:-1], port[-1] + 1)] if port else [])
