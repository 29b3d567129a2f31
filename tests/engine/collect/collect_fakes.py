"""An OLT in memory with the faults of real ones, a clock that moves only when somebody waits, and a small brand."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from facho.engine.brand import Brand, Column, IndexSpace, Manners, Position
from facho.engine.collect import Memory, Progress, collect
from facho.engine.errors import BadAnswer, FachoError, NoAnswer, Refused
from facho.engine.limits import MOST_ONUS
from facho.engine.model import Collected, Completeness, JobKind, KnownOnu, Node, Olt
from facho.engine.oid import Arcs, Oid, pack, parse, unpack
from facho.engine.snmp import Agent, Answer, Community, ErrorStatus, Missing, SendByTask, Tag, Value, Version

T0 = datetime(2030, 1, 1, 10, 5, tzinfo=UTC)
LATENCY = 0.01


class FakeClock:
    """A clock that moves only when a task sleeps or a request takes time."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        # Answers that are under way come first: the agent takes no time of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
        self.sleeps.append(seconds)
        self.elapsed += seconds


@dataclass
class Faults:
    """What is wrong with an agent. Counters count requests from 1."""

    drop_every: int = 0
    empty_every: int = 0
    garbage_every: int = 0
    dies_after: int | None = None
    refuses_after: int | None = None
    # Nothing comes back for GETBULK, whatever is asked.
    knows_no_bulk: bool = False
    # Answers of more variables than this are refused, lost, or cut short.
    too_big_above: int | None = None
    lost_above: int | None = None
    most_variables: int | None = None
    # Rows that cannot be read, and rows that nothing comes back for.
    gen_err_at: frozenset[Oid] = frozenset()
    silent_at: frozenset[Oid] = frozenset()
    # Whom genErr and noSuchName name: the right variable, none, or always the first.
    accuses: str = "right"
    # After the row at this place of the path comes the row at that place.
    jumps: Mapping[int, int] = field(default_factory=dict)


class Request(NamedTuple):
    kind: str
    oids: list[Oid]
    repetitions: int
    timeout: float
    at: float


class FakeAgent(SendByTask):
    """Serves a MIB, in the order of `path` where one is given (it may repeat itself and go backwards)."""

    def __init__(
        self,
        clock: FakeClock,
        mib: Mapping[Oid, Value],
        faults: Faults | None = None,
        *,
        path: Sequence[Oid] = (),
        latency: float = LATENCY,
    ) -> None:
        self.clock = clock
        self.mib = mib
        self.faults = faults or Faults()
        self.latency = latency
        self.log: list[Request] = []
        self.path = list(path) or sorted(mib, key=unpack)
        self._places: dict[Oid, int] = {}
        for place, oid in enumerate(self.path):
            self._places.setdefault(oid, place)

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        self._arrive(Request("get", list(oids), 1, timeout, self.clock.monotonic()))
        if agent.version is Version.V1:
            unknown = next((i for i, oid in enumerate(oids) if oid not in self.mib), None)
            if unknown is not None:
                return self._error(ErrorStatus.NO_SUCH_NAME, oids, unknown)
        found = [(oid, self.mib.get(oid, Missing.NO_SUCH_INSTANCE)) for oid in oids]
        return self._answer(oids, found)

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        self._arrive(Request("get_next", list(oids), 1, timeout, self.clock.monotonic()))
        found = [next(self._after(oid)) for oid in oids]
        last = next((i for i, (_, value) in enumerate(found) if value is Missing.END_OF_MIB_VIEW), None)
        if agent.version is Version.V1 and last is not None:
            return self._error(ErrorStatus.NO_SUCH_NAME, oids, last)
        return self._answer(oids, found)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        assert max_repetitions >= 1, "asked for 0 repetitions some agents hang"
        assert agent.version is not Version.V1, "SNMPv1 has no GETBULK"
        self._arrive(Request("get_bulk", list(oids), max_repetitions, timeout, self.clock.monotonic()))
        if self.faults.knows_no_bulk:
            self._lose()
        rows = zip(*(islice(self._after(oid), max_repetitions) for oid in oids), strict=True)
        return self._answer(oids, [variable for row in rows for variable in row])

    async def close(self) -> None: ...

    def _after(self, oid: Oid) -> Iterator[tuple[Oid, Value]]:
        place = self._next(self._places[oid]) if oid in self._places else self._first_behind(oid)
        while place < len(self.path):
            oid = self.path[place]
            yield oid, self.mib[oid]
            place = self._next(place)
        while True:
            yield oid, Missing.END_OF_MIB_VIEW

    def _first_behind(self, oid: Oid) -> int:
        start = unpack(oid)
        return next((place for place, other in enumerate(self.path) if unpack(other) > start), len(self.path))

    def _next(self, place: int) -> int:
        return self.faults.jumps.get(place, place + 1)

    def _arrive(self, request: Request) -> None:
        self.log.append(request)
        count, faults = len(self.log), self.faults
        if faults.dies_after is not None and count > faults.dies_after:
            self._lose()
        if faults.refuses_after is not None and count > faults.refuses_after:
            raise Refused("unknown user")
        if faults.drop_every and count % faults.drop_every == 0:
            self._lose()
        self._take(self.latency)
        if faults.garbage_every and count % faults.garbage_every == 0:
            raise BadAnswer("not an SNMP message")

    def _take(self, seconds: float) -> None:
        self.clock.elapsed += seconds

    def _lose(self) -> None:
        self._take(self.log[-1].timeout)
        raise NoAnswer("no answer")

    def _answer(self, asked: Sequence[Oid], found: list[tuple[Oid, Value]]) -> Answer:
        faults = self.faults
        if faults.lost_above is not None and len(found) > faults.lost_above:
            self._lose()
        if any(oid in faults.silent_at for oid, _ in found):
            self._lose()
        if faults.too_big_above is not None and len(found) > faults.too_big_above:
            return make_answer(ErrorStatus.TOO_BIG, 0, [], asked)
        broken = next((i for i, (oid, _) in enumerate(found) if oid in faults.gen_err_at), None)
        if broken is not None:
            return self._error(ErrorStatus.GEN_ERR, asked, broken % len(asked))
        if faults.empty_every and len(self.log) % faults.empty_every == 0:
            found = []
        return make_answer(ErrorStatus.NO_ERROR, 0, found[: faults.most_variables], asked)

    def _error(self, status: ErrorStatus, asked: Sequence[Oid], culprit: int) -> Answer:
        index = {"right": culprit + 1, "none": 0, "first": 1}[self.faults.accuses]
        return make_answer(status, index, [(oid, None) for oid in asked], asked)


