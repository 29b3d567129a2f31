"""Walk over columns of one index space side by side, by GETBULK (GETNEXT in SNMPv1)."""

from collections import Counter
from collections.abc import Sequence

from facho.engine.collect.bad_rows import Inquiry, Skipper
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.flow import Size
from facho.engine.collect.known_rows import Guide, position
from facho.engine.collect.messages import describe_failure, describe_status
from facho.engine.collect.requester import Requester
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.limits import RowLimit
from facho.engine.oid import Arcs, Oid, pack, unpack
from facho.engine.snmp import Answer, ErrorStatus

# Unknown rows may come before a known bad row. After this many it is searched for like a new one.
MAX_STEPS = 8


class TableWalk:
    """Reads columns to their ends, each from its own cursor.

    Variables are assigned to columns by position, and each column checks its own prefix: a finished column continues
    into its neighbour. Rows are never matched by their position in an answer. An unreadable row is located and
    skipped in its column only. A column that cannot get past it is stopped, and the others continue.
    """

    def __init__(
        self,
        columns: Sequence[ColumnWalk],
        requester: Requester,
        size: Size,
        guide: Guide,
        skipper: Skipper,
        limit: RowLimit,
    ) -> None:
        self._columns = columns
        self._requester = requester
        self._limit = limit
        self._size = size
        self._guide = guide
        self._skipper = skipper
        self._inquiry = Inquiry()
        self._optical = any(walk.column.optical for walk in columns)
        # Rows read one by one on the way to the next bad row.
        self._steps: Counter[ColumnWalk] = Counter()
        self._pitfalls = {walk: rows for walk in columns if (rows := guide.pitfalls(walk))}
        # A request got no answer, and smaller ones are tried.
        self._in_doubt = False
        # Rows per request while the bad row is located; 0 otherwise.
        self._narrow = 0
        # Rows of the failed request, and how many of them were read since.
        self._suspect_rows = self._cleared_rows = 0
        # The cause was a row and not the size. A row that was known before does not count.
        self._found_row = False

    async def run(self) -> None:
        """Walk until every column has ended or was stopped."""
        while together := self._next_columns():
            rows, at_pitfall = self._rows_of(together)
            if at_pitfall:
                await self._try_pitfall(at_pitfall)
                continue
            cursors = [walk.cursor for walk in together]
            retries = 1 if self._size.is_on_trial or together[0].is_guess else None
            if self._in_doubt:
                # A smaller request follows; only the smallest is repeated before a row is given up.
                retries = 1 if len(together) == 1 and rows == 1 else 0
            try:
                answer = await self._requester.rows_after(cursors, rows, optical=self._optical, retries=retries)
            except (NoAnswer, BadAnswer) as error:
                self._in_doubt = True
                self._fail(together, rows, describe_failure(error))
                continue
            if answer.error_status:
                self._handle_error(together, rows, answer)
            else:
                self._deal_out(together, rows, answer)

    def _next_columns(self) -> list[ColumnWalk]:
        if part := self._inquiry.next_part():
            return part
        if too_many := self._inquiry.close():
            self._size.shrink(1, too_many, costly=self._in_doubt)
        if self._found_row:
            self._relax()
        self._skipper.lead_on(self._columns, self._guide)
        return [walk for walk in self._columns if walk.is_open][: self._size.columns]

    def _rows_of(self, together: list[ColumnWalk]) -> tuple[int, dict[ColumnWalk, Arcs]]:
        """Return the number of rows to request without a known bad row, and the columns that stand before one."""
        rows = self._size.rows_for(len(together))
        if self._narrow:
            rows = min(rows, self._narrow)
        if any(walk.is_guess for walk in together):
            rows = 1
        elif until := together[0].until:
            rows = min(rows, max(self._guide.rows_until(position(walk), unpack(until)) for walk in together))
        at_pitfall = {}
        for walk in (walk for walk in together if walk in self._pitfalls):
            here = position(walk)
            pitfall = next((row for row in self._pitfalls[walk] if row > here), None)
            if pitfall is None:
                continue
            before = self._guide.rows_before(here, pitfall)
            if before:
                rows = min(rows, before)
            else:
                at_pitfall[walk] = pitfall
        return rows, at_pitfall

    async def _try_pitfall(self, walks: dict[ColumnWalk, Arcs]) -> None:
        """Request the known bad row once. If it still fails, skip it; this costs one request.

        Of several bad columns one stands for all, and another one in the next run.
        """
        order = {oid: place for place, oid in enumerate(self._guide.learned.poisoned)}
        oids = {walk: Oid(walk.column.oid + pack(pitfall)) for walk, pitfall in walks.items()}
        first = min(walks, key=lambda walk: order.get(oids[walk], 0))
        try:
            answer = await self._requester.rows_after([first.cursor], 1, optical=self._optical, retries=0, checks=False)
        except (NoAnswer, BadAnswer) as error:
            failure = describe_failure(error)
        else:
            failure = describe_status(answer.error_status) if answer.error_status else ""
        if failure:
            self._guide.learned.poison(oids[first])
            for walk, pitfall in walks.items():
                walk.parked = failure
                walk.jump(pack(pitfall))
            return
        first.absorb(answer)
        # Forget a bad row that was read or is gone, and one that is further away than expected.
        self._steps[first] += 1
        if first.is_complete or position(first) >= walks[first]:
            self._guide.learned.cure(oids[first])
            self._steps[first] = 0
        elif self._steps[first] >= MAX_STEPS:
            self._pitfalls[first] = [row for row in self._pitfalls[first] if row > walks[first]]
            self._steps[first] = 0

    def _deal_out(self, together: list[ColumnWalk], rows: int, answer: Answer) -> None:
        self._inquiry.mark_ok(together)
        width = len(together)
        # The last row of a truncated answer may lack columns. Columns in step fail together.
        end = len(answer) // width * width or len(answer)
        before = len(together[0].rows)
        for place, walk in enumerate(together):
            walk.absorb(zip(answer.oids[place:end:width], answer.values[place:end:width], strict=True))
        self._limit.add(len(together[0].rows) - before)
        if self._limit.is_reached:
            for walk in self._columns:
                walk.stop(self._limit.reason)
        is_cut = len(answer) < rows * width and all(walk.is_open for walk in together)
        if is_cut:
            self._size.cut_short(rows, width, len(answer) // width)
        elif self._inquiry.is_open:
            return
        elif self._narrow:
            # If all suspected rows came in smaller requests, the cause was the size and not a row.
            self._cleared_rows += rows
            if self._cleared_rows >= self._suspect_rows:
                self._size.shrink(self._suspect_rows, width, fitting=self._narrow, costly=self._in_doubt)
                self._relax()
        else:
            self._in_doubt = False
            self._size.succeeded(may_grow=self._requester.has_room())

    def _relax(self) -> None:
        self._narrow = self._suspect_rows = self._cleared_rows = 0
        self._in_doubt = self._found_row = False

    def _handle_error(self, together: list[ColumnWalk], rows: int, answer: Answer) -> None:
        status = answer.error_status
        if status == ErrorStatus.TOO_BIG:
            if not self._size.shrink(rows, len(together)):
                self._give_up(together[0], describe_status(status))
        elif status == ErrorStatus.NO_SUCH_NAME and not self._requester.has_bulk and len(together) == 1:
            # SNMPv1 reports the end of the MIB this way.
            together[0].end()
            self._inquiry.mark_bad()
        else:
            self._fail(together, rows, describe_status(status), answer.error_index)

    def _fail(self, together: list[ColumnWalk], rows: int, reason: str, error_index: int = 0) -> None:
        if rows > 1:
            # The rows before the unreadable one come with smaller requests.
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
        self._inquiry.mark_bad()
