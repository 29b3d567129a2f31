"""Leads walks past rows that cannot be read: by what is known of the next row, by guessing it, or to the next port."""

from collections.abc import Sequence

from facho.engine.brand import IndexSpace
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.guide import Guide, position
from facho.engine.collect.learned import Learned
from facho.engine.collect.ports import port_arcs
from facho.engine.oid import Arcs, Oid, pack

# How often a column is led past a row before it is called broken.
MAX_GAPS = 50


class Skipper:
    """Decides how a parked column goes on. What it passes over is remembered as poisoned."""

    def __init__(self, learned: Learned, space: IndexSpace) -> None:
        self._learned = learned
        self._space = space
        # The guess of a column that was led on blindly, and how many rows it had then.
        self._guesses: dict[ColumnWalk, tuple[Oid, int]] = {}

    def lead_on(self, columns: Sequence[ColumnWalk], guide: Guide) -> None:
        """Let every parked column go on that can. One whose siblings still go on may learn from them yet."""
        for walk in columns:
            if not walk.parked:
                continue
            index = guide.next_row(walk, columns)
            if len(walk.gaps) >= MAX_GAPS:
                walk.stop(walk.parked)
            elif index is not None:
                self._learned.poison(Oid(walk.column.oid + index))
                walk.jump(index)
            elif not any(sibling.is_open for sibling in columns):
                self._lead_blindly(walk)

    def _lead_blindly(self, walk: ColumnWalk) -> None:
        """Guess that the next row has the next number; if it has not, leave the port; if that does not help, stop."""
        here = position(walk)
        guess, rows = self._guesses.get(walk, (None, -1))
        if walk.last is None:
            walk.stop(walk.parked)
        elif guess is None or rows != len(walk.rows):
            index = pack((*here[:-1], here[-1] + 1))
            self._guesses[walk] = Oid(walk.column.oid + index), len(walk.rows)
            self._learned.poison(Oid(walk.column.oid + index))
            walk.jump(index)
        else:
            self._learned.cure(guess)
            self._leave_port(walk, here)

    def _leave_port(self, walk: ColumnWalk, here: Arcs) -> None:
        port = port_arcs(self._space, here) if self._space.by_port and not walk.port else ()
        if not port or (walk.last is not None and walk.cursor == walk.left_for):
            walk.stop(walk.parked)
            return
        walk.leave_port(pack((*port[:-1], port[-1] + 1)))
