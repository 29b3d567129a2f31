"""Which rows a table should have, by what is known of its OLT: where the next one is, and where not to step."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import chain, pairwise

from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.learned import Learned
from facho.engine.oid import MAX_ARC, Arcs, pack, unpack


class Guide:
    """The indexes of one index space in their order, and those at which a column was poisoned in earlier runs."""

    def __init__(self, known: Iterable[Arcs], learned: Learned) -> None:
        self._order = sorted(known)
        self.learned = learned

    def pitfalls(self, walk: ColumnWalk) -> list[Arcs]:
        """Return the rows that a walk will come to and that spoil whatever request they are in."""
        prefix, length = walk.column.oid + walk.port, len(walk.column.oid)
        return sorted(unpack(oid[length:]) for oid in self.learned.poisoned if oid.startswith(prefix))

    def rows_before(self, cursor: Arcs, pitfall: Arcs) -> int:
        """Return how many rows are known to lie between a cursor and a pitfall."""
        return max(0, bisect_left(self._order, pitfall) - bisect_right(self._order, cursor))

    def rows_until(self, cursor: Arcs, last: Arcs) -> int:
        """Return how many known rows lie behind a cursor and not behind the last one; at least 1."""
        return max(1, bisect_right(self._order, last) - bisect_right(self._order, cursor))

    def parts(self, port: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """Return known rows that divide a port into so many parts of the same size: each goes on behind one.

        The first part begins and the last one ends with the port; an empty index stands for that.
        """
        rows = [index for index in map(pack, self._order) if index.startswith(port)]
        cuts = [rows[len(rows) * part // count - 1] for part in range(1, count)] if len(rows) >= count else []
        return list(pairwise((b"", *cuts, b"")))

    def count(self, port: bytes) -> int:
        """Return how many rows of a port are known."""
        return sum(pack(index).startswith(port) for index in self._order)

    def next_row(self, walk: ColumnWalk, siblings: Iterable[ColumnWalk]) -> bytes | None:
        """Return the row at which a walk stands still: the next that is known, or that another column came to there."""
        here = position(walk)
        place = bisect_right(self._order, here)
        rows = self._order[place : place + 1]
        for sibling in siblings:
            if sibling is not walk:
                # What it only guesses is no news.
                came_to = chain(sibling.rows, () if sibling.is_guess else sibling.gaps)
                rows += (arcs for index in came_to if (arcs := readable(index)) > here)
        found = min(rows, default=None)
        if found is None:
            return None
        index = pack(found)
        return index if index.startswith(walk.port) else None


def position(walk: ColumnWalk) -> Arcs:
    """Return the index behind which a walk goes on."""
    return readable(walk.cursor[len(walk.column.oid) :])


def readable(index: bytes) -> Arcs:
    """Return the numbers of an index; of one that is cut off, or has a number that no OID can have, none."""
    try:
        arcs = unpack(index)
    except ValueError:
        return ()
    return arcs if max(arcs, default=0) <= MAX_ARC else ()
