"""Prometheus metrics of a process: counters, state of the pool, and optionally figures per OLT.

No label names a job or an ONU, and OLTs only with FACHO_METRICS_PER_OLT: a fleet would have a hundred thousand
series, and the database has these figures.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from math import inf
from operator import attrgetter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

import facho
from facho.apps.inventory.models import Olt
from facho.apps.polling.live import STALE_AFTER as STALE_AFTER
from facho.apps.polling.olt_stats import Figures, fleet_stats
from facho.engine.errors import LeaseLost
from facho.engine.model import Cause, Outcome, RunResult, Standing, Status
from facho.engine.observer import Observer
from facho.engine.ports import Clock
from facho.engine.snmp import Answer

# Seconds. The bounds include limits that matter: a slot is late after 5 s, a link has 5 minutes.
LATENESS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
DURATIONS = (0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 180, 300, 600)
ROUND_TRIPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
WRITES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LAGS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

HOUR = timedelta(hours=1)
# Figures of OLTs are read once a minute; older ones are not exported.
FIGURES_LAST = timedelta(minutes=3)

# Results of a PDU: values, error of the agent, no answer, unreadable answer, refused by an SNMPv3 agent, or given up.
OPERATIONS = ("get", "get_next", "get_bulk")
RESULTS = ("answered", "agent_error", "no_answer", "bad_answer", "refused", "given_up")


def make_registry(role: str) -> CollectorRegistry:
    """Return the registry of a process: `role` is run, web, scheduler or worker."""
    # The creation time of each series would double their number.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # as the library has it
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Info("facho_build", "The version of Facho that runs, and the role of the process.", registry=registry)
    build.info({"version": facho.__version__, "role": role})
    return registry


class Meters(Observer):
    """Counters of a polling process, as an observer of its components. Created once per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.slots = counter("facho_slots", "Finished slots, including those of chained nodes.", ("status", "cause"))
        self.manual_runs = counter(
            "facho_manual_runs", "Finished executions that were requested manually.", ("status",)
        )
        self.attempts = counter("facho_attempts", "Started attempts of executions.")
        self.retries = counter("facho_retries", "Executions scheduled for a retry.")
        self.waits = counter("facho_slot_wait_seconds", "Seconds that slots waited before their run.", ("cause",))
        self.lateness = histogram(
            "facho_slot_lateness_seconds",
            "Delay from the slot to the first attempt of a master, in seconds.",
            buckets=LATENESS,
        )
        self.durations = histogram("facho_attempt_seconds", "Duration of attempts, in seconds.", buckets=DURATIONS)
        self.running = gauge("facho_executions_running", "Executions running in this process.")
        self.retransmissions = counter(
            "facho_snmp_retransmissions", "SNMP requests retransmitted in executions because there was no answer."
        )
        self.varbinds = counter("facho_snmp_varbinds", "Variables in answers, counted when an attempt ends.")
        self._requests = RequestTally()
        registry.register(self._requests)
        self.writes = histogram(
            "facho_writer_seconds",
            "Time to store a result, including the wait for the writer, in seconds.",
            buckets=WRITES,
        )
        self.write_failures = counter(
            "facho_writer_failures", "Results with readings that could not be stored.", ("reason",)
        )
        self.readings = counter("facho_readings_written", "Readings of ONUs that were written.")
        self.spool_entries = gauge("facho_spool_entries", "Results on disk waiting for the database.")
        self.spool_bytes = gauge("facho_spool_bytes", "Bytes of results on disk waiting for the database.")
        self.pushed_values = counter("facho_tsdb_values", "Values that the time series store accepted.")
        self.push_seconds = counter("facho_tsdb_push_seconds", "Time to push to the time series store, in seconds.")
        self.push_failures = counter(
            "facho_tsdb_failures", "Requests that the time series store did not accept.", ("reason",)
        )
        self.push_drops = counter("facho_tsdb_dropped_runs", "Runs that will not be pushed.", ("reason",))
        self.push_pending = gauge("facho_tsdb_pending_runs", "Runs to be pushed to the time series store.")
        self.push_lag = gauge("facho_tsdb_lag_seconds", "Age of the oldest run to be pushed, in seconds.")
        self.leases_held = gauge("facho_leases_held", "OLTs leased by this process.")
        self.lease_refusals = counter("facho_lease_refusals", "Due OLTs that were leased by another process.")
        self.lease_losses = counter("facho_lease_losses", "Leases lost while in use.", ("lease",))
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Create the usual series: a rate needs a zero."""
        for status in (Status.SUCCESS, Status.PARTIAL, Status.FAILED):
            self.slots.labels(status.value, "")
        self.slots.labels(Status.FAILED.value, Cause.UNREACHABLE.value)
        for cause in Cause:
            self.slots.labels(Status.SKIPPED.value, cause.value)
            self.slots.labels(Status.INTERRUPTED.value, cause.value)
            self.waits.labels(cause.value)
        for status in (Status.SUCCESS, Status.PARTIAL, Status.FAILED, Status.INTERRUPTED, Status.SKIPPED):
            self.manual_runs.labels(status.value)
        for reason in ("lease_lost", "error"):
            self.write_failures.labels(reason)
        for reason in ("unavailable", "refused", "rejected"):
            self.push_failures.labels(reason)
        for reason in ("expired", "rejected"):
            self.push_drops.labels(reason)
        for lease in ("olt", "scheduler"):
            self.lease_losses.labels(lease)

    def slot_waited(self, waits: Mapping[Cause, float]) -> None:
        for cause, seconds in waits.items():
            self.waits.labels(cause.value).inc(max(seconds, 0.0))

    def slots_ended(self, status: Status, cause: Cause | None, count: int) -> None:
        self.slots.labels(status.value, cause or "").inc(count)

    def manual_runs_ended(self, status: Status, count: int) -> None:
        self.manual_runs.labels(status.value).inc(count)

    def retries_planned(self, count: int) -> None:
        self.retries.inc(count)

    def attempt_started(self, lateness: float | None) -> None:
        self.attempts.inc()
        self.running.inc()
        if lateness is not None:
            self.lateness.observe(lateness)

    def attempt_ended(self, outcome: Outcome) -> None:
        self.running.dec()
        self.durations.observe(max(outcome.seconds or 0.0, 0.0))
        self.retransmissions.inc(outcome.traffic.retransmissions)
        # Counted here and not per answer: most answers repeat the last ones and are never decoded.
        self.varbinds.inc(outcome.traffic.varbinds)

    def result_stored(self, result: RunResult, seconds: float) -> None:
        self.writes.observe(seconds)
        self.readings.inc(result.outcome.readings)

    def result_failed(self, error: Exception) -> None:
        self.write_failures.labels("lease_lost" if isinstance(error, LeaseLost) else "error").inc()

    def lease_taken(self) -> None:
        self.leases_held.inc()

    def lease_released(self, *, is_lost: bool) -> None:
        self.leases_held.dec()
        if is_lost:
            self.lease_losses.labels("olt").inc()

    def lease_refused(self) -> None:
        self.lease_refusals.inc()

    def values_pushed(self, values: int, seconds: float) -> None:
        self.pushed_values.inc(values)
        self.push_seconds.inc(seconds)

    def push_failed(self, reason: str) -> None:
        self.push_failures.labels(reason).inc()

    def push_dropped(self, reason: str, runs: int) -> None:
        self.push_drops.labels(reason).inc(runs)

    def push_waits(self, runs: int, seconds: float) -> None:
        self.push_pending.set(runs)
        self.push_lag.set(seconds)

    def request_ended(self, operation: str, result: str, seconds: float, answer: Answer | None) -> None:
        self._requests.add(operation, result, seconds, answer)


class RequestTally:
    """Counters of SNMP requests as plain numbers: the library's counters lock, and nothing is counted more often."""

    def __init__(self) -> None:
        self._ends = dict.fromkeys(((operation, result) for operation in OPERATIONS for result in RESULTS), 0)
        # Upper bounds of the round trip histogram, as numbers and as labels.
        self._bounds = [*ROUND_TRIPS, inf]
        self._labels = [*(str(float(bound)) for bound in ROUND_TRIPS), "+Inf"]
        self._round_trips = [0] * len(self._bounds)
        self._seconds = 0.0
        self._bytes_sent = self._bytes_received = 0

    def add(self, operation: str, result: str, seconds: float, answer: Answer | None) -> None:
        self._ends[operation, result] += 1
        if answer is not None:
            self._round_trips[bisect_left(self._bounds, seconds)] += 1
            self._seconds += seconds
            self._bytes_sent += answer.bytes_sent
            self._bytes_received += answer.bytes_received

    def collect(self) -> Iterator[Metric]:
        pdus = CounterMetricFamily(
            "facho_snmp_pdus", "SNMP requests sent, including probes.", labels=["operation", "result"]
        )
        for labels, count in self._ends.items():
            pdus.add_metric(labels, count)
        yield pdus
        yield CounterMetricFamily(
            "facho_snmp_sent_bytes", "Bytes of requests that were answered.", value=self._bytes_sent
        )
        yield CounterMetricFamily("facho_snmp_received_bytes", "Bytes of answers.", value=self._bytes_received)
        counts = accumulate(self._round_trips)
        buckets = list(zip(self._labels, map(float, counts), strict=True))
        yield HistogramMetricFamily(
            "facho_snmp_round_trip_seconds",
            "Round trip of SNMP requests, in seconds.",
            buckets=buckets,
            sum_value=self._seconds,
        )


