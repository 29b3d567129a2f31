"""CPU per stored value: real Facho processes poll a fleet into a real database, in turns with snmpbulkwalk."""

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import cpu
from collectors import COLUMNS, BulkWalk
from olts import CannotRun, Shape, Simulator

from server_postgres import LaunchedPostgres
from server_process import Launched, free_port
from server_redis import LaunchedRedis
from stack import Role, environment

MODES = ("stored-sqlite", "stored-postgres", "scale-out")
HELPER = Path(__file__).with_name("database.py")
# The shortest interval of a job. Several jobs together ask for more than one process can store.
SHORTEST_INTERVAL = 10
MOST_JOBS = 4
# The steady load, as a share of the cores that Facho can use: one in a single process, all in scale-out.
LOAD = 0.6
# The percentage of ONUs whose powers differ from one run to the next.
CHANGED = 10
# Part of the name of every table of the history.
HISTORY = "history"
PATIENCE = 400
# All windows together do not take longer, in seconds.
LONGEST_STEADY = 100
WORKERS = 2
# Runs of each OLT before anything is measured.
WARM_UP_ROUNDS = 4


@dataclass(frozen=True)
class Load:
    """How large a fleet is measured, and for how long."""

    olts: int
    windows: int
    window_seconds: float
    full_speed_seconds: float
    full_speed_jobs: tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """What one mode needs per stored value; medians of all windows. Seconds and bytes."""

    mode: str
    olts: int
    onus: int
    # Between two runs on an OLT.
    interval: float
    # Facho's own processes, and the servers that it uses.
    cpu_per_value: float
    server_cpu_per_value: float
    walk_cpu_per_value: float | None
    values_per_second: float
    most_values_per_second: float
    # Of all cores, by Facho and the servers: in the steady windows, and at full speed.
    load: float
    full_speed_load: float
    # In the steady windows, by programs that have nothing to do with the benchmark.
    other_load: float
    late_p99: float | None
    megabytes: float
    history_per_reading: float
    history_per_value: float
    # Growth of all tables, the history among them.
    database_per_value: float
    windows: int
    versions: Mapping[str, str] = field(default_factory=dict)
    # How many runs ended otherwise than expected, by status.
    troubles: Mapping[str, int] = field(default_factory=dict)

    @property
    def total_cpu_per_value(self) -> float:
        return self.cpu_per_value + self.server_cpu_per_value

    @property
    def ratio(self) -> float | None:
        return self.total_cpu_per_value / self.walk_cpu_per_value if self.walk_cpu_per_value else None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "total_cpu_per_value": self.total_cpu_per_value, "ratio": self.ratio}


@dataclass(frozen=True)
class Window:
    """One measured stretch of time."""

    seconds: float
    cpu: float
    server_cpu: float
    # Of programs that have nothing to do with the benchmark.
    other_cpu: float
    counted: Mapping[str, Any]

    @property
    def values(self) -> float:
        return float(self.counted["values"])

    @property
    def load(self) -> float:
        return (self.cpu + self.server_cpu) / self.seconds / (os.cpu_count() or 1)

    @property
    def other_load(self) -> float:
        return self.other_cpu / self.seconds / (os.cpu_count() or 1)


