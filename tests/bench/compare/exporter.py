"""`prometheus-snmp-exporter` as one of the collectors: a process that is scraped over HTTP."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import cpu
from collectors import COLUMNS, PATIENCE, REPETITIONS, ROOT, Cost
from olts import CannotRun

HOST = "127.0.0.1"
PROGRAM = "prometheus-snmp-exporter"
MODULE = "onus"
AUTH = "bench"

# How it is told to read a value; what is not here is a number.
TYPES = {"serial": "OctetString", "name": "DisplayString", "last_up": "DateAndTime"}

# The system counts CPU in steps of 1/100 s; this many seconds of it are read to within 2 %.
ENOUGH_CPU = 0.5
STARTUP_SECONDS = 10


def module() -> dict[str, Any]:
    """Return what to ask for, as its configuration says it."""
    index = [{"labelname": name, "type": "gauge"} for name in ("port", "onu")]
    oids = {name: f"{ROOT}.{column}"[1:] for name, column in COLUMNS.items()}
    return {
        "walk": list(oids.values()),
        "metrics": [
            {"name": name, "oid": oid, "type": TYPES.get(name, "gauge"), "help": name, "indexes": index}
            for name, oid in oids.items()
        ],
        "max_repetitions": REPETITIONS,
        "timeout": f"{PATIENCE}s",
        "retries": 1,
    }


def configurations() -> list[dict[str, Any]]:
    """Return the configuration as versions from 0.23 on want it, and as earlier ones do."""
    return [
        {"auths": {AUTH: {"community": "public", "version": 2}}, "modules": {MODULE: module()}},
        {MODULE: {**module(), "version": 2, "auth": {"community": "public"}}},
    ]


class Exporter:
    """Runs as long as a `with` lasts. Its CPU is counted in hundredths of a second, so it is a mean of scrapes."""

    name = "snmp_exporter"

    def __init__(self, folder: Path) -> None:
        self._file = folder / "exporter.yml"
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def __enter__(self) -> Self:
        self._write_configuration()
        with socket.socket() as free:
            free.bind((HOST, 0))
            address = f"{HOST}:{free.getsockname()[1]}"
        command = [PROGRAM, f"--config.file={self._file}", f"--web.listen-address={address}"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._url = f"http://{address}"
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _write_configuration(self) -> None:
        for configuration in configurations():
            # JSON is YAML.
            self._file.write_text(json.dumps(configuration))
            check = subprocess.run(
                [PROGRAM, f"--config.file={self._file}", "--dry-run"], capture_output=True, check=False
            )
            if not check.returncode:
                return
        raise CannotRun(f"{PROGRAM} does not take our configuration: {check.stderr.decode(errors='replace').strip()}")

    def _wait(self) -> None:
        ends = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < ends:
            try:
                self._get("/")
                return
            except urllib.error.URLError:
                time.sleep(0.05)
        raise CannotRun(f"{PROGRAM} did not start in {STARTUP_SECONDS} s.")

    def collect(self, address: str, onus: int) -> Mapping[str, Cost]:
        path = f"/snmp?target={address}&module={MODULE}&auth={AUTH}"
        walls: list[float] = []
        spent = self._cpu()
        while not walls or (self._cpu() - spent < ENOUGH_CPU and sum(walls) < 2 * ENOUGH_CPU):
            started = time.perf_counter()
            page = self._get(path)
            walls.append(time.perf_counter() - started)
        values = sum(line.startswith(tuple(f"{name}{{".encode() for name in COLUMNS)) for line in page.splitlines())
        return {self.name: Cost(min(walls), (self._cpu() - spent) / len(walls), values, times=len(walls))}

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self._url + path, timeout=1800) as answer:  # noqa: S310 - our own, on loopback
            page: bytes = answer.read()
            return page

    def _cpu(self) -> float:
        if self._process is None:
            raise CannotRun(f"{PROGRAM} does not run.")
        return cpu.seconds([self._process.pid])
