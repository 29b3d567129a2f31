"""GET of known ONUs. A failed request is halved until the bad value stands alone."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from facho.engine.brand import Column, IndexSpace
from facho.engine.collect.flow import ONE_DATAGRAM, Size
from facho.engine.collect.join import Harvest, OnuRow
from facho.engine.collect.messages import describe_failure, describe_rest, describe_status
from facho.engine.collect.parallel import Parallel, Work
from facho.engine.collect.requester import Requester
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.model import Completeness, Coverage
from facho.engine.oid import Oid, pack
from facho.engine.snmp import Answer, ErrorStatus, Missing, Value

# OIDs of one ONU, kept together as long as possible, because an OLT reads them together.
OidRow = Sequence[Oid]


@dataclass(slots=True)
class Trouble:
    """A batch that failed and was split. If all its parts succeed, it was too large and had no bad OID."""

    rows: int
    open_parts: int = 0
    is_explained: bool = False


@dataclass(frozen=True, slots=True)
class GetBatch:
    """Rows of one GET."""

    rows: tuple[OidRow, ...]
    # The agent named this row as the error of a larger batch.
    accused: bool = False
    # A larger batch with these rows got no answer.
    doubtful: bool = False
    # Known as poisoned: requested once, alone, never split.
    alone: bool = False
    # The other values of an ONU with poisoned values; not split either.
    is_rest: bool = False
    # One value of a failed ONU is requested before the others.
    others: OidRow = ()
    # These others, after that one succeeded.
    is_split: bool = False
    trouble: Trouble | None = None

    @property
    def oids(self) -> list[Oid]:
        return [oid for row in self.rows for oid in row]


class BatchReader:
    """Reads all given OIDs, or reports the reason.

    Each OID ends up in `values` (Missing if the device has no value) or in `failed` with a reason. If the run ends
    early, the rest is in neither.
    """

    def __init__(self, requester: Requester, size: Size, *, optical: bool = False) -> None:
        self.values: dict[Oid, Value] = {}
        self.failed: dict[Oid, str] = {}
        self._requester = requester
        self._size = size
        self._learned = requester.learned
        self._optical = optical
        # Rows that were not requested yet.
        self.rows: deque[OidRow] = deque()
        self._waiting: deque[GetBatch] = deque()
        self._alone: deque[GetBatch] = deque()
        self._trusts_accusations = True

    async def read(self, rows: Iterable[OidRow]) -> None:
        """Request all rows, in batches that the agent can answer; poisoned values alone and last."""
        poisoned = {oid: place for place, oid in enumerate(self._learned.poisoned)}
        for row in rows:
            bad = sorted((oid for oid in row if oid in poisoned), key=poisoned.__getitem__) if poisoned else []
            if bad:
                # One value stands for its ONU, and another one in the next run.
                self._alone.append(GetBatch((bad[:1],), alone=True, others=bad[1:]))
                row = [oid for oid in row if oid not in poisoned]
            if row:
                self.rows.append(row)
        await Parallel(self._requester, self._next_work).run()

    def _next_work(self) -> Work | None:
        if self._waiting:
            batch = self._waiting.popleft()
        elif self.rows:
            count = self._size.rows_for(len(self.rows[0]))
            batch = GetBatch(tuple(self.rows.popleft() for _ in range(min(count, len(self.rows)))))
        elif self._alone:
            batch = self._alone.popleft()
        else:
            return None
        return self._ask(batch, batch.oids)

    async def _ask(self, batch: GetBatch, oids: list[Oid]) -> None:
        retries = None
        if batch.alone or batch.doubtful:
            # A part of a batch without an answer: a smaller request follows.
            retries = 1 if len(oids) == 1 and not batch.alone else 0
        elif self._size.is_on_trial and len(oids) > 1:
            retries = 1
        try:
            answer = await self._requester.get(oids, optical=self._optical, retries=retries, checks=not batch.alone)
        except (NoAnswer, BadAnswer) as error:
            self._divide(batch, oids, describe_failure(error), doubtful=True)
            return
        if answer.error_status:
            self._handle_error(batch, oids, answer)
        else:
            self._keep(batch, oids, answer)

    def _keep(self, batch: GetBatch, oids: list[Oid], answer: Answer) -> None:
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
            self._divide(batch, oids, "the agent answered a different request")
        elif rest := without(batch, answered.keys()):
            # Truncated: the received rows fit.
            self._size.cut_short(len(batch.rows), 1, len(batch.rows) - len(rest.rows))
            self._put_back(batch, [rest])
        else:
            self._note_success(batch, oids)

    def _note_success(self, batch: GetBatch, oids: list[Oid], fitting: int = 0) -> None:
        if batch.alone:
            for oid in oids:
                self._learned.cure(oid)
            if batch.others:
                self._alone.append(GetBatch((batch.others,), alone=True))
        elif batch.others:
            self._put_back(batch, [GetBatch((batch.others,), doubtful=batch.doubtful, is_split=True)])
            return
        elif batch.trouble is None and not batch.accused:
            self._size.succeeded(may_grow=self._requester.has_room(), fitting=fitting)
        self._close_part(batch)

    def _close_part(self, batch: GetBatch) -> None:
        trouble = batch.trouble
        if trouble is None:
            return
        trouble.open_parts -= 1
        if not trouble.open_parts and not trouble.is_explained:
            self._size.shrink(trouble.rows, 1, costly=batch.doubtful)

    def _handle_error(self, batch: GetBatch, oids: list[Oid], answer: Answer) -> None:
        status, suspect = answer.error_status, answer.error_index - 1
        if status == ErrorStatus.NO_SUCH_NAME and len(oids) == 1:
            # SNMPv1 reports a missing value this way.
            self.values[oids[0]] = Missing.NO_SUCH_INSTANCE
            self._note_success(batch, oids)
        elif status == ErrorStatus.TOO_BIG and not batch.alone:
            self._size.shrink(len(batch.rows), 1)
            self._divide(batch, oids, describe_status(status))
        elif self._trusts_accusations and len(oids) > 1 and 0 <= suspect < len(oids) and not batch.alone:
            rest = without(batch, {oids[suspect]})
            self._put_back(batch, [GetBatch(((oids[suspect],),), accused=True), *([rest] if rest else [])])
        else:
            self._divide(batch, oids, describe_status(status))

    def _divide(self, batch: GetBatch, oids: list[Oid], reason: str, *, doubtful: bool = False) -> None:
        if len(oids) == 1 or batch.alone or batch.is_rest:
            # These values cannot be read alone either.
            for oid in oids:
                self.failed[oid] = reason
                self._learned.poison(oid)
            if batch.trouble is not None:
                batch.trouble.is_explained = True
            if batch.alone:
                self.failed.update(dict.fromkeys(batch.others, reason))
            elif batch.others:
                self._put_back(batch, [GetBatch((batch.others,), doubtful=batch.doubtful, is_rest=True)])
            else:
                self._close_part(batch)
            return
        if batch.trouble is None:
            batch = replace(batch, trouble=Trouble(len(batch.rows), 1))
        if len(batch.rows) == 1 and not batch.is_split:
            # One ONU. If its first value cannot be read either, the others are requested once more, together.
            first, *others = oids
            self._put_back(batch, [GetBatch(((first,),), doubtful=doubtful, others=others)])
        else:
            self._put_back(batch, halves(batch, doubtful=doubtful))

    def _put_back(self, batch: GetBatch, parts: list[GetBatch]) -> None:
        """Queue parts of a batch next. They share its trouble."""
        trouble = batch.trouble
        if trouble is not None:
            trouble.open_parts += len(parts) - 1
            parts = [replace(part, trouble=trouble) for part in parts]
        self._waiting.extendleft(reversed(parts))


def halves(batch: GetBatch, *, doubtful: bool = False) -> list[GetBatch]:
    """Split between rows; a single row between its columns."""
    rows = batch.rows
    if len(rows) == 1:
        middle = len(rows[0]) // 2
        parts: list[tuple[OidRow, ...]] = [(rows[0][:middle],), (rows[0][middle:],)]
    else:
        middle = len(rows) // 2
        parts = [rows[:middle], rows[middle:]]
    return [GetBatch(part, doubtful=doubtful, is_split=len(rows) == 1) for part in parts]


def without(batch: GetBatch, gone: Iterable[Oid]) -> GetBatch | None:
    """Return the batch without some OIDs, or None if it is empty."""
    names = set(gone)
    rows = tuple(left for row in batch.rows if (left := tuple(oid for oid in row if oid not in names)))
    return GetBatch(rows, doubtful=batch.doubtful) if rows else None


class RowTurn:
    """Some columns of some ONUs, read by one reader."""

    def __init__(self, columns: Sequence[Column], onus: Sequence[OnuRow], reader: BatchReader) -> None:
        self.columns = columns
        self.onus = onus
        self._reader = reader
        self._oids = oids_of(columns, onus)
        # Failed values: column, ONU, reason.
        self.failures: list[tuple[str, str, str]] = []
        self._failed: set[OnuRow] = set()
        self._unread: set[OnuRow] = set()

    @property
    def done(self) -> int:
        """Return the number of finished ONUs."""
        return len(self.onus) - len(self._reader.rows)

    @property
    def has_values(self) -> bool:
        """Return whether the OLT has any value of these ONUs."""
        return any(value is not None and value.__class__ is not Missing for value in self._reader.values.values())

    async def read(self) -> None:
        """Request every value that has an OID."""
        rows = ([oid for oid in row if oid is not None] for row in self._oids)
        await self._reader.read(row for row in rows if row)

    def names_of(self, column: Column) -> Iterator[tuple[Oid, OnuRow]]:
        """Return the requested names of a column, and the ONU of each."""
        if column in self.columns:
            place = self.columns.index(column)
            for row, oids in zip(self.onus, self._oids, strict=True):
                if (oid := oids[place]) is not None:
                    yield oid, row

    def store(self, harvest: Harvest, reason: str) -> list[str]:
        """Add the values to the harvest, record failures, and return a message about unread values."""
        values, failed = self._reader.values, self._reader.failed
        gone = 0
        # The optics of an ONU may have no row while it is off.
        may_be_gone = len(self.columns) > 1 and not any(column.optical for column in self.columns)
        missing = Missing.NO_SUCH_INSTANCE
        for row, oids in zip(self.onus, self._oids, strict=True):
            if may_be_gone and all(oid is not None and values.get(oid) is missing for oid in oids):
                gone += 1
                harvest.doubt(row)
            for column, oid in zip(self.columns, oids, strict=True):
                if oid in values:
                    harvest.add_value(row, column, values[oid])
                elif oid is None or oid in failed:
                    reason_of_value = "the table has no index for it" if oid is None else failed[oid]
                    self.failures.append((column.field, str(row), reason_of_value))
                    self._failed.add(row)
                else:
                    self._unread.add(row)
        fields = [column.field for column in self.columns]
        if gone:
            harvest.remark(f"{', '.join(fields)}: the OLT has no row for {gone:,} known ONUs")
        return [describe_rest(fields, reason, len(self._unread), len(self.onus))] if self._unread else []

    def coverage(self) -> list[Coverage]:
        """Return the coverage of each column on each port."""
        ports: dict[tuple[int | None, int | None], list[OnuRow]] = {}
        for row in self.onus:
            ports.setdefault(row.port, []).append(row)
        lines = []
        for port, rows in ports.items():
            broken = [row for row in rows if row in self._failed or row in self._unread]
            state = Completeness.PARTIAL if broken else Completeness.COMPLETE
            reason = f"{len(broken):,} of {len(rows):,} ONUs could not be read" if broken else ""
            count = len(rows) - len(broken)
            lines += [Coverage(column.field, *port, state, count, reason) for column in self.columns]
        return lines


def oids_of(columns: Sequence[Column], onus: Sequence[OnuRow]) -> list[list[Oid | None]]:
    """Return the OIDs of each ONU's values; None if a table cannot have one. Each space has its own numbers."""
    spaces = list(dict.fromkeys(column.space for column in columns))
    places = [(column.oid, spaces.index(column.space)) for column in columns]
    rows: list[list[Oid | None]] = []
    for onu in onus:
        indices = [_index_in(space, onu) for space in spaces]
        rows.append([None if (index := indices[place]) is None else Oid(oid + index) for oid, place in places])
    return rows


def _index_in(space: IndexSpace, row: OnuRow) -> bytes | None:
    if row.seen_as[0] is space:
        return row.seen_as[1]
    try:
        return pack(space.encode(row.place))
    except ValueError:
        return None
