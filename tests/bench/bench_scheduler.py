"""What a tick costs over 100,000 nodes that are not due, beside a plain pass over a heap of them. It is not a test.

python tests/bench/bench_scheduler.py
"""

import asyncio
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from facho.adapters.clock import SystemClock
from facho.engine.model import JobKind, Node
from facho.engine.scheduling.scheduler import Scheduler
from in_memory import MemoryNodes, MemorySlots

NODES = 100_000
NODES_PER_OLT = 100
TICKS = 50
# A tick over nodes that are not due may cost this many seconds at most.
BUDGET = 0.020


class NoRunner:
    """Nothing is due, so nothing runs."""

    async def run(self, claim: object, watch: object) -> list[object]:
        raise AssertionError("nothing was due")


def idle_nodes(due: datetime) -> list[Node]:
    """Return nodes that are due over the hour after that time."""
    return [
        Node(
            id=number,
            olt_id=number // NODES_PER_OLT,
            name="idle",
            kind=JobKind.TABLE,
            interval=timedelta(hours=1),
            next_check=due + timedelta(seconds=number % 3600),
        )
        for number in range(NODES)
    ]


def best(work: Callable[[], object]) -> float:
    """Return the seconds of the quickest of several tries."""
    took = []
    for _ in range(TICKS):
        before = time.perf_counter()
        work()
        took.append(time.perf_counter() - before)
    return min(took)


async def best_step(scheduler: Scheduler) -> float:
    took = []
    for _ in range(TICKS):
        before = time.perf_counter()
        await scheduler.step()
        took.append(time.perf_counter() - before)
    return min(took)


def heap_pass(dues: list[tuple[datetime, int]]) -> float:
    """Return what it costs to take every node off a heap and put it back, once."""
    heap = list(dues)
    heapify(heap)
    before = time.perf_counter()
    taken = [heappop(heap) for _ in range(len(heap))]
    for entry in taken:
        heappush(heap, entry)
    return time.perf_counter() - before


async def measure() -> dict[str, float]:
    clock = SystemClock()
    rows = idle_nodes(datetime.now(UTC) + timedelta(days=1))
    nodes = MemoryNodes(rows)
    runner = NoRunner()
    scheduler = Scheduler(
        pollers=10,
        nodes=nodes,
        slots=MemorySlots(nodes),
        runner=runner,  # type: ignore[arg-type]  # never asked
        clock=clock,
    )
    before = time.perf_counter()
    await scheduler.step()
    first = time.perf_counter() - before
    return {
        "a plain pass over the heap": heap_pass([(row.next_check, row.id) for row in rows if row.next_check]),
        "the first step, which meets every node": first,
        "a tick, nothing due": best(lambda: scheduler.tick(clock.now())),
        "a whole step, nothing due": await best_step(scheduler),
    }


def main() -> None:
    costs = asyncio.run(measure())
    plain = next(iter(costs.values()))
    sys.stdout.write(f"{NODES} nodes on {NODES // NODES_PER_OLT} OLTs\n")
    for name, cost in costs.items():
        sys.stdout.write(f"{name:<42}{cost * 1000:10.3f} ms {cost / plain:10.5f} x the pass\n")
    verdict = "within" if costs["a whole step, nothing due"] < BUDGET else "OVER"
    sys.stdout.write(f"a step is {verdict} its {BUDGET * 1000:.0f} ms\n")


if __name__ == "__main__":
    main()
