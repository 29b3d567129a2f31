"""`facho sim`: simulates one OLT until Ctrl-C. Typed lines change its faults."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from facho.adapters.snmp.snmprec import BadRecording
from facho.runtime.commands import screen
from facho.runtime.commands.screen import CommandError, note, out, plural
from facho.runtime.commands.target import new_loop, whole
from facho.simulator.control import USAGE, Control
from facho.simulator.faults import FAULT_OPTIONS, faults_from
from facho.simulator.fleet import MAKERS, OltSpec, SimulatedFleet, SimulatedOlt
from facho.simulator.pdulog import PduLog
from facho.simulator.stdin import watch_stdin

PORT = 16161
STDIN = 0
HELP = f"""Commands you can type while it runs:
    loss=5% latency=0.2   set faults by option name; `none` as value removes one, `well` removes all
    log                   requests received so far
    {", ".join(USAGE.values())}
Ctrl-C stops it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--brand", choices=sorted(MAKERS), default="huawei", help="brand of the OLT (default %(default)s)"
    )
    what.add_argument("--recording", type=Path, metavar="FILE", help="answer from a .snmprec file instead")
    parser.add_argument(
        "--keep-order", action="store_true", help="keep the order of the recording, even where OIDs decrease"
    )
    port = whole(0, 65535, otherwise="the port must be between 0 and 65535; 0 selects a free port")
    parser.add_argument("--port", type=port, default=PORT, help="UDP port on 127.0.0.1 (default %(default)s)")
    onus = whole(0, otherwise="must be 0 or more")
    parser.add_argument("--onus", type=onus, default=256, metavar="N", help="number of ONUs (default %(default)s)")
    parser.add_argument("--name", default="OLT-CENTRAL-01", help="name of the OLT, its sysName (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed for generating the ONUs (default %(default)s)")
    parser.add_argument("--community", default="public", help="SNMP community that it accepts (default %(default)s)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write one line of JSON per request to this file")
    faults = parser.add_argument_group("faults", "faults to simulate")
    for option in FAULT_OPTIONS:
        name, dest = f"--{option.name.replace('_', '-')}", f"fault_{option.name}"
        # A percent sign would be read as a format.
        text = option.help.replace("%", "%%")
        if option.is_flag:
            faults.add_argument(name, dest=dest, help=text, action="store_const", const="yes")
        else:
            faults.add_argument(name, dest=dest, help=text, metavar=option.type.__name__.upper())


def run(options: argparse.Namespace) -> int:
    given = {option.name: getattr(options, f"fault_{option.name}") for option in FAULT_OPTIONS}
    try:
        spec = OltSpec(
            name=options.name,
            brand=options.brand,
            onus=options.onus,
            seed=options.seed,
            community=options.community,
            faults=faults_from({name: value for name, value in given.items() if value is not None}),
            port=options.port,
            recording=options.recording,
            keep_order=options.keep_order,
        )
        with PduLog(options.log) as log, asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_serve(spec, log))
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error
    except (BadRecording, ValueError) as error:
        raise CommandError(str(error)) from error
    return screen.COMPLETE


async def _serve(spec: OltSpec, log: PduLog) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with SimulatedFleet([spec], log=log) as fleet:
        control = Control(fleet)
        _introduce(fleet[spec.name])
        # In the background of a shell, reading the input would stop the process.
        is_in_background = os.isatty(STDIN) and os.tcgetpgrp(STDIN) != os.getpgrp()
        if sys.stdin is not None and not is_in_background:
            # The end of the input does not stop it: there may never have been any.
            watch_stdin(loop, lambda line: _obey(control, line), lambda: None)
        await stop.wait()
    note(f"{spec.name} received {plural(log.count(), 'request')}.")


def _introduce(olt: SimulatedOlt) -> None:
    spec = olt.spec
    what = f"as recorded in {spec.recording}" if spec.recording else f"{spec.brand} with {plural(spec.onus, 'ONU')}"
    if spec.port not in (0, olt.port):
        note(f"Port {spec.port} is in use; another port was chosen.")
    community = "" if spec.community == "public" else f" --community {spec.community}"
    out(f"{spec.name}, {what}, answers on {olt.host}:{olt.port}. Read it from another terminal:")
    out(f"\n    facho collect {olt.host}:{olt.port}{community}\n")
    out(HELP)
    sys.stdout.flush()


def _obey(control: Control, line: str) -> None:
    """Run a command line, and print the result."""
    answer = control.run(f"* {line}")
    if not answer["ok"]:
        note(answer["error"])
        return
    for name, came in answer["olts"].items():
        out(f"{name}: {describe(came)}")
    sys.stdout.flush()


def describe(came: Mapping[str, Any]) -> str:
    """Return the result of a command: `faults: loss=0.05`, `onus: 41`."""
    parts = []
    for name, value in came.items():
        if isinstance(value, Mapping):
            value = " ".join(f"{key}={each}" for key, each in value.items()) or "none"
        parts.append(f"{name}: {value}")
    return ", ".join(parts) or "done"
