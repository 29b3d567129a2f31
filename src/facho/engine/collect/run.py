"""One node on one OLT, from plan to harvest."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from facho.engine.brand import Brand, Column, Decoder, Position
from facho.engine.collect.batches import BatchReader
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.coverage import ColumnCoverage, absent, missing_by_count
from facho.engine.collect.harvest import Harvest, Row, decode_value
from facho.engine.collect.learned import Learned
from facho.engine.collect.plan import Plan, groups, make_plan
from facho.engine.collect.requester import Requester, RunOver
from facho.engine.collect.rows import DARK, Turn
from facho.engine.collect.sentences import describe_gaps, describe_stop, limited
from facho.engine.collect.size import Size
from facho.engine.collect.tables import Table, table_name
from facho.engine.errors import FachoError, LeaseLost, OltUnreachable, Refused
from facho.engine.model import Collected, Completeness, Coverage, JobKind, KnownOnu, Node, Olt, Reading
from facho.engine.ports import Clock, Snmp

logger = logging.getLogger(__name__)

NOBODY_KNOWN = "no ONU of this OLT is known yet: a discovery has to find them first"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: parts that are done (ports of a table, or ONUs), rows that were read, requests that were sent.

    `ports` is None as long as nobody can say how many there are.
    """

    ports_done: int
    ports: int | None
    rows: int
    pdus: int


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
) -> Collected:
    """Read what the node asks for, and return what there is of it by the deadline.

    `OltUnreachable` if the OLT answered nothing at all, `Refused` if it does
    not accept us. Anything less leaves a harvest that says what is missing.
    """
    plan = make_plan(node, brand, raw_decoders)
    if plan.is_empty:
        return Collected(Completeness.PARTIAL, errors=tuple(limited(plan.problems)))
    requester = Requester(snmp, olt, brand.manners, clock=clock, deadline=deadline)
    run = Run(plan, node.kind, brand, known, requester, Learned(olt.learned))
    if watch is not None:
        requester.on_answer = lambda: watch(run.progress())
    try:
        await run.read()
        if requester.is_disowned and not requester.answers:
            raise LeaseLost("the lease of the OLT was over before it answered anything")
        if requester.pdus and not requester.answers:
            raise _unreachable(olt, requester)
    except FachoError as error:
        error.traffic = requester.traffic()
        raise
    return run.collected()


def _unreachable(olt: Olt, requester: Requester) -> OltUnreachable:
    requests = "1 request" if requester.pdus == 1 else f"{requester.pdus} requests"
    return OltUnreachable(
        f"{olt.name} gave no answer to {requests} in {requester.seconds:.1f} s. "
        "Check its address and its community, and that it lets this machine ask."
    )


