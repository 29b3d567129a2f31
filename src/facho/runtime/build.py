"""Puts an engine together from its parts: the embedded one, and what the roles have in common with it."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypedDict

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.adapters.leases.local import LocalLeases
from facho.adapters.snmp.dispatch import SnmpByVersion
from facho.apps.polling import live
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.census import Rules
from facho.engine.chores import Chore, Chores
from facho.engine.manager import PollerManager
from facho.engine.ports import Clock, EventBus, Ledger, NodeSource, OltLeases, ReadingSink, Snmp
from facho.engine.prober import Prober
from facho.engine.runner import Runner
from facho.engine.scheduler import Scheduler
from facho.engine.snapshot import describe, snapshot
from facho.runtime import logs
from facho.runtime.config import Config
from facho.runtime.forecast_runs import ForecastRuns
from facho.runtime.metered import Metering
from facho.runtime.observed import Observed, show_spool
from facho.store import partitions, plans, quotas, reaper
from facho.store.alerts.loop import AlertLoop
from facho.store.away import is_away
from facho.store.forwarder import Forwarder
from facho.store.journal import EventRows, Journal
from facho.store.ledger import DbLedger
from facho.store.nodes import DbNodeSource
from facho.store.pool import Pool
from facho.store.retention import Sweep, rules
from facho.store.spool import MEGABYTE, Spool
from facho.store.spooling import SpoolingLedger, SpoolingSink
from facho.store.threads import DbThread
from facho.store.writer import DbReadingSink

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)

# How often it is tried to write down what had to wait for the database.
LAND_EVERY = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that have a life of their own."""

    scheduler: Scheduler
    prober: Prober
    chores: Chores
    alerts: AlertLoop
    journal: Journal
    events: EventRows
    bus: LocalBus
    snmp: Snmp
    observed: Observed
    forwarder: Forwarder
    threads: tuple[DbThread, ...]

    async def close(self) -> None:
        """Stop in the order in which nothing is lost: first the work, then what it is written down with."""
        await self.chores.stop()
        await self.prober.stop()
        await self.scheduler.manager.stop()
        await self.alerts.close()
        self.bus.close()
        await self.snmp.close()
        # From here on there is nobody left who would have anything to tell.
        await self.forwarder.close()
        await self.journal.step()
        logs.remove_events(self.events)
        self.observed.close()
        for thread in self.threads:
            thread.close()


@dataclass(frozen=True, slots=True)
class Books:
    """Where a runner writes down what it did: counted, and on disk while the database is away."""

    ledger: Ledger
    sink: ReadingSink
    forwarder: Forwarder


def make_books(config: Config, metering: Metering, reader: DbThread, writer: DbThread, disk: DbThread) -> Books:
    """Return the books of a process that runs composites.

    Harvests are counted when they are in the database, ends when they are said.
    """
    ledger = DbLedger(writer, breaker_after=config.breaker_after, auto_recover=config.auto_recover)
    sink = metering.sink(DbReadingSink(reader, writer, Rules(config.misses, config.mass_vanishing)))
    spool = Spool.take(config.spool_dir, config.spool_mb * MEGABYTE)
    forwarder = Forwarder(sink=sink, ledger=ledger, spool=spool, thread=disk)
    show_spool(metering, forwarder)
    return Books(metering.ledger(SpoolingLedger(ledger, forwarder)), SpoolingSink(sink, forwarder), forwarder)


