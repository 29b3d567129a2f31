"""Live workers, from the reports that each sends once a second."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import log
from typing import Any

from facho.engine.events import Event, log_event

logger = logging.getLogger(__name__)

# Seconds without a report until a worker is dropped. Some reports may get lost.
SILENT_AFTER = 5.0

# How many composites a worker may have for each of its pollers. Most runs are short, so one that finds its worker busy
# waits for it a moment: reading the inventory of an OLT in another worker costs more.
OVERBOOKING = 1.5


@dataclass(frozen=True, slots=True)
class Report:
    """Last report of a worker, with the time of receipt (monotonic)."""

    received_at: float
    is_draining: bool
    pollers: Sequence[Mapping[str, Any]]
    # Number of results in its spool.
    spooled: int = 0
    # Whether it has no database, so it cannot start anything.
    is_cut_off: bool = False
    # Where it alone takes messages from; empty: it takes them from the shared queues only.
    queue: str = ""

    @property
    def capacity(self) -> int:
        return 0 if self.is_draining or self.is_cut_off else len(self.pollers)


class WorkerRegistry:
    """Workers by name. Times are of our monotonic clock, since clocks of other machines differ and ours may be set."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}

    def update(self, report: Mapping[str, Any], now: float) -> None:
        """Store a report of a worker: {worker, draining, cut_off, pollers, spooled, queue}."""
        name, before = str(report["worker"]), self._reports.get(str(report["worker"]))
        self._reports[name] = current = Report(
            now,
            bool(report["draining"]),
            report["pollers"],
            int(report.get("spooled", 0)),
            bool(report.get("cut_off", False)),
            str(report.get("queue", "")),
        )
        if current.is_draining and (before is None or not before.is_draining):
            log_event(logger, Event.WORKER_DRAINED, worker=name)
        elif before is None:
            log_event(logger, Event.WORKER_JOINED, worker=name, pollers=len(current.pollers))
        if current.is_cut_off != (before is not None and before.is_cut_off):
            log_event(logger, Event.WORKER_CUT_OFF if current.is_cut_off else Event.WORKER_BACK, worker=name)

    def drop_silent(self, now: float) -> None:
        """Remove workers without a recent report."""
        for name, report in list(self._reports.items()):
            if now - report.received_at > SILENT_AFTER:
                del self._reports[name]
                if not report.is_draining:
                    log_event(logger, Event.WORKER_LEFT, worker=name, seconds=round(now - report.received_at))

    @property
    def capacity(self) -> int:
        """Return the number of composites that can run at once."""
        return sum(report.capacity for report in self._reports.values())

    def choose(self, olt_id: int, taken: Mapping[str, int]) -> str | None:
        """Return the queue of the worker that should poll an OLT; None if all of them have enough to do.

        `taken` says how many composites each queue has. An OLT has the same worker
        each time, because that one remembers its ONUs and the last answers; if that
        one has too much to do, it has its second choice. Each worker is the first
        choice of as many OLTs as its share of the pollers (weighted rendezvous
        hashing): one that joins or leaves moves no other OLTs than its own.
        """
        capacity = Counter[str]()
        for report in self._reports.values():
            if report.queue:
                capacity[report.queue] += report.capacity
        free = [queue for queue, count in capacity.items() if taken.get(queue, 0) < OVERBOOKING * count]
        return min(free, key=lambda queue: _distance(olt_id, queue) / capacity[queue], default=None)

    @property
    def is_cut_off(self) -> bool:
        """Return whether there are workers, but none has the database."""
        return bool(self._reports) and all(report.is_cut_off for report in self._reports.values())

    @property
    def spooling(self) -> set[str]:
        """Return the workers with spooled results of open executions."""
        return {name for name, report in self._reports.items() if report.spooled}

    @property
    def pollers(self) -> list[Mapping[str, Any]]:
        """Return all pollers as reported by their workers."""
        every = [poller for report in self._reports.values() for poller in report.pollers]
        return sorted(every, key=lambda poller: int(poller["id"]))


def _distance(olt_id: int, queue: str) -> float:
    """Return a number of an exponential distribution, always the same for an OLT and a queue."""
    number = int.from_bytes(blake2b(f"{olt_id} {queue}".encode(), digest_size=8).digest())
    return -log((number + 1) / 2**64)
