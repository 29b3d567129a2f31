"""What Prometheus reads of a process: its counts, and at each scrape how the pool stands.

No label names an OLT, a job or an ONU: a fleet would make a hundred thousand series of it, and the database has them.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

import facho
from facho.apps.polling.live import STALE_AFTER as STALE_AFTER
from facho.engine.model import Cause, Standing, Status
from facho.engine.ports import Clock

# Seconds. Each has a bound where somebody draws a line: a slot is late after 5 s, a link has 5 minutes.
LATENESS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
DURATIONS = (0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 180, 300, 600)
ROUND_TRIPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
WRITES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

# How a PDU ends: with values, with the agent's error, without an answer, with one that cannot be read, turned away
# by an SNMPv3 agent, or given up by us.
OPERATIONS = ("get", "get_next", "get_bulk")
RESULTS = ("answered", "agent_error", "no_answer", "bad_answer", "refused", "given_up")


def make_registry(role: str) -> CollectorRegistry:
    """Return the registry of a process: `role` is run, web, scheduler or worker."""
    # The time at which each series began, as a series of its own: twice as many, and nobody draws them.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # as the library has it
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Info("facho_build", "The version of Facho that runs, and the role of the process.", registry=registry)
    build.info({"version": facho.__version__, "role": role})
    return registry


class Meters:
    """The counts of a process that polls. Made once for a registry; whoever sees something happen counts it here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._make_slots()
        self._make_snmp()
        self._make_writer()
        self._make_leases()

    def _make_slots(self) -> None:
        self.slots = self._counter(
            "facho_slots", "Slots of the grid that are over, those of chained nodes too.", "status", "cause"
        )
        self.manual_runs = self._counter(
            "facho_manual_runs", "Executions that a person asked for and that are over.", "status"
        )
        self.attempts = self._counter("facho_attempts", "Attempts at executions that were begun.")
        self.retries = self._counter("facho_retries", "Executions that were put off to be tried again.")
        self.waits = self._counter("facho_slot_wait_seconds", "Seconds that slots waited before they ran.", "cause")
        self.lateness = self._histogram(
            "facho_slot_lateness_seconds", "How long after its slot a master began its first attempt.", LATENESS
        )
        self.durations = self._histogram("facho_attempt_seconds", "How long attempts at executions took.", DURATIONS)
        self.running = self._gauge("facho_executions_running", "Executions that this process runs now.")
        for status, cause in _endings():
            self.slots.labels(status.value, cause)
        for status in (Status.SUCCESS, Status.PARTIAL, Status.FAILED, Status.INTERRUPTED, Status.SKIPPED):
            self.manual_runs.labels(status.value)
        for cause in Cause:
            self.waits.labels(cause.value)

    def _make_snmp(self) -> None:
        self.pdus = self._counter("facho_snmp_pdus", "SNMP requests sent, probes too.", "operation", "result")
        self.retransmissions = self._counter(
            "facho_snmp_retransmissions", "SNMP requests sent again in executions, for want of an answer."
        )
        self.round_trips = self._histogram(
            "facho_snmp_round_trip_seconds", "How long agents took to answer a request.", ROUND_TRIPS
        )
        self.varbinds = self._counter("facho_snmp_varbinds", "Variables in answers.")
        self.bytes_sent = self._counter("facho_snmp_sent_bytes", "Bytes of requests that were answered.")
        self.bytes_received = self._counter("facho_snmp_received_bytes", "Bytes of answers.")
        for operation in OPERATIONS:
            for result in RESULTS:
                self.pdus.labels(operation, result)

    def _make_writer(self) -> None:
        self.writes = self._histogram(
            "facho_writer_seconds", "How long it took to write a harvest, waiting for the writer included.", WRITES
        )
        self.write_failures = self._counter("facho_writer_failures", "Harvests that could not be written.", "reason")
        self.readings = self._counter("facho_readings_written", "Readings of ONUs that were written.")
        self.spool_entries = self._gauge("facho_spool_entries", "Entries that wait on disk for the database.")
        self.spool_bytes = self._gauge("facho_spool_bytes", "Bytes that wait on disk for the database.")
        for reason in ("lease_lost", "error"):
            self.write_failures.labels(reason)

    def _make_leases(self) -> None:
        self.leases_held = self._gauge("facho_leases_held", "OLTs that this process holds now.")
        self.lease_refusals = self._counter("facho_lease_refusals", "OLTs that somebody else held when they were due.")
        self.lease_losses = self._counter("facho_lease_losses", "Leases that ended while they were needed.", "lease")
        for lease in ("olt", "scheduler"):
            self.lease_losses.labels(lease)

    def _counter(self, name: str, sentence: str, *labels: str) -> Counter:
        return Counter(name, sentence, labels, registry=self._registry)

    def _gauge(self, name: str, sentence: str) -> Gauge:
        return Gauge(name, sentence, registry=self._registry)

    def _histogram(self, name: str, sentence: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(name, sentence, buckets=bounds, registry=self._registry)

    def slots_over(self, status: Status, cause: Cause | None, count: int) -> None:
        """Count slots that are over. Also for whoever ends executions past the ledger: what a dead worker left."""
        self.slots.labels(status.value, cause or "").inc(max(count, 0))


def _endings() -> Iterator[tuple[Status, str]]:
    """Yield how slots usually end, so that each has a series before the first one does: a rate needs a zero."""
    yield from ((status, "") for status in (Status.SUCCESS, Status.PARTIAL, Status.FAILED))
    yield Status.FAILED, Cause.UNREACHABLE.value
    yield from ((status, cause.value) for status in (Status.SKIPPED, Status.INTERRUPTED) for cause in Cause)


class PoolCollector:
    """Tells how the pool stands, from the last snapshot, at the moment of the scrape.

    Only the active scheduler tells it, so that nothing is counted twice; and no
    snapshot is told as the present that is not: then there is only its age.
    """

    def __init__(
        self,
        *,
        snapshot: Callable[[], Mapping[str, Any] | None],
        clock: Clock,
        standings: Callable[[], Mapping[int, Standing]] = dict,
        is_active: Callable[[], bool] = lambda: True,
    ) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self._standings = standings
        self._is_active = is_active

    def describe(self) -> list[Metric]:
        """Return nothing: what there is to tell changes, and no other collector has these names."""
        return []

    def collect(self) -> Iterator[Metric]:
        is_active = self._is_active()
        yield _gauge("facho_scheduler_active", "Whether this process schedules; 0 on standby.", is_active)
        if not is_active:
            return
        yield from _of_olts(self._standings())
        snapshot = self._snapshot()
        if snapshot is None:
            return
        age = self._clock.now() - datetime.fromisoformat(snapshot["at"])
        yield _gauge("facho_scheduler_tick_age_seconds", "Seconds since the last tick.", age.total_seconds())
        if age <= STALE_AFTER:
            yield from _of_pool(snapshot)


def _of_olts(standings: Mapping[int, Standing]) -> Iterator[Metric]:
    broken = sum(standing.breaker_since is not None for standing in standings.values())
    yield _gauge("facho_olts_enabled", "OLTs that are enabled.", len(standings))
    yield _gauge("facho_breakers_open", "OLTs that are only probed, because they never answer.", broken)


def _of_pool(snapshot: Mapping[str, Any]) -> Iterator[Metric]:
    stats = snapshot["stats"]
    pollers = GaugeMetricFamily("facho_pollers", "Pollers, by what they are doing.", labels=["state"])
    pollers.add_metric(["busy"], stats["busy_pollers"])
    pollers.add_metric(["free"], stats["free_pollers"])
    yield pollers
    busy = stats["busy_percentage"] / 100
    yield _gauge("facho_pool_busy_ratio", "Share of the pollers that were busy, the mean of a minute.", busy)
    yield _gauge("facho_pool_saturated", "Whether there are too few pollers.", stats["is_saturated"])
    yield _gauge("facho_queue_size", "Composites that are due and wait.", stats["queue_size"])
    yield _gauge("facho_queue_delayed", "Composites that wait and are late by more than 5 s.", stats["delayed"])
    workers = len({poller.get("worker", "") for poller in snapshot["pollers"]})
    yield _gauge("facho_workers", "Processes that have pollers.", workers)


def _gauge(name: str, sentence: str, value: float) -> Metric:
    return GaugeMetricFamily(name, sentence, value=float(value))
