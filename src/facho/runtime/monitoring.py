"""Monitoring of a process: counters, liveness and readiness."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from prometheus_client import CollectorRegistry

from facho.engine.model import Standing
from facho.engine.ports import Clock, EventBus
from facho.runtime.clocks import Skew
from facho.runtime.health import App, Check, Checks, probes
from facho.runtime.metrics import Meters, OltCollector, PoolCollector, make_registry
from facho.runtime.readiness import HANGS_AFTER, DatabaseWatch, Lifeline, LoopWatch
from facho.store.database import DbThread

# Seconds without an answer before a new connection is tried.
LONGEST_SILENCE = 5.0


class Monitoring:
    """One per process. It queries the database in its own thread, so that probes are answered while others wait."""

    def __init__(self, role: str, clock: Clock, *, token: str = "", skew: Callable[[], Skew] | None = None) -> None:
        self.registry: CollectorRegistry = make_registry(role)
        self.loop = LoopWatch(self.registry, clock)
        self._clock = clock
        self._token = token
        self._thread = DbThread("store-probe", longest_silence=LONGEST_SILENCE)
        self._skew = skew
        self._database = DatabaseWatch(self._thread, skew=skew)

    def meters(self) -> Meters:
        """Return the counters of a polling process. Called once."""
        return Meters(self.registry)

    def show_pool(
        self, bus: EventBus, standings: Callable[[], Mapping[int, Standing]], is_active: Callable[[], bool]
    ) -> None:
        """Export the state of the pool."""
        snapshot = partial(bus.latest, "snapshot")
        self.registry.register(
            PoolCollector(snapshot=snapshot, clock=self._clock, standings=standings, is_active=is_active)
        )

    def show_olts(self, limit: int, is_active: Callable[[], bool]) -> OltCollector:
        """Export figures of up to `limit` OLTs. The collector must be refreshed once a minute."""
        collector = OltCollector(limit=limit, clock=self._clock, is_active=is_active)
        self.registry.register(collector)
        return collector

    def lifeline(self, threads: Sequence[DbThread]) -> Lifeline:
        """Return the watch over the database access of this process and its threads."""
        return Lifeline(DatabaseWatch(self._thread, patience=HANGS_AFTER, skew=self._skew), threads, self._clock)

    def probes(self, *ready: Check) -> App:
        return probes(Checks([self.loop.check], [*self._database.checks, *ready]), self.registry, token=self._token)

    def close(self) -> None:
        self._thread.close()