class Helper:
    """`database.py` in a process of its own."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        command = [sys.executable, str(HELPER)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment(settings), stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, do: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise CannotRun(f"{HELPER.name} failed at {do!r}. Its error is above.")
        return json.loads(line)


class Installation:
    """Facho in one mode: its servers, its processes, and a fleet of simulated OLTs."""

    def __init__(self, simulator: Simulator, servers: Sequence[Launched], roles: Sequence[Role], helper: Helper):
        self.simulator = simulator
        self.helper = helper
        self._servers = servers
        self._roles = roles

    @property
    def pids(self) -> list[int]:
        return [role.pid for role in self._roles]

    @property
    def server_pids(self) -> list[int]:
        return [server.pid for server in self._servers]

    @contextmanager
    def running(self, *, jobs: int, interval: int) -> Iterator[None]:
        """Poll the fleet at this interval; begins when every OLT has been polled, so that nothing is new."""
        self.simulator.stop()
        self.simulator.start(drift=CHANGED * jobs / interval)
        self.helper.ask("schedule", jobs=jobs, interval=interval)
        with self.started():
            self.await_round()
            yield

    @contextmanager
    def started(self) -> Iterator[None]:
        """Run all processes of Facho."""
        try:
            for role in self._roles:
                role.launch()
            for role in self._roles:
                role.await_ready()
            yield
        finally:
            for role in self._roles:
                if role.is_alive:
                    role.ask_to_stop()
            for role in self._roles:
                if role.is_alive:
                    role.stop()

    def await_round(self) -> None:
        """Wait until a run of each OLT has begun after now, and is stored."""
        began, olts = time.time(), self.simulator.shape.olts
        while self.helper.ask("polled_since", start=began) < olts:
            if time.time() > began + PATIENCE:
                raise CannotRun(f"Not all {olts} OLTs were polled within {PATIENCE} s. {self._roles[0].said()[-2000:]}")
            time.sleep(0.5)

    def warm_up(self) -> None:
        """Wait until each OLT was polled several times: the first runs of a process get to know it."""
        for _ in range(WARM_UP_ROUNDS):
            self.await_round()

    def measure(self, seconds: float) -> Window:
        start, before = time.time(), self._cpu()
        time.sleep(seconds)
        end, after = time.time(), self._cpu()
        counted = self.helper.ask("count", start=start, end=end, columns=list(COLUMNS))
        if not counted["values"]:
            raise CannotRun(f"Nothing was stored in {seconds:.0f} s. {self._roles[0].said()[-2000:]}")
        own, servers, simulator, machine = (later - earlier for later, earlier in zip(after, before, strict=True))
        return Window(end - start, own, servers, max(machine - own - servers - simulator, 0.0), counted)

    def _cpu(self) -> tuple[float, float, float, float]:
        """Return the CPU seconds of Facho, its servers, the simulator and the whole machine."""
        ours = (cpu.seconds(pids) for pids in (self.pids, self.server_pids, self.simulator.pids))
        return (*ours, cpu.machine_seconds())


class Growth:
    """By how many bytes the database grows from here to `end`, and what is stored meanwhile."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        self._start = time.time()
        self._before: dict[str, int] = helper.ask("sizes")

    def end(self) -> None:
        after: dict[str, int] = self._helper.ask("sizes")
        stored = self._helper.ask("count", start=self._start, end=time.time(), columns=list(COLUMNS))
        grown = {name: size - self._before.get(name, 0) for name, size in after.items()}
        self.database = sum(grown.values())
        self.history = sum(size for name, size in grown.items() if HISTORY in name)
        self.readings: int = stored["readings"]
        self.values: float = stored["values"]


@contextmanager
def installed(
    mode: str, program: str | None, shape: Shape, folder: Path, *, usual_jobs: bool = False
) -> Iterator[Installation]:
    """Make an installation, its database filled with the OLTs and jobs; nothing of Facho runs yet."""
    folder.mkdir()
    with ExitStack() as stack:
        settings = {"FACHO_DATA_DIR": str(folder / "data")}
        servers: list[Launched] = []
        if mode != "stored-sqlite":
            servers.append(postgres := stack.enter_context(LaunchedPostgres(durable=True)))
            settings["DATABASE_URL"] = postgres.url
        if mode == "scale-out":
            servers.append(redis := stack.enter_context(LaunchedRedis()))
            settings |= {"FACHO_MODE": "scale", "FACHO_REDIS_URL": redis.url}
        simulator = stack.enter_context(Simulator(program, shape))
        helper = stack.enter_context(Helper(settings))
        addresses = enumerate(simulator.addresses)
        olts = [{"name": f"OLT-{number + 1}", "host": host, "port": port} for number, (host, port) in addresses]
        if usual_jobs:
            helper.ask("make_usual", olts=olts)
        else:
            helper.ask("make", olts=olts, columns=list(COLUMNS), jobs=MOST_JOBS)
        roles = list(_roles(mode, settings, folder))
        for role in roles:
            stack.callback(role.remove)
        yield Installation(simulator, servers, roles, helper)


def _roles(mode: str, settings: Mapping[str, str], folder: Path) -> Iterator[Role]:
    port = f"--port={free_port()}"
    if mode != "scale-out":
        yield Role("facho", ["run", port], settings, folder / "facho.log", "Facho is listening on")
        return
    workers = [f"worker-{number + 1}" for number in range(WORKERS)]
    # Ten pollers in all, as in one process.
    commands = {**{name: ["worker", "-c", "5"] for name in workers}, "scheduler": ["scheduler"], "web": ["web", port]}
    ready = {"scheduler": "The scheduler is on standby.", "web": "Facho is listening on"}
    for name, arguments in commands.items():
        own = {**settings, "FACHO_WORKER_NAME": name}
        yield Role(name, arguments, own, folder / f"{name}.log", ready.get(name, "The worker has"))


