"""`python -m facho.simulator`: the fleet of the demonstration in a process of its own.

It says where its OLTs are in one line of JSON, and runs until its standard
input ends. A parent that dies, however suddenly, takes it along that way.
Lines that come in before are commands, each answered by a line of JSON:
`OLT-NORTE-02 loss=0.05`, `* well`; `facho.simulator.control` has them all.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from facho.simulator.control import Control
from facho.simulator.fleet import OltSpec, SimulatedFleet, demo_fleet
from facho.simulator.pdulog import PduLog
from facho.simulator.stdin import watch_stdin
from facho.simulator.stories import DARK, Stories


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fleet of the arguments."""
    parser = argparse.ArgumentParser(prog="python -m facho.simulator", description=__doc__)
    parser.add_argument("--olts", type=_count, default=6, help="number of OLTs; every sixth one never answers")
    parser.add_argument("--onus", type=_count, default=2100, help="total number of ONUs of the OLTs that answer")
    parser.add_argument("--seed", type=int, default=1, help="seed for generating the ONUs")
    parser.add_argument("--ports", type=_ports, default=(), help="preferred UDP ports, like 16101,16102")
    parser.add_argument("--log", type=Path, help="write one line of JSON per request to this file")
    parser.add_argument("--began", type=float, help="tell the stories of the demo that began at this Unix time")
    options = parser.parse_args(arguments)
    dark_since = None if options.began is None else options.began - DARK
    specs = demo_fleet(options.olts, options.onus, options.seed, options.ports, dark_since)
    try:
        with PduLog(options.log) as log:
            asyncio.run(_serve(specs, log, options.began))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0


async def _serve(specs: Sequence[OltSpec], log: PduLog, began: float | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with SimulatedFleet(specs, log=log) as fleet:
        control = Control(fleet)
        telling = None if began is None else asyncio.create_task(_tell(fleet, began))
        _say(describe(fleet))
        watch_stdin(loop, lambda line: _say(control.run(line)), stop.set)
        await stop.wait()
        if telling is not None:
            telling.cancel()


async def _tell(fleet: SimulatedFleet, began: float) -> None:
    """Let the plants of the OLTs that answer fail, story after story."""
    stories = Stories({olt.name: olt.device.plant for olt in fleet if not olt.spec.faults.mute}, began)
    names = {olt.name for olt in fleet}
    while True:
        now = time.time()
        for name in names | stories.advance(now):
            agent = fleet[name].agent
            agent.install(agent.device.replanted(stories.applied(name, agent.device.plant)))
        names = set()
        await asyncio.sleep(max(stories.next_at(now) - time.time(), 0.0))


def describe(fleet: SimulatedFleet) -> list[dict[str, object]]:
    """Return the data needed to poll the fleet."""
    return [
        {
            "name": olt.name,
            "brand": olt.spec.brand,
            "host": olt.host,
            "port": olt.port,
            "community": olt.spec.community,
            "onus": len(olt.device.plant.onus),
        }
        for olt in fleet
    ]


def _say(value: object) -> None:
    # BrokenPipeError: the reader is gone; the end of its input stops us.
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _ports(text: str) -> tuple[int, ...]:
    ports = tuple(int(part) for part in text.split(","))
    if not all(0 <= port <= 65535 for port in ports):
        raise argparse.ArgumentTypeError("the port must be between 0 and 65535")
    return ports


if __name__ == "__main__":
    sys.exit(main())