def engine(config: Config) -> Engine:
    """Build the embedded engine: everything in this process."""
    clock, bus = SystemClock(), LocalBus()
    observed = Observed("run", clock, token=config.metrics_token)
    metering = observed.metering()
    names = ("read", "write", "chores", "alerts", "spool")
    reader, writer, helper, watcher, disk = threads = tuple(DbThread(f"store-{name}") for name in names)
    books = make_books(config, metering, reader, writer, disk)
    snmp, leases = metering.snmp(SnmpByVersion()), metering.leases(LocalLeases())
    nodes, ledger, worker = metering.nodes(DbNodeSource(reader)), books.ledger, config.worker_name
    observed.show_pool(bus, lambda: nodes.last, lambda: True)
    events = EventRows()
    logs.add_events(events)
    ports: Ports = {"nodes": nodes, "ledger": ledger, "leases": leases, "snmp": snmp, "clock": clock}
    runner = metering.runner(make_runner(worker, sink=books.sink, bus=bus, **ports))
    prober = Prober(name=worker, **ports)
    scheduler = Scheduler(
        pollers=config.pollers,
        nodes=nodes,
        ledger=ledger,
        runner=runner,
        clock=clock,
        prober=prober,
        on_tick=lambda manager: bus.publish("snapshot", _own_snapshot(manager, worker, clock.now())),
    )
    journal = Journal(bus=bus, clock=clock, thread=writer, events=events, pool=Pool())
    alerts = AlertLoop(clock, watcher, snapshot=partial(live.snapshot_of, bus), public_url=config.public_url)
    # What waits on disk is about to end by itself.
    may_reap = partial(_is_empty, books.forwarder)
    also = [land(books.forwarder)]
    chores = make_chores(config, clock, writer=writer, helper=helper, may_reap=may_reap, also=also)
    return Engine(scheduler, prober, chores, alerts, journal, events, bus, snmp, observed, books.forwarder, threads)


class Ports(TypedDict):
    """What whoever asks OLTs needs."""

    nodes: NodeSource
    ledger: Ledger
    leases: OltLeases
    snmp: Snmp
    clock: Clock


def land(forwarder: Forwarder) -> Chore:
    """Return the chore that brings home what had to wait for the database."""
    return Chore("spool", LAND_EVERY, forwarder.step)


def _own_snapshot(manager: PollerManager, worker: str, now: datetime) -> dict[str, Any]:
    host = socket.gethostname()
    return snapshot(manager, now, describe(manager.pollers, now, manager.started_at, worker, host))


def make_runner(
    name: str,
    *,
    nodes: NodeSource,
    ledger: Ledger,
    sink: ReadingSink,
    snmp: Snmp,
    leases: OltLeases,
    bus: EventBus,
    clock: Clock,
    patience: timedelta | None = None,
) -> Runner:
    """Return who runs composites, with all the brands there are."""
    return Runner(
        name=name,
        nodes=nodes,
        ledger=ledger,
        sink=sink,
        snmp=snmp,
        leases=leases,
        bus=bus,
        clock=clock,
        brand=brand,
        brands=BRANDS.values,
        candidates=candidates,
        raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
        is_away=is_away,
        patience=patience,
    )


def _is_empty(forwarder: Forwarder) -> bool:
    return not forwarder.waiting


def make_chores(
    config: Config,
    clock: Clock,
    *,
    writer: DbThread,
    helper: DbThread,
    may_reap: Callable[[], bool] = lambda: True,
    also: Sequence[Chore] = (),
) -> Chores:
    """Return what is done beside polling.

    Quotas are written where the ledger writes them, a little behind the turn of the minute, and so of the
    hour. The plans of a large fleet take seconds, in many short transactions: they have a thread of their own.
    """
    days = {"logs": config.keep_logs, "executions": config.keep_executions, "history": config.keep_history}

    def reap(now: datetime) -> int:
        return reaper.reap(now) if may_reap() else 0

    sweep = Sweep(thread=writer, clock=clock, rules=rules(**days))
    return Chores(
        clock,
        [
            Chore("open-hour", MINUTE, in_thread(writer, quotas.open_hour), offset=1 * SECOND),
            Chore("reap", MINUTE, in_thread(writer, reap), offset=3 * SECOND),
            Chore("settle", MINUTE, in_thread(writer, quotas.settle), offset=5 * SECOND),
            Chore("plans", MINUTE, in_thread(helper, plans.make_plans), offset=10 * SECOND),
            Chore("forecasts", 5 * SECOND, ForecastRuns(thread=helper, clock=clock).step),
            Chore("partitions", HOUR, in_thread(helper, partitions.make_ahead), offset=20 * SECOND),
            Chore("retention", 10 * MINUTE, sweep.run, offset=30 * SECOND),
            *also,
        ],
    )


def in_thread(thread: DbThread, work: Callable[[datetime], object]) -> Callable[[datetime], Awaitable[None]]:
    """Return work on the database as a chore of this thread."""

    async def chore(now: datetime) -> None:
        await thread.run(lambda: work(now))

    return chore
