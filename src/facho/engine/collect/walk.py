"""Walks columns of one index space side by side, by GETBULK (GETNEXT in SNMPv1)."""

from collections.abc import Sequence

from facho.engine.brand import Manners
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.inquiry import Inquiry
from facho.engine.collect.requester import Requester
from facho.engine.collect.sentences import describe_failure, describe_status
from facho.engine.collect.size import BulkSize
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.snmp import Answer, ErrorStatus


class TableWalk:
    """Reads columns to their ends, each from its own cursor.

    An answer is dealt out by position, and each column checks its own prefix:
    one that is exhausted spills into its neighbour. Rows are never matched by
    their place in an answer. A column that cannot be read further is stopped,
    and the others go on.
    """

    def __init__(self, columns: Sequence[ColumnWalk], requester: Requester, manners: Manners) -> None:
        self._columns = columns
        self._requester = requester
        self._size = BulkSize(manners.max_repetitions if requester.has_bulk else 1, len(columns))
        self._inquiry = Inquiry()
        self._optical = any(walk.column.optical for walk in columns)
        # A request got no answer, and smaller ones are being tried.
        self._in_doubt = False

    async def run(self) -> None:
        """Walk until every column has ended or was stopped."""
        while together := self._next_columns():
            await self._step(together)

    def _next_columns(self) -> list[ColumnWalk]:
        if part := self._inquiry.next_part():
            return part
        if too_many := self._inquiry.close():
            self._size.shrink(too_many, costly=self._in_doubt)
        return [walk for walk in self._columns if walk.is_open][: self._size.columns]

    async def _step(self, together: list[ColumnWalk]) -> None:
        try:
            answer = await self._requester.rows_after(
                [walk.cursor for walk in together],
                self._size.repetitions,
                optical=self._optical,
                retries=self._retries(together),
            )
        except (NoAnswer, BadAnswer) as error:
            self._in_doubt = True
            self._fail(together, describe_failure(error))
            return
        if answer.error_status:
            self._handle_error(together, answer)
        else:
            self._deal_out(together, answer)

    def _retries(self, together: list[ColumnWalk]) -> int | None:
        """Sizes that are only tried are not insisted on; the smallest is, a little, before a column is given up."""
        if not self._in_doubt:
            return None
        return 1 if len(together) == 1 and self._size.repetitions == 1 else 0

    def _deal_out(self, together: list[ColumnWalk], answer: Answer) -> None:
        self._inquiry.acquit(together)
        if not self._inquiry.is_open and self._size.succeeded():
            self._in_doubt = False
        width = len(together)
        for place, walk in enumerate(together):
            walk.absorb(zip(answer.oids[place::width], answer.values[place::width], strict=True))

    def _handle_error(self, together: list[ColumnWalk], answer: Answer) -> None:
        status = answer.error_status
        if status == ErrorStatus.TOO_BIG:
            if not self._size.shrink(len(together)):
                self._give_up(together[0], describe_status(status))
        elif status == ErrorStatus.NO_SUCH_NAME and not self._requester.has_bulk and len(together) == 1:
            # How SNMPv1 says that nothing follows.
            together[0].end()
            self._inquiry.convict()
        else:
            self._fail(together, describe_status(status), answer.error_index)

    def _fail(self, together: list[ColumnWalk], reason: str, error_index: int = 0) -> None:
        if self._size.repetitions > 1:
            # The rows before the one that cannot be read come with smaller requests.
            self._size.shrink(len(together), costly=self._in_doubt)
        elif len(together) > 1:
            self._inquiry.look_into(together, error_index)
        else:
            self._give_up(together[0], reason)

    def _give_up(self, walk: ColumnWalk, reason: str) -> None:
        walk.stop(reason)
        self._inquiry.convict()
