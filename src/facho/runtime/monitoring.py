"""Monitoring of a process: counters, and the conditions of liveness and readiness.

No condition takes longer than a probe waits.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from prometheus_client import CollectorRegistry, Histogram

from facho.engine.model import Cause, Standing
from facho.engine.ports import Clock, EventBus
from facho.runtime.clocks import Skew
from facho.runtime.config import Config
from facho.runtime.health import App, Check, Checks, NotWell, probes
from facho.runtime.metrics import LAGS, STALE_AFTER, Meters, OltCollector, PoolCollector, make_registry
from facho.store.database import DbThread

if TYPE_CHECKING:
    # An embedded installation has no Redis client.
    from facho.adapters.bus.redis import RedisBus

T = TypeVar("T")

logger = logging.getLogger(__name__)

OK = "ok"

SQLITE_ERRORS = {
    sqlite3.SQLITE_BUSY: "the database is locked by another program",
    sqlite3.SQLITE_READONLY: "the database is read-only",
    sqlite3.SQLITE_IOERR: "the database cannot be written: check the disk",
    sqlite3.SQLITE_FULL: "the disk of the database is full",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
}

# Seconds between checks of the data directory.
LOOK_EVERY = 5.0

# Maximum seconds for an answer of the database.
PATIENCE = 2.0

# Seconds between a worker's queries of the database, and seconds without an answer until it counts as unavailable: a
# little longer than for probes, because others act on it.
ASK_EVERY = 1.0
HANGS_AFTER = 4.0

# Seconds without an answer of the database before a new connection is tried.
LONGEST_SILENCE = 5.0

# Seconds between checks of the event loop, and seconds without a turn until it counts as stuck.
WATCH_EVERY = 0.5
STUCK_AFTER = 10.0


class LoopWatch:
    """Measures the delay of the event loop, and the time of its last turn."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        sentence = "Delay of the event loop when waking a sleeping task, in seconds."
        self._lags = Histogram("facho_loop_lag_seconds", sentence, buckets=LAGS, registry=registry)
        self._clock = clock
        self._turned_at = clock.monotonic()
        # Delay at the last check, in seconds.
        self.lag = 0.0

    async def run(self) -> None:
        """Watch forever."""
        while True:
            await self.step()

    async def step(self) -> None:
        due = self._clock.monotonic() + WATCH_EVERY
        await self._clock.sleep(WATCH_EVERY)
        self._turned_at = self._clock.monotonic()
        self.lag = max(self._turned_at - due, 0.0)
        self._lags.observe(self.lag)

    @property
    def check(self) -> Check:
        return Check("loop", self._turns)

    async def _turns(self) -> str:
        silent = self._clock.monotonic() - self._turned_at
        if silent > STUCK_AFTER:
            raise NotWell(f"the event loop has not run for {silent:.0f} s")
        return OK


class DatabaseWatch:
    """Queries the database in its own thread, one query of a kind at a time.

    A hung database is not queried again before it has answered; otherwise queries of probes would pile up.
    """

    def __init__(self, thread: DbThread, *, patience: float = PATIENCE, skew: Callable[[], Skew] | None = None) -> None:
        """Use this thread. With `skew`, a database whose clock differs too much counts as unavailable."""
        self._thread = thread
        self._patience = patience
        self._skew = skew
        self._asked: dict[str, asyncio.Task[Any]] = {}
        # Migrations stay applied while this process runs.
        self._is_migrated = False

    @property
    def checks(self) -> tuple[Check, Check]:
        return Check("database", self._answers), Check("migrations", self._migrations)

    async def _answers(self) -> str:
        def use() -> None:
            _write()
            skew = self._skew() if self._skew else None
            if skew is not None and skew.is_harmful:
                raise NotWell(f"the clock of the database is {skew.described}: synchronise all machines with NTP")

        await self._ask("database", use)
        return OK

    async def _migrations(self) -> str:
        if not self._is_migrated:
            missing = await self._ask("migrations", _missing_migrations)
            if missing:
                raise NotWell(f"migrations not applied: {missing}; run `facho migrate`")
            self._is_migrated = True
        return OK

    async def _ask(self, name: str, work: Callable[[], T]) -> T:
        task: asyncio.Task[T] | None = self._asked.get(name)
        if task is None or task.done():
            task = self._asked[name] = asyncio.create_task(self._thread.run(work), name=f"ask-{name}")
            # Consume a late error, so that asyncio does not warn.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            raise NotWell(f"the database did not answer within {self._patience:g} s")
        try:
            return task.result()
        except Error as error:
            # The driver's text names hosts and users; the component that needs the database logs it.
            raise NotWell(_sentence(error)) from None


