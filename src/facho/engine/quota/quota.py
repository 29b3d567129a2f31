"""Quotas of an hour: required and completed runs, severity and advice. Arithmetic only: no clock, no I/O.

The report of a violation is plain JSON:

required, completed, failed, skipped, pending   counters of the hour; pending: still open when it was judged
percent       completed share, without runs that were disabled or in maintenance
causes        number of skipped or failed runs, by cause or else by kind of error: {"unreachable": 9}
slowest       jobs by total time: [{"task", "mean_seconds", "max_seconds", "runs"}], most time first
worst_lateness   {"task", "slot", "seconds", "parts": {"olt_busy": 70.2, ..., "starting": 0.1}}, or null; parts add up
advice        actions, most effective first: [{"code", "params", "sentence"}]; ADVICE has the sentence of each code
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from logging import CRITICAL, ERROR, WARNING
from types import MappingProxyType
from typing import Any

from facho.engine.events import gettext_noop
from facho.engine.model import Cause, Status

HOUR = timedelta(hours=1)

# Percentage from which an hour is fulfilled.
ENOUGH = 80

# Open executions are not waited for longer than this after the end of the hour.
GRACE = timedelta(minutes=5)

# Number of slowest jobs in a report.
SLOWEST = 5


class Severity(StrEnum):
    """Severity of a violation."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


# Log level of each severity.
LEVELS: Mapping[Severity, int] = {
    Severity.LOW: WARNING,
    Severity.MEDIUM: WARNING,
    Severity.HIGH: ERROR,
    Severity.CRITICAL: CRITICAL,
}


class Verdict(StrEnum):
    """Final result of an hour of a job on an OLT."""

    COMPLETED = "COMPLETED"
    # Fulfilled, but not all runs.
    PARTIAL = "PARTIAL"
    QUOTA_NOT_MET = "QUOTA_NOT_MET"
    # No run at all.
    FAILED = "FAILED"


class Share(StrEnum):
    """Counter that a finished slot goes to."""

    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


# A partial run has readings. An interrupted run was started, or could have been.
SHARES = {
    Status.SUCCESS: Share.COMPLETED,
    Status.PARTIAL: Share.COMPLETED,
    Status.FAILED: Share.FAILED,
    Status.INTERRUPTED: Share.FAILED,
    Status.SKIPPED: Share.SKIPPED,
}


# Causes set by users. Slots lost to them are not judged.
UNWANTED = frozenset({Cause.DISABLED, Cause.MAINTENANCE})


@dataclass(frozen=True, slots=True)
class Count:
    """Counters of one job on one OLT in one hour. `required` is always their sum."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)

    @property
    def required(self) -> int:
        return self.completed + self.failed + self.skipped + self.pending

    @property
    def wanted(self) -> int:
        """Return the number of runs to judge, without those that were disabled or in maintenance."""
        return max(self.required - unwanted(self.causes), self.completed)


def unwanted(causes: Mapping[str, int]) -> int:
    """Return the number of slots that are not judged, from the numbers by cause."""
    return sum(causes.get(cause, 0) for cause in UNWANTED)


@dataclass(frozen=True, slots=True)
class CountedRun:
    """Fields of an execution that a report needs."""

    task: str
    slot: datetime
    seconds: float | None = None
    lateness: float | None = None
    # Parts of its lateness, in seconds.
    parts: Mapping[str, float] = field(default_factory=dict)


def hour_of(at: datetime) -> datetime:
    """Return the start of the UTC hour. Some time zones are not a whole number of hours away from it."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def slots_between(due: datetime, interval: timedelta, start: datetime, end: datetime) -> int:
    """Return the number of slots of the grid from `due` on with start <= slot < end."""
    return max(_slots_before(due, interval, end) - _slots_before(due, interval, start), 0)


