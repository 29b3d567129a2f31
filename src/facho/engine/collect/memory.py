"""Memory of a run for the next one: its requests, the names in the answers, and the cells of the values.

In a normal run the inventory is unchanged. The same requests then bring the same names, and walk, coverage and absent
ONUs are those of the last run. Only values have to be compared; see `replay.py`.
"""

from array import array
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from facho.engine.batch import Batch
from facho.engine.brand import Brand, Decoder
from facho.engine.collect.columns import lit_rows
from facho.engine.collect.join import decode_value
from facho.engine.collect.learned import Learned
from facho.engine.collect.plan import Plan
from facho.engine.collect.requester import Exchange
from facho.engine.model import Collected, Completeness, Coverage, JobKind, KnownOnu, Olt
from facho.engine.oid import Oid
from facho.engine.snmp import Answer, Asked, Operation, Tag, Value, digest

# Replays in a row before a run takes the full path, because only the full path tries other sizes.
MAX_REPLAYS = 100
# The same while request sizes are not settled: larger requests may read the same with fewer of them.
FEW_REPLAYS = 5
# Full runs after which the sizes count as settled.
MAX_UNSETTLED = 2
# Decoded values to keep per column of a brand. Powers have some hundreds, serials one per ONU.
MAX_DECODED = 16_384
# Jobs to remember per process.
MAX_MEMORIES = 8192

PLAIN_TAGS = (Tag.INTEGER, Tag.OCTET_STRING, Tag.COUNTER32, Tag.GAUGE32, Tag.TIME_TICKS, Tag.COUNTER64)
# Kind of each variable: 0 for a plain number or string, else its tag. An end of a table must stay one.
KINDS = bytes(0 if tag in PLAIN_TAGS else tag for tag in range(256))


class Decoded(dict[bytes, Any]):
    """Decoded values of one column, by raw bytes. Unknown bytes are decoded on access."""

    def __init__(self, decode: Decoder) -> None:
        self.decode = decode
        self.value_of = Answer.value_of

    def __missing__(self, encoded: bytes) -> Any:
        if len(self) >= MAX_DECODED:
            self.clear()
        value = self[encoded] = decode_value(self.decode, self.value_of(encoded))
        return value


