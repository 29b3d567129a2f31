"""What a collection takes beside snmpbulkwalk and snmp_exporter, on simulated OLTs. Run it; it is not a test.

FACHO_OLTSIM=oltsim.c python tests/bench/collect
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from agents import CannotRun, build
from cases import Case, Row, fast_cases, measure, serial_cases
from clients import BulkWalk, Client, installed
from exporter import PROGRAM, Exporter
from targets import EXPORTER, WALK, Verdict, beside, verdicts

REMARK = (
    "The best of all repetitions, in which the collectors take turns: the machine does other things too.\n"
    "wall: of the collection itself; process: of the whole command, with starting Python.\n"
    "x walk: how many times as fast as snmpbulkwalk. / exp: CPU beside that of snmp_exporter."
)
HEAD = ("collector", "wall", "process", "x walk", "PDUs", "agent", "CPU/value", "/ exp", "runs")
WIDTHS = (20, 10, 10, 8, 8, 10, 11, 8, 6)


def main() -> None:
    options = _options()
    try:
        with tempfile.TemporaryDirectory(prefix="facho-bench-") as name:
            rows = _measure_all(options, Path(name))
    except CannotRun as error:
        sys.exit(f"bench: {error}")
    found = verdicts(rows)
    if options.json:
        targets = [{"target": each.target, "is_met": each.is_met, "detail": each.detail} for each in found]
        print(json.dumps({"rows": [row.as_json() for row in rows], "targets": targets}, indent=1))
    else:
        _print_targets(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/collect", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--oltsim",
        metavar="FILE",
        default=os.environ.get("FACHO_OLTSIM"),
        help="the C simulator of OLTs, as a program or as its source (default FACHO_OLTSIM of the environment)",
    )
    parser.add_argument("--repetitions", type=int, default=5, metavar="N", help="of short cases (default %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases with this in their name")
    parser.add_argument("--all", action="store_true", help="the long cases too, and the slow OLT at its real speed")
    parser.add_argument("--json", action="store_true", help="print JSON for a program instead of a table")
    return parser.parse_args()


def _measure_all(options: argparse.Namespace, folder: Path) -> list[Row]:
    if not options.oltsim:
        raise CannotRun("Which simulator? Name the C simulator or its source by --oltsim, or by FACHO_OLTSIM.")
    program = build(options.oltsim, folder)
    say = _quiet if options.json else print
    say(REMARK)
    with ExitStack() as stack:
        others: list[Client] = []
        if installed(WALK):
            others.append(BulkWalk(folder))
        if installed(PROGRAM):
            others.append(stack.enter_context(Exporter(folder)))
        for program_name in (WALK, PROGRAM):
            if not installed(program_name):
                say(f"{program_name} is not installed, so it is left out.")
        cases: list[Case] = [
            *fast_cases(program, folder, others, everything=options.all),
            *serial_cases(program, folder, walk=installed(WALK), everything=options.all),
        ]
        rows: list[Row] = []
        for case in cases:
            if options.only in case.name:
                found = measure(case, options.repetitions)
                say("\n".join(_table(case.name, found)))
                rows += found
    return rows


def _quiet(text: str) -> None:
    """Say nothing: who wants JSON wants only that."""


def _table(name: str, rows: Sequence[Row]) -> list[str]:
    lines = ["", name, _line(HEAD)]
    for row in rows:
        walk, exporter = beside(rows, row, WALK), beside(rows, row, EXPORTER)
        lines.append(
            _line(
                (
                    row.client,
                    _seconds(row.wall),
                    _seconds(row.process_wall),
                    f"{walk.wall / row.wall:.2f}" if walk else "-",
                    str(row.pdus),
                    _seconds(row.agent_seconds),
                    f"{row.cpu_per_value * 1e6:.2f} us",
                    f"{row.cpu_per_value / exporter.cpu_per_value:.2f}" if exporter else "-",
                    str(row.repetitions),
                )
            )
        )
    return lines


def _line(cells: Sequence[str]) -> str:
    first, *others = zip(cells, WIDTHS, strict=True)
    return f"{first[0]:<{first[1]}}" + "".join(f"{cell:>{width}}" for cell, width in others)


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f} s" if seconds < 10 else f"{seconds:.1f} s"


def _print_targets(found: Sequence[Verdict]) -> None:
    print()
    for each in found:
        print(f"{each.word:<14}{each.target}: {each.detail}")


if __name__ == "__main__":
    main()
