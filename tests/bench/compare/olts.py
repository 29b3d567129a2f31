"""Simulated OLTs on loopback: the C simulator where there is a compiler, else `facho sim`."""

import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).resolve().parent.parent / "oltsim.c"
FIRST_HOST = "127.0.0.1"
# Below the ports that the system gives to clients.
PORTS = range(16000, 32000)
# A benchmark that is killed cannot end the C simulator, so it ends by itself.
LIFETIME_SECONDS = 1800


class CannotRun(Exception):
    """Something that the benchmark needs is missing or fails. The message is a sentence."""


@dataclass(frozen=True)
class Shape:
    """How many OLTs there are and how they behave. Times above zero in `us_...` make them serial."""

    olts: int = 1
    ports: int = 16
    onus_per_port: int = 64
    latency_ms: float = 0
    us_per_request: float = 0
    us_per_varbind: float = 0
    us_per_optical_row: float = 0
    # The percentage of ONUs whose powers change each second. The Python simulator has its own changes.
    drift: float = 0

    @property
    def onus(self) -> int:
        return self.ports * self.onus_per_port


def build(folder: Path) -> str | None:
    """Compile the C simulator into the folder and return its path, or None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    program = folder / SOURCE.stem
    made = subprocess.run([compiler, "-O2", "-o", program, SOURCE], capture_output=True, text=True, check=False)
    if made.returncode:
        raise CannotRun(f"{SOURCE.name} does not compile: {made.stderr.strip()}")
    return str(program)


class Simulator:
    """OLTs of one shape, from `start` to `stop`. A second start uses the same addresses."""

    def __init__(self, program: str | None, shape: Shape) -> None:
        self.shape = shape
        self.addresses: list[tuple[str, int]] = []
        self._program = program
        self._port = free_udp_port()
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def first(self) -> str:
        host, port = self.addresses[0]
        return f"{host}:{port}"

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def start(self, drift: float | None = None) -> None:
        drift = self.shape.drift if drift is None else drift
        if self._program is None:
            self.addresses = [self._start_python(number) for number in range(self.shape.olts)]
            return
        self._launch([self._program, *self._c_options(self._program, drift)])
        first = [int(part) for part in FIRST_HOST.split(".")]
        hosts = (first[3] + number for number in range(self.shape.olts))
        self.addresses = [(f"127.0.{host // 256}.{host % 256}", self._port) for host in hosts]

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.communicate()
        self._processes = []

    def requests(self) -> int | None:
        """Return how many requests were received since the start, as far as the simulator counts them."""
        if self._program is None:
            return None
        self._processes[0].send_signal(signal.SIGUSR1)
        line = self._processes[0].stderr.readline() if self._processes[0].stderr else ""
        words = line.split()
        return int(words[words.index("requests") + 1])

    def _c_options(self, program: str, drift: float) -> list[str]:
        shape = self.shape
        options: dict[str, object] = {"-n": shape.olts, "-p": self._port, "-P": shape.ports, "-K": shape.onus_per_port}
        options |= {"-l": shape.latency_ms, "-d": drift, "-T": LIFETIME_SECONDS}
        if shape.us_per_request:
            options |= {"-R": shape.us_per_request, "-V": shape.us_per_varbind, "-O": shape.us_per_optical_row}
        words = [str(word) for pair in options.items() for word in pair]
        return [*words, *(["-S"] if shape.us_per_request else []), *(["-D"] if shape.olts > 1 else [])]

    def _start_python(self, number: int) -> tuple[str, int]:
        shape = self.shape
        port = self.addresses[number][1] if self.addresses else 0
        options: dict[str, object] = {"--onus": shape.onus, "--port": port, "--seed": number + 1}
        options |= {"--name": f"OLT-{number + 1}", "--latency": shape.latency_ms / 1e3}
        if shape.us_per_request:
            options |= {"--per-pdu": shape.us_per_request / 1e6, "--per-varbind": shape.us_per_varbind / 1e6}
            options |= {"--per-optical-row": shape.us_per_optical_row / 1e6}
        words = [str(word) for pair in options.items() for word in pair]
        line = self._launch([sys.executable, "-m", "facho.runtime.cli", "sim", *words])
        found = re.search(r"(127\.\d+\.\d+\.\d+):(\d+)", line)
        if found is None:
            raise CannotRun(f"`facho sim` did not print an address: {line!r}")
        return found[1], int(found[2])

    def _launch(self, command: list[str]) -> str:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
        self._processes.append(process)
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise CannotRun(f"The simulator did not start: {process.communicate()[1].strip()}")
        return line


def free_udp_port() -> int:
    """Return a UDP port that is free on every address of loopback."""
    for port in random.sample(PORTS, 100):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    raise CannotRun("A hundred UDP ports are in use.")
