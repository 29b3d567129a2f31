"""Reads OIDs by GET, in batches; a batch that fails is divided until what poisons it stands alone."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from facho.engine.collect.requester import Requester
from facho.engine.collect.sentences import describe_failure, describe_status
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.oid import Oid
from facho.engine.snmp import Answer, ErrorStatus, Missing, Value

# The OIDs of one ONU: kept together as long as possible, because an OLT fetches them together.
OidRow = Sequence[Oid]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to ask for in one GET."""

    rows: tuple[OidRow, ...]
    # The agent blamed a larger batch on this one.
    accused: bool = False
    # A larger batch with this in it got no answer.
    doubtful: bool = False

    @property
    def oids(self) -> list[Oid]:
        return [oid for row in self.rows for oid in row]


class BatchReader:
    """Reads every OID it is given, or says why not.

    Each ends up in `values` (Missing where the device has none) or in `failed`
    with a reason; if the run is over before, the rest is in neither.
    """

    def __init__(self, requester: Requester, *, optical: bool = False) -> None:
        self.values: dict[Oid, Value] = {}
        self.failed: dict[Oid, str] = {}
        self._requester = requester
        self._optical = optical
        self._waiting: deque[Batch] = deque()
        # More variables than this were too many for the agent.
        self._most: int | None = None
        self._trusts_accusations = True

    async def read(self, rows: Sequence[OidRow], rows_per_get: int) -> None:
        """Ask for all rows, so many at a time."""
        step = max(1, rows_per_get)
        self._waiting.extend(Batch(tuple(rows[at : at + step])) for at in range(0, len(rows), step))
        while self._waiting:
            batch = self._waiting.popleft()
            oids = batch.oids
            if self._most is not None and len(oids) > self._most:
                self._put_back(halves(batch))
            else:
                await self._ask(batch, oids)

    async def _ask(self, batch: Batch, oids: list[Oid]) -> None:
        try:
            answer = await self._requester.get(oids, optical=self._optical, retries=_retries(batch, oids))
        except (NoAnswer, BadAnswer) as error:
            self._divide(batch, oids, describe_failure(error), doubtful=True)
            return
        if answer.error_status:
            self._handle_error(batch, oids, answer)
        else:
            self._keep(batch, oids, answer)

    def _keep(self, batch: Batch, oids: list[Oid], answer: Answer) -> None:
        if batch.accused:
            self._trusts_accusations = False
        if answer.oids == oids:
            self.values.update(answer)
            return
        asked = set(oids)
        answered = {oid: value for oid, value in answer if oid in asked}
        self.values.update(answered)
        if not answered:
            self._divide(batch, oids, "the agent answered something else")
        elif rest := without(batch, answered.keys()):
            self._put_back([rest])

    def _handle_error(self, batch: Batch, oids: list[Oid], answer: Answer) -> None:
        status, suspect = answer.error_status, answer.error_index - 1
        if status == ErrorStatus.NO_SUCH_NAME and len(oids) == 1:
            # How SNMPv1 says that the device has no such value.
            self.values[oids[0]] = Missing.NO_SUCH_INSTANCE
        elif status == ErrorStatus.TOO_BIG:
            self._most = max(1, len(oids) // 2)
            self._divide(batch, oids, describe_status(status))
        elif self._trusts_accusations and len(oids) > 1 and 0 <= suspect < len(oids):
            rest = without(batch, {oids[suspect]})
            self._put_back([Batch(((oids[suspect],),), accused=True), *([rest] if rest else [])])
        else:
            self._divide(batch, oids, describe_status(status))

    def _divide(self, batch: Batch, oids: list[Oid], reason: str, *, doubtful: bool = False) -> None:
        if len(oids) == 1:
            self.failed[oids[0]] = reason
        else:
            self._put_back(halves(batch, doubtful=doubtful))

    def _put_back(self, batches: list[Batch]) -> None:
        self._waiting.extendleft(reversed(batches))


def _retries(batch: Batch, oids: list[Oid]) -> int | None:
    """Parts of a silent batch are not insisted on, since they can be divided again; a single OID is, a little."""
    if not batch.doubtful:
        return None
    return 1 if len(oids) == 1 else 0


def halves(batch: Batch, *, doubtful: bool = False) -> list[Batch]:
    """Divide between rows; a single row between its columns."""
    rows = batch.rows
    if len(rows) == 1:
        middle = len(rows[0]) // 2
        parts: list[tuple[OidRow, ...]] = [(rows[0][:middle],), (rows[0][middle:],)]
    else:
        middle = len(rows) // 2
        parts = [rows[:middle], rows[middle:]]
    return [Batch(part, doubtful=doubtful) for part in parts]


def without(batch: Batch, gone: Iterable[Oid]) -> Batch | None:
    """Return the batch less some OIDs, or None if nothing is left of it."""
    names = set(gone)
    rows = tuple(left for row in batch.rows if (left := tuple(oid for oid in row if oid not in names)))
    return Batch(rows, doubtful=batch.doubtful) if rows else None
