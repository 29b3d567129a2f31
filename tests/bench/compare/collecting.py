"""Reads one OLT several times in one process, each run with what the runs before it left. Prints a line per run.

python collecting.py ADDRESS RUNS WINDOW COLUMN,COLUMN,...     (WINDOW 0: automatic)

This is the only file of the benchmark that calls Facho's engine directly.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from datetime import timedelta

from facho.adapters.clock import SystemClock
from facho.adapters.snmp.client import SnmpByVersion
from facho.brands import BRANDS
from facho.engine.collect import collect
from facho.engine.collect.replay import Memory
from facho.engine.model import Collected, JobKind, KnownOnu, Node, Olt, Reading
from facho.engine.snmp import Agent, Community, Version
from facho.runtime.commands.target import new_loop

TIMEOUT = timedelta(minutes=10)
# Between two runs, in seconds. Meanwhile values of the simulated OLT change, as they do between real runs.
PAUSE = 0.1


async def main(address: str, runs: int, window: int | None, columns: tuple[str, ...]) -> None:
    host, _, port = address.rpartition(":")
    olt = Olt(1, "OLT-1", "huawei", Agent(host, int(port), Version.V2C, Community("public")), max_in_flight=window)
    node = Node(1, 1, "Table", JobKind.TABLE, TIMEOUT, olt.name, columns=columns, timeout=TIMEOUT)
    snmp, clock = SnmpByVersion(), SystemClock()
    known: list[KnownOnu] = []
    learned, memory = olt.learned, Memory()
    for _ in range(runs):
        olt = Olt(olt.id, olt.name, olt.brand, olt.agent, max_in_flight=window, learned=learned)
        started, cpu = time.perf_counter(), time.process_time()
        found = await collect(
            node,
            olt,
            BRANDS[olt.brand],
            snmp=snmp,
            clock=clock,
            deadline=clock.now() + TIMEOUT,
            known=known,
            raw_decoders={},
            memory=memory,
        )
        took = time.perf_counter() - started, time.process_time() - cpu
        report(found, columns, *took)
        await asyncio.sleep(PAUSE)
        # In a fixed order, as the inventory has them: answers come in any order.
        known = sorted([as_known(reading) for reading in found.readings], key=lambda onu: onu.index)
        learned = found.learned
    await snmp.close()


def as_known(reading: Reading) -> KnownOnu:
    values = reading.values
    return KnownOnu(
        reading.index, values.get("state") or "unknown", reading.slot, reading.port, reading.onu, values.get("serial")
    )


def report(found: Collected, columns: Sequence[str], wall: float, cpu: float) -> None:
    # Only what was asked for: a brand may derive further fields.
    values = sum(name in reading.values for reading in found.readings for name in columns)
    took = {"wall": wall, "cpu": cpu, "requests": found.traffic.pdus}
    print(json.dumps({**took, "onus": len(found.readings), "values": values, "errors": found.errors}), flush=True)


if __name__ == "__main__":
    address, runs, window, columns = sys.argv[1:]
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(address, int(runs), int(window) or None, tuple(columns.split(","))))
