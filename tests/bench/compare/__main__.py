"""Measures Facho beside other collectors on simulated OLTs: CPU per value, wall time, storage. It is not a test."""

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import cases
import page
import report
import stored
from collectors import WALK, BulkWalk, Collector, GoSnmp, installed
from exporter import PROGRAM, Exporter
from olts import CannotRun, Shape, build

from servers import NoServerError

ROOT = Path(__file__).resolve().parents[3]
FULL = stored.Load(olts=100, windows=3, window_seconds=20, full_speed_seconds=30, full_speed_jobs=(1, 4))
QUICK = stored.Load(olts=20, windows=1, window_seconds=10, full_speed_seconds=10, full_speed_jobs=(4,))
# `facho sim` is a process for each OLT, and far slower than the C simulator.
PYTHON_SIMULATOR_OLTS = 5


def main() -> None:
    options = parse()
    if options.profile and options.only not in stored.MODES:
        sys.exit(f"bench: --profile needs --only with one of {', '.join(stored.MODES)}.")
    started, load = time.monotonic(), os.getloadavg()[0]
    if load > 0.5:
        print(f"Other programs use this machine (load average {load:.1f}): wall times suffer, ratios of CPU less.")
    try:
        with tempfile.TemporaryDirectory(prefix="facho-bench-") as name:
            rows, kept = measure(options, Path(name))
    except (CannotRun, NoServerError) as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    found = report.verdicts(rows, kept)
    show(report.target_table(found))
    print(f"\nTook {(time.monotonic() - started) / 60:.1f} minutes.")
    if options.json:
        figures = {"collection": rows, "stored": kept, "targets": found}
        text = json.dumps({key: [each.as_json() for each in value] for key, value in figures.items()}, indent=1)
        options.json.write_text(text + "\n")
    if not (options.no_write or options.quick or options.only):
        page.write(ROOT / "docs", rows, kept)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller fleet and fewer repetitions: 3 to 4 minutes")
    parser.add_argument("--only", choices=(*cases.NAMES, *stored.MODES), metavar="CASE", help="one of: %(choices)s")
    parser.add_argument(
        "--repetitions", type=int, metavar="N", help="of each case, at least (default 5; 3 for stored values)"
    )
    parser.add_argument(
        "--no-write", action="store_true", help="do not write docs/performance.md; nor do --quick and --only"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file, too")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="sample Facho with py-spy while values are stored")
    return parser.parse_args()


def measure(options: argparse.Namespace, folder: Path) -> tuple[list[cases.Row], list[stored.Stored]]:
    program = build(folder)
    if program is None:
        print("There is no C compiler, so the OLTs are simulated in Python: figures are rough. apt-get install gcc")
    walk = BulkWalk(folder) if installed(WALK) else None
    if walk is None:
        print(f"{WALK} is not installed, so there are no ratios. apt-get install snmp")
    rows: list[cases.Row] = []
    kept: list[stored.Stored] = []
    with ExitStack() as stack:
        others: list[Collector] = [stack.enter_context(Exporter(folder))] if installed(PROGRAM) else []
        others += [GoSnmp(folder)] if GoSnmp.is_installed() else []
        for case in cases.cases(folder, others):
            if options.only in (None, case.name):
                rows += cases.measure(case, program, options.repetitions or (1 if options.quick else 5))
                show(report.collection_table([row for row in rows if row.case == case.name]))
    load = QUICK if options.quick else FULL
    load = replace(load, windows=options.repetitions or load.windows)
    shape = Shape(olts=load.olts if program else PYTHON_SIMULATOR_OLTS)
    for mode in stored.MODES:
        if options.only in (None, mode):
            kept.append(stored.measure(mode, program, shape, load, folder / mode, walk, options.profile))
            show(*(table(kept[-1:]) for table in (report.stored_table, report.load_table, report.size_table)))
    return rows, kept


def show(*tables: report.Table) -> None:
    for table in tables:
        print(f"\n{report.plain(table)}", flush=True)


if __name__ == "__main__":
    main()
