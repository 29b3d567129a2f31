"""Which rows a table should have, by the known ONUs of its OLT: the next row, bad rows, and where ports begin."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, pairwise

from facho.engine.brand import Column, IndexSpace, Position
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.learned import Learned
from facho.engine.collect.requester import Requester
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import MAX_ARC, Arcs, Oid, pack, unpack
from facho.engine.snmp import Missing


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


# No OLT has more; an agent that invents ports for ever would.
MAX_PORTS = 1024


def port_arcs(space: IndexSpace, index: Arcs) -> Arcs:
    """Return what the indexes of a row's port begin with. Rows that are no ONU have a port of their own making."""
    try:
        place = space.decode(index)
        if isinstance(place, Position):
            return space.encode(replace(place, onu=None))
    except ValueError:
        pass
    return index[:-1]


async def find_ports(column: Column, requester: Requester) -> set[Arcs]:
    """Return the ports that a column has rows of, by hopping from each to the next: one row of one column a port.

    It is only a guess at how to share the work: what it misses is found by the walks themselves.
    """
    found: set[Arcs] = set()
    cursor = column.oid
    while len(found) < MAX_PORTS:
        try:
            answer = await requester.rows_after([cursor], 1, optical=column.optical)
        except (NoAnswer, BadAnswer):
            break
        oid, value = answer.oids[0] if answer.oids else cursor, answer.values[0] if answer.values else None
        index = readable(oid[len(column.oid) :])
        if answer.error_status or value is Missing.END_OF_MIB_VIEW or not oid.startswith(column.oid) or not index:
            break
        port = port_arcs(column.space, index)
        if not port or port in found:
            break
        found.add(port)
        cursor = Oid(column.oid + pack((*port[:-1], port[-1] + 1)))
    return found
