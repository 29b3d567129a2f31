"""Collection of one node on one OLT, from plan to result."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from facho.engine.batch import UNREAD, Batch
from facho.engine.brand import Brand, Column, Decoder, Position
from facho.engine.collect.coverage import ColumnCoverage, missing_by_count
from facho.engine.collect.flow import Size
from facho.engine.collect.get import BatchReader, RowTurn
from facho.engine.collect.join import Harvest, OnuRow
from facho.engine.collect.learned import Learned
from facho.engine.collect.messages import Stop, describe_gaps, describe_left, describe_stops, limited
from facho.engine.collect.plan import DARK, Plan, decode_value, groups, had_values, make_plan
from facho.engine.collect.progress import Progress
from facho.engine.collect.replay import Memory, Replay
from facho.engine.collect.requester import Requester, RunOver
from facho.engine.collect.tables import Table, table_name
from facho.engine.errors import FachoError, LeaseLost, OltUnreachable, Refused
from facho.engine.limits import MOST_ONUS, ROWS_PER_ONU
from facho.engine.model import Collected, Completeness, Coverage, JobKind, KnownOnu, Node, Olt, Reading
from facho.engine.oid import Oid, pack
from facho.engine.ports import Clock, Snmp
from facho.engine.snmp import Missing

logger = logging.getLogger(__name__)

NOBODY_KNOWN = "no ONU of this OLT is known yet: run a discovery first"


async def collect(
    node: Node,
    olt: Olt,
    brand: Brand,
    *,
    snmp: Snmp,
    clock: Clock,
    deadline: datetime,
    known: Sequence[KnownOnu],
    raw_decoders: Mapping[str, Decoder],
    watch: Callable[[Progress], None] | None = None,
    memory: Memory | None = None,
    most_onus: int = MOST_ONUS,
) -> Collected:
    """Read the columns of a node, as far as possible before the deadline.

    Raises `OltUnreachable` without any answer and `Refused` if access is denied. Otherwise the result lists the
    missing parts. With the memory of the last run, only changed values are decoded.
    """
    plan = make_plan(node, brand, raw_decoders)
    if not (plan.columns or plan.scalars):
        return Collected(Completeness.PARTIAL, errors=tuple(limited(plan.problems)))
    learned = Learned(olt.learned)
    requester = Requester(snmp, olt, brand.manners, learned=learned, clock=clock, deadline=deadline)
    try:
        if memory is not None:
            requester.trace = []
            if memory.is_usable(plan, olt, brand, known):
                replay = Replay(memory, plan, brand, known, requester)
                requester.on_answer = None if watch is None else lambda: watch(replay.progress())
                if await replay.read():
                    return replay.collected()
        run = Run(plan, brand, known, requester, most_onus)
        requester.on_answer = None if watch is None else lambda: watch(run.progress())
        await run.read()
        if requester.is_disowned and not requester.answers:
            raise LeaseLost("the lease of the OLT expired before the first answer")
        if requester.pdus and not requester.answers:
            raise OltUnreachable.after(olt.name, requester.pdus, requester.seconds)
    except FachoError as error:
        error.traffic = requester.traffic()
        raise
    collected = run.collected()
    if memory is not None and collected.completeness is Completeness.COMPLETE:
        collected = run.remember(memory, olt, collected)
    return collected


class Run:
    """A plan in progress. In every case `collected` returns all rows read so far."""

    def __init__(
        self,
        plan: Plan,
        brand: Brand,
        known: Sequence[KnownOnu],
        requester: Requester,
        most_onus: int = MOST_ONUS,
    ) -> None:
        self._plan = plan
        self._most_onus = most_onus
        self._kind = plan.kind
        self._brand = brand
        self._known = known
        self._requester = requester
        self._learned = requester.learned
        self._harvest = Harvest(brand, known, most_onus)
        # Only a few values, so nothing is learned from them.
        self._scalars = BatchReader(requester, Size(brand.manners.rows_per_get, 1))
        self._tables: list[Table] = []
        self._turns: list[RowTurn] = []
        # Number of turns in the harvest, and messages about unread values.
        self._stored_turns = 0
        self._unasked: list[str] = []
        self._covered: list[ColumnCoverage] = []
        # Number of ONUs reported by each port, without empty ports.
        self._counts: dict[Position, int] = {}
        self._counting: Table | None = None
        self._strangers: list[str] = []
        # Indexes of known ONUs that a walk did not list and a GET reported as missing.
        self._denied: set[str] = set()
        # Columns that were started.
        self._begun: set[Column] = set()
        self._cut = ""

    async def read(self) -> None:
        """Read until everything is read or the run is over."""
        try:
            await self._scalars.read([(scalar.oid,) for scalar in self._plan.scalars])
            await self._read_columns()
            await self._confirm_absent()
            if not self._requester.pdus:
                # No known ONU, or all are dark: an empty list of requests must not count as an answer.
                await self._requester.check_alive()
        except RunOver as over:
            self._cut = str(over)
        except Refused:
            if not self._requester.answers:
                raise
            self._cut = "the OLT started to refuse access"

    async def _read_columns(self) -> None:
        """Read cheap columns first: they are complete if time runs out, and show which ONUs have light."""
        columns = self._plan.columns
        by_index = [column for column in columns if self._kind is JobKind.GET and column.space.by_index]
        onus = self._known_rows() if self._kind is JobKind.GET else []
        await self._ask([column for column in by_index if not column.optical], onus)
        await self._ask_lit([column for column in by_index if column.optical], onus)
        rest = [column for column in columns if column not in by_index]
        if self._plan.anchor is not None:
            await self._count_onus()
        for group in groups(rest, self._kind):
            onus = []
            # A table that was read one column at a time is treated as such.
            if group[0].optical and self._kind is not JobKind.WALK:
                self._store_tables()
                # Without a walk, the run did not look for ONUs: the known ones count.
                onus = self._harvest.rows if self._tables else self._known_rows()
            if onus and group[0].space.by_index:
                await self._ask_lit(group, onus)
            else:
                self._begun |= set(group)
                places = (self._harvest.place_of(onu.index) for onu in self._known)
                known = [place for place in places if place is not None]
                table = Table(
                    group,
                    self._requester,
                    known=known,
                    ports=self._counts,
                    harvest=self._harvest,
                    most_rows=self._most_onus * ROWS_PER_ONU,
                )
                self._tables.append(table)
                await table.read()

    def _known_rows(self) -> list[OnuRow]:
        """Return a row for each present ONU of the inventory, and record invalid indexes."""
        rows = []
        # A missing ONU keeps its last values until a discovery finds it again.
        for onu in (each for each in self._known if not each.is_missing):
            row = self._harvest.row_named(onu.index)
            if row is None:
                self._strangers.append(f"{onu.index} is not a valid ONU index of {self._brand.label}; it was not read")
            else:
                rows.append(row)
        return rows

    async def _ask(self, columns: Sequence[Column], onus: Sequence[OnuRow]) -> None:
        self._begun |= set(columns)
        if columns and onus:
            size = self._learned.size(f"get {table_name(columns)}", self._brand.manners.rows_per_get)
            reader = BatchReader(self._requester, size, optical=columns[0].optical)
            turn = RowTurn(columns, onus, reader)
            self._turns.append(turn)
            await turn.read()
            # Now and not at the end, because the states decide which ONUs are read next.
            self._store_turns()

    async def _ask_lit(self, columns: Sequence[Column], onus: Sequence[OnuRow]) -> None:
        """Read expensive columns only from ONUs with light."""
        states = {onu.index: onu.state for onu in self._known}
        lit = []
        for row in onus:
            state = row.values.get("state")
            # Without a state in this run, the earlier one counts.
            if (states.get(row.index) if state is None else state) not in DARK:
                lit.append(row)
                continue
            for column in columns:
                self._harvest.add_value(row, column, None)
        await self._ask(columns, lit)

    async def _count_onus(self) -> None:
        """Read the number of ONUs per port, if the brand's ports report it."""
        ports = self._brand.ports
        if ports is None or not ports.counts:
            return
        column = Column("ports", ports.oid, lambda value: value, self._brand.space)
        self._counting = table = Table([column], self._requester)
        await table.read(whole=True)
        for index, count in table.rows():
            port = ports.decode(index)
            if port is not None and isinstance(count, int) and count > 0:
                self._counts[port] = count

    async def _confirm_absent(self) -> None:
        """Request by GET the ONUs that an incomplete walk did not list.

        An agent with unordered rows may list them after an unreadable row.
        """
        self._store_tables()
        anchor = self._anchor()
        if anchor is None or anchor.is_whole or not anchor.column.space.by_index:
            return
        listed = {row.index for row in anchor.rows}
        oids: dict[str, Oid] = {}
        for onu in self._known:
            place = self._harvest.place_of(onu.index)
            if onu.is_missing or onu.index in listed or place is None or not anchor.would_have_seen(place):
                continue
            with suppress(ValueError):
                oids[onu.index] = Oid(anchor.column.oid + pack(anchor.column.space.encode(place)))
        reader = BatchReader(self._requester, Size(self._brand.manners.rows_per_get, 1))
        await reader.read([(oid,) for oid in oids.values()])
        self._denied = {index for index, oid in oids.items() if isinstance(reader.values.get(oid), Missing)}

    def _store_tables(self) -> None:
        """Add the rows of the tables to the harvest, each once."""
        stored = {covered.column for covered in self._covered}
        for table in self._tables:
            for place, column in enumerate(table.columns):
                if column not in stored:
                    covered = ColumnCoverage(column, [part[place] for part in table.parts], self._harvest)
                    covered.store()
                    self._covered.append(covered)

    def _store_turns(self) -> None:
        """Add the values read by index to the harvest, each turn once."""
        for turn in self._turns[self._stored_turns :]:
            self._unasked += turn.store(self._harvest, self._cut)
        self._stored_turns = len(self._turns)

    def progress(self) -> Progress:
        """Return the progress of the run."""
        rows = sum(max(map(len, ([walk.rows for walk in part]))) for table in self._tables for part in table.parts)
        # Rows read by index were walked before or are known, so they are not counted twice.
        rows = rows or max((turn.done for turn in self._turns), default=0)
        done = sum(table.parts_done for table in self._tables) + sum(turn.done for turn in self._turns)
        parts = sum(len(table.parts) for table in self._tables) + sum(len(turn.onus) for turn in self._turns)
        return Progress(done, parts if self._turns or parts > len(self._tables) else None, rows, self._requester.pdus)

    def collected(self) -> Collected:
        """Return the result."""
        cuts = [*self._plan.problems, *self._strangers]
        remarks: list[str] = []
        scalars, had_scalars = self._decode_scalars(cuts, remarks)
        for table in self._tables:
            table.stop(self._cut)
        self._store_tables()
        self._store_turns()
        cuts += self._unasked
        if self._kind is JobKind.GET and not self._known:
            remarks.append(NOBODY_KNOWN)
        anchor = self._anchor()
        unread = [column for column in self._plan.columns if self._cut and column not in self._begun]
        stops = [stop for covered in self._covered for stop in covered.stops()]
        stops += [Stop(column.field, self._cut) for column in unread]
        cuts += describe_stops(stops, self._cut)
        cuts += describe_left(gap for covered in self._covered for gap in covered.left)
        # Values that could not be read: column, ONU, reason.
        failures = [failure for covered in self._covered for failure in covered.failures]
        failures += [failure for turn in self._turns for failure in turn.failures]
        cuts += describe_gaps(failures)
        if anchor is not None:
            cuts += missing_by_count(anchor, self._counts)
        cuts += self._harvest.refusals()
        for covered in self._covered:
            covered.fill()
        coverage = [line for covered in self._covered for line in covered.entries()]
        coverage += [line for turn in self._turns for line in turn.coverage()]
        coverage += [Coverage(column.field, None, None, Completeness.PARTIAL, reason=self._cut) for column in unread]
        readings = Batch.of(self._of_known_onus(self._harvest.readings(self._only(anchor))))
        completeness = Completeness.COMPLETE if readings or not self._plan.columns else Completeness.EMPTY
        absent: list[str] = []
        if anchor is not None:
            found = set(readings.layout.indexes)
            unlisted = [onu.index for onu in self._known if onu.index not in found]
            absent = [index for index in unlisted if anchor.would_have_seen(self._harvest.place_of(index))]
            if not anchor.is_whole:
                absent = [index for index in absent if index in self._denied]
        return Collected(
            completeness=Completeness.PARTIAL if cuts else completeness,
            readings=readings,
            scalars=scalars,
            traffic=replace(self._requester.traffic(), sizes=self._learned.sizes),
            errors=(*limited(cuts), *remarks, *self._harvest.remarks()),
            coverage=tuple(coverage),
            failed_onus=tuple(dict.fromkeys(onu for _, onu, _ in failures)),
            absent=tuple(absent),
            is_whole=anchor is not None and anchor.is_whole and not anchor.broken and bool(readings),
            learned=self._learned.as_json(),
            excess=self._harvest.excess,
            had_values=had_values(
                self._plan,
                readings,
                self._known,
                answered=self._harvest.answered,
                scalars=had_scalars,
                is_cut=bool(cuts),
            ),
        )

    def remember(self, memory: Memory, olt: Olt, collected: Collected) -> Collected:
        """Remember a complete run for the next one, unless it had problems.

        Returns the result, reusing every list that is equal to that of the last run.
        """
        batch = collected.batch.sharing(memory.batch)
        collected = replace(collected, readings=batch)
        cells = self._cells(batch.layout.indexes, collected.scalars)
        if cells is None or self._requester.trace is None:
            memory.forget()
            return collected
        rows = {row.index: row for row in self._harvest.rows}
        read: list[list[Any]] = [
            [rows[index].values.get(column.field, UNREAD) for index in batch.layout.indexes]
            for column in self._plan.columns
        ]
        read += [[collected.scalars[scalar.name]] for scalar in self._plan.scalars]
        memory.keep(
            self._plan,
            olt,
            self._brand,
            self._known,
            collected=collected,
            trace=self._requester.trace,
            cells=cells,
            guarded=self._steering_names(),
            read=read,
            answered=self._harvest.answered,
            placed=self._harvest.placed,
        )
        return collected

    def _cells(self, indexes: Sequence[str], decoded: Mapping[str, Any]) -> dict[Oid, tuple[int, int]] | None:
        """Return the column and row of each name; None if another run could need more than that."""
        columns, scalars = self._plan.columns, self._plan.scalars
        places = {index: place for place, index in enumerate(indexes)}
        # A serial decides whether an ONU at a doubtful place is in the result.
        is_unsure = self._kind is not JobKind.DISCOVERY and any(onu.misses or onu.is_missing for onu in self._known)
        if (
            self._requester.has_telling_errors
            or tuple(self._learned.poisoned)
            or not self._harvest.is_plain
            or not all(scalar.name in decoded for scalar in scalars)
            or any(table.was_repeated for table in self._tables)
            or len({each.field for each in columns}) < len(columns)
            # ONUs outside the result: their values decide what is requested, and may be undecodable.
            or any(row.index not in places for row in self._harvest.rows)
            or (is_unsure and any(each.field in ("serial", "mac") for each in columns))
        ):
            return None
        found = {
            (name, (number, places[row.index]))
            for number, column in enumerate(columns)
            if not column.places
            for name, row in self._names_of(column)
            if row.index in places
        }
        found |= {(scalar.oid, (len(columns) + place, 0)) for place, scalar in enumerate(scalars)}
        cells = dict(found)
        # Two names for one value would depend on their order. Of two columns with one OID only one would get new
        # values.
        return cells if len(set(cells.values())) == len(cells) == len(found) else None

    def _names_of(self, column: Column) -> Iterator[tuple[Oid, OnuRow]]:
        """Return each name of a column and its ONU."""
        for table in self._tables:
            for place, each in enumerate(table.columns):
                if each is column:
                    for index in (index for part in table.parts for index in part[place].rows):
                        row = self._harvest.row_of(column.space, index)
                        if row is not None:
                            yield Oid(column.oid + index), row
        for turn in self._turns:
            yield from turn.names_of(column)

    def _steering_names(self) -> Iterator[Oid]:
        """Return names whose values decide what is requested, or the place of an ONU."""
        tables = [(table, place) for table in self._tables for place, each in enumerate(table.columns) if each.places]
        tables += [(self._counting, 0)] if self._counting else []
        for table, place in tables:
            for part in table.parts:
                yield from (Oid(part[place].column.oid + index) for index in part[place].rows)
        for turn in self._turns:
            for column in turn.columns:
                if column.places:
                    yield from (name for name, _ in turn.names_of(column))

    def _anchor(self) -> ColumnCoverage | None:
        return next((covered for covered in self._covered if covered.column is self._plan.anchor), None)

    def _only(self, anchor: ColumnCoverage | None) -> set[OnuRow] | None:
        """Return the ONUs of the run; None if these are all that it found."""
        if self._kind is JobKind.GET:
            # A GET covers known ONUs, even if a column had to be walked.
            return {row for onu in self._known if (row := self._harvest.row_named(onu.index)) is not None}
        if anchor is None:
            return None
        has_others = any(covered.rows for covered in self._covered) or any(turn.has_values for turn in self._turns)
        if not anchor.rows and not anchor.broken and has_others:
            self._harvest.remark(f"{anchor.column.field}: it has no rows; the ONUs come from the other columns")
            return None
        # If the anchor could not be read, only the other columns are left.
        unlisted = {row for row in self._harvest.rows if not anchor.would_have_seen(row.place)}
        return unlisted | set(anchor.rows)

    def _of_known_onus(self, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
        """Return the readings without those that may belong to another ONU than the known one with that index.

        The last discovery did not find the known ONU, so another may have its place. Only a serial or a MAC proves
        it.
        """
        unsure = {onu.index for onu in self._known if onu.misses or onu.is_missing}
        if self._kind is JobKind.DISCOVERY or not unsure:
            return readings
        return tuple(
            each for each in readings if each.index not in unsure or each.values.get("serial") or each.values.get("mac")
        )

    def _decode_scalars(self, cuts: list[str], remarks: list[str]) -> tuple[dict[str, Any], dict[str, bool | None]]:
        """Return the values of the scalars, and whether each had one; None: it was not read."""
        values: dict[str, Any] = {}
        had: dict[str, bool | None] = {}
        for scalar in self._plan.scalars:
            if scalar.oid not in self._scalars.values:
                cuts.append(f"{scalar.name}: {self._scalars.failed.get(scalar.oid, self._cut)}")
                had[scalar.name] = None
                continue
            value = self._scalars.values[scalar.oid]
            had[scalar.name] = value is not None and value.__class__ is not Missing
            try:
                values[scalar.name] = decode_value(scalar.decode, value)
            # An unexpected type in an admin's OID costs this value, not the run.
            except Exception as error:
                logger.warning("%s could not be decoded", scalar.name, exc_info=error)
                remarks.append(f"{scalar.name}: could not be decoded")
        return values, had
