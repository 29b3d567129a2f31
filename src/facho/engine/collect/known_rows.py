"""Expected rows of a table, from the known ONUs of its OLT: next row, bad rows, starts of ports."""

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
    """Indexes of one index space in order, and those at which a column was poisoned in earlier runs."""

    def __init__(self, known: Iterable[Arcs], learned: Learned) -> None:
        self._order = sorted(known)
        self.learned = learned

    def pitfalls(self, walk: ColumnWalk) -> list[Arcs]:
        """Return the known bad rows ahead of a walk."""
        prefix, length = walk.column.oid + walk.port, len(walk.column.oid)
        return sorted(unpack(oid[length:]) for oid in self.learned.poisoned if oid.startswith(prefix))

    def rows_before(self, cursor: Arcs, pitfall: Arcs) -> int:
        """Return the number of known rows between a cursor and a bad row."""
        return max(0, bisect_left(self._order, pitfall) - bisect_right(self._order, cursor))

    def rows_until(self, cursor: Arcs, last: Arcs) -> int:
        """Return the number of known rows after a cursor, up to the last one; at least 1."""
        return max(1, bisect_right(self._order, last) - bisect_right(self._order, cursor))

    def parts(self, port: bytes, count: int) -> list[tuple[bytes, bytes]]:
        """Return known rows that split a port into parts of equal size; each part starts after one.

        An empty index stands for the start and the end of the port.
        """
        rows = [index for index in map(pack, self._order) if index.startswith(port)]
        cuts = [rows[len(rows) * part // count - 1] for part in range(1, count)] if len(rows) >= count else []
        return list(pairwise((b"", *cuts, b"")))

    def count(self, port: bytes) -> int:
        """Return the number of known rows of a port."""
        return sum(pack(index).startswith(port) for index in self._order)

    def next_row(self, walk: ColumnWalk, siblings: Iterable[ColumnWalk]) -> bytes | None:
        """Return the row at which a walk stopped: the next known one, or one that another column found there."""
        here = position(walk)
        place = bisect_right(self._order, here)
        rows = self._order[place : place + 1]
        for sibling in siblings:
            if sibling is not walk:
                # A guess proves nothing.
                came_to = chain(sibling.rows, () if sibling.is_guess else sibling.gaps)
                rows += (arcs for index in came_to if (arcs := readable(index)) > here)
        found = min(rows, default=None)
        if found is None:
            return None
        index = pack(found)
        return index if index.startswith(walk.port) else None


def position(walk: ColumnWalk) -> Arcs:
    """Return the index after which a walk continues."""
    return readable(walk.cursor[len(walk.column.oid) :])


def readable(index: bytes) -> Arcs:
    """Return the numbers of an index; empty if it is truncated or has a number that no OID can have."""
    try:
        arcs = unpack(index)
    except ValueError:
        return ()
    return arcs if max(arcs, default=0) <= MAX_ARC else ()


# No OLT has more ports; a faulty agent may invent them forever.
MAX_PORTS = 1024


def port_arcs(space: IndexSpace, index: Arcs) -> Arcs:
    """Return the index prefix of a row's port. Rows that are not ONUs get a port of their own."""
    try:
        place = space.decode(index)
        if isinstance(place, Position):
            return space.encode(replace(place, onu=None))
    except ValueError:
        pass
    return index[:-1]


async def find_ports(column: Column, requester: Requester) -> set[Arcs]:
    """Return the ports that have rows in a column, with one request per port.

    The result only splits the work; the walks find ports that it misses.
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
