"""The ports of an OLT as a walk needs them: where one ends and the next begins."""

from dataclasses import replace

from facho.engine.brand import Column, IndexSpace, Position
from facho.engine.collect.guide import readable
from facho.engine.collect.requester import Requester
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import Arcs, Oid, pack
from facho.engine.snmp import Missing

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
