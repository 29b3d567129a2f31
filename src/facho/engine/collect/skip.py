"""Leads walks past rows that cannot be read: by what is known of the next row, by guessing it, or to the next port."""

from collections.abc import Sequence

from facho.engine.brand import IndexSpace
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.guide import Guide, position, readable
from facho.engine.collect.learned import Learned
from facho.engine.collect.ports import port_arcs
from facho.engine.oid import Oid, pack

# How many rows in a row are passed over before the rest of the port is: an agent that has died cannot be led on.
MAX_STEPS = 3
# How often a column is led past a row before it is called broken.
MAX_GAPS = 50


class Skipper:
    """Decides how a parked column goes on. What it passes over is remembered as poisoned."""

    def __init__(self, learned: Learned, space: IndexSpace) -> None:
        self._learned = learned
        self._space = space
        # How many rows a column had when it was last led on, and the rows it was led past since.
        self._steps: dict[ColumnWalk, tuple[int, list[Oid]]] = {}

    def lead_on(self, columns: Sequence[ColumnWalk], guide: Guide) -> None:
        """Let every parked column go on that can. One whose siblings still go on may learn from them yet."""
        for walk in columns:
            if not walk.parked:
                continue
            steps = self._steps_of(walk)
            index = guide.next_row(walk, columns)
            if len(walk.gaps) >= MAX_GAPS:
                walk.stop(walk.parked)
            elif len(steps) >= MAX_STEPS:
                self._leave_port(walk, steps)
            elif index is not None:
                self._step(walk, index, steps)
            elif not any(sibling.is_open for sibling in columns):
                self._guess(walk, steps)

    def _steps_of(self, walk: ColumnWalk) -> list[Oid]:
        """Return the rows that a column was led past without finding one that it could read."""
        rows, steps = self._steps.get(walk, (-1, []))
        if rows != len(walk.rows):
            steps = []
        self._steps[walk] = len(walk.rows), steps
        return steps

    def _step(self, walk: ColumnWalk, index: bytes, steps: list[Oid]) -> None:
        oid = Oid(walk.column.oid + index)
        steps.append(oid)
        self._learned.poison(oid)
        walk.jump(index)

    def _guess(self, walk: ColumnWalk, steps: list[Oid]) -> None:
        """Guess that the next row has the next number; if it has not, leave the port."""
        here = position(walk)
        if walk.last is None or not here:
            walk.stop(walk.parked)
        elif steps:
            self._leave_port(walk, steps)
        else:
            self._step(walk, pack((*here[:-1], here[-1] + 1)), steps)

    def _leave_port(self, walk: ColumnWalk, steps: list[Oid]) -> None:
        """Go on with the next port; if that does not help, stop. The rows in between were not to blame alone."""
        for oid in steps:
            self._learned.cure(oid)
        last = readable(walk.last or b"")
        port = port_arcs(self._space, last) if self._space.by_port and not walk.port and last else ()
        if not port or walk.cursor == walk.left_for:
            walk.stop(walk.parked)
        else:
            walk.leave_port(pack((*port[:-1], port[-1] + 1)))