class DataWatch:
    """Checks that the data directory and the SQLite file are those of the start.

    A deleted file can still be written while it is open. Without this check nothing would fail until the next start,
    and all data since would be lost.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self._clock = clock
        self._directory = config.data_dir
        paths = [self._directory, *([Path(str(config.database["NAME"]))] if config.is_sqlite else [])]
        self._known = {path: _identity(path) for path in paths}
        self._trouble = ""

    @property
    def check(self) -> Check:
        return Check("data", self._ask)

    async def _ask(self) -> str:
        trouble = self._look()
        if trouble:
            raise NotWell(trouble)
        return OK

    async def run(self) -> None:
        """Check forever, and log problems."""
        while True:
            self.step()
            await self._clock.sleep(LOOK_EVERY)

    def step(self) -> None:
        trouble = self._look()
        if trouble:
            logger.error("%s: %s", self._directory, trouble)
        elif self._trouble:
            logger.warning("%s: the data directory is available again", self._directory)
        self._trouble = trouble

    def _look(self) -> str:
        for path, identity in self._known.items():
            now = _identity(path)
            if now is None:
                what = "the data directory" if path == self._directory else "the database file"
                return f"{what} was deleted; stop Facho, restore a backup, and start it again"
            if now != identity:
                return (
                    "the data directory was replaced; "
                    "restart Facho if this was intended, otherwise restore a backup first"
                )
        return ""


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, which differs for another file of the same name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class DatabaseLink:
    """Whether this process can use its database now, without waiting.

    False while the database does not answer, or does not answer one of the process's threads, or while the clocks
    differ: messages would seem too old, and stored times would be wrong.
    """

    def __init__(self, watch: DatabaseWatch, threads: Sequence[DbThread], clock: Clock) -> None:
        self._check, _ = watch.checks
        self._threads = threads
        self._clock = clock
        self._answers = True

    @property
    def is_cut(self) -> bool:
        return not self._answers or any(thread.silence > HANGS_AFTER for thread in self._threads)

    async def run(self) -> None:
        """Query forever."""
        while True:
            await self.step()
            await self._clock.sleep(ASK_EVERY)

    async def step(self) -> None:
        try:
            await self._check.ask()
        except NotWell as trouble:
            if self._answers:
                logger.warning("no new runs are started: %s", trouble)
            self._answers = False
        else:
            self._answers = True


def _write() -> None:
    """Write something: a read-only database is useless.

    SQLite has a number in its file for the application, which Facho uses only for this. PostgreSQL reports by itself
    that it is read-only; a full disk shows in the engine's writes.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA user_version = 1")
            return
        cursor.execute("SHOW transaction_read_only")
        (is_read_only,) = cursor.fetchone()
    if is_read_only == "on":
        raise NotWell("the database is read-only")


def _sentence(error: Error) -> str:
    """Return the problem with the database, without the driver's text."""
    # The lowest byte is the kind of error.
    code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
    return SQLITE_ERRORS.get(code, "the database cannot be reached")


def _missing_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def ticks(
    snapshot: Callable[[], Mapping[str, Any] | None], clock: Clock, is_active: Callable[[], bool] = lambda: True
) -> Check:
    """Return the check of a scheduler. A standby is ready too."""

    async def ask() -> str:
        if not is_active():
            return "standby"
        latest = snapshot()
        if latest is None:
            raise NotWell("the scheduler has not ticked yet")
        age = clock.now() - datetime.fromisoformat(latest["at"])
        if age > STALE_AFTER:
            raise NotWell(f"the scheduler has not ticked for {age.total_seconds():.0f} s")
        if age < -STALE_AFTER:
            raise NotWell("the scheduler has not ticked since the clock was set back")
        return OK

    return Check("scheduler", ask)


def writes(outage: Callable[[], Cause | None]) -> Check:
    """Return the check of an engine's writes: they can fail although a single row can be written."""
    return _unless(
        lambda: outage() is Cause.DATABASE_UNAVAILABLE, "writes", "the engine cannot write to the database; see its log"
    )


def follows_clock(is_behind: Callable[[], bool]) -> Check:
    """Return the check of the schedule: after the clock was set, its slots have to be moved."""
    return _unless(is_behind, "clock", "the machine's clock was changed and the schedule is not adjusted yet")


def connects(bus: "RedisBus") -> Check:
    return _unless(lambda: not bus.is_connected, "bus", "there is no connection to Redis")


def takes_work(is_draining: Callable[[], bool]) -> Check:
    """Return the check of a worker: one that is stopping finishes its runs and takes no more."""
    return _unless(is_draining, "worker", "draining: it finishes its current runs and accepts no new ones")


def _unless(is_wrong: Callable[[], bool], name: str, sentence: str) -> Check:
    async def ask() -> str:
        if is_wrong():
            raise NotWell(sentence)
        return OK

    return Check(name, ask)


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

    def database_link(self, threads: Sequence[DbThread]) -> DatabaseLink:
        """Return the watch over the database access of this process and its threads."""
        return DatabaseLink(DatabaseWatch(self._thread, patience=HANGS_AFTER, skew=self._skew), threads, self._clock)

    def probes(self, *ready: Check) -> App:
        return probes(Checks([self.loop.check], [*self._database.checks, *ready]), self.registry, token=self._token)

    def close(self) -> None:
        self._thread.close()
