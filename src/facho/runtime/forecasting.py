"""Forecasts: the engine on a virtual clock, over the real fleet or a planned one, on the command line or on request."""

import asyncio
import contextlib
import gc
import json
import logging
import math
import os
import random
import selectors
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.brands import brand
from facho.engine.forecast.fleet import Chance, Fleet, asked, works
from facho.engine.forecast.forecast import ForecastNodes, ForecastSlots, SleepingProber, SleepingRunner, on_grid
from facho.engine.forecast.report import Score
from facho.engine.forecast.verdict import ForecastFigures
from facho.engine.model import JobKind, Node, Status
from facho.engine.ports import Clock
from facho.engine.quota.durations import USUAL, Prediction
from facho.engine.quota.hour_plan import HOUR
from facho.engine.quota.pollers_needed import pollers_needed
from facho.engine.scheduling.breaker import OPENS_AFTER
from facho.engine.scheduling.grid import GOLDEN_RATIO
from facho.engine.scheduling.pollers import PollerManager
from facho.engine.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    # `facho forecast` runs without Django.
    from facho.apps.coordinator.models import Forecast
    from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# OLTs of one kind differ in speed: standard deviation of the logarithm of their speed.
UNEVEN = 0.25

# Default variation of a job: 95 % of its runs take less than this many times the mean.
P95 = 1.6

# Brand of a planned fleet.
MAKER = "huawei"


@dataclass(frozen=True, slots=True)
class JobWish:
    """A job from the command line: NAME:INTERVAL:SECONDS[:PRIORITY]."""

    name: str
    interval: timedelta
    prediction: Prediction
    priority: int = 40
    kind: JobKind = JobKind.TABLE
    follows: str | None = None
    timeout: timedelta = timedelta(minutes=5)


def parse_job(text: str) -> JobWish:
    """Return the job of a text; `ValueError` explains what is invalid."""
    name, *numbers = (part.strip() for part in text.split(":"))
    if not name or not 2 <= len(numbers) <= 3:
        raise ValueError(f"{text!r} is not a job: write NAME:INTERVAL:SECONDS or NAME:INTERVAL:SECONDS:PRIORITY")
    interval, seconds = parse_seconds(numbers[0], text), parse_seconds(numbers[1], text)
    if interval < 10 or seconds <= 0:
        raise ValueError(f"{text!r}: the interval must be at least 10 seconds and the duration more than 0")
    priority = int(parse_seconds(numbers[2], text)) if len(numbers) == 3 else 40
    # The time limit must not cut the given duration.
    timeout = timedelta(seconds=max(300.0, 10 * seconds))
    return JobWish(name, timedelta(seconds=interval), Prediction(seconds, seconds * P95), priority, timeout=timeout)


UNITS = {"min": 60, "s": 1, "m": 60, "h": 3600}


def parse_seconds(text: str, whole: str) -> float:
    """Return seconds of `300`, `5min` or `6h`."""
    unit = next((unit for unit in UNITS if text.endswith(unit)), "")
    try:
        number = float(text.removesuffix(unit)) * UNITS.get(unit, 1)
    except ValueError:
        raise ValueError(f"{whole!r}: {text!r} is not a duration; write seconds, or 5min, or 6h") from None
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{whole!r}: {text!r} is not a duration")
    return number


def usual_jobs() -> Sequence[JobWish]:
    """Return the default jobs of an OLT."""
    return [
        JobWish(each.name, each.interval, USUAL[each.kind], each.priority, each.kind, each.follows, each.timeout)
        for each in brand(MAKER).templates
    ]


