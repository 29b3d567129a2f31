"""Replay of a run: the same requests again, and a comparison of the answers."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress, count
from operator import ne
from typing import Any

from facho.engine.batch import UNREAD, Batch
from facho.engine.brand import Brand
from facho.engine.collect.columns import had_values, lit_rows
from facho.engine.collect.get import oids_of
from facho.engine.collect.join import PLACES, Harvest, decode_value
from facho.engine.collect.learned import Learned
from facho.engine.collect.memory import Memory, Step, Tables, lengths_and_kinds, make_get, names_digest, without
from facho.engine.collect.plan import Plan
from facho.engine.collect.progress import Progress
from facho.engine.collect.requester import Requester, RunOver, request_key
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.model import Collected, Completeness, Coverage, JobKind, KnownOnu
from facho.engine.snmp import Answer, Operation

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
        self,
        memory: Memory,
        plan: Plan,
        kind: JobKind,
        brand: Brand,
        known: Sequence[KnownOnu],
        requester: Requester,
        learned: Learned,
    ) -> None:
        self._memory = memory
        self._plan = plan
        self._kind = kind
        self._brand = brand
        self._known = known
        self._requester = requester
        self._learned = learned
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
            self._hand_over()
        return not self._is_off

    def _hand_over(self) -> None:
        """Leave all answers to the full path."""
        early = self._requester.early
        for step, answer in self._answers:
            early[request_key(step.operation, step.asked, step.repetitions)] = answer

    def _follow_light(self) -> None:
        """Request expensive columns from the ONUs that have light now; `Different` if too many changed."""
        memory, layout = self._memory, self._memory.batch.layout
        lit = lit_rows(self._plan, self._kind, layout, self._read, self._known)
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
            learned=self._learned.as_json(),
            had_values=had_values(
                plan,
                self._kind,
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