class OltCollector:
    """Figures of each OLT over the last hour, from the last `refresh`.

    At most `limit` OLTs have series, those with the lowest ids, so that they stay the same. 0: none.
    """

    def __init__(self, *, limit: int, clock: Clock, is_active: Callable[[], bool]) -> None:
        self._limit = limit
        self._clock = clock
        self._is_active = is_active
        self._read_at: datetime | None = None
        self._figures: dict[str, Figures] = {}
        self._left_out = 0

    def refresh(self, now: datetime) -> None:
        """Read the figures. Called once a minute in a database thread."""
        if not self._limit:
            return
        names = dict(Olt.objects.filter(enabled=True).order_by("id").values_list("id", "name"))
        shown = list(names)[: self._limit]
        found = fleet_stats(shown, now - HOUR, now)
        self._figures = {names[olt_id]: found[olt_id] for olt_id in shown if olt_id in found}
        self._left_out = len(names) - len(shown)
        self._read_at = now

    def describe(self) -> list[Metric]:
        """Return nothing, as the pool does."""
        return []

    def collect(self) -> Iterator[Metric]:
        if self._read_at is None or not self._is_active() or self._clock.now() - self._read_at > FIGURES_LAST:
            return
        yield _gauge("facho_olts_without_series", "Enabled OLTs beyond FACHO_METRICS_PER_OLT.", self._left_out)
        for name, sentence, value in OLT_METRICS:
            family = GaugeMetricFamily(name, sentence, labels=["olt"])
            for olt, figures in self._figures.items():
                if (measured := value(figures)) is not None:
                    family.add_metric([olt], measured)
            yield family
        sentence = "Slots of the last hour that did not run."
        lost = GaugeMetricFamily("facho_olt_lost_slots", sentence, labels=["olt", "cause"])
        for olt, figures in self._figures.items():
            for cause, slots in figures.lost_slots.items():
                lost.add_metric([olt, cause], slots)
        yield lost


