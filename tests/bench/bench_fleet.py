"""A large provider on one machine: many OLTs with the usual jobs, for as long as you like. It is not a test.

Facho polls simulated OLTs (the C simulator, so a compiler is needed) with the usual jobs of their brand, and stores
the values. Each minute it prints how late slots began, the CPU of Facho and of its servers, and the memory. First
each OLT is discovered, 100 in a minute; then all jobs are spread evenly over their intervals.

python tests/bench/bench_fleet.py [--olts 1000] [--ports 16] [--onus-per-port 64] [--minutes 75] [--mode MODE]
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "compare"), str(HERE.parent)]

import cpu  # noqa: E402 - the path is set above
import olts  # noqa: E402
from olts import CannotRun, Shape  # noqa: E402
from stored import MODES, Installation, installed  # noqa: E402

# The percentage of ONUs whose powers change each second: about 10 % between two runs of the optical job.
DRIFT = 0.006


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--olts", type=int, default=1000)
    parser.add_argument("--ports", type=int, default=16)
    parser.add_argument("--onus-per-port", type=int, default=64)
    parser.add_argument("--minutes", type=int, default=75)
    parser.add_argument("--mode", choices=MODES, default="stored-postgres")
    return parser.parse_args()


def watch(site: Installation, minutes: int) -> None:
    cores = os.cpu_count() or 1
    print("minute  runs  failed  late 99 %  Facho   servers  memory   values/s")
    before = (cpu.seconds(site.pids), cpu.seconds(site.server_pids))
    for minute in range(1, minutes + 1):
        start = time.time()
        time.sleep(60)
        now = (cpu.seconds(site.pids), cpu.seconds(site.server_pids))
        seconds = (time.time() - start) * cores
        own, servers = ((after - earlier) / seconds for after, earlier in zip(now, before, strict=True))
        before = now
        found = site.helper.ask("count", start=start, end=time.time(), columns=[])
        failed = sum(many for status, many in found["statuses"].items() if status not in ("SUCCESS", "PARTIAL"))
        late = "-" if found["late_p99"] is None else f"{found['late_p99']:.1f} s"
        values = site.helper.ask("values", start=start, end=time.time()) / 60
        print(
            f"{minute:6}  {sum(found['statuses'].values()):4}  {failed:6}  {late:>9}  {own:5.1%}  {servers:7.1%}"
            f"  {cpu.megabytes(site.pids):5.0f} MB  {values:8.0f}",
            flush=True,
        )


def main() -> None:
    asked = arguments()
    olts.LIFETIME_SECONDS = asked.minutes * 60 + 1800
    shape = Shape(olts=asked.olts, ports=asked.ports, onus_per_port=asked.onus_per_port, drift=DRIFT)
    with tempfile.TemporaryDirectory(prefix="facho-fleet-") as folder:
        program = olts.build(Path(folder))
        if program is None:
            raise CannotRun("There is no C compiler. Install gcc: the Python simulator is too slow for a fleet.")
        with installed(asked.mode, program, shape, Path(folder, "site"), usual_jobs=True) as site:
            print(f"{shape.olts} OLTs with {shape.onus} ONUs each, {asked.mode}", flush=True)
            with site.started():
                watch(site, asked.minutes)


if __name__ == "__main__":
    try:
        main()
    except CannotRun as error:
        sys.exit(str(error))
