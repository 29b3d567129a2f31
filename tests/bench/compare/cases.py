"""Collection without storage: each case is one simulated OLT that all collectors read in turn, several times."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from collectors import WALK, BulkWalk, Collector, Cost, Facho, installed
from olts import CannotRun, Shape, Simulator

NAMES = ("collect", "latency", "serial", "optics")
# A case is repeated for this many seconds at least, and not again when it has taken so many.
SHORTEST, LONGEST = 5.0, 60.0


@dataclass(frozen=True)
class Case:
    """One OLT and the collectors that read it."""

    name: str
    shape: Shape
    collectors: Sequence[Collector]


@dataclass(frozen=True)
class Row:
    """What one collector needs in one case: the best wall time, medians of the rest."""

    case: str
    collector: str
    wall: float
    cpu_per_value: float
    # None: the Python simulator does not count them.
    requests: int | None
    repetitions: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def cases(folder: Path, others: Sequence[Collector]) -> Iterator[Case]:
    """Return the cases; `others` are collectors besides Facho and snmpbulkwalk."""
    walk = [BulkWalk(folder)] if installed(WALK) else []
    larger = [BulkWalk(folder, 50)] if installed(WALK) else []
    default, sixteen = Facho("facho"), Facho("facho, 16 in flight", 16)
    warm = Facho("facho", runs=8, warm=True)
    # The drift changes about 10 % of the powers from one run to the next.
    yield Case("collect", Shape(drift=100), [warm, *walk, *others])
    yield Case("latency", Shape(latency_ms=10, drift=20), [default, sixteen, *walk, *larger, *others])
    yield Case("serial", Shape(latency_ms=10, us_per_request=2000, us_per_varbind=200, drift=4), [default, *walk])
    # Like an MA5608T, 20 times as fast: reading the optical values of an ONU takes 7.5 ms, once per request.
    times = {"us_per_request": 1000, "us_per_varbind": 100, "us_per_optical_row": 7500}
    yield Case("optics", Shape(ports=8, onus_per_port=51, drift=3, **times), [default, *walk])


def measure(case: Case, program: str | None, repetitions: int) -> list[Row]:
    """Let the collectors take turns, so that other load on the machine affects all of them."""
    costs: dict[str, list[tuple[Cost, int | None]]] = {}
    started = time.perf_counter()
    with Simulator(program, case.shape) as simulator:
        for turn in count(1):
            for collector in case.collectors:
                for name, found in _collect(collector, simulator):
                    costs.setdefault(name, []).append(found)
            taken = time.perf_counter() - started
            if taken > LONGEST or (turn >= repetitions and taken > SHORTEST):
                break
    return [_row(case, name, found) for name, found in costs.items()]


def _collect(collector: Collector, simulator: Simulator) -> Iterator[tuple[str, tuple[Cost, int | None]]]:
    before = simulator.requests()
    found = collector.collect(simulator.first, simulator.shape.onus)
    after = simulator.requests()
    counted = None if before is None or after is None else after - before
    for name, cost in found.items():
        if not cost.values:
            raise CannotRun(f"{name} read nothing.")
        requests = counted // cost.times if cost.requests is None and counted is not None else cost.requests
        yield name, (cost, requests)


def _row(case: Case, name: str, found: Sequence[tuple[Cost, int | None]]) -> Row:
    requests = [each for _, each in found if each is not None]
    return Row(
        case=case.name,
        collector=name,
        wall=min(cost.wall for cost, _ in found),
        cpu_per_value=statistics.median(cost.cpu / cost.values for cost, _ in found),
        requests=int(statistics.median(requests)) if requests else None,
        repetitions=len(found),
    )