def _success_ratio(figures: Figures) -> float | None:
    return None if figures.success_rate is None else figures.success_rate / 100


# All of the last hour.
OLT_METRICS: tuple[tuple[str, str, Callable[[Figures], float | None]], ...] = (
    ("facho_olt_success_ratio", "Share of the runs of the last hour that completed.", _success_ratio),
    (
        "facho_olt_duration_mean_seconds",
        "Mean duration of the completed runs of the last hour.",
        attrgetter("duration_mean"),
    ),
    (
        "facho_olt_duration_p95_seconds",
        "95th percentile of the durations of the completed runs of the last hour.",
        attrgetter("duration_p95"),
    ),
    ("facho_olt_round_trip_p50_seconds", "Median round trip of the last hour.", attrgetter("round_trip_p50")),
    ("facho_olt_round_trip_p95_seconds", "95th percentile round trip of the last hour.", attrgetter("round_trip_p95")),
    ("facho_olt_retransmissions", "Requests retransmitted in the last hour.", attrgetter("retransmissions")),
    ("facho_olt_retries", "Retries of executions in the last hour.", attrgetter("retries")),
    (
        "facho_olt_retry_gap_seconds",
        "Mean time from the end of an attempt to the next one in the last hour.",
        attrgetter("retry_gap_mean"),
    ),
)


class PoolCollector:
    """State of the pool at the scrape, from the last snapshot.

    Only the active scheduler exports it, so that nothing is counted twice. If the snapshot is old, only its age is
    exported.
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
        """Return nothing: the metrics vary, and no other collector has these names."""
        return []

    def collect(self) -> Iterator[Metric]:
        is_active = self._is_active()
        yield _gauge(
            "facho_scheduler_active", "Whether this process is the active scheduler (1) or a standby (0).", is_active
        )
        if not is_active:
            return
        standings = self._standings().values()
        broken = sum(standing.breaker_since is not None for standing in standings)
        yield _gauge("facho_olts_enabled", "Enabled OLTs.", len(standings))
        yield _gauge("facho_breakers_open", "OLTs with an open breaker, which are only probed.", broken)
        snapshot = self._snapshot()
        if snapshot is None:
            return
        age = self._clock.now() - datetime.fromisoformat(snapshot["at"])
        yield _gauge("facho_scheduler_tick_age_seconds", "Seconds since the last tick.", age.total_seconds())
        if abs(age) > STALE_AFTER:
            return
        stats = snapshot["stats"]
        pollers = GaugeMetricFamily("facho_pollers", "Pollers by state.", labels=["state"])
        pollers.add_metric(["busy"], stats["busy_pollers"])
        pollers.add_metric(["free"], stats["free_pollers"])
        yield pollers
        busy = stats["busy_percentage"] / 100
        yield _gauge("facho_pool_busy_ratio", "Share of busy pollers, mean of the last minute.", busy)
        yield _gauge("facho_pool_saturated", "Whether the pollers are saturated.", stats["is_saturated"])
        yield _gauge("facho_queue_size", "Due runs waiting in the queue.", stats["queue_size"])
        yield _gauge("facho_queue_delayed", "Waiting runs that are more than 5 s late.", stats["delayed"])
        workers = len({poller.get("worker", "") for poller in snapshot["pollers"]})
        yield _gauge("facho_workers", "Processes with pollers.", workers)


def _gauge(name: str, sentence: str, value: float) -> Metric:
    return GaugeMetricFamily(name, sentence, value=float(value))