def made_up(olts: int, jobs: Sequence[JobWish], start: datetime, *, dead: int = 0, seed: int = 1) -> Fleet:
    """Return a planned fleet with these jobs, with OLTs of different speed, the last ones dead.

    OLTs are assumed to be added one after the other, so their slots are spread over the whole interval.
    """
    dice = random.Random(seed)
    nodes: list[Node] = []
    known: dict[int, Prediction] = {}
    for olt_id in range(1, olts + 1):
        pace = dice.lognormvariate(0.0, UNEVEN)
        for node, prediction in _nodes_of(olt_id, jobs, len(nodes), start):
            nodes.append(node)
            known[node.id] = Prediction(prediction.mean * pace, prediction.p95 * pace)
    return Fleet(tuple(nodes), lambda node, at: known[node.id], frozenset(range(olts - dead + 1, olts + 1)))


def _nodes_of(
    olt_id: int, jobs: Sequence[JobWish], first_id: int, start: datetime
) -> Sequence[tuple[Node, Prediction]]:
    ids: Mapping[str, int] = {job.name: first_id + place for place, job in enumerate(jobs, 1)}

    def spread(number: int, interval: timedelta) -> datetime:
        """Return a slot within the first interval, on a full second, evenly spread."""
        return (start + number * GOLDEN_RATIO % 1 * interval).replace(microsecond=0)

    return [
        (
            Node(
                id=ids[job.name],
                olt_id=olt_id,
                name=job.name,
                kind=job.kind,
                interval=job.interval,
                olt_name=f"OLT-{olt_id:04}",
                priority=job.priority,
                master_id=ids[job.follows] if job.follows else None,
                next_check=None if job.follows else spread(ids[job.name], job.interval),
                timeout=job.timeout,
                expected=job.prediction.mean,
            ),
            job.prediction,
        )
        for job in jobs
    ]


def with_jobs(fleet: Fleet, jobs: Sequence[JobWish], start: datetime) -> Fleet:
    """Return a fleet with these additional jobs on each OLT."""
    if not jobs:
        return fleet
    names = {node.olt_id: node.olt_name for node in fleet.nodes}
    known: dict[int, Prediction] = {}
    nodes = list(fleet.nodes)
    last = max((node.id for node in nodes), default=0)
    for olt_id, name in names.items():
        for node, prediction in _nodes_of(olt_id, jobs, last, start):
            nodes.append(replace(node, olt_name=name))
            known[node.id] = prediction
        last += len(jobs)
    before = fleet.durations
    return replace(
        fleet, nodes=tuple(nodes), durations=lambda node, at: known[node.id] if node.id in known else before(node, at)
    )


def with_dead(fleet: Fleet, percent: float) -> Fleet:
    """Return a fleet with this share of dead OLTs, including the current ones."""
    olts = sorted({node.olt_id for node in fleet.nodes} - fleet.dead)
    more = round((len(olts) + len(fleet.dead)) * percent / 100) - len(fleet.dead)
    return replace(fleet, dead=fleet.dead | frozenset(olts[len(olts) - max(more, 0) :]))


# Run time before anything is counted or fails, because a new engine has an empty queue.
WARM_UP = timedelta(minutes=30)

# Time for the last slots to end.
DRAIN = timedelta(minutes=15)

# Number of OLTs with the most failures in a report.
WORST = 10

# Called with the virtual hours so far.
Progress = Callable[[float], None]

# Time limit of a requested forecast in seconds.
TIME_LIMIT = 600.0

# Niceness of its process; 19 is the maximum.
NICENESS = 15

# Start of a line of `--report-progress`.
PROGRESS = "progress: "

# Maximum length of the stored error.
LONGEST_ERROR = 2000


@dataclass(frozen=True, slots=True)
class Wish:
    """Parameters of a forecast. The start is a full hour, so that every quota is complete."""

    fleet: Fleet
    pollers: int
    hours: float
    start: datetime
    seed: int = 1
    opens_after: int = OPENS_AFTER
    auto_recover: bool = True
    warm_up: timedelta = WARM_UP


def forecast(wish: Wish, progress: Progress = lambda hours: None) -> dict[str, Any]:
    """Return the result as plain values."""
    return forecast_with_figures(wish, progress)[0]


