"""Cost of reading an OLT's tables, measured with a few requests, and the intervals that it allows."""

from collections.abc import Iterator, Sequence
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

# Rows to read per table: enough to hide the network, few enough for a slow agent.
SAMPLE = 10
# Maximum number of requests for counting ONUs.
COUNTING = 20
# Attempts per request, because a lost packet must not make a table look unsupported.
TRIES = 2
# A collection may take one part in this many of its interval; other jobs and retries need the rest.
SAFETY = 3

MINUTE = timedelta(minutes=1)
USUAL = tuple(MINUTE * count for count in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440))


@dataclass(frozen=True, slots=True)
class TableCost:
    """Measurement of one table. `missing` are columns that this device does not have."""

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
    """Shortest interval of a job: `interval` None if not even daily. `floor` is the minimum of the brand."""

    name: str
    columns: tuple[str, ...]
    seconds: float
    interval: timedelta | None
    floor: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurement of an OLT. `onus` None: unknown; `onus_are_more`: counting was cut short."""

    tables: tuple[TableCost, ...]
    onus: int | None
    onus_are_more: bool = False
    allowed: tuple[Allowed, ...] = ()
    traffic: Traffic = field(default_factory=Traffic)

    def seconds_a_row(self, *, optical: bool) -> float | None:
        """Return the time per ONU, with all cheap columns or with all optical ones."""
        costs = [table.seconds_a_row for table in self.tables if table.optical is optical]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None


async def measure(agent: Agent, brand: Brand, *, snmp: Snmp, clock: Clock, deadline: datetime) -> Measured:
    """Request a few rows of each table, one request at a time, and count the ONUs."""
    manners = brand.manners
    asker = Asker(agent, snmp=snmp, clock=clock, deadline=deadline, timeout=manners.timeout, tries=TRIES)
    # Columns of a table share a request. Expensive ones come last.
    together: dict[tuple[bool, Oid, IndexSpace], list[Column]] = {}
    for column in brand.columns.values():
        together.setdefault((column.optical, _entry(column), column.space), []).append(column)
    tables = []
    for _, columns in sorted(together.items(), key=lambda item: item[0][0]):
        timeout = manners.optical_timeout if columns[0].optical else manners.timeout
        tables.append(await _sample(asker, columns, min(SAMPLE, manners.max_repetitions), timeout))
    onus, are_more = await _count_onus(asker, brand, tables)
    return Measured(tuple(tables), onus, are_more, tuple(_allowed(brand, tables, onus)), asker.traffic())


def _entry(column: Column) -> Oid:
    """Return the OID of the table entry: that of the column without its last number."""
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
    found = dict.fromkeys(cost.fields, 0)
    for place, (oid, value) in enumerate(answer):
        # Variables are assigned by position.
        column = columns[place % len(columns)]
        found[column.field] += oid.startswith(column.oid) and not isinstance(value, Missing)
    missing = tuple(name for name, count in found.items() if not count)
    return replace(cost, rows=max(found.values()), seconds=asker.round_trip, missing=missing)


async def _ask(asker: Asker, columns: Sequence[Column], rows: int, timeout: float) -> Answer:
    """Request these columns together: a few rows, and one row if that fails."""
    oids = [each.oid for each in columns]
    try:
        answer = await asker.get_bulk(oids, rows, timeout=timeout)
    except (NoAnswer, BadAnswer):
        return await asker.get_bulk(oids, 1, timeout=timeout)
    if answer.error_status and rows > 1:
        return await asker.get_bulk(oids, 1, timeout=timeout)
    return answer


def _ends_v1(answer: Answer, asker: Asker) -> bool:
    """Return whether this is the SNMPv1 error for the end of the MIB."""
    return asker.agent.version is Version.V1 and answer.error_status == ErrorStatus.NO_SUCH_NAME


async def _sample_each(asker: Asker, columns: Sequence[Column], timeout: float, cost: TableCost) -> TableCost:
    """Request one column after the other and add up the times: the agent may fail on only one of them."""
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
    """Return the number of ONUs, and whether there are more than could be counted."""
    repetitions = brand.manners.max_repetitions
    ports = brand.ports
    if ports is not None and ports.counts:
        rows, is_whole = await _first_rows(asker, ports.oid, repetitions)
        if rows and is_whole:
            counts = [value for index, value in rows.items() if ports.decode(unpack(index)) is not None]
            return sum(count for count in counts if isinstance(count, int) and count > 0), False
    # The column that decides which ONUs exist, or another one if it is empty.
    there = {name for table in tables if table.rows for name in table.fields if name not in table.missing}
    names = (name for name in (*brand.discovery, *brand.columns) if name in there)
    column = brand.columns[next(names, brand.discovery[0])]
    rows, is_whole = await _first_rows(asker, column.oid, repetitions)
    onus = sum(_is_onu(column, index, value) for index, value in rows.items())
    # No answer at all does not mean that there are none.
    return (onus if rows or is_whole else None), not is_whole and bool(rows)


async def _first_rows(asker: Asker, prefix: Oid, repetitions: int) -> tuple[dict[bytes, Value], bool]:
    """Return the rows from a few requests, and whether these are all."""
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
                # The agent loops.
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
    """Yield the shortest interval on this OLT for each usual job of the brand."""
    if onus is None:
        return
    table_of = {name: table for table in tables for name in table.fields if name not in table.missing}
    for job in brand.templates:
        columns = brand.with_needed(job.columns or brand.discovery)
        # A table costs per row, for any number of columns in a request.
        costs = {id(table_of[name]): table_of[name].seconds_a_row or 0.0 for name in columns if name in table_of}
        if costs:
            seconds = onus * sum(costs.values())
            floors = [brand.columns[name].floor for name in columns if name in brand.columns]
            floor = max((each for each in floors if each is not None), default=None)
            yield Allowed(job.name, columns, seconds, usual_interval(seconds, floor), floor)


def usual_interval(seconds: float, floor: timedelta | None = None) -> timedelta | None:
    """Return the shortest usual interval for a collection of this many seconds."""
    least = max(timedelta(seconds=seconds * SAFETY), floor or timedelta(0))
    return next((interval for interval in USUAL if interval >= least), None)
