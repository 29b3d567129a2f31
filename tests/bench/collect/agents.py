"""The OLTs of the benchmark: simulators on loopback, started anew for each measurement and counted by their own log."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"
PORT_ONUS_MAX = 128


class CannotRun(Exception):
    """Something that the benchmark needs is missing or does not work. Reads as a sentence."""


@dataclass
class Served:
    """What a simulator says it did; filled in when it has ended."""

    pdus: int = 0
    # Seconds that the agent was at work; None where it does not work one request after the other.
    agent_seconds: float | None = None


@dataclass(frozen=True)
class Model:
    """One simulated OLT: the command that starts it, but for its port and its log, and how its log is read."""

    command: Sequence[str]
    is_serial: bool = False
    is_ours: bool = False
    log: Path = field(default=Path("pdus.log"))

    def start(self, port: int) -> "subprocess.Popen[str]":
        ours = ["--port", str(port), "--log", str(self.log)]
        theirs = ["-p", str(port), *(["-W", str(self.log)] if self.is_serial else [])]
        return subprocess.Popen(
            [*self.command, *(ours if self.is_ours else theirs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def build(source: str, folder: Path) -> str:
    """Return the C simulator as a program; a source file is compiled into the folder."""
    path = Path(source)
    if not path.is_file():
        raise CannotRun(f"There is no file {path}: --oltsim, or FACHO_OLTSIM, names the C simulator or its source.")
    if path.suffix != ".c":
        return str(path.resolve())
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise CannotRun(f"{path} has to be compiled, and there is no gcc: install it, or name a program.")
    program = folder / path.stem
    made = subprocess.run([compiler, "-O2", "-o", program, path], capture_output=True, text=True, check=False)
    if made.returncode:
        raise CannotRun(f"{path} could not be compiled: {made.stderr.strip()}")
    return str(program)


def fast(program: str, onus: int, latency_ms: float) -> Model:
    """Return an OLT that answers any number of requests at once, each after the latency."""
    ports = max(16, -(-onus // PORT_ONUS_MAX))
    return Model([program, "-P", str(ports), "-K", str(onus // ports), "-l", str(latency_ms)])


def serial(program: str, onus_per_port: int, scale: float, folder: Path) -> Model:
    """Return an OLT like an MA5608T, `scale` times as fast: 20 ms a request, 2 a variable, 150 an optical row."""
    times = ["-R", str(20_000 / scale), "-V", str(2_000 / scale), "-O", str(150_000 / scale)]
    shape = ["-P", "16", "-K", str(onus_per_port), "-S", "-Q", "8"]
    return Model([program, *shape, *times], is_serial=True, log=folder / "serial.log")


def serial_with_all_optics(onus: int, scale: float, folder: Path) -> Model:
    """Return the same OLT from Facho's own simulator, which has all the optical columns of the maker."""
    per = {"pdu": 0.020, "varbind": 0.002, "optical-row": 0.150}
    times = [word for name, seconds in per.items() for word in (f"--per-{name}", f"{seconds / scale:.6f}")]
    command = [sys.executable, "-m", "facho.runtime.cli", "sim", "--onus", str(onus), "--queue-limit", "8", *times]
    return Model(command, is_serial=True, is_ours=True, log=folder / "optics.log")


@contextmanager
def running(model: Model) -> Iterator[tuple[str, Served]]:
    """Run a simulator; give its address, and what it served once it has ended."""
    model.log.unlink(missing_ok=True)
    port = _free_port()
    process = model.start(port)
    served = Served()
    try:
        if process.stdout is None or not process.stdout.readline():
            raise CannotRun(f"{model.command[0]} did not start: {process.communicate()[1].strip()}")
        yield f"{HOST}:{port}", served
    finally:
        said = _end(process)
    work = list(_read_work(model)) if model.is_serial else []
    served.pdus = len(work) if model.is_serial else _requests(said)
    served.agent_seconds = busy_seconds(work) if model.is_serial else None


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
        return port


def _end(process: "subprocess.Popen[str]") -> str:
    """End a simulator and return what it said."""
    while True:
        process.send_signal(signal.SIGTERM)
        try:
            return process.communicate(timeout=1)[1]
        except subprocess.TimeoutExpired:
            # A signal that comes just before it goes to sleep is only seen when the next one wakes it.
            continue


def _requests(said: str) -> int:
    words = said.split()
    if "requests" not in words:
        raise CannotRun(f"The simulator did not say what it served: {said.strip()!r}")
    return int(words[words.index("requests") + 1])


def _read_work(model: Model) -> Iterator[tuple[float, float]]:
    """Yield when each request came and when its answer left, in seconds."""
    for line in model.log.read_text().splitlines():
        if model.is_ours:
            pdu = json.loads(line)
            yield pdu["arrived"], pdu["answered"] or pdu["arrived"]
        else:
            numbers = line.split()
            yield int(numbers[0]) / 1e6, int(numbers[-1]) / 1e6


def busy_seconds(work: Iterable[tuple[float, float]]) -> float:
    """Return how long an agent worked that does one thing after the other; what waits is not worked on."""
    total, until = 0.0, 0.0
    for arrived, left in sorted(work):
        total += max(0.0, left - max(arrived, until))
        until = max(until, left)
    return total