def forecast_with_figures(
    wish: Wish, progress: Progress = lambda hours: None
) -> tuple[dict[str, Any], ForecastFigures]:
    """Return the result as plain values, and the figures that decide whether the fleet fits."""
    nodes = tuple(on_grid(node, wish.start - wish.warm_up) for node in wish.fleet.nodes)
    wish = replace(wish, fleet=replace(wish.fleet, nodes=nodes))
    silenced = logging.getLogger("facho.engine")
    level = silenced.level
    # Events of a forecast must not be logged as real ones.
    silenced.setLevel(logging.CRITICAL + 1)
    # Nothing here is cyclic, and garbage collection would take a tenth of the time.
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=ForecastLoop) as runner:
            score = runner.run(_lived_through(wish, progress))
    finally:
        gc.enable()
        silenced.setLevel(level)
    # OLTs that die in the forecast may come back, so they count.
    need = pollers_needed(works(asked(wish.fleet), wish.fleet, wish.start), wish.start)
    result = {
        "olts": len({node.olt_id for node in wish.fleet.nodes}),
        "dead": len(wish.fleet.dead),
        "nodes": len(wish.fleet.nodes),
        "pollers": wish.pollers,
        "hours": wish.hours,
        "seed": wish.seed,
        "start": wish.start.isoformat(),
        "failures": _failures(wish.fleet),
        **score.report(),
        "pool": {
            "pollers": need.pollers,
            "on_time": round(100 * need.on_time, 1),
            "reachable": round(100 * need.reachable, 1),
        },
    }
    return result, score.figures(wish.pollers, need.pollers)


class ForecastLoop(VirtualTimeLoop):
    """A virtual event loop without sockets."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Jump(self)


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self._loop.virtual_time += timeout
        return []


async def _lived_through(wish: Wish, progress: Progress) -> Score:
    clock, end = VirtualClock(wish.start - wish.warm_up), wish.start + timedelta(hours=wish.hours)
    score = Score(wish.start, end, {node.id: node for node in wish.fleet.nodes}, wish.fleet.dead)
    chance = Chance(wish.fleet, wish.start, seed=wish.seed)
    nodes = ForecastNodes(wish.fleet, chance, clock, auto_recover=wish.auto_recover)
    slots = ForecastSlots(nodes, score, wish.opens_after)

    def sample(manager: PollerManager) -> None:
        if wish.start <= clock.now() < end:
            score.sampled(manager.saturation.samples[-1], wish.pollers, 1.0, manager.saturation.is_saturated)

    scheduler = Scheduler(
        pollers=wish.pollers,
        nodes=nodes,
        slots=slots,
        runner=SleepingRunner(chance, slots, clock),
        clock=clock,
        prober=SleepingProber(chance, slots, clock),
        on_tick=sample,
    )
    while clock.now() < end + DRAIN:
        await scheduler.step()
        progress(min(max((clock.now() - wish.start) / HOUR, 0.0), wish.hours))
        await clock.sleep(1.0)
    await _give_up(scheduler.manager, score, clock.now())
    return score


async def _give_up(manager: PollerManager, score: Score, now: datetime) -> None:
    """Count waiting slots with their final result, and stop the rest."""
    waiting = manager.waiting
    for retry in [*manager.retries.drain(), *(each.retry for each in waiting if each.retry)]:
        await manager.end(retry)
    for each in waiting:
        each.mark(now)
        if each.retry is None:
            for link in each.composite.links:
                score.ended(link.id, each.composite.slot, Status.SKIPPED, each.main_cause)
    await manager.stop()


def _failures(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the OLTs with known failures, the least reachable first."""
    names = {node.olt_id: node.olt_name for node in fleet.nodes}
    known = [
        (names[id_], record)
        for id_, record in fleet.records.items()
        if id_ in names and record.silent + record.failed > 0
    ]
    known.sort(key=lambda item: ((item[1].runs - item[1].silent - item[1].failed) / item[1].runs, item[0]))
    return [
        {"olt": name, "runs": record.runs, "answered": record.runs - record.silent, "failed": record.failed}
        for name, record in known[:WORST]
    ]


