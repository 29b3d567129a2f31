"""Runs requested forecasts, each in its own process, so that polling never waits."""

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from facho.apps.coordinator.models import Forecast
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Time limit of a forecast in seconds.
TIME_LIMIT = 600.0

# Niceness of the process; 19 is the maximum.
NICENESS = 15

# Maximum length of the stored error.
LONGEST_ERROR = 2000

INTERRUPTED = "Facho was stopped during the forecast. Request it again."


class ForecastRuns:
    """Runs one forecast at a time. A forecast left running by a dead engine has failed."""

    def __init__(
        self,
        *,
        thread: DbThread,
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
        result, error = await self._run(arguments(forecast.params))
        ended = self._clock.now()
        await self._thread.run(lambda: forecast.end(ended, result=result, error=error))
        logger.info("forecast %d ended: %s", forecast.pk, error or "done")

    async def _run(self, options: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
        """Return the result of the command, or the reason of the failure."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            "forecast",
            "--json",
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        try:
            said, complaint = await asyncio.wait_for(process.communicate(), self._time_limit)
        except TimeoutError:
            return None, f"The forecast was stopped after {self._time_limit:g} s. Request fewer OLTs or hours."
        finally:
            await _end(process)
        if process.returncode:
            return None, _reason(complaint.decode(errors="replace").strip(), process.returncode)
        return json.loads(said), ""


def _reason(complaint: str, status: int) -> str:
    """Return the last line of a failed command for the user. A traceback goes to the log."""
    if "\n" in complaint:
        logger.error("a forecast failed:\n%s", complaint)
    return complaint.rpartition("\n")[2][-LONGEST_ERROR:] or f"status {status}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process in any case."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _take(now: datetime) -> Forecast | None:
    for left in Forecast.objects.filter(status=Forecast.Status.RUNNING):
        left.end(now, error=INTERRUPTED)
    waiting = Forecast.objects.filter(status=Forecast.Status.PENDING).order_by("pk").first()
    return waiting if waiting is not None and waiting.begin(now) else None


def arguments(params: Mapping[str, Any]) -> list[str]:
    """Return the equivalent options of `facho forecast`."""
    options = [
        f"--{name}={params[name]}"
        for name in ("olts", "pollers", "hours", "dead", "seed")
        if params.get(name) is not None
    ]
    return options + [f"--job={_job(job)}" for job in params.get("jobs", ())]


def _job(job: Mapping[str, Any]) -> str:
    return f"{job['name']}:{job['interval_seconds']}:{job['seconds']}:{job['priority']}"
