"""Replay of the last run: its requests are sent again, and only changed values are decoded.

In a normal run the inventory is unchanged. The same requests then bring the same names, and walk, coverage and absent
ONUs are those of the last run. `Memory` keeps its requests, the names in the answers and the cells of the values;
`Replay` sends the requests and compares.
"""

from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, count
from operator import attrgetter, ne
from typing import Any

from facho.engine.batch import UNREAD, Batch
from facho.engine.brand import Brand, Decoder
from facho.engine.collect.get import oids_of
from facho.engine.collect.join import PLACES, Harvest
from facho.engine.collect.learned import Learned
from facho.engine.collect.plan import Plan, decode_value, had_values, lit_rows
from facho.engine.collect.progress import Progress
from facho.engine.collect.requester import Exchange, Repeatable, Requester, RunOver, request_key
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.escapes import LONGEST_TEXT
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
class Step(Repeatable):
    """One request, and the use of its answer as long as the names are the same."""

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

    def is_usable(self, plan: Plan, olt: Olt, brand: Brand, known: Sequence[KnownOnu]) -> bool:
        """Return whether the next run can repeat the requests of the last one."""
        is_settled = self._unsettled >= self._max_unsettled or self._sizes == sizes_of(olt, self._sizes)
        if (
            not self.steps
            or self._replays >= (MAX_REPLAYS if is_settled else FEW_REPLAYS)
            or tuple(Learned(olt.learned).poisoned)
            or self._key != (plan, olt.agent, brand)
        ):
            return False
        # Usually it is the same list.
        if known is not self._known:
            if key_of(plan.kind, known) != self._onus:
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
        self._key = plan, olt.agent, brand
        self._known, self._onus = known, key_of(plan.kind, known)
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
        self.lit = lit_rows(plan, self.batch.layout, read, known)
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


# ONUs that may gain or lose light in a replay: this number, or this share. After a larger outage the full path builds
# new requests.
MOST_CHANGED = 8
MOST_CHANGED_SHARE = 1 / 16


class Different(Exception):
    """An answer does not match the memory: the full path takes over."""