class ForecastRuns:
    """Runs requested forecasts one at a time, each in its own process, so that polling never waits.

    A forecast left running by a dead engine has failed.
    """

    def __init__(
        self,
        *,
        thread: "DbThread",
        clock: Clock,
        command: Sequence[str] = (sys.executable, "-m", "facho.runtime.cli"),
        time_limit: float = TIME_LIMIT,
    ) -> None:
        self._thread = thread
        self._clock = clock
        self._command = command
        self._time_limit = time_limit

    async def step(self, now: datetime) -> None:
        """Run the oldest pending forecast, if there is one."""
        forecast = await self._thread.run(lambda: _take(now))
        if forecast is None:
            return
        result, error = await self._run(forecast, arguments(forecast.params))
        ended = self._clock.now()
        await self._thread.run(lambda: forecast.end(ended, result=result, error=error))
        logger.info("forecast %d ended: %s", forecast.pk, error or "done")

    async def _run(self, forecast: "Forecast", options: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
        """Return the result of the command, or the reason of the failure."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            "forecast",
            "--json",
            "--report-progress",
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        try:
            said, complaint = await asyncio.wait_for(self._read(process, forecast), self._time_limit)
        except TimeoutError:
            return None, f"The forecast was stopped after {self._time_limit:g} s. Request fewer OLTs or hours."
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if not process.returncode:
            return json.loads(said), ""
        # The user gets the last line. A traceback goes to the log.
        text = complaint.strip()
        if "\n" in text:
            logger.error("a forecast failed:\n%s", text)
        reason = text.rpartition("\n")[2].removeprefix("facho: ")
        return None, reason[-LONGEST_ERROR:] or f"status {process.returncode}"

    async def _read(self, process: asyncio.subprocess.Process, forecast: "Forecast") -> tuple[bytes, str]:
        """Return the output and the messages of the process; its progress is stored as it comes."""
        if process.stdout is None or process.stderr is None:
            raise RuntimeError("the process has no pipes")
        said = asyncio.ensure_future(process.stdout.read())
        complaints: list[str] = []
        try:
            async for line in process.stderr:
                text = line.decode(errors="replace")
                if text.startswith(PROGRESS) and (percent := text.removeprefix(PROGRESS).strip()).isdecimal():
                    await self._thread.run(partial(forecast.show_progress, int(percent)))
                else:
                    complaints.append(text)
            output = await said
            await process.wait()
        finally:
            said.cancel()
        return output, "".join(complaints)


def _take(now: datetime) -> "Forecast | None":
    from facho.apps.coordinator.models import Forecast

    for left in Forecast.objects.filter(status=Forecast.Status.RUNNING):
        left.end(now, error="Facho was stopped during the forecast. Request it again.")
    waiting = Forecast.objects.filter(status=Forecast.Status.PENDING).order_by("pk").first()
    return waiting if waiting is not None and waiting.begin(now) else None


def arguments(params: Mapping[str, Any]) -> list[str]:
    """Return the equivalent options of `facho forecast`."""
    options = [
        f"--{name}={params[name]}"
        for name in ("olts", "pollers", "hours", "dead", "seed")
        if params.get(name) is not None
    ]
    for job in params.get("jobs", ()):
        options.append(f"--job={job['name']}:{job['interval_seconds']}:{job['seconds']}:{job['priority']}")
    question = params.get("question") or {}
    for name in ("more_olts", "more_pollers"):
        if question.get(name):
            options.append(f"--{name.replace('_', '-')}={question[name]}")
    if interval := question.get("interval"):
        options.append(f"--interval={interval['job']}:{interval['seconds']}")
        if interval.get("olts"):
            options.append(f"--only-olts={','.join(map(str, interval['olts']))}")
    if "question" in params:
        options.append("--answer")
    return options
