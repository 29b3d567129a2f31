"""Reads the columns of a plan by walking them, group after group, and says how far each one came on which port."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise

from facho.engine.brand import Column, IndexSpace, Manners, Place, Position
from facho.engine.collect.bad_rows import Skipper
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.flow import Size
from facho.engine.collect.known_rows import Guide, find_ports, port_arcs, readable
from facho.engine.collect.learned import Learned
from facho.engine.collect.parallel import Parallel, Work
from facho.engine.collect.requester import Requester
from facho.engine.collect.walk import TableWalk
from facho.engine.oid import Arcs, pack, text
from facho.engine.snmp import Value


class Table:
    """Columns of one index space that are walked side by side: whole, or in parts where several requests may run.

    A part is a port, or a piece of one where there are fewer ports than requests.
    Each begins where a port begins or behind a known row, and ends where it leaves
    that port or with a known row. A port that nobody knew of is found that way, so
    however the work was shared out, nothing between the parts is missed.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        manners: Manners,
        *,
        requester: Requester,
        learned: Learned,
        known: Iterable[Place] = (),
        ports: Iterable[Position] = (),
        join: Callable[[ColumnWalk], None] | None = None,
    ) -> None:
        self.columns = columns
        self.space: IndexSpace = columns[0].space
        self.name = "walk " + table_name(columns)
        self._requester = requester
        self._learned = learned
        rows = manners.max_repetitions if requester.has_bulk else 1
        self._size: Size = learned.size(self.name, rows, len(columns))
        self._known = list(known)
        self._listed_ports = list(ports)
        self._join = join
        self._guide = Guide(self._indices(self._known), learned)
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
        """Walk all of it; `whole`: not worth sharing out."""
        self._share_out([] if whole else await self._ports())
        await Parallel(self._requester, self._next_work).run()
        went_back = any(walk.went_back for walk in self.walks)
        if len(self.parts) > 1 and (went_back or not self._is_connected()):
            # Rows out of order may lie where no part looked: once more, from end to end.
            if went_back:
                self._learned.note_disorder(self.name)
            self.was_repeated = True
            self._share_out([])
            await Parallel(self._requester, self._next_work).run()
            # Where two parts did not meet, an ONU may just have appeared between them.
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
        """Return what was read of a table of one column."""
        return ((readable(index), value) for walk in self.walks for index, value in walk.rows.items())

    def stop(self, reason: str) -> None:
        """End what has not ended, because the run has."""
        if not self.parts:
            self._share_out([])
        for walk in self.walks:
            walk.stop(reason)

    async def _ports(self) -> list[bytes]:
        """Return where the ports begin, if they are to be walked side by side."""
        if self._pace.limit == 1 or not self.space.by_port or not self._learned.is_ordered(self.name):
            return []
        ports = self._likely_ports
        if not ports:
            ports = await find_ports(self.columns[0], self._requester)
        return [pack(port) for port in sorted(ports) if port]

    @cached_property
    def _likely_ports(self) -> set[Arcs]:
        """Return the ports that have ONUs, by what is known and what the OLT counts."""
        ports = {port_arcs(self.space, index) for index in self._indices(self._known)}
        return ports | set(self._indices(self._listed_ports))

    def _share_out(self, ports: Sequence[bytes]) -> None:
        cuts = [(port, after, until) for port in ports for after, until in self._cuts(port, len(ports))]
        if len(cuts) < 2:
            self.parts = [[ColumnWalk(column) for column in self.columns]]
        else:
            self.parts = [
                [ColumnWalk(column, port, from_start=not place, after=after, until=until) for column in self.columns]
                for place, (port, after, until) in enumerate(cuts)
            ]
        self._waiting = deque(self.parts)
        self.parts_done = 0

    def _cuts(self, port: bytes, ports: int) -> list[tuple[bytes, bytes]]:
        """Return the parts of a port: several where there are fewer ports than requests in flight.

        There are enough of them for the window to double once. A part has at least a request's worth of rows.
        """
        wanted = min(self._pace.limit, 2 * self._pace.window)
        if ports >= wanted:
            return [(b"", b"")]
        requests = self._guide.count(port) // self._size.rows_for(len(self.columns))
        return self._guide.parts(port, max(1, min(-(-wanted // ports), requests)))

    def _next_work(self) -> Work | None:
        return self._walk(self._waiting.popleft()) if self._waiting else None

    async def _walk(self, part: list[ColumnWalk]) -> None:
        skipper = Skipper(self._learned, self.space, self._likely_ports)
        await TableWalk(part, self._requester, self._size, self._guide, skipper).run()
        self.parts_done += 1
        for place, walk in enumerate(part):
            for index in walk.neighbours:
                self._visit(pack(port_arcs(self.space, readable(index))))
            self._hand_on(place, walk)
            if self._join is not None and len(self.parts) > 1:
                # While the answers for other ports are on their way.
                self._join(walk)

    def _hand_on(self, place: int, walk: ColumnWalk) -> None:
        """Give what spilled over into the next port to whoever will read that, if nobody has begun to."""
        while walk.spill:
            first, spill = walk.spill[0][0], walk.spill
            walk.spill = []
            following = (part[place] for part in self._waiting)
            heir = next((each for each in following if each.begins_before(first)), None)
            if heir is None:
                return
            heir.absorb(spill)
            walk = heir

    def _visit(self, port: bytes) -> None:
        """Add a port that lies behind another one and that nobody had named."""
        if port and all(port != part[0].port for part in self.parts):
            part = [ColumnWalk(column, port) for column in self.columns]
            self.parts.append(part)
            self._waiting.append(part)


def table_name(columns: Sequence[Column]) -> str:
    """Return what to call a table: the OID of its first column without the column's own number."""
    return text(columns[0].oid).rpartition(".")[0]


def is_sorted(rows: Iterable[bytes]) -> bool:
    """Return whether rows came in the order of their indexes."""
    return all(earlier < later for earlier, later in pairwise(map(readable, rows)))