class Replay:
    """Sends the requests of a remembered run, in any order, and collects the changes.

    An answer is taken in one of three ways. Identical variables: the values are unchanged. Identical names: each
    different value is decoded once. Anything else ends the replay; the full path then gets all answers so far, so
    nothing is requested twice.

    Identical requests and names prove that the same rows exist and that the same parts were read to the end. Values
    that steer the run are compared. If an ONU gained or lost light, the requests for expensive columns are changed
    before they are sent.
    """

    def __init__(
        self, memory: Memory, plan: Plan, brand: Brand, known: Sequence[KnownOnu], requester: Requester
    ) -> None:
        self._memory = memory
        self._plan = plan
        self._brand = brand
        self._known = known
        self._requester = requester
        self._waiting: deque[Step] = deque()
        self._is_off = False
        self._answers: list[tuple[Step, Answer]] = []
        # Columns so far. A column is copied before its first change, because the memory keeps its own until the end.
        self._read = list(memory.read)
        # The same after the brand's rules.
        self._columns: Mapping[str, list[Any]] = {}
        self._unchanged = self._parsed = 0
        # Requests for expensive columns after ONUs gained or lost light; None: unchanged.
        self._tables: Tables | None = None
        self._lit = memory.lit

    async def read(self) -> bool:
        """Send all requests. False: the full path has to take over, with the answers in `requester.early`."""
        try:
            await self._repeat(optical=False)
            if not self._is_off:
                self._follow_light()
                await self._repeat(optical=True)
            if not self._is_off:
                self._columns = self._finished()
        except (NoAnswer, BadAnswer, Refused, RunOver, Different):
            self._is_off = True
        if self._is_off:
            early = self._requester.early
            for step, answer in self._answers:
                early[request_key(step.operation, step.asked, step.repetitions)] = answer
        return not self._is_off

    def _follow_light(self) -> None:
        """Request expensive columns from the ONUs that have light now; `Different` if too many changed."""
        memory, layout = self._memory, self._memory.batch.layout
        lit = lit_rows(self._plan, layout, self._read, self._known)
        if lit == memory.lit:
            return
        changed = {row for row, (was, now) in enumerate(zip(memory.lit, lit, strict=True)) if was != now}
        if len(changed) > max(MOST_CHANGED, len(lit) * MOST_CHANGED_SHARE) or memory.placed:
            raise Different
        gained = [row for row in sorted(changed) if lit[row]]
        lost = changed.difference(gained)
        self._tables = {}
        for columns, steps in (self._known_tables() if memory.tables is None else memory.tables).items():
            kept = [left for step in steps if (left := without(step, lost)) is not None]
            most = max(len(step.lengths) // len(columns) for step in steps)
            kept += [self._get(columns, gained[at : at + most]) for at in range(0, len(gained), most)]
            for column in columns:
                for row in lost:
                    self._put(column, row, [None])
            if not kept:
                # No ONU of this table has light.
                raise Different
            self._tables[columns] = kept
        self._lit = lit

    def _known_tables(self) -> Tables:
        """Return the requests for expensive columns; `Different` if they cannot be changed."""
        tables: Tables = {}
        for step in (step for step in self._memory.steps if step.optical):
            if step.operation is not Operation.GET or step.guards:
                raise Different
            cells = step.cells()
            columns = tuple(dict.fromkeys(column for column, _ in map(cells.__getitem__, sorted(cells))))
            names = names_digest(step.lengths, step.kinds, b"".join(step.asked))
            if len(cells) != len(step.lengths) or len(cells) % len(columns) or names != step.names:
                # Its answer had other names, or names that belong to no ONU.
                raise Different
            tables.setdefault(columns, []).append(step)
        expensive = [place for place, column in enumerate(self._plan.columns) if column.optical]
        if sorted(column for columns in tables for column in columns) != expensive:
            raise Different
        return tables

    def _get(self, columns: Sequence[int], rows: Sequence[int]) -> Step:
        """Return a request for ONUs that have light again; `Different` if one has no usable index."""
        harvest = Harvest(self._brand, self._known)
        onus = [harvest.row_named(self._memory.batch.layout.indexes[row]) for row in rows]
        asked = oids_of([self._plan.columns[column] for column in columns], [onu for onu in onus if onu is not None])
        oids = [oid for row in asked for oid in row if oid is not None]
        if len(oids) != len(rows) * len(columns):
            raise Different
        try:
            return make_get(oids, bytes(len(oids)), [(column, row) for row in rows for column in columns])
        except ValueError as error:
            # An OID of absurd length.
            raise Different from error

    def _coverage(self) -> tuple[Coverage, ...]:
        """Return the coverage, with the ONUs that have light now."""
        layout, columns = self._memory.batch.layout, self._plan.columns
        rows = Counter(compress(zip(layout.slots, layout.ports, strict=True), self._lit))
        lines = [
            Coverage(columns[column].field, *port, Completeness.COMPLETE, count)
            for together in self._tables or ()
            for port, count in rows.items()
            for column in together
        ]
        expensive = {column.field for column in columns if column.optical}
        return (*(line for line in self._memory.collected.coverage if line.field not in expensive), *lines)

    async def _repeat(self, *, optical: bool) -> None:
        if optical and self._tables is not None:
            self._waiting.extend(step for steps in self._tables.values() for step in steps)
        else:
            self._waiting.extend(step for step in self._memory.steps if step.optical is optical)
        await self._requester.repeat(self._waiting, optical=optical, read=self._take)

    def _end(self) -> None:
        """Leave the rest to the full path."""
        self._is_off = True
        self._waiting.clear()

    def _take(self, step: Step, answer: Answer) -> int:
        """Take an answer in the cheapest safe way, and return the number of its variables."""
        if not answer.error_status and answer.digest == step.asked.digest:
            self._unchanged += 1
            self._answers.append((step, answer))
            return step.asked.answered
        is_taken = False
        try:
            is_taken = not answer.error_status and (self._parse(step, answer) or self._decode(step, answer))
        except BadAnswer:
            raise
        # A steering value, or one that the brand cannot decode: left to the full path.
        except Exception:
            self._end()
        variables = len(step.lengths) if is_taken else len(answer)
        # An answer without variables proves nothing. The request is sent again, and the full path never gets this
        # answer.
        if variables or answer.error_status:
            if not is_taken:
                self._end()
            self._answers.append((step, answer))
        return variables

    def _parse(self, step: Step, answer: Answer) -> bool:
        """Take the values without decoding the message, if it has the expected names and plain values."""
        found = answer.split(step.lengths)
        if found is None:
            return False
        names, values = found
        if step.kinds.strip(b"\0") or names_digest(step.lengths, step.kinds, names) != step.names:
            return False
        for place, value in step.guards:
            if answer.value_of(values[place]) != value:
                raise Different
        decoders = self._memory.decoders
        for column, start, stop, stride, row in step.groups():
            decoder = decoders[column]
            decoder.value_of = answer.value_of
            self._put(column, row, list(map(decoder.__getitem__, values[start:stop:stride])))
        self._parsed += 1
        return True

    def _decode(self, step: Step, answer: Answer) -> bool:
        """Take values of any type, if the answer has the expected names."""
        lengths, kinds = lengths_and_kinds(answer)
        if names_digest(lengths, kinds, b"".join(answer.oids)) != step.names:
            return False
        for place, value in step.guards:
            if answer.values[place] != value:
                raise Different
        decoders = self._memory.decoders
        for column, start, stop, stride, row in step.groups():
            self._put(
                column, row, [decode_value(decoders[column].decode, each) for each in answer.values[start:stop:stride]]
            )
        return True

    def _put(self, column: int, row: int, values: list[Any]) -> None:
        read = self._read[column]
        stop = row + len(values)
        if read[row:stop] == values:
            return
        if any(value.__class__ is str and len(value) > LONGEST_TEXT for value in values):
            # The full path cuts it, with a remark.
            raise Different
        if read is self._memory.read[column]:
            read = self._read[column] = read.copy()
        read[row:stop] = values

    def progress(self) -> Progress:
        """Return the progress of the run."""
        steps, done = len(self._memory.steps), len(self._answers)
        rows = len(self._memory.batch)
        return Progress(done, steps, rows * done // max(1, steps), self._requester.pdus)

    def collected(self) -> Collected:
        """Return the result and remember it."""
        memory, plan = self._memory, self._plan
        batch = Batch(memory.batch.layout, self._columns)
        if self._tables is not None:
            memory.follow_light(self._tables, self._lit, self._coverage())
        memory.update(self._answers, self._read, batch)
        traffic = self._requester.traffic()
        return replace(
            memory.collected,
            readings=batch,
            scalars={each.name: self._read[len(plan.columns) + place][0] for place, each in enumerate(plan.scalars)},
            traffic=replace(
                traffic,
                sizes=memory.collected.traffic.sizes,
                answers_unchanged=self._unchanged,
                answers_parsed=self._parsed,
                answers_decoded=traffic.answers_decoded - self._unchanged - self._parsed,
            ),
            learned=self._requester.learned.as_json(),
            had_values=had_values(
                plan,
                batch,
                self._known,
                answered=memory.answered,
                scalars={each.name: memory.collected.had_values.get(each.name) for each in plan.scalars},
            ),
        )

    def _finished(self) -> dict[str, list[Any]]:
        """Return the columns after the brand's rules, which are applied again to changed ONUs."""
        memory, finish = self._memory, self._brand.finish
        fields = [column.field for column in self._plan.columns]
        columns = dict(memory.batch.columns)
        changed: set[int] = set()
        for field, old, new in zip(fields, memory.read, self._read, strict=False):
            if old is new:
                continue
            if finish is None or columns.get(field) is old:
                columns[field] = new
            if finish is not None:
                changed.update(compress(count(), map(ne, old, new)))
        if finish is not None and changed:
            self._apply(finish, fields, columns, changed)
        return columns

    def _apply(
        self,
        finish: Callable[[dict[str, Any]], dict[str, Any]],
        fields: Sequence[str],
        columns: dict[str, list[Any]],
        rows: Iterable[int],
    ) -> None:
        """Apply the rules to some ONUs; `Different` if they move one or fail."""
        layout = self._memory.batch.layout
        places = {"slot": layout.slots, "port": layout.ports, "onu": layout.onus}
        own: set[str] = set()
        read = self._read[: len(fields)]
        for row in rows:
            cells = [column[row] for column in read]
            values = dict(zip(fields, cells, strict=True))
            if UNREAD in cells:
                values = {field: value for field, value in values.items() if value is not UNREAD}
            try:
                finished = finish(values)
            # As in `join`, which keeps such a row unchanged.
            except Exception as error:
                raise Different from error
            if finished.keys() & PLACES != self._memory.placed:
                raise Different
            if self._memory.placed and any(finished[field] != places[field][row] for field in self._memory.placed):
                raise Different
            for field in finished.keys() - columns.keys() - PLACES:
                columns[field] = [UNREAD] * len(layout)
            for field, column in columns.items():
                value = finished.get(field, UNREAD)
                if column[row] == value:
                    continue
                if field not in own:
                    own.add(field)
                    column = columns[field] = column.copy()
                column[row] = value
