"""Tables of a plan, read by walks, group after group, with the coverage of each column and port."""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

from facho.engine.brand import Column, IndexSpace, Place, Position
from facho.engine.collect.bad_rows import Skipper
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.join import Harvest
from facho.engine.collect.known_rows import Guide, find_ports, port_arcs, readable
from facho.engine.collect.parallel import Parallel, Work
from facho.engine.collect.requester import Requester
from facho.engine.collect.walk import TableWalk
from facho.engine.limits import MOST_ONUS, ROWS_PER_ONU, RowLimit
from facho.engine.oid import Arcs, pack, text
from facho.engine.snmp import Value


class Table:
    """Columns of one index space, walked side by side: whole, or in parts if several requests may be in flight.

    A part is a port, or a piece of one if there are fewer ports than requests. A part starts at the start of a port
    or after a known row, and ends when it leaves that port or at a known row. So an unknown port is found, and
    nothing between the parts is missed.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        requester: Requester,
        *,
        known: Iterable[Place] = (),
        ports: Iterable[Position] = (),
        harvest: Harvest | None = None,
        most_rows: int = MOST_ONUS * ROWS_PER_ONU,
    ) -> None:
        self.columns = columns
        self.space: IndexSpace = columns[0].space
        self.name = "walk " + table_name(columns)
        self._requester = requester
        self._learned = requester.learned
        rows = requester.manners.max_repetitions if requester.has_bulk else 1
        self._size = self._learned.size(self.name, rows, len(columns))
        self._known = list(known)
        self._listed_ports = list(ports)
        self._harvest = harvest
        self._most_rows = most_rows
        self._guide = Guide(self._indices(self._known), self._learned)
        self._pace = requester.pace(optical=any(column.optical for column in columns))
        self.parts: list[list[ColumnWalk]] = []
        self._waiting: deque[list[ColumnWalk]] = deque()
        self.parts_done = 0
        # It was read a second time, from end to end.
        self.was_repeated = False

    def _indices(self, known: Iterable[Place]) -> Iterable[Arcs]:
        for place in known:
            try:
                yield self.space.encode(place)
            except ValueError:
                continue

    async def read(self, *, whole: bool = False) -> None:
        """Walk all columns; `whole`: do not split."""
        ports: Iterable[Arcs] = ()
        if not whole and self._pace.limit > 1 and self.space.by_port and self._learned.is_ordered(self.name):
            # They are walked side by side.
            ports = self._likely_ports or await find_ports(self.columns[0], self._requester)
        self._share_out([pack(port) for port in sorted(ports) if port])
        await Parallel(self._requester, self._next_work).run()
        went_back = any(walk.went_back for walk in self.walks)
        if len(self.parts) > 1 and (went_back or not self._is_connected()):
            # Unordered rows may be where no part looked: read again, from end to end.
            if went_back:
                self._learned.note_disorder(self.name)
            self.was_repeated = True
            self._share_out([])
            await Parallel(self._requester, self._next_work).run()
            # Two parts that do not meet may also mean a new ONU between them.
            if any(not is_sorted(walk.rows) for walk in self.walks):
                self._learned.note_disorder(self.name)

    def _is_connected(self) -> bool:
        """Return whether each part of a port leads to the next one."""
        following = {(part[0].port, part[0].after): part for part in self.parts if part[0].after}
        return all(
            walk.leads_to(other)
            for part in self.parts
            if part[0].until
            for walk, other in zip(part, following[part[0].port, part[0].until], strict=True)
        )

    @property
    def walks(self) -> Iterable[ColumnWalk]:
        return (walk for part in self.parts for walk in part)

    def rows(self) -> Iterable[tuple[Arcs, Value]]:
        """Return the rows of a table with one column."""
        return ((readable(index), value) for walk in self.walks for index, value in walk.rows.items())

    def stop(self, reason: str) -> None:
        """Stop open walks, because the run has ended."""
        if not self.parts:
            self._share_out([])
        for walk in self.walks:
            walk.stop(reason)

    @cached_property
    def _likely_ports(self) -> set[Arcs]:
        """Return the ports with ONUs, from the inventory and the counts of the OLT."""
        ports = {port_arcs(self.space, index) for index in self._indices(self._known)}
        return ports | set(self._indices(self._listed_ports))

    def _share_out(self, ports: Sequence[bytes]) -> None:
        # If there are fewer ports than requests in flight, a port has several parts: enough for the window to double
        # once, each with at least one request's worth of rows.
        wanted = min(self._pace.limit, 2 * self._pace.window)
        cuts = [(port, b"", b"") for port in ports]
        if len(ports) < wanted:
            cuts = []
            for port in ports:
                requests = self._guide.count(port) // self._size.rows_for(len(self.columns))
                count = max(1, min(-(-wanted // len(ports)), requests))
                cuts += [(port, *part) for part in self._guide.parts(port, count)]
        if len(cuts) < 2:
            self.parts = [[ColumnWalk(column) for column in self.columns]]
        else:
            self.parts = [
                [ColumnWalk(column, port, from_start=not place, after=after, until=until) for column in self.columns]
                for place, (port, after, until) in enumerate(cuts)
            ]
        self._waiting = deque(self.parts)
        self._limit = RowLimit(self._most_rows)
        self.parts_done = 0

    def _next_work(self) -> Work | None:
        if self._limit.is_reached:
            for walk in self.walks:
                walk.stop(self._limit.reason)
            self._waiting.clear()
        return self._walk(self._waiting.popleft()) if self._waiting else None

    async def _walk(self, part: list[ColumnWalk]) -> None:
        skipper = Skipper(self._learned, self.space, self._likely_ports)
        await TableWalk(part, self._requester, self._size, self._guide, skipper, self._limit).run()
        self.parts_done += 1
        for place, walk in enumerate(part):
            for index in walk.neighbours:
                port = pack(port_arcs(self.space, readable(index)))
                if port and all(port != each[0].port for each in self.parts):
                    # An unknown port.
                    new = [ColumnWalk(column, port) for column in self.columns]
                    self.parts.append(new)
                    self._waiting.append(new)
            self._hand_on(place, walk)
            if self._harvest is not None and len(self.parts) > 1:
                # While the answers for other ports are on their way.
                walk.joined = self._harvest.add_column(walk.column, walk.rows)

    def _hand_on(self, place: int, walk: ColumnWalk) -> None:
        """Give rows of the next port to its walk, if that has not started."""
        while walk.spill:
            first, spill = walk.spill[0][0], walk.spill
            walk.spill = []
            following = (part[place] for part in self._waiting)
            next_walk = next((each for each in following if each.begins_before(first)), None)
            if next_walk is None:
                return
            next_walk.absorb(spill)
            walk = next_walk


def table_name(columns: Sequence[Column]) -> str:
    """Return the name of a table: the OID of its first column without the last number."""
    return text(columns[0].oid).rpartition(".")[0]


def is_sorted(rows: Iterable[bytes]) -> bool:
    """Return whether rows came in index order."""
    return all(earlier < later for earlier, later in pairwise(map(readable, rows)))
