"""What is measured: each case is one OLT that all collectors read in turn, several times."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents import CannotRun, Model, Served, fast, running, serial, serial_with_all_optics
from clients import COLUMNS, OPTICS, BulkWalk, Client, Cost, Facho

ONUS = (1024, 8192)
LATENCIES_MS = (0, 10, 50)
WINDOWS = (1, 8)
# Minutes of waiting that tell nothing new.
LONG = {(8192, 50)}

# The MA5608T-like OLT. Shares of agent time stay the same when all its times are divided by the same number.
SERIAL_ONUS_PER_PORT = 51
SERIAL_PORTS = 16
SCALE = 20.0

# A case is repeated while it has taken less than this many seconds in all.
SHORT = 20.0


@dataclass(frozen=True)
class Case:
    """One OLT, and who reads it."""

    name: str
    model: Model
    clients: Sequence[Client]
    onus: int
    columns: int
    latency_ms: float | None = None

    @property
    def values(self) -> int:
        return self.onus * self.columns


@dataclass(frozen=True)
class Row:
    """What one collector took in one case: the best of its repetitions."""

    case: str
    client: str
    onus: int
    latency_ms: float | None
    wall: float
    process_wall: float | None
    pdus: int
    agent_seconds: float | None
    cpu_per_value: float
    process_cpu: float | None
    repetitions: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def fast_cases(program: str, folder: Path, others: Sequence[Client], *, everything: bool) -> Iterable[Case]:
    """Return the cases of an OLT that only has latency."""
    clients = [*(Facho(window, folder) for window in WINDOWS), *others]
    for onus in ONUS:
        for latency in LATENCIES_MS:
            if everything or (onus, latency) not in LONG:
                model = fast(program, onus, latency)
                yield Case(f"{onus:,} ONUs, {latency} ms", model, clients, onus, len(COLUMNS), latency)


def serial_cases(program: str, folder: Path, *, walk: bool, everything: bool) -> Iterable[Case]:
    """Return the cases of an OLT that does one thing after the other, and waits for each ONU's optics."""
    scale = 1.0 if everything else SCALE
    onus = SERIAL_ONUS_PER_PORT * SERIAL_PORTS
    slow: list[Client] = [BulkWalk(folder)] if walk else []
    optics: list[Client] = [BulkWalk(folder, tuple(OPTICS.values()))] if walk else []
    windows = [Facho(window, folder) for window in WINDOWS]
    model = serial(program, SERIAL_ONUS_PER_PORT, scale, folder)
    yield Case("serial, 2 optical columns", model, [*windows, *slow], onus, len(COLUMNS))
    model = serial_with_all_optics(onus, scale, folder)
    facho = Facho(1, folder, tuple(OPTICS))
    yield Case("serial, 5 optical columns", model, [facho, *optics], onus, len(OPTICS))


def measure(case: Case, repetitions: int) -> list[Row]:
    """Let the collectors of a case take turns, so that whatever else the machine does meets all of them."""
    costs: dict[str, list[tuple[Cost, Served]]] = {client.name: [] for client in case.clients}
    started = time.perf_counter()
    for _ in range(repetitions):
        for client in case.clients:
            costs[client.name].append(_collect(case, client))
        if time.perf_counter() - started > SHORT:
            break
    return [_best(case, name, found) for name, found in costs.items()]


def _collect(case: Case, client: Client) -> tuple[Cost, Served]:
    with running(case.model) as (address, served):
        cost = client.collect(address)
    if cost.onus != case.onus:
        raise CannotRun(f"{client.name} found {cost.onus:,} of {case.onus:,} ONUs in the case {case.name!r}.")
    if cost.pdus not in (None, served.pdus):
        raise CannotRun(f"{client.name} counts {cost.pdus} requests, and the OLT {served.pdus}.")
    return cost, served


def _best(case: Case, name: str, found: Sequence[tuple[Cost, Served]]) -> Row:
    costs = [cost for cost, _ in found]
    quickest, served = min(found, key=lambda each: each[0].wall)
    agent_seconds = [served.agent_seconds for _, served in found if served.agent_seconds is not None]
    return Row(
        case=case.name,
        client=name,
        onus=case.onus,
        latency_ms=case.latency_ms,
        wall=quickest.wall,
        process_wall=_least(cost.process_wall for cost in costs),
        pdus=served.pdus // quickest.times,
        agent_seconds=_least(agent_seconds),
        cpu_per_value=min(cost.cpu for cost in costs) / case.values,
        process_cpu=_least(cost.process_cpu for cost in costs),
        repetitions=len(found),
    )


def _least(numbers: Iterable[float | None]) -> float | None:
    return min((number for number in numbers if number is not None), default=None)