def make_answer(status: int, index: int, found: Sequence[tuple[Oid, Value]], asked: Sequence[Oid]) -> Answer:
    values = [value for _, value in found]
    return Answer(
        status, index, [oid for oid, _ in found], values, bytes(map(tag_of, values)), 30 + len(asked), 30 + len(found)
    )


def tag_of(value: Value) -> int:
    if isinstance(value, Missing):
        return value.value
    if value is None:
        return Tag.NULL
    return Tag.INTEGER if isinstance(value, int) else Tag.OCTET_STRING


# The brand: ONUs are numbered {1000 + 16 * slot + port}.{onu} in the space of its names. Optics count
# from 0 instead and add a number, so that equal numbers mean different ports, as on a real C320.


def decode_plain(arcs: Arcs) -> Position | None:
    if len(arcs) != 2 or arcs[0] < 1000:
        return None
    return Position(0, (arcs[0] - 1000) // 16, (arcs[0] - 1000) % 16, arcs[1])


def encode_plain(at: Position) -> Arcs:
    pon = 1000 + 16 * at.slot + at.port
    return (pon,) if at.onu is None else (pon, at.onu)


def decode_optics(arcs: Arcs) -> Position | None:
    if len(arcs) != 3 or arcs[2] != 1:
        return None
    return decode_plain((arcs[0] + 1, arcs[1]))


def encode_optics(at: Position) -> Arcs:
    pon, onu = encode_plain(at)
    return (pon - 1, onu, 1)


PLAIN = IndexSpace(decode_plain, encode_plain)
OPTICS = IndexSpace(decode_optics, encode_optics)


def as_text(value: Value) -> str:
    assert isinstance(value, bytes)
    return value.decode()


def as_state(value: Value) -> str:
    return {1: "online", 2: "offline"}[value]


def as_dbm(value: Value) -> float | None:
    assert isinstance(value, int)
    return None if value == 2147483647 else value / 100


RAW_DECODERS = {"number": int, "text": as_text}
BEHIND = parse("1.3.6.1.6.3.1.0")
TABLE = "1.3.6.1.4.1.99999.1"
COLUMNS = {
    column.field: column
    for column in (
        Column("serial", parse(f"{TABLE}.1"), as_text, PLAIN),
        Column("name", parse(f"{TABLE}.2"), as_text, PLAIN),
        Column("state", parse(f"{TABLE}.3"), as_state, PLAIN),
        Column("distance_m", parse(f"{TABLE}.300"), int, PLAIN),
        Column("rx_dbm", parse(f"{TABLE}.4.1"), as_dbm, OPTICS, optical=True),
        Column("tx_dbm", parse(f"{TABLE}.4.2"), as_dbm, OPTICS, optical=True),
    )
}


def make_brand(**changes: Any) -> Brand:
    settings = {
        "id": "acme",
        "label": "Acme",
        "space": PLAIN,
        "columns": COLUMNS,
        "discovery": ("serial", "state"),
        "manners": Manners(max_repetitions=10, rows_per_get=4, timeout=5.0, retries=3, optical_timeout=20.0),
    }
    return Brand(**(settings | changes))


def make_node(kind: JobKind = JobKind.TABLE, *columns: str, **changes: Any) -> Node:
    settings = {"id": 1, "olt_id": 1, "name": "Optical power", "kind": kind, "interval": timedelta(minutes=5)}
    return Node(**(settings | {"columns": columns} | changes))


def make_olt(version: Version = Version.V2C, **changes: Any) -> Olt:
    agent = Agent("127.0.0.1", 161, version, Community("public"))
    # One request after the other, unless a test is about the window.
    usual = {"id": 1, "name": "OLT-CENTRAL-01", "brand": "acme", "agent": agent, "max_in_flight": 1}
    return Olt(**(usual | changes))


def at(slot: int, port: int, onu: int) -> Position:
    return Position(0, slot, port, onu)


def index_of(position: Position) -> str:
    return ".".join(map(str, encode_plain(position)))


def oid_of(name: str, position: Position) -> Oid:
    column = COLUMNS[name]
    return Oid(column.oid + pack(column.space.encode(position)))


RAW = {"serial": b"HWTC%08d", "name": b"customer %d", "state": 1, "distance_m": 700, "rx_dbm": -2153, "tx_dbm": 217}
READ = {"serial": "HWTC%08d", "name": "customer %d", "state": "online", "distance_m": 700, "rx_dbm": -21.53}
READ["tx_dbm"] = 2.17


def make_mib(onus: Iterable[Position], columns: Iterable[str] = COLUMNS) -> dict[Oid, Value]:
    """Return the tables of an OLT with these ONUs, with something before them and something behind."""
    mib: dict[Oid, Value] = {parse("1.3.6.1.2.1.1.3.0"): 4711, BEHIND: 0}
    for name in columns:
        for onu in onus:
            raw = RAW[name]
            mib[oid_of(name, onu)] = raw % onu.onu if isinstance(raw, bytes) else raw
    return mib


def expected(onu: Position, *names: str) -> dict[str, Any]:
    """Return what must be read of an ONU of `make_mib`."""
    return {name: READ[name] % onu.onu if "%" in str(READ[name]) else READ[name] for name in names}


def one_port(count: int, *, slot: int = 0, port: int = 1) -> list[Position]:
    return [at(slot, port, onu) for onu in range(1, count + 1)]


def known(onus: Iterable[Position], state: str = "online") -> list[KnownOnu]:
    return [KnownOnu(index_of(onu), state) for onu in onus]


async def run(
    agent: FakeAgent,
    node: Node,
    *,
    brand: Brand | None = None,
    olt: Olt | None = None,
    seconds: float = 300,
    onus: Sequence[KnownOnu] = (),
    watch: Callable[[Progress], None] | None = None,
    most_onus: int = MOST_ONUS,
) -> Collected:
    """Collect from a fake agent. Whatever comes of it, the next run gives the same with and without its memory."""
    memory = Memory(max_unsettled=0)
    collecting = partial(
        collect,
        node,
        brand=brand or make_brand(),
        snmp=agent,
        clock=agent.clock,
        known=onus,
        raw_decoders=RAW_DECODERS,
        most_onus=most_onus,
    )
    until = timedelta(seconds=seconds)
    olt = olt or make_olt()
    collected = await collecting(olt=olt, deadline=agent.clock.now() + until, watch=watch, memory=memory)
    if type(agent) is FakeAgent:
        olt = replace(olt, learned=collected.learned)
        log, elapsed, sleeps = agent.log, agent.clock.elapsed, agent.clock.sleeps
        results = []
        logging.disable()
        for each in (memory, None):
            agent.log, agent.clock.sleeps = [], []
            agent.clock.elapsed = elapsed
            with suppress(FachoError):
                results.append(await collecting(olt=olt, deadline=agent.clock.now() + until, memory=each))
        logging.disable(logging.NOTSET)
        agent.log, agent.clock.elapsed, agent.clock.sleeps = log, elapsed, sleeps
        if len(results) == 2:
            check_same(agent.faults, *results)
    return collected


def check_same(faults: Faults, replayed: Collected, careful: Collected) -> None:
    """Assert that a run from memory says the same as one without.

    What an agent gets wrong by chance hits other requests in each of them: then only complete runs are comparable. A
    run that gave up after silence is not either: requests that are known to work get more retries.
    """
    is_steady = not (
        faults.drop_every
        or faults.empty_every
        or faults.garbage_every
        or faults.dies_after is not None
        or faults.refuses_after is not None
    )
    are_complete = replayed.completeness is careful.completeness is not Completeness.PARTIAL
    if are_complete or (is_steady and not careful.traffic.retransmissions):
        assert told_by(replayed) == told_by(careful)


def told_by(collected: Collected) -> dict[str, Any]:
    """Return all that a result says of the OLT, and nothing of how it was found out."""
    told = {each.name: getattr(collected, each.name) for each in fields(collected)}
    # Where several requests are in flight, the order is that of the answers.
    for name in ("readings", "coverage", "errors", "failed_onus", "absent"):
        told[name] = sorted(told[name], key=str)
    return {name: value for name, value in told.items() if name not in ("traffic", "learned")}


def values_of(collected: Collected) -> dict[str, dict[str, Any]]:
    return {reading.index: dict(reading.values) for reading in collected.readings}


def all_of(onus: Iterable[Position], *names: str) -> dict[str, dict[str, Any]]:
    return {index_of(onu): expected(onu, *names) for onu in onus}