@dataclass(slots=True, eq=False)
class Step:
    """One request, and the use of its answer as long as the names are the same."""

    operation: Operation
    asked: Asked
    repetitions: int
    optical: bool
    # Length of each name and kind of each value, and a digest of these and the names.
    lengths: bytes
    kinds: bytes
    names: bytes
    # Groups of five numbers: column, first variable, last variable + 1, step, first row.
    pieces: "array[int]"
    # Values that steer the run, by variable position: a change ends the replay.
    guards: tuple[tuple[int, Value], ...]

    def groups(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Return the pieces."""
        numbers = iter(self.pieces)
        return zip(numbers, numbers, numbers, numbers, numbers, strict=True)

    def cells(self) -> dict[int, tuple[int, int]]:
        """Return the column and row of each variable that has a cell."""
        return {
            variable: (column, row + count)
            for column, start, stop, stride, row in self.groups()
            for count, variable in enumerate(range(start, stop, stride))
        }


# Requests for expensive columns, by the columns that share a request.
Tables = dict[tuple[int, ...], list[Step]]


class Memory:
    """Memory of one job on one OLT. Empty until a run was complete and without problems.

    It is not checked here: `Replay` compares every answer with it, and the full path takes over at a difference.
    """

    def __init__(self, decoded: dict[Hashable, Decoded] | None = None, *, max_unsettled: int = MAX_UNSETTLED) -> None:
        # By column; shared by all memories of a process.
        self._decoded = {} if decoded is None else decoded
        self._max_unsettled = max_unsettled
        self._unsettled = 0
        # Sizes at the start of the run, by table.
        self._sizes: Mapping[str, int | None] = {}
        self._replays = 0
        self._key: Any = None
        self._known: Sequence[KnownOnu] = ()
        self._onus: Any = None
        self.steps: list[Step] = []
        # One list per column of the plan before the brand's rules, then one per scalar.
        self.read: list[list[Any]] = []
        self.decoders: list[Decoded] = []
        # ONUs that expensive columns were requested from; see `lit_rows`.
        self.lit: tuple[bool, ...] = ()
        # The requests for those; None until an ONU gains or loses light.
        self.tables: Tables | None = None
        self.answered: frozenset[str] = frozenset()
        # The place fields that the rules of the brand fill.
        self.placed: frozenset[str] = frozenset()
        self.collected = Collected(Completeness.EMPTY)
        self.batch = Batch()

    def is_usable(self, plan: Plan, kind: JobKind, olt: Olt, brand: Brand, known: Sequence[KnownOnu]) -> bool:
        """Return whether the next run can repeat the requests of the last one."""
        learned = Learned(olt.learned)
        return (
            bool(self.steps)
            and self._replays < (MAX_REPLAYS if self._is_settled(olt) else FEW_REPLAYS)
            and not tuple(learned.poisoned)
            and self._key == (plan, kind, olt.agent, brand)
            and self._knows(kind, known)
        )

    def _is_settled(self, olt: Olt) -> bool:
        return self._unsettled >= self._max_unsettled or self._sizes == sizes_of(olt, self._sizes)

    def _knows(self, kind: JobKind, known: Sequence[KnownOnu]) -> bool:
        """Return whether these are the ONUs of the run that is remembered. Mostly the same list comes again."""
        if known is not self._known:
            if key_of(kind, known) != self._onus:
                return False
            self._known = known
        return True

    def update(self, answers: Iterable[tuple[Step, Answer]], read: list[list[Any]], batch: Batch) -> None:
        """Store the values of a finished replay."""
        for step, answer in answers:
            step.asked.digest = answer.digest
        self.read, self.batch = read, batch
        self._replays += 1

    def follow_light(self, tables: Tables, lit: tuple[bool, ...], coverage: tuple[Coverage, ...]) -> None:
        """Store the requests of a replay in which other ONUs had light."""
        self.steps = [step for step in self.steps if not step.optical]
        self.steps += [step for steps in tables.values() for step in steps]
        self.tables, self.lit = tables, lit
        self.collected = replace(self.collected, coverage=coverage)

    def forget(self) -> None:
        """Let the next run take the full path."""
        self.steps = []

    def keep(
        self,
        plan: Plan,
        kind: JobKind,
        olt: Olt,
        brand: Brand,
        known: Sequence[KnownOnu],
        *,
        collected: Collected,
        trace: Sequence[Exchange],
        cells: Mapping[Oid, tuple[int, int]],
        guarded: Iterable[Oid],
        read: list[list[Any]],
        answered: Iterable[str],
        placed: Iterable[frozenset[str]],
    ) -> None:
        """Remember a run. `cells` has the column and row of each name, `guarded` the names whose values steer."""
        self._sizes = sizes_of(olt, collected.traffic.sizes)
        self._unsettled = 0 if self._sizes == collected.traffic.sizes else self._unsettled + 1
        self._replays = 0
        try:
            optical = {place for place, column in enumerate(plan.columns) if column.optical}
            self.steps = list(make_steps(trace, cells, optical, set(guarded)))
        except (ValueError, OverflowError):
            # An OID or an answer of absurd length.
            self.forget()
            return
        self.tables = None
        # All that a run depends on besides what the OLT answers.
        self._key = plan, kind, olt.agent, brand
        self._known, self._onus = known, key_of(kind, known)
        columns = collected.batch.columns
        fields = [column.field for column in plan.columns]
        # If the brand's rules change nothing, both are one list.
        for place, field in enumerate(fields):
            if columns.get(field) == read[place]:
                read[place] = columns[field]
        self.read = read
        self.decoders = [self._decoder(each.oid, each.decode) for each in plan.columns]
        self.decoders += [self._decoder(each.oid, each.decode) for each in plan.scalars]
        self.batch = collected.batch
        self.lit = lit_rows(plan, kind, self.batch.layout, read, known)
        self.answered = frozenset(answered)
        self.placed = next(iter(placed), frozenset())
        self.collected = replace(collected, readings=())

    def _decoder(self, oid: Oid, decode: Decoder) -> Decoded:
        return self._decoded.setdefault((oid, decode), Decoded(decode))


class Memories:
    """Memories of one process, by node. The least recently used one is dropped first."""

    def __init__(self, limit: int = MAX_MEMORIES) -> None:
        self._limit = limit
        self._decoded: dict[Hashable, Decoded] = {}
        self._memories: OrderedDict[int, Memory] = OrderedDict()

    def of(self, node_id: int) -> Memory:
        """Return the memory of a node."""
        memory = self._memories.setdefault(node_id, Memory(self._decoded))
        self._memories.move_to_end(node_id)
        if len(self._memories) > self._limit:
            self._memories.popitem(last=False)
        return memory


def sizes_of(olt: Olt, tables: Iterable[str]) -> dict[str, int | None]:
    """Return the sizes at the start of a run on these tables; None if nothing was learned yet."""
    sizes = olt.learned.get("sizes")
    return {table: sizes.get(table) if isinstance(sizes, Mapping) else None for table in tables}


def key_of(kind: JobKind, known: Iterable[KnownOnu]) -> Any:
    """Return what a run depends on of the ONUs that are known. Equal keys: the same run."""
    onus = hash(tuple(map(attrgetter("index", "slot", "port", "onu"), known)))
    # ONUs that are read, and those at whose index another ONU may be. A discovery reads all.
    doubts = () if kind is JobKind.DISCOVERY else hash(tuple([(onu.is_missing, not onu.misses) for onu in known]))
    return onus, doubts


def names_digest(lengths: bytes, kinds: bytes, names: bytes) -> bytes:
    """Return a digest of the names, and of which variables have a value."""
    return digest(lengths + kinds + names)


def lengths_and_kinds(answer: Answer) -> tuple[bytes, bytes]:
    """Return the length of each name and the kind of each value; ValueError for an absurd length."""
    return bytes(map(len, answer.oids)), answer.tags.translate(KINDS)


def make_get(oids: Sequence[Oid], kinds: bytes, cells: Iterable[tuple[int, int]]) -> Step:
    """Return a new GET for optical values; `cells` are their columns and rows."""
    asked = Asked(oids)
    asked.answered = len(oids)
    lengths = bytes(map(len, oids))
    names = names_digest(lengths, kinds, b"".join(oids))
    pieces = _pieces([(*cell, place) for place, cell in enumerate(cells)])
    return Step(Operation.GET, asked, 1, True, lengths, kinds, names, pieces, ())


def without(step: Step, rows: Collection[int]) -> Step | None:
    """Return a GET without the variables of some rows: itself if it has none of them, None if nothing is left."""
    spans = [(row, row + len(range(start, stop, stride))) for _, start, stop, stride, row in step.groups()]
    if not any(first <= row < end for row in rows for first, end in spans):
        return step
    cells = step.cells()
    kept = [place for place in sorted(cells) if cells[place][1] not in rows]
    oids = list(step.asked)
    kinds = bytes(step.kinds[place] for place in kept)
    return make_get([oids[place] for place in kept], kinds, [cells[place] for place in kept]) if kept else None


def make_steps(
    trace: Sequence[Exchange], cells: Mapping[Oid, tuple[int, int]], optical: Collection[int], guarded: set[Oid]
) -> Iterable[Step]:
    """Return the requests of a run; ValueError or OverflowError for an OID or an answer of absurd length.

    `optical` are the expensive columns. A walk over cheap columns may read into them; these values do not count.
    """
    seen: set[Oid] = set()
    # Many requests have names of equal lengths, so they share one object.
    same: dict[bytes, bytes] = {}
    for exchange in trace:
        answer = exchange.answer
        asked = Asked(exchange.oids)
        asked.digest, asked.answered = answer.digest, len(answer.oids)
        lengths, kinds = lengths_and_kinds(answer)
        found = []
        for place, oid in enumerate(answer.oids):
            # A row counts once, with its first value, as in a walk.
            if oid in cells and oid not in seen and (cells[oid][0] in optical) == exchange.optical:
                seen.add(oid)
                found.append((*cells[oid], place))
        guards = [(place, answer.values[place]) for place, oid in enumerate(answer.oids) if oid in guarded]
        yield Step(
            exchange.operation,
            asked,
            exchange.repetitions,
            exchange.optical,
            same.setdefault(lengths, lengths),
            same.setdefault(kinds, kinds),
            names_digest(lengths, kinds, b"".join(answer.oids)),
            _pieces(found),
            tuple(guards),
        )


def _pieces(found: list[tuple[int, int, int]]) -> "array[int]":
    """Return cells (column, row, variable) as pieces: consecutive rows, variables at equal distances."""
    pieces: list[int] = []
    found.sort()
    at = 0
    while at < len(found):
        column, row, first = found[at]
        step = found[at + 1][2] - first if at + 1 < len(found) else 0
        count = 1
        while step > 0 and at + count < len(found) and found[at + count] == (column, row + count, first + count * step):
            count += 1
        pieces.extend((column, first, first + (count - 1) * step + 1, max(step, 1), row))
        at += count
    return array("H" if max(pieces, default=0) < 1 << 16 else "I", pieces)
