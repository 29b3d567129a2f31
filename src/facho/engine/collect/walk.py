"""Walks columns of one index space side by side, by GETBULK (GETNEXT in SNMPv1)."""

from collections import Counter
from collections.abc import Sequence

from facho.engine.collect.bad_rows import Inquiry, Skipper
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.flow import Size
from facho.engine.collect.known_rows import Guide, position
from facho.engine.collect.messages import describe_failure, describe_status
from facho.engine.collect.requester import Requester
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import Arcs, Oid, pack, unpack
from facho.engine.snmp import Answer, ErrorStatus

# Rows that nobody knew may lie before a pitfall. After this many it is closed in on as if it were new.
MAX_STEPS = 8


class TableWalk:
    """Reads columns to their ends, each from its own cursor.

    An answer is dealt out by position, and each column checks its own prefix:
    one that is exhausted spills into its neighbour. Rows are never matched by
    their place in an answer. A row that cannot be read is closed in on, in this
    column alone, and passed over; a column that cannot be led past it is stopped,
    and the others go on.
    """

    def __init__(
        self, columns: Sequence[ColumnWalk], requester: Requester, size: Size, guide: Guide, skipper: Skipper
    ) -> None:
        self._columns = columns
        self._requester = requester
        self._size = size
        self._guide = guide
        self._skipper = skipper
        self._inquiry = Inquiry()
        self._optical = any(walk.column.optical for walk in columns)
        # Rows that were read one by one on the way to the next pitfall.
        self._steps: Counter[ColumnWalk] = Counter()
        self._pitfalls = {walk: rows for walk in columns if (rows := guide.pitfalls(walk))}
        # A request got no answer, and smaller ones are being tried.
        self._in_doubt = False
        # Rows a request while the trouble is closed in on; 0 while there is none.
        self._narrow = 0
        # How many rows the request had that failed, and how many of them have come meanwhile.
        self._suspect_rows = self._cleared_rows = 0
        # The trouble was closed in on: it was a row, and not the size. One that was found earlier says nothing of it.
        self._found_row = False

    async def run(self) -> None:
        """Walk until every column has ended or was stopped."""
        while together := self._next_columns():
            await self._step(together)

    def _next_columns(self) -> list[ColumnWalk]:
        if part := self._inquiry.next_part():
            return part
        if too_many := self._inquiry.close():
            self._size.shrink(1, too_many, costly=self._in_doubt)
        if self._found_row:
            self._relax()
        self._skipper.lead_on(self._columns, self._guide)
        return [walk for walk in self._columns if walk.is_open][: self._size.columns]

    async def _step(self, together: list[ColumnWalk]) -> None:
        rows, at_pitfall = self._rows_of(together)
        if at_pitfall:
            await self._try_pitfall(at_pitfall)
            return
        try:
            answer = await self._requester.rows_after(
                [walk.cursor for walk in together],
                rows,
                optical=self._optical,
                retries=self._retries(together, rows),
            )
        except (NoAnswer, BadAnswer) as error:
            self._in_doubt = True
            self._fail(together, rows, describe_failure(error))
            return
        if answer.error_status:
            self._handle_error(together, rows, answer)
        else:
            self._deal_out(together, rows, answer)

    def _rows_of(self, together: list[ColumnWalk]) -> tuple[int, dict[ColumnWalk, Arcs]]:
        """Return how many rows to ask for, none of which is known to spoil the answer; and who stands before such."""
        rows = self._size.rows_for(len(together))
        if self._narrow:
            rows = min(rows, self._narrow)
        if any(walk.is_guess for walk in together):
            rows = 1
        elif until := together[0].until:
            rows = min(rows, max(self._guide.rows_until(position(walk), unpack(until)) for walk in together))
        at_pitfall = {}
        for walk in together:
            pitfall = self._next_pitfall(walk)
            if pitfall is None:
                continue
            before = self._guide.rows_before(position(walk), pitfall)
            if before:
                rows = min(rows, before)
            else:
                at_pitfall[walk] = pitfall
        return rows, at_pitfall

    def _next_pitfall(self, walk: ColumnWalk) -> Arcs | None:
        if walk not in self._pitfalls:
            return None
        here = position(walk)
        return next((row for row in self._pitfalls[walk] if row > here), None)

    async def _try_pitfall(self, walks: dict[ColumnWalk, Arcs]) -> None:
        """Ask once for the row that was poisoned before. If it still is, pass it over: that is all it costs.

        Where several columns were, one stands for all of them, and the next time another.
        """
        order = {oid: place for place, oid in enumerate(self._guide.learned.poisoned)}
        oids = {walk: Oid(walk.column.oid + pack(pitfall)) for walk, pitfall in walks.items()}
        first = min(walks, key=lambda walk: order.get(oids[walk], 0))
        failure = await self._ask_pitfall(first, walks[first])
        if not failure:
            return
        self._guide.learned.poison(oids[first])
        for walk, pitfall in walks.items():
            walk.step_over(pack(pitfall), failure)

    async def _ask_pitfall(self, walk: ColumnWalk, pitfall: Arcs) -> str:
        """Return why the row cannot be read, if so."""
        try:
            answer = await self._requester.rows_after([walk.cursor], 1, optical=self._optical, retries=0, checks=False)
        except (NoAnswer, BadAnswer) as error:
            return describe_failure(error)
        if answer.error_status:
            return describe_status(answer.error_status)
        walk.absorb(answer)
        self._come_nearer(walk, pitfall)
        return ""

    def _come_nearer(self, walk: ColumnWalk, pitfall: Arcs) -> None:
        """Forget a pitfall that was read, or that is no more; and one that lies further away than anybody knew."""
        self._steps[walk] += 1
        if walk.is_complete or position(walk) >= pitfall:
            self._guide.learned.cure(Oid(walk.column.oid + pack(pitfall)))
        elif self._steps[walk] < MAX_STEPS:
            return
        else:
            self._pitfalls[walk] = [row for row in self._pitfalls[walk] if row > pitfall]
        self._steps[walk] = 0

    def _retries(self, together: list[ColumnWalk], rows: int) -> int | None:
        """Sizes that are only tried are not insisted on; the smallest is, a little, before a row is given up."""
        if not self._in_doubt:
            return 1 if self._size.is_on_trial or together[0].is_guess else None
        return 1 if len(together) == 1 and rows == 1 else 0

    def _deal_out(self, together: list[ColumnWalk], rows: int, answer: Answer) -> None:
        self._inquiry.acquit(together)
        width = len(together)
        # The last row of an answer that was cut short may lack columns. Columns that keep step meet trouble together.
        end = len(answer) // width * width or len(answer)
        for place, walk in enumerate(together):
            walk.absorb(zip(answer.oids[place:end:width], answer.values[place:end:width], strict=True))
        is_cut = len(answer) < rows * width and all(walk.is_open for walk in together)
        if is_cut:
            self._size.cut_short(rows, width, len(answer) // width)
        elif self._narrow:
            self._clear(rows, width)
        elif not self._inquiry.is_open:
            self._in_doubt = False
            self._size.succeeded(may_grow=self._requester.has_room())

    def _clear(self, rows: int, width: int) -> None:
        """Note that suspected rows came in smaller requests; when all have, it was the size, and not a row."""
        if self._inquiry.is_open:
            return
        self._cleared_rows += rows
        if self._cleared_rows >= self._suspect_rows:
            self._size.shrink(self._suspect_rows, width, fitting=self._narrow, costly=self._in_doubt)
            self._relax()

    def _relax(self) -> None:
        self._narrow = self._suspect_rows = self._cleared_rows = 0
        self._in_doubt = self._found_row = False

    def _handle_error(self, together: list[ColumnWalk], rows: int, answer: Answer) -> None:
        status = answer.error_status
        if status == ErrorStatus.TOO_BIG:
            if not self._size.shrink(rows, len(together)):
                self._give_up(together[0], describe_status(status))
        elif status == ErrorStatus.NO_SUCH_NAME and not self._requester.has_bulk and len(together) == 1:
            # How SNMPv1 says that nothing follows.
            together[0].end()
            self._inquiry.convict()
        else:
            self._fail(together, rows, describe_status(status), answer.error_index)

    def _fail(self, together: list[ColumnWalk], rows: int, reason: str, error_index: int = 0) -> None:
        if rows > 1:
            # The rows before the one that cannot be read come with smaller requests.
            self._suspect_rows = self._suspect_rows or rows
            self._narrow = rows // 2
        elif len(together) == 1:
            self._give_up(together[0], reason)
        elif not self._inquiry.look_into(together, error_index):
            self._found_row = True
            for walk in together:
                walk.park(reason)

    def _give_up(self, walk: ColumnWalk, reason: str) -> None:
        if self._requester.doubt_bulk([walk.cursor]):
            self._inquiry.ask_again(walk)
            return
        walk.park(reason)
        self._found_row = True
        self._inquiry.convict()
