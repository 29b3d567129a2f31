"""Puts an engine together from its parts, for the embedded mode."""

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.adapters.leases.local import LocalLeases
from facho.adapters.snmp.dispatch import SnmpByVersion
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.census import Rules
from facho.engine.chores import Chore, Chores
from facho.engine.ports import Clock
from facho.engine.prober import Prober
from facho.engine.runner import Runner
from facho.engine.scheduler import Scheduler
from facho.engine.snapshot import snapshot
from facho.runtime import logs
from facho.runtime.config import Config
from facho.runtime.forecast_runs import ForecastRuns
from facho.store import plans, quotas, reaper
from facho.store.alerts.loop import AlertLoop
from facho.store.journal import EventRows, Journal
from facho.store.ledger import DbLedger
from facho.store.nodes import DbNodeSource
from facho.store.retention import Sweep, rules
from facho.store.threads import DbThread
from facho.store.writer import DbReadingSink

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


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
    snmp: SnmpByVersion
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
        await self.journal.step()
        logs.remove_events(self.events)
        for thread in self.threads:
            thread.close()


def engine(config: Config) -> Engine:
    """Build the embedded engine: everything in this process."""
    clock, bus, snmp, leases = SystemClock(), LocalBus(), SnmpByVersion(), LocalLeases()
    reader, writer, helper, watcher = (DbThread(f"store-{name}") for name in ("read", "write", "chores", "alerts"))
    nodes = DbNodeSource(reader)
    ledger = DbLedger(writer, breaker_after=config.breaker_after, auto_recover=config.auto_recover)
    worker = socket.gethostname()
    events = EventRows()
    logs.add_events(events)
    runner = Runner(
        name=worker,
        nodes=nodes,
        ledger=ledger,
        sink=DbReadingSink(reader, writer, Rules(config.misses, config.mass_vanishing)),
        snmp=snmp,
        leases=leases,
        bus=bus,
        clock=clock,
        brand=brand,
        brands=BRANDS.values,
        candidates=candidates,
        raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
    )
    prober = Prober(name=worker, nodes=nodes, ledger=ledger, leases=leases, snmp=snmp, clock=clock)
    scheduler = Scheduler(
        pollers=config.pollers,
        nodes=nodes,
        ledger=ledger,
        runner=runner,
        clock=clock,
        prober=prober,
        on_tick=lambda manager: bus.publish("snapshot", snapshot(manager, clock.now())),
    )
    journal = Journal(bus=bus, clock=clock, thread=writer, events=events, worker=worker)
    alerts = AlertLoop(clock, watcher, public_url=config.public_url)
    chores = _chores(config, clock, writer=writer, helper=helper)
    threads = (reader, writer, helper, watcher)
    return Engine(scheduler, prober, chores, alerts, journal, events, bus, snmp, threads)


def _chores(config: Config, clock: Clock, *, writer: DbThread, helper: DbThread) -> Chores:
    """Return what is done beside polling.

    Quotas are written where the ledger writes them, a little behind the turn of the minute, and so of the
    hour. The plans of a large fleet take seconds, in many short transactions: they have a thread of their own.
    """
    days = {"logs": config.keep_logs, "executions": config.keep_executions, "history": config.keep_history}
    sweep = Sweep(thread=writer, clock=clock, rules=rules(**days))
    return Chores(
        clock,
        [
            Chore("open-hour", MINUTE, _in(writer, quotas.open_hour), offset=1 * SECOND),
            Chore("reap", MINUTE, _in(writer, reaper.reap), offset=3 * SECOND),
            Chore("settle", MINUTE, _in(writer, quotas.settle), offset=5 * SECOND),
            Chore("plans", MINUTE, _in(helper, plans.make_plans), offset=10 * SECOND),
            Chore("forecasts", 5 * SECOND, ForecastRuns(thread=helper, clock=clock).step),
            Chore("retention", 10 * MINUTE, sweep.run, offset=30 * SECOND),
        ],
    )


def _in(thread: DbThread, work: Callable[[datetime], object]) -> Callable[[datetime], Awaitable[None]]:
    """Return work on the database as a chore of this thread."""

    async def chore(now: datetime) -> None:
        await thread.run(lambda: work(now))

    return chore
