"""What an OLT's tables cost to read, from a handful of requests, and how often that allows them to be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from facho.engine.brand import Brand, Column, IndexSpace
from facho.engine.collect.messages import describe_failure, describe_status
from facho.engine.detect.detect import Asker
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.model import Traffic
from facho.engine.oid import Oid, arcs, from_arcs, text, unpack
from facho.engine.ports import Clock, Snmp
from facho.engine.snmp import Agent, Answer, ErrorStatus, Missing, Value, Version

# Rows that are read of a table to see how long one takes. Enough to hide the network, few enough for a slow agent.
SAMPLE = 10
# The most requests spent on counting ONUs.
COUNTING = 20
# A request that brings nothing is sent this often in all: whether a table answers at all is worth one more.
TRIES = 2
# A collection may keep its OLT busy for one part in so many of its interval: other jobs and retries need the rest.
SAFETY = 3

MINUTE = timedelta(minutes=1)
USUAL = tuple(MINUTE * count for count in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440))


@dataclass(frozen=True, slots=True)
class TableCost:
    """What one table answered. `missing` are its columns that this device does not have."""

    oid: str
    fields: tuple[str, ...]
    optical: bool
    rows: int = 0
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    problem: str = ""

    @property
    def seconds_a_row(self) -> float | None:
        return self.seconds / self.rows if self.rows else None


@dataclass(frozen=True, slots=True)
class Allowed:
    """How often a job can run here: `interval` None if not even daily. `floor` is what its maker asks for."""

    name: str
    columns: tuple[str, ...]
    seconds: float
    interval: timedelta | None
    floor: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """An OLT as a few requests saw it. `onus` None: nobody can say; `onus_are_more`: counting was cut short."""

    tables: tuple[TableCost, ...]
    onus: int | None
    onus_are_more: bool = False
    allowed: tuple[Allowed, ...] = ()
    traffic: Traffic = field(default_factory=Traffic)

    def seconds_a_row(self, *, optical: bool) -> float | None:
        """Return how long one ONU takes, with all cheap columns or with all optical ones."""
        costs = [table.seconds_a_row for table in self.tables if table.optical is optical]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None


async def measure(agent: Agent, brand: Brand, *, snmp: Snmp, clock: Clock, deadline: datetime) -> Measured:
    """Ask each table of the brand for a few rows, one request at a time, and count the ONUs."""
    manners = brand.manners
    asker = Asker(agent, snmp=snmp, clock=clock, deadline=deadline, timeout=manners.timeout, tries=TRIES)
    tables = []
    for columns in _tables(brand):
        timeout = manners.optical_timeout if columns[0].optical else manners.timeout
        tables.append(await _sample(asker, columns, min(SAMPLE, manners.max_repetitions), timeout))
    onus, are_more = await _count_onus(asker, brand, tables)
    return Measured(tuple(tables), onus, are_more, tuple(_allowed(brand, tables, onus)), asker.traffic())


def _tables(brand: Brand) -> list[tuple[Column, ...]]:
    """Return the columns by the table they stand in, the dear ones last: those of a table are asked for together."""
    together: dict[tuple[bool, Oid, IndexSpace], list[Column]] = {}
    for column in brand.columns.values():
        together.setdefault((column.optical, _entry(column), column.space), []).append(column)
    return [tuple(columns) for _, columns in sorted(together.items(), key=lambda item: item[0][0])]


def _entry(column: Column) -> Oid:
    """Return the OID of the table's entry: the column's without its last number."""
    return from_arcs(arcs(column.oid)[:-1])


async def _sample(asker: Asker, columns: Sequence[Column], rows: int, timeout: float) -> TableCost:
    cost = TableCost(text(_entry(columns[0])), tuple(each.field for each in columns), columns[0].optical)
    try:
        answer = await _ask(asker, columns, rows, timeout)
    except (NoAnswer, BadAnswer) as error:
        return replace(cost, missing=cost.fields, problem=describe_failure(error))
    if answer.error_status and len(columns) > 1:
        return await _sample_each(asker, columns, timeout, cost)
    if answer.error_status and not _ends_v1(answer, asker):
        return replace(cost, missing=cost.fields, problem=describe_status(answer.error_status))
    found = _rows_by_column(columns, answer)
    missing = tuple(name for name, count in found.items() if not count)
    return replace(cost, rows=max(found.values()), seconds=asker.round_trip, missing=missing)


async def _ask(asker: Asker, columns: Sequence[Column], rows: int, timeout: float) -> Answer:
    """Ask for these columns together: for a few rows, and where that fails for one."""
    oids = [each.oid for each in columns]
    try:
        answer = await asker.get_bulk(oids, rows, timeout=timeout)
    except (NoAnswer, BadAnswer):
        return await asker.get_bulk(oids, 1, timeout=timeout)
    if answer.error_status and rows > 1:
        return await asker.get_bulk(oids, 1, timeout=timeout)
    return answer


def _ends_v1(answer: Answer, asker: Asker) -> bool:
    """Return whether this is how SNMPv1 says that nothing follows."""
    return asker.agent.version is Version.V1 and answer.error_status == ErrorStatus.NO_SUCH_NAME


def _rows_by_column(columns: Sequence[Column], answer: Answer) -> Mapping[str, int]:
    """Return how many rows of each column are in an answer, which is dealt out by position."""
    width = len(columns)
    counts = dict.fromkeys((column.field for column in columns), 0)
    for place, (oid, value) in enumerate(answer):
        column = columns[place % width]
        counts[column.field] += oid.startswith(column.oid) and not isinstance(value, Missing)
    return counts


async def _sample_each(asker: Asker, columns: Sequence[Column], timeout: float, cost: TableCost) -> TableCost:
    """Ask for one column after the other, and add up what they take: an agent may trip over only one of them."""
    ones = [await _sample(asker, [column], 1, timeout) for column in columns]
    answering = [one for one in ones if one.rows]
    return replace(
        cost,
        rows=int(bool(answering)),
        seconds=sum(one.seconds for one in answering),
        missing=tuple(name for one in ones for name in one.missing),
        problem=next((one.problem for one in ones if one.problem), ""),
    )


async def _count_onus(asker: Asker, brand: Brand, tables: Sequence[TableCost]) -> tuple[int | None, bool]:
    """Return how many ONUs there are, and whether there are more than could be counted."""
    repetitions = brand.manners.max_repetitions
    ports = brand.ports
    if ports is not None and ports.counts:
        rows, is_whole = await _first_rows(asker, ports.oid, repetitions)
        if rows and is_whole:
            counts = [value for index, value in rows.items() if ports.decode(unpack(index)) is not None]
            return sum(count for count in counts if isinstance(count, int) and count > 0), False
    column = _counted(brand, tables)
    rows, is_whole = await _first_rows(asker, column.oid, repetitions)
    onus = sum(_is_onu(column, index, value) for index, value in rows.items())
    # Not a single answer: not even that there are none.
    return (onus if rows or is_whole else None), not is_whole and bool(rows)


def _counted(brand: Brand, tables: Sequence[TableCost]) -> Column:
    """Return the column whose rows are counted: the one that decides who exists, or if that is empty another."""
    there = {name for table in tables if table.rows for name in table.fields if name not in table.missing}
    names = (*brand.discovery, *brand.columns)
    return brand.columns[next((name for name in names if name in there), brand.discovery[0])]


async def _first_rows(asker: Asker, prefix: Oid, repetitions: int) -> tuple[dict[bytes, Value], bool]:
    """Return the rows that a few requests bring, and whether they are all."""
    rows: dict[bytes, Value] = {}
    cursor = prefix
    for _ in range(COUNTING):
        try:
            answer = await asker.get_bulk([cursor], repetitions)
        except (NoAnswer, BadAnswer):
            return rows, False
        if answer.error_status or not answer.oids:
            return rows, _ends_v1(answer, asker)
        for oid, value in answer:
            if not oid.startswith(prefix) or isinstance(value, Missing):
                return rows, True
            if oid[len(prefix) :] in rows:
                # The agent goes round in circles.
                return rows, False
            rows[oid[len(prefix) :]] = value
        cursor = answer.oids[-1]
    return rows, False


def _is_onu(anchor: Column, index: bytes, value: Value) -> bool:
    try:
        place = anchor.space.decode(unpack(index))
    except ValueError:
        return False
    return place is not None and (not anchor.places or anchor.decode(value) is not None)


def _allowed(brand: Brand, tables: Sequence[TableCost], onus: int | None) -> Iterator[Allowed]:
    """Yield for each job that the maker's OLTs usually have how often it can run on this one."""
    if onus is None:
        return
    table_of = {name: table for table in tables for name in table.fields if name not in table.missing}
    for job in brand.templates:
        columns = brand.with_needed(job.columns or brand.discovery)
        # A table costs by the row, however many of its columns are asked for together.
        costs = {id(table_of[name]): table_of[name].seconds_a_row or 0.0 for name in columns if name in table_of}
        if costs:
            seconds = onus * sum(costs.values())
            yield Allowed(job.name, columns, seconds, usual_interval(seconds, floor := _floor(brand, columns)), floor)


def _floor(brand: Brand, columns: Sequence[str]) -> timedelta | None:
    floors = [brand.columns[name].floor for name in columns if name in brand.columns]
    return max((floor for floor in floors if floor is not None), default=None)


def usual_interval(seconds: float, floor: timedelta | None = None) -> timedelta | None:
    """Return the shortest usual interval in which a collection of so many seconds leaves its OLT in peace."""
    least = max(timedelta(seconds=seconds * SAFETY), floor or timedelta(0))
    return next((interval for interval in USUAL if interval >= least), None)
