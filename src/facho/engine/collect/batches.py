"""Reads OIDs by GET, in batches; a batch that fails is divided until what poisons it stands alone."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from facho.engine.collect.crew import Crew, Work
from facho.engine.collect.learned import Learned
from facho.engine.collect.requester import Requester
from facho.engine.collect.sentences import describe_failure, describe_status
from facho.engine.collect.size import ONE_DATAGRAM, Size
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Answer, ErrorStatus, Missing, Value

# The OIDs of one ONU: kept together as long as possible, because an OLT fetches them together.
OidRow = Sequence[Oid]


@dataclass(slots=True)
class Trouble:
    """A batch that failed and was divided. When all its parts came through it was too large, and had no bad OID."""

    rows: int
    open_parts: int = 0
    is_explained: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to ask for in one GET."""

    rows: tuple[OidRow, ...]
    # The agent blamed a larger batch on this one.
    accused: bool = False
    # A larger batch with this in it got no answer.
    doubtful: bool = False
    # Known to be poisoned: tried once, by itself, and never divided.
    alone: bool = False
    # What is left of an ONU whose other values are poisoned: not divided either.
    is_rest: bool = False
    # One value of an ONU that failed is asked before its others.
    others: OidRow = ()
    # Those others, when that one could be read.
    is_split: bool = False
    trouble: Trouble | None = None

    @property
    def oids(self) -> list[Oid]:
        return [oid for row in self.rows for oid in row]


