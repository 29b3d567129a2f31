"""The collectors that are compared: what each needs for all columns of one OLT."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from olts import CannotRun

ROOT = ".1.3.6.1.4.1.2011.6.128.1.1.2"
# The columns of the C simulator, by their names in Facho.
COLUMNS = {
    "serial": "43.1.3",
    "name": "43.1.9",
    "state": "46.1.15",
    "distance_m": "46.1.20",
    "last_up": "46.1.22",
    "down_cause": "46.1.24",
    "tx_dbm": "51.1.3",
    "rx_dbm": "51.1.4",
}
# Repetitions per request of the other collectors, unless a name says otherwise. Facho starts with this number too.
REPETITIONS = 25
# Seconds that the others wait for an answer: a retransmission to a slow agent would only cost time.
PATIENCE = 60
COLLECTING = Path(__file__).with_name("collecting.py")
GO_SOURCE = COLLECTING.parent.parent / "gosnmp_walk.go"
# Where Debian's golang-github-gosnmp-gosnmp-dev is.
GO_PATH = os.environ.get("GOPATH", "/usr/share/gocode")
ORDINALS = ("first", "second", "third")
WALK = "snmpbulkwalk"


@dataclass(frozen=True)
class Cost:
    """Wall and CPU seconds of one collection, and how many values it read."""

    wall: float
    cpu: float
    values: int
    # By the collector's own count; None: the simulator counts them.
    requests: int | None = None
    # How many collections these seconds are the mean of.
    times: int = 1


class Collector(Protocol):
    def collect(self, address: str, onus: int) -> Mapping[str, Cost]:
        """Read one OLT and return the costs by name: a collector may report several runs."""


class Facho:
    """Facho's collection without storage. A new process per call, which reads the OLT `runs` times.

    With `warm` only the runs after the third are reported, as one: their medians.
    """

    def __init__(self, name: str, window: int = 0, *, runs: int = 3, warm: bool = False) -> None:
        self.name = name
        self._arguments = [str(runs), str(window), ",".join(COLUMNS)]
        self._warm = warm

    def collect(self, address: str, onus: int) -> Mapping[str, Cost]:
        command = [sys.executable, COLLECTING, address, *self._arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotRun(f"Collecting failed: {done.stderr.strip()[-2000:]}")
        runs = [json.loads(line) for line in done.stdout.splitlines()]
        for run in runs:
            if run["onus"] != onus or run["errors"]:
                raise CannotRun(f"{self.name} read {run['onus']:,} of {onus:,} ONUs. {' '.join(run['errors'])}")
        costs = [Cost(run["wall"], run["cpu"], run["values"], run["requests"]) for run in runs]
        if not self._warm:
            return {f"{self.name}, {word} run": cost for word, cost in zip(ORDINALS, costs, strict=False)}
        warm = costs[3:]
        wall, cpu = (statistics.median(getattr(cost, name) for cost in warm) for name in ("wall", "cpu"))
        return {f"{self.name}, warm": Cost(wall, cpu, warm[-1].values, warm[-1].requests)}


class BulkWalk:
    """`snmpbulkwalk`: a process for each column, one after the other. Without names of MIBs, which saves it time."""

    def __init__(self, folder: Path, repetitions: int = REPETITIONS) -> None:
        self.name = WALK if repetitions == REPETITIONS else f"{WALK} -Cr{repetitions}"
        self._output = folder / "walk.txt"
        self._options = ["-v2c", "-cpublic", "-m", "", "-On", f"-Cr{repetitions}", "-t", str(PATIENCE), "-r", "1"]

    def collect(self, address: str, onus: int) -> Mapping[str, Cost]:
        wall = cpu = 0.0
        values = 0
        for column in COLUMNS.values():
            oid = f"{ROOT}.{column}"
            took = run([WALK, *self._options, address, oid], self._output)
            wall, cpu = wall + took[0], cpu + took[1]
            # A string may take several lines.
            lines = self._output.read_text(errors="replace").splitlines()
            values += sum(line.startswith(f"{oid}.") for line in lines)
        return {self.name: Cost(wall, cpu, values)}


class GoSnmp:
    """gosnmp, the library in Telegraf and snmp_exporter: one process reads all columns, one after the other."""

    name = "gosnmp"

    def __init__(self, folder: Path) -> None:
        self._output = folder / "gosnmp.txt"
        self._program = str(folder / GO_SOURCE.stem)
        settings = {"GOPATH": GO_PATH, "GO111MODULE": "off", "GOCACHE": str(folder / "go")}
        command = ["go", "build", "-o", self._program, GO_SOURCE]
        made = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        if made.returncode:
            raise CannotRun(f"{GO_SOURCE.name} does not compile: {made.stderr.strip()}")

    @staticmethod
    def is_installed() -> bool:
        return installed("go") and Path(GO_PATH, "src/github.com/gosnmp/gosnmp").is_dir()

    def collect(self, address: str, onus: int) -> Mapping[str, Cost]:
        oids = [f"{ROOT}.{column}" for column in COLUMNS.values()]
        wall, cpu = run([self._program, *address.split(":"), str(REPETITIONS), *oids], self._output)
        return {self.name: Cost(wall, cpu, int(self._output.read_text()))}


def run(command: Sequence[str], output: Path) -> tuple[float, float]:
    """Run a command and return its wall and CPU seconds; `CannotRun` if it fails."""
    with output.open("wb") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
        # Not `wait()`: only this reports what the process used.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    with process:
        if process.returncode:
            error = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
            raise CannotRun(f"{' '.join(command[:4])} … ended with status {process.returncode}: {error}")
    return wall, used.ru_utime + used.ru_stime


def installed(program: str) -> bool:
    return shutil.which(program) is not None