class Run:
    """A plan being carried out. However it ends, `collected` has every row that was read."""

    def __init__(
        self,
        plan: Plan,
        kind: JobKind,
        brand: Brand,
        known: Sequence[KnownOnu],
        requester: Requester,
        learned: Learned,
    ) -> None:
        self._plan = plan
        self._kind = kind
        self._brand = brand
        self._known = known
        self._requester = requester
        self._learned = learned
        self._harvest = Harvest(brand, known)
        # A handful at most: there is nothing to learn from them.
        self._scalars = BatchReader(requester, Size(brand.manners.rows_per_get, 1), learned)
        self._tables: list[Table] = []
        self._turns: list[Turn] = []
        self._covered: list[ColumnCoverage] = []
        # How many ONUs the ports count, of those that have any.
        self._counts: dict[Position, int] = {}
        self._strangers: list[str] = []
        # Columns whose turn has come, whatever came of it.
        self._begun: set[Column] = set()
        self._cut = ""

    async def read(self) -> None:
        """Ask until everything is read or the run is over."""
        try:
            await self._scalars.read([(scalar.oid,) for scalar in self._plan.scalars])
            await self._read_columns()
            if not self._requester.pdus:
                # Nobody known, or all of them dark: that there is nothing to ask must not pass for an answer.
                await self._requester.check_alive()
        except RunOver as over:
            self._cut = str(over)
        except Refused:
            if not self._requester.answers:
                raise
            self._cut = "the OLT no longer accepts us"

    async def _read_columns(self) -> None:
        """Read cheap columns first: they are safe when the time runs out, and tell which ONUs are worth more."""
        columns = self._plan.columns
        by_index = [column for column in columns if self._kind is JobKind.GET and column.space.by_index]
        onus = self._known_rows() if self._kind is JobKind.GET else []
        await self._ask([column for column in by_index if not column.optical], onus)
        await self._ask_lit([column for column in by_index if column.optical], onus)
        rest = [column for column in columns if column not in by_index]
        if self._plan.anchor is not None:
            await self._count_onus()
        for group in groups(rest, self._kind):
            # A table that was asked for one column at a time is read as it was asked for.
            onus = self._found() if group[0].optical and self._kind is not JobKind.WALK else []
            if onus and group[0].space.by_index:
                await self._ask_lit(group, onus)
            else:
                await self._walk(group)

    def _known_rows(self) -> list[Row]:
        """Return a row for each ONU of the inventory that is there, and note whose index cannot be one."""
        rows = []
        # One that is missing keeps what was last read of it, until a discovery finds it again.
        for onu in (each for each in self._known if not each.is_missing):
            row = self._harvest.row_named(onu.index)
            if row is None:
                self._strangers.append(
                    f"{onu.index} is not the index of an ONU of {self._brand.label}, so it was not asked"
                )
            else:
                rows.append(row)
        return rows

    def _found(self) -> list[Row]:
        """Return the ONUs that this run has read so far; if it has not looked for any, those that are known."""
        if not self._tables:
            return self._known_rows()
        self._store_tables()
        return list(self._harvest.rows)

    async def _ask(self, columns: Sequence[Column], onus: Sequence[Row]) -> None:
        self._begun |= set(columns)
        if columns and onus:
            optical = columns[0].optical
            turn = Turn(columns, onus, self._reader(table_name(columns), optical=optical))
            self._turns.append(turn)
            await turn.read()

    async def _ask_lit(self, columns: Sequence[Column], onus: Sequence[Row]) -> None:
        """Ask dear columns only of ONUs that may have an answer; of the others it is known without asking."""
        states = {onu.index: onu.state for onu in self._known}
        lit = []
        for row in onus:
            if row.values.get("state", states.get(row.index)) not in DARK:
                lit.append(row)
                continue
            for column in columns:
                self._harvest.add_value(row, column, None)
        await self._ask(columns, lit)

    async def _walk(self, group: Sequence[Column]) -> None:
        self._begun |= set(group)
        places = (self._harvest.place_of(onu.index) for onu in self._known)
        table = Table(
            group,
            self._brand.manners,
            requester=self._requester,
            learned=self._learned,
            known=[place for place in places if place is not None],
            ports=self._counts,
            join=self._join,
        )
        self._tables.append(table)
        await table.read()

    def _join(self, walk: ColumnWalk) -> None:
        """Put a part of a column into the harvest that has been read to its end."""
        walk.joined = self._harvest.add_column(walk.column, walk.rows)

    async def _count_onus(self) -> None:
        """Read how many ONUs each port has, where the maker's ports count them."""
        ports = self._brand.ports
        if ports is None or not ports.counts:
            return
        column = Column("ports", ports.oid, lambda value: value, self._brand.space)
        table = Table([column], self._brand.manners, requester=self._requester, learned=self._learned)
        await table.read(whole=True)
        for index, count in table.rows():
            port = ports.decode(index)
            if port is not None and isinstance(count, int) and count > 0:
                self._counts[port] = count

    def _reader(self, table: str, *, optical: bool) -> BatchReader:
        size = self._learned.size(f"get {table}", self._brand.manners.rows_per_get)
        return BatchReader(self._requester, size, self._learned, optical=optical)

    def _store_tables(self) -> None:
        """Put what the tables have into the harvest, each once."""
        stored = {covered.column for covered in self._covered}
        new = []
        for table in self._tables:
            for place, column in enumerate(table.columns):
                if column not in stored:
                    new.append(ColumnCoverage(column, [part[place] for part in table.parts], self._harvest))
        for covered in new:
            covered.store()
            covered.note_strangers()
        self._covered += new

    def progress(self) -> Progress:
        """Return how far the run is."""
        rows = sum(max(map(len, ([walk.rows for walk in part]))) for table in self._tables for part in table.parts)
        # Rows that are asked for by their index are those that were walked before, or those that are known.
        rows = rows or max((turn.done for turn in self._turns), default=0)
        done = sum(table.parts_done for table in self._tables) + sum(turn.done for turn in self._turns)
        parts = sum(len(table.parts) for table in self._tables) + sum(len(turn.onus) for turn in self._turns)
        return Progress(done, parts if self._turns or parts > len(self._tables) else None, rows, self._requester.pdus)

    def collected(self) -> Collected:
        """Return the harvest."""
        cuts = [*self._plan.problems, *self._strangers]
        remarks: list[str] = []
        scalars = self._decode_scalars(cuts, remarks)
        for table in self._tables:
            table.stop(self._cut)
        self._store_tables()
        for turn in self._turns:
            cuts += turn.store(self._harvest, self._cut)
        if self._kind is JobKind.GET and not self._known:
            remarks.append(NOBODY_KNOWN)
        anchor = self._anchor()
        for covered in self._covered:
            cuts += covered.sentences()
        cuts += describe_gaps(self._failures())
        if anchor is not None:
            cuts += missing_by_count(anchor, self._counts)
        for covered in self._covered:
            covered.fill()
        cuts += [describe_stop(column.field, self._cut, None, 0) for column in self._unbegun()]
        readings = self._harvest.readings(self._only(anchor))
        return Collected(
            completeness=self._completeness(is_cut=bool(cuts), has_rows=bool(readings)),
            readings=readings,
            scalars=scalars,
            traffic=replace(self._requester.traffic(), sizes=self._learned.sizes),
            errors=(*limited(cuts), *remarks, *self._harvest.remarks()),
            coverage=self._coverage(),
            failed_onus=self._failed_onus(),
            absent=self._absent(anchor, readings),
            learned=self._learned.as_json(),
        )

    def _unbegun(self) -> list[Column]:
        """Return the columns that the run did not come to."""
        return [column for column in self._plan.columns if self._cut and column not in self._begun]

    def _anchor(self) -> ColumnCoverage | None:
        return next((covered for covered in self._covered if covered.column is self._plan.anchor), None)

    def _only(self, anchor: ColumnCoverage | None) -> set[Row] | None:
        """Return the ONUs that the run is about; None if that is whatever it found."""
        if self._kind is JobKind.GET:
            # A GET is about known ONUs, even where a column of it had to be walked.
            return {row for onu in self._known if (row := self._harvest.row_named(onu.index)) is not None}
        if anchor is None:
            return None
        if not anchor.rows and not anchor.broken and any(covered.rows for covered in self._covered):
            self._harvest.remark(f"{anchor.column.field}: no row of it, so the ONUs are those of the other columns")
            return None
        # Where the anchor could not be read, the other columns are all there is.
        unlisted = {row for row in self._harvest.rows if not anchor.would_have_seen(row.place)}
        return unlisted | set(anchor.rows)

    def _absent(self, anchor: ColumnCoverage | None, readings: Sequence[Reading]) -> tuple[str, ...]:
        if anchor is None:
            return ()
        return absent(anchor, self._known, self._harvest, {reading.index for reading in readings})

    def _completeness(self, *, is_cut: bool, has_rows: bool) -> Completeness:
        if is_cut:
            return Completeness.PARTIAL
        return Completeness.COMPLETE if has_rows or not self._plan.columns else Completeness.EMPTY

    def _coverage(self) -> tuple[Coverage, ...]:
        lines = [line for covered in self._covered for line in covered.entries()]
        lines += [line for turn in self._turns for line in turn.coverage()]
        missing = Completeness.PARTIAL
        lines += [Coverage(each.field, None, None, missing, reason=self._cut) for each in self._unbegun()]
        return tuple(lines)

    def _failed_onus(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(onu for _, onu, _ in self._failures()))

    def _failures(self) -> list[tuple[str, str, str]]:
        """Return the values that could not be read: column, ONU, reason."""
        parts: list[ColumnCoverage | Turn] = [*self._covered, *self._turns]
        return [failure for part in parts for failure in part.failures]

    def _decode_scalars(self, cuts: list[str], remarks: list[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for scalar in self._plan.scalars:
            if scalar.oid not in self._scalars.values:
                cuts.append(f"{scalar.name}: {self._scalars.failed.get(scalar.oid, self._cut)}")
                continue
            try:
                values[scalar.name] = decode_value(scalar.decode, self._scalars.values[scalar.oid])
            # An admin's OID may have a type that its decoder does not expect; that costs this value, not the run.
            except Exception as error:
                logger.warning("%s could not be decoded", scalar.name, exc_info=error)
                remarks.append(f"{scalar.name}: could not be decoded")
        return values