class BatchReader:
    """Reads every OID it is given, or says why not.

    Each ends up in `values` (Missing where the device has none) or in `failed`
    with a reason; if the run is over before, the rest is in neither.
    """

    def __init__(self, requester: Requester, size: Size, learned: Learned, *, optical: bool = False) -> None:
        self.values: dict[Oid, Value] = {}
        self.failed: dict[Oid, str] = {}
        self._requester = requester
        self._size = size
        self._learned = learned
        self._optical = optical
        self._rows: deque[OidRow] = deque()
        self._waiting: deque[Batch] = deque()
        self._alone: deque[Batch] = deque()
        self._trusts_accusations = True

    @property
    def rows_left(self) -> int:
        return len(self._rows)

    async def read(self, rows: Iterable[OidRow]) -> None:
        """Ask for all rows, as many at a time as the agent can answer; what is poisoned alone, and last."""
        poisoned = {oid: place for place, oid in enumerate(self._learned.poisoned)}
        for row in rows:
            bad = sorted((oid for oid in row if oid in poisoned), key=poisoned.__getitem__) if poisoned else []
            if bad:
                # One stands for all of its ONU, and the next time another: each has its turn, run after run.
                self._alone.append(Batch((bad[:1],), alone=True, others=bad[1:]))
                row = [oid for oid in row if oid not in poisoned]
            if row:
                self._rows.append(row)
        await Crew(self._requester, self._next_work).run()

    def _next_work(self) -> Work | None:
        batch = self._next_batch()
        return None if batch is None else self._ask(batch, batch.oids)

    def _next_batch(self) -> Batch | None:
        if self._waiting:
            return self._waiting.popleft()
        if self._rows:
            count = self._size.rows_for(len(self._rows[0]))
            return Batch(tuple(self._rows.popleft() for _ in range(min(count, len(self._rows)))))
        return self._alone.popleft() if self._alone else None

    async def _ask(self, batch: Batch, oids: list[Oid]) -> None:
        try:
            answer = await self._requester.get(
                oids, optical=self._optical, retries=self._retries(batch, oids), checks=not batch.alone
            )
        except (NoAnswer, BadAnswer) as error:
            self._divide(batch, oids, describe_failure(error), doubtful=True)
            return
        if answer.error_status:
            self._handle_error(batch, oids, answer)
        else:
            self._keep(batch, oids, answer)

    def _retries(self, batch: Batch, oids: list[Oid]) -> int | None:
        """Parts of a silent batch, and sizes on trial, are not insisted on: there is a smaller one behind them."""
        if batch.alone:
            return 0
        if not batch.doubtful:
            return 1 if self._size.is_on_trial and len(oids) > 1 else None
        return 1 if len(oids) == 1 else 0

    def _keep(self, batch: Batch, oids: list[Oid], answer: Answer) -> None:
        if batch.accused:
            self._trusts_accusations = False
        if answer.oids == oids:
            self.values.update(zip(oids, answer.values, strict=True))
            fitting = len(batch.rows) * ONE_DATAGRAM // max(1, answer.bytes_received)
            self._note_success(batch, oids, fitting)
            return
        asked = set(oids)
        answered = {oid: value for oid, value in answer if oid in asked}
        self.values.update(answered)
        if not answered:
            self._divide(batch, oids, "the agent answered something else")
        elif rest := without(batch, answered.keys()):
            # Cut short: what came is what fits.
            self._size.cut_short(len(batch.rows), 1, len(batch.rows) - len(rest.rows))
            self._put_back(batch, [rest])
        else:
            self._note_success(batch, oids)

    def _note_success(self, batch: Batch, oids: list[Oid], fitting: int = 0) -> None:
        if batch.alone:
            for oid in oids:
                self._learned.cure(oid)
            if batch.others:
                self._alone.append(Batch((batch.others,), alone=True))
        elif batch.others:
            self._put_back(batch, [Batch((batch.others,), doubtful=batch.doubtful, is_split=True)])
            return
        elif batch.trouble is None and not batch.accused:
            self._size.succeeded(may_grow=self._requester.has_room(), fitting=fitting)
        self._close_part(batch)

    def _close_part(self, batch: Batch) -> None:
        trouble = batch.trouble
        if trouble is None:
            return
        trouble.open_parts -= 1
        if not trouble.open_parts and not trouble.is_explained:
            self._size.shrink(trouble.rows, 1, costly=batch.doubtful)

    def _handle_error(self, batch: Batch, oids: list[Oid], answer: Answer) -> None:
        status, suspect = answer.error_status, answer.error_index - 1
        if status == ErrorStatus.NO_SUCH_NAME and len(oids) == 1:
            # How SNMPv1 says that the device has no such value.
            self.values[oids[0]] = Missing.NO_SUCH_INSTANCE
            self._note_success(batch, oids)
        elif status == ErrorStatus.TOO_BIG and not batch.alone:
            self._size.shrink(len(batch.rows), 1)
            self._divide(batch, oids, describe_status(status))
        elif self._trusts_accusations and len(oids) > 1 and 0 <= suspect < len(oids) and not batch.alone:
            rest = without(batch, {oids[suspect]})
            self._put_back(batch, [Batch(((oids[suspect],),), accused=True), *([rest] if rest else [])])
        else:
            self._divide(batch, oids, describe_status(status))

    def _divide(self, batch: Batch, oids: list[Oid], reason: str, *, doubtful: bool = False) -> None:
        if len(oids) == 1 or batch.alone or batch.is_rest:
            self._condemn(batch, oids, reason)
            return
        if batch.trouble is None:
            batch = replace(batch, trouble=Trouble(len(batch.rows), 1))
        if len(batch.rows) == 1 and not batch.is_split:
            # One ONU. If its first value cannot be read either, the others are asked once more, together.
            first, *others = oids
            self._put_back(batch, [Batch(((first,),), doubtful=doubtful, others=others)])
        else:
            self._put_back(batch, halves(batch, doubtful=doubtful))

    def _condemn(self, batch: Batch, oids: list[Oid], reason: str) -> None:
        """Give up values that cannot be read even by themselves."""
        for oid in oids:
            self.failed[oid] = reason
            self._learned.poison(oid)
        if batch.trouble is not None:
            batch.trouble.is_explained = True
        if batch.alone:
            self.failed.update(dict.fromkeys(batch.others, reason))
        elif batch.others:
            self._put_back(batch, [Batch((batch.others,), doubtful=batch.doubtful, is_rest=True)])
        else:
            self._close_part(batch)

    def _put_back(self, batch: Batch, parts: list[Batch]) -> None:
        """Ask for parts of a batch next. They share its trouble."""
        trouble = batch.trouble
        if trouble is not None:
            trouble.open_parts += len(parts) - 1
            parts = [replace(part, trouble=trouble) for part in parts]
        self._waiting.extendleft(reversed(parts))


def halves(batch: Batch, *, doubtful: bool = False) -> list[Batch]:
    """Divide between rows; a single row between its columns."""
    rows = batch.rows
    if len(rows) == 1:
        middle = len(rows[0]) // 2
        parts: list[tuple[OidRow, ...]] = [(rows[0][:middle],), (rows[0][middle:],)]
    else:
        middle = len(rows) // 2
        parts = [rows[:middle], rows[middle:]]
    return [Batch(part, doubtful=doubtful, is_split=len(rows) == 1) for part in parts]


def without(batch: Batch, gone: Iterable[Oid]) -> Batch | None:
    """Return the batch less some OIDs, or None if nothing is left of it."""
    names = set(gone)
    rows = tuple(left for row in batch.rows if (left := tuple(oid for oid in row if oid not in names)))
    return Batch(rows, doubtful=batch.doubtful) if rows else None
