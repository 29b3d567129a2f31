"""An agent in memory for the probe, with a clock that moves only when something takes time, and two small brands."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from facho.engine.brand import Brand, Column, IndexSpace, JobTemplate, Manners, PortTable, Position
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.model import JobKind
from facho.engine.oid import Arcs, Oid, arcs, parse
from facho.engine.snmp import Agent, Answer, Community, ErrorStatus, Missing, Tag, Value, Version

T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
CENTRAL = Agent("192.0.2.1", 161, Version.V2C, Community("secret"))
CENTRAL_V1 = Agent("192.0.2.1", 161, Version.V1, Community("secret"))

ACME = "1.3.6.1.4.1.99999"
OTHER = "1.3.6.1.4.1.88888"
SYSTEM = {
    "1.3.6.1.2.1.1.1.0": b"ACME\r\n Access\0",
    "1.3.6.1.2.1.1.2.0": parse(f"{ACME}.1.7"),
    "1.3.6.1.2.1.1.3.0": 360_000,
    "1.3.6.1.2.1.1.5.0": b"OLT-CENTRAL-01",
}


class StillClock:
    """A clock that moves only when a task sleeps or a request takes time."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.elapsed += seconds


# What is wrong with a request, by its OIDs and how often it came: an error status, or an error to raise.
Trouble = Callable[[Sequence[Oid], int], int | Exception | None]


@dataclass
class MemoryAgent:
    """Serves what it has. Each request takes `latency`, and `row_seconds` a row behind the prefixes that cost."""

    rows: Mapping[str, Value]
    clock: StillClock = field(default_factory=StillClock)
    latency: float = 0.0
    row_seconds: Mapping[str, float] = field(default_factory=dict)
    trouble: Trouble = lambda oids, times: None
    asked: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rows = sorted((arcs(parse(name)), value) for name, value in self.rows.items())
        self._exact = {parse(name): value for name, value in self.rows.items()}
        self._times: dict[tuple[Oid, ...], int] = {}

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        if failed := self._begin("get", oids, 1, timeout):
            return failed
        if agent.version is Version.V1 and any(oid not in self._exact for oid in oids):
            return Answer(ErrorStatus.NO_SUCH_NAME, 1, list(oids), [None] * len(oids), bytes(len(oids)))
        return _answer([(oid, self._exact.get(oid, Missing.NO_SUCH_OBJECT)) for oid in oids])

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        if failed := self._begin("get_next", oids, 1, timeout):
            return failed
        found = [self._after(oid) for oid in oids]
        if agent.version is Version.V1 and any(isinstance(value, Missing) for _, value in found):
            return Answer(ErrorStatus.NO_SUCH_NAME, 1, list(oids), [None] * len(oids), bytes(len(oids)))
        return _answer(found)

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        assert agent.version is not Version.V1, "SNMPv1 has no GETBULK"
        if failed := self._begin("get_bulk", oids, max_repetitions, timeout):
            return failed
        found: list[tuple[Oid, Value]] = []
        for _ in range(max_repetitions):
            row = [self._after(oid) for oid in oids]
            found += row
            oids = [oid for oid, _ in row]
        self._work(found)
        return _answer(found)

    async def close(self) -> None: ...

    def _begin(self, kind: str, oids: Sequence[Oid], repetitions: int, timeout: float) -> Answer | None:
        key = tuple(oids)
        self._times[key] = self._times.get(key, 0) + 1
        self.asked.append((kind, tuple(".".join(map(str, arcs(oid))) for oid in oids), repetitions))
        trouble = self.trouble(oids, self._times[key])
        self.clock.elapsed += timeout if isinstance(trouble, NoAnswer) else self.latency
        if isinstance(trouble, Exception):
            raise trouble
        return None if trouble is None else Answer(trouble, 0, list(oids), [None] * len(oids), bytes(len(oids)))

    def _after(self, oid: Oid) -> tuple[Oid, Value]:
        numbers = arcs(oid)
        for name, value in self._rows:
            if name > numbers:
                return parse(".".join(map(str, name))), value
        return oid, Missing.END_OF_MIB_VIEW

    def _work(self, found: Sequence[tuple[Oid, Value]]) -> None:
        """An agent works for a row once, however many of its columns it is asked for."""
        for prefix, seconds in self.row_seconds.items():
            touched = {arcs(oid)[-2:] for oid, _ in found if oid.startswith(parse(prefix))}
            self.clock.elapsed += seconds * len(touched)


def _answer(found: Sequence[tuple[Oid, Value]]) -> Answer:
    tags = bytes(value.value if isinstance(value, Missing) else Tag.INTEGER for _, value in found)
    return Answer(0, 0, [oid for oid, _ in found], [value for _, value in found], tags, 40, 60)


def silent(oids: Sequence[Oid], times: int) -> Exception:
    return NoAnswer("192.0.2.1 gave no answer")


def garbled(oids: Sequence[Oid], times: int) -> Exception:
    return BadAnswer("192.0.2.1 sent something that cannot be read")


def _decode(index: Arcs) -> Position | None:
    return Position(0, 1, index[0], index[1]) if len(index) == 2 else None


def _port(index: Arcs) -> Position | None:
    return Position(0, 1, index[0]) if len(index) == 1 else None


SPACE = IndexSpace(_decode, lambda place: (place.port, place.onu))


def make_brand(id: str = "acme", root: str = ACME, **more: object) -> Brand:
    """A maker with a table of facts (2.1), one of optics (3.1) and ONUs counted by port (1.1)."""
    columns = {
        "serial": Column("serial", parse(f"{root}.2.1.1"), lambda value: value, SPACE),
        "state": Column("state", parse(f"{root}.2.1.2"), lambda value: value, SPACE),
        "rx_dbm": Column(
            "rx_dbm", parse(f"{root}.3.1.1"), lambda value: value, SPACE, optical=True, floor=timedelta(minutes=15)
        ),
    }
    templates = (
        JobTemplate("Discovery", JobKind.DISCOVERY, timedelta(minutes=15)),
        JobTemplate("Optical power", JobKind.GET, timedelta(minutes=30), ("rx_dbm",)),
    )
    settings: dict[str, object] = {
        "sys_object_ids": (parse(root),),
        "sys_descr": re.compile(id.upper()),
        "probe": parse(f"{root}.1.1"),
        "ports": PortTable(parse(f"{root}.1.1"), _port, counts=True),
        "manners": Manners(max_repetitions=20, timeout=5.0, optical_timeout=20.0),
        "templates": templates,
    }
    settings |= {"columns": columns} | more
    return Brand(id, id.title(), SPACE, discovery=("serial",), **settings)


def onu_rows(onus: int, root: str = ACME) -> dict[str, Value]:
    """The tables of such an OLT: 16 ONUs a port."""
    places = [(1 + number // 16, number % 16) for number in range(onus)]
    rows: dict[str, Value] = {f"{root}.1.1.{port}": sum(p == port for p, _ in places) for port, _ in places}
    for column in (f"{root}.2.1.1", f"{root}.2.1.2", f"{root}.3.1.1"):
        rows |= {f"{column}.{port}.{onu}": 1 for port, onu in places}
    return rows
