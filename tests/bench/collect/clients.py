"""The collectors that are compared: what each took for all columns of one OLT, once."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents import CannotRun

ROOT = ".1.3.6.1.4.1.2011.6.128.1.1.2"

# The columns that the C simulator has, as Facho calls them.
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
# Which ONUs there are and which of them are up, and five columns that an OLT reads from the ONU itself.
OPTICS = {
    "serial": "43.1.3",
    "state": "46.1.15",
    "temperature_c": "51.1.1",
    "bias_ma": "51.1.2",
    "tx_dbm": "51.1.3",
    "rx_dbm": "51.1.4",
    "olt_rx_dbm": "51.1.6",
}
# What the others ask for a request, which is what Facho begins with for this maker too.
REPETITIONS = 25
# Seconds that the others wait: nobody is to lose time by asking again for what an agent works on.
PATIENCE = 60


@dataclass(frozen=True)
class Cost:
    """What one collection took: its own wall and CPU seconds, and those of a process that does nothing else."""

    wall: float
    cpu: float
    onus: int
    process_wall: float | None = None
    process_cpu: float | None = None
    # As the collector counts them itself.
    pdus: int | None = None
    # How often it collected to find that out; the seconds are those of one time.
    times: int = 1


class Client(Protocol):
    """A collector."""

    name: str

    def collect(self, address: str) -> Cost: ...


class Facho:
    """`facho collect`. What the collection itself took is in its report; the system says what the process did."""

    def __init__(self, window: int, folder: Path, columns: Sequence[str] = tuple(COLUMNS)) -> None:
        self.name = f"facho, window {window}"
        self._output = folder / "facho.json"
        self._arguments = ["--brand", "huawei", "--columns", ",".join(columns), "--window", str(window), "--json"]

    def collect(self, address: str) -> Cost:
        command = [sys.executable, "-m", "facho.runtime.cli", "collect", address, *self._arguments]
        wall, cpu = run(command, self._output)
        report: dict[str, Any] = json.loads(self._output.read_text())
        stats = report["stats"]
        return Cost(stats["seconds"], stats["cpu_seconds"], len(report["onus"]), wall, cpu, stats["pdus"])


class BulkWalk:
    """`snmpbulkwalk`, one process for each column, one after the other. It takes no names: that saves it time."""

    name = "snmpbulkwalk"

    def __init__(self, folder: Path, columns: Sequence[str] = tuple(COLUMNS.values())) -> None:
        self._output = folder / "walk.txt"
        self._columns = columns

    def collect(self, address: str) -> Cost:
        options = ["-v2c", "-cpublic", "-m", "", "-On", f"-Cr{REPETITIONS}", "-t", str(PATIENCE), "-r", "1", address]
        wall = cpu = 0.0
        rows = set()
        for column in self._columns:
            oid = f"{ROOT}.{column}"
            seconds = run(["snmpbulkwalk", *options, oid], self._output)
            wall, cpu = wall + seconds[0], cpu + seconds[1]
            # A string may take several lines.
            rows.add(sum(line.startswith(f"{oid}.") for line in self._output.read_text(errors="replace").splitlines()))
        if len(rows) != 1:
            raise CannotRun(f"snmpbulkwalk found {sorted(rows)} rows where all columns have the same.")
        return Cost(wall, cpu, rows.pop())


def run(command: Sequence[str], output: Path) -> tuple[float, float]:
    """Run a command and return its wall and CPU seconds; `CannotRun` if it fails."""
    with output.open("wb") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
        # Not `wait()`: only this tells what the process used.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    with process:
        if process.returncode:
            said = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
            raise CannotRun(f"{' '.join(command[:4])} … ended with status {process.returncode}: {said}")
    return wall, used.ru_utime + used.ru_stime


def installed(program: str) -> bool:
    return shutil.which(program) is not None