def _slots_before(due: datetime, interval: timedelta, end: datetime) -> int:
    return max(-((due - end) // interval), 0)


def by_hour(slot: datetime, interval: timedelta, slots: int) -> Iterator[tuple[datetime, int]]:
    """Distribute consecutive slots over their hours."""
    while slots > 0:
        hour = hour_of(slot)
        count = min(slots, slots_between(slot, interval, hour, hour + HOUR))
        yield hour, count
        slot += count * interval
        slots -= count


def severity(completed: int, required: int) -> Severity | None:
    """Return the severity for this many completed runs, or None if they are enough."""
    if required <= 0 or completed * 100 >= required * ENOUGH:
        return None
    if completed == 0 or completed * 4 < required:
        return Severity.CRITICAL
    if completed * 2 <= required:
        return Severity.HIGH
    return Severity.MEDIUM if completed * 100 < required * 60 else Severity.LOW


def verdict(completed: int, required: int) -> Verdict:
    """Return the final result of an hour."""
    if completed >= required:
        return Verdict.COMPLETED
    if completed == 0:
        return Verdict.FAILED
    return Verdict.PARTIAL if severity(completed, required) is None else Verdict.QUOTA_NOT_MET


def percent(completed: int, required: int) -> float:
    return round(100 * completed / required, 1) if required else 100.0


ADVICE = {
    "check_reachability": gettext_noop(
        "%(olt)s did not answer: check its power, its uplink, the management network, and its SNMP community or user."
    ),
    "relieve_olt": gettext_noop(
        "%(olt)s was busy: increase the interval of %(lengthen)s, or remove %(drop)s from this OLT."
    ),
    "lengthen_interval": gettext_noop("%(olt)s was busy: increase the interval of %(lengthen)s."),
    "more_pollers": gettext_noop("There were too few pollers: increase FACHO_POLLERS."),
    "check_service": gettext_noop("The engine was down: check the service and its log."),
    "check_load": gettext_noop("The scheduler was late: check the load of the machine and of its database."),
    "check_credentials": gettext_noop("%(olt)s refused access: check the SNMP user and its passwords."),
    "check_answers": gettext_noop(
        "%(olt)s sent answers that cannot be decoded: check its brand and its software version."
    ),
    "check_holders": gettext_noop(
        "The lease of %(olt)s was lost: check for a second engine or a machine that freezes."
    ),
    "check_database": gettext_noop(
        "The database was unavailable: check its server, its disk, the network, and whether another program locks it."
    ),
    "check_broker": gettext_noop("Redis was unavailable: check its server and the network."),
    "still_pending": gettext_noop(
        "Slots of %(task)s are still pending or running: check the queue and its executions."
    ),
    "check_clock": gettext_noop(
        "The clock of the machine was set forward: check NTP, and whether the machine was paused."
    ),
    "check_error": gettext_noop("%(task)s failed with %(error)s: check the errors of its executions."),
}

# Cause, for the advice only, of pending slots without a known cause.
PENDING = "pending"

# Advice for each cause or kind of error. For any other: check the errors.
CURES: Mapping[str, str] = {
    Cause.UNREACHABLE: "check_reachability",
    Cause.BREAKER_OPEN: "check_reachability",
    Cause.OLT_BUSY: "relieve_olt",
    Cause.NO_FREE_POLLER: "more_pollers",
    Cause.ENGINE_DOWN: "check_service",
    Cause.STOPPED: "check_service",
    Cause.SCHEDULER_LATE: "check_load",
    Cause.LEASE_LOST: "check_holders",
    Cause.DATABASE_UNAVAILABLE: "check_database",
    Cause.BROKER_UNAVAILABLE: "check_broker",
    Cause.CLOCK_SET: "check_clock",
    "Refused": "check_credentials",
    "BadAnswer": "check_answers",
    PENDING: "still_pending",
}


def report(
    olt: str, task: str, count: Count, runs: Iterable[CountedRun], blocked_by: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the report of a violated hour.

    `runs` are those of the whole OLT. `blocked_by` are the known causes of pending slots.
    """
    runs = list(runs)
    times: dict[str, list[float]] = {}
    for run in runs:
        if run.seconds is not None:
            times.setdefault(run.task, []).append(run.seconds)
    slowest = [
        {
            "task": name,
            "mean_seconds": round(sum(seconds) / len(seconds), 1),
            "max_seconds": round(max(seconds), 1),
            "runs": len(seconds),
        }
        for name, seconds in sorted(times.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]
    causes = Counter(count.causes) + Counter(blocked_by)
    causes[PENDING] = max(count.pending - sum(blocked_by.values()), 0)
    return {
        "required": count.required,
        "completed": count.completed,
        "failed": count.failed,
        "skipped": count.skipped,
        "pending": count.pending,
        "percent": percent(count.completed, count.wanted),
        "causes": dict(count.causes),
        "slowest": slowest[:SLOWEST],
        "worst_lateness": _worst_lateness(run for run in runs if run.task == task),
        "advice": advice(olt, task, causes, [str(entry["task"]) for entry in slowest]),
    }


def _worst_lateness(runs: Iterable[CountedRun]) -> dict[str, Any] | None:
    """Return the run with the longest delay after its slot."""
    late = [(run.lateness, run) for run in runs if run.lateness is not None]
    if not late:
        return None
    seconds, run = max(late, key=lambda item: item[0])
    return {
        "task": run.task,
        "slot": run.slot.isoformat(),
        "seconds": round(seconds, 3),
        "parts": dict(run.parts),
    }


def advice(olt: str, task: str, causes: Mapping[str, int], busiest: Sequence[str]) -> list[dict[str, Any]]:
    """Return the advice, most effective first; `busiest` are the jobs of the OLT, most time first."""
    weights: dict[str, int] = {}
    errors: dict[str, str] = {}
    for cause, number in sorted(causes.items(), key=lambda item: -item[1]):
        if number and cause not in UNWANTED:
            code = CURES.get(cause, "check_error")
            weights[code] = weights.get(code, 0) + number
            errors.setdefault(code, cause)
    lengthen, *others = [*busiest] or [task]
    known = {"olt": olt, "task": task, "lengthen": lengthen, "drop": others[-1] if others else ""}
    pieces = []
    for code in sorted(weights, key=lambda code: -weights[code]):
        known["error"] = errors[code]
        if code == "relieve_olt" and not others:
            code = "lengthen_interval"
        params = {name: value for name, value in known.items() if f"%({name})s" in ADVICE[code]}
        sentence = ADVICE[code] % params if params else ADVICE[code]
        pieces.append({"code": code, "params": params, "sentence": sentence})
    return pieces