def measure(
    mode: str, program: str | None, shape: Shape, load: Load, folder: Path, walk: BulkWalk | None, profile: Path | None
) -> Stored:
    with installed(mode, program, shape, folder) as site:
        full = _full_speed(site, load)
        jobs, interval = _steady(mode, full, shape)
        seconds = interval * math.ceil(load.window_seconds / interval)
        many = max(1, min(load.windows, int(LONGEST_STEADY / seconds)))
        with ExitStack() as stack:
            stack.enter_context(site.running(jobs=jobs, interval=interval))
            site.warm_up()
            stack.enter_context(_profiled(profile, site, many * seconds))
            windows: list[Window] = []
            walks: list[float] = []
            growth = Growth(site.helper)
            for _ in range(many):
                walks += _walks(walk, site.simulator)
                windows.append(site.measure(seconds))
            walks += _walks(walk, site.simulator)
            growth.end()
            megabytes = cpu.peak_megabytes(site.pids)
        versions = site.helper.ask("versions")
    return _stored(mode, shape, interval / jobs, full, windows, walks, growth, megabytes, versions)


def _full_speed(site: Installation, load: Load) -> Window:
    """Measure with more jobs than can run: one where that is enough, for a round of many jobs takes minutes."""
    shape = site.simulator.shape
    for jobs in load.full_speed_jobs:
        with site.running(jobs=jobs, interval=SHORTEST_INTERVAL):
            site.warm_up()
            window = site.measure(load.full_speed_seconds)
        asked = jobs * shape.olts * shape.onus / SHORTEST_INTERVAL
        if window.counted["readings"] / window.seconds < 0.9 * asked:
            break
    return window


def _steady(mode: str, full: Window, shape: Shape) -> tuple[int, int]:
    """Return how many jobs, at which interval, are a steady load, by the CPU that was needed at full speed."""
    cores = (os.cpu_count() or 1) if mode == "scale-out" else 1
    cpu_per_round = (full.cpu + full.server_cpu) / full.values * shape.olts * shape.onus * len(COLUMNS)
    seconds = cpu_per_round / (LOAD * cores)
    if seconds > SHORTEST_INTERVAL:
        return 1, math.ceil(seconds)
    return min(MOST_JOBS, int(SHORTEST_INTERVAL / seconds)), SHORTEST_INTERVAL


def _walks(walk: BulkWalk | None, simulator: Simulator) -> list[float]:
    if walk is None:
        return []
    costs = [walk.collect(simulator.first, simulator.shape.onus)[walk.name] for _ in range(3)]
    return [cost.cpu / cost.values for cost in costs]


def _stored(
    mode: str,
    shape: Shape,
    interval: float,
    full: Window,
    windows: Sequence[Window],
    walks: Sequence[float],
    growth: Growth,
    megabytes: float,
    versions: Mapping[str, str],
) -> Stored:
    def median(of: Callable[[Window], float]) -> float:
        return statistics.median(of(window) for window in windows)

    late = [window.counted["late_p99"] for window in windows if window.counted["late_p99"] is not None]
    troubles: Counter[str] = Counter()
    for window in windows:
        troubles.update({name: many for name, many in window.counted["statuses"].items() if name != "SUCCESS"})
    return Stored(
        mode=mode,
        olts=shape.olts,
        onus=shape.onus,
        interval=interval,
        cpu_per_value=median(lambda window: window.cpu / window.values),
        server_cpu_per_value=median(lambda window: window.server_cpu / window.values),
        walk_cpu_per_value=statistics.median(walks) if walks else None,
        values_per_second=median(lambda window: window.values / window.seconds),
        most_values_per_second=full.values / full.seconds,
        load=median(lambda window: window.load),
        full_speed_load=full.load,
        other_load=median(lambda window: window.other_load),
        late_p99=max(late, default=None),
        megabytes=megabytes,
        history_per_reading=growth.history / growth.readings,
        history_per_value=growth.history / growth.values,
        database_per_value=growth.database / growth.values,
        windows=len(windows),
        versions=versions,
        troubles=troubles,
    )


@contextmanager
def _profiled(file: Path | None, site: Installation, seconds: float) -> Iterator[None]:
    """Sample the first process of Facho with py-spy: an SVG by that suffix, else one line per stack."""
    if file is None:
        yield
        return
    program = shutil.which("py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise CannotRun(f"--profile needs py-spy. Install it: {sys.executable} -m pip install py-spy")
    kind = "flamegraph" if file.suffix == ".svg" else "raw"
    options = ["--pid", str(site.pids[0]), "--duration", str(int(seconds)), "--format", kind, "--output", str(file)]
    process = subprocess.Popen([program, "record", "--threads", *options], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.wait()
    if kind == "raw":
        print_profile(file)


def print_profile(file: Path, most: int = 25) -> None:
    """Print the functions that most samples were taken in."""
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        # "function (file:line)": the lines of a function are one entry.
        frames = [re.sub(r":\d+\)$", ")", frame) for frame in stack.split(";")]
        own[frames[-1]] += int(samples)
        within.update({frame: int(samples) for frame in frames})
    total = own.total()
    print(f"\n{total:,} samples. Share of samples in the function itself, and in it with all that it calls:")
    for name, many in own.most_common(most):
        print(f"{many / total:7.1%}{within[name] / total:8.1%}  {name}")
