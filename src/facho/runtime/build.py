"""Assembly of an engine: the embedded one, and the parts shared with the roles."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypedDict, Unpack

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.adapters.leases.local import LocalLeases
from facho.adapters.resolver import Resolver
from facho.adapters.snmp.client import SnmpByVersion
from facho.adapters.tsdb.remote_write import RemoteWrite
from facho.alerts.loop import AlertLoop
from facho.apps.polling import live
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.model import Cause
from facho.engine.observer import Observer
from facho.engine.ports import Clock, EventBus, NodeSource, OltLeases, Questions, Runs, Snmp
from facho.engine.presence import Rules
from facho.engine.questions import Answerer
from facho.engine.scheduling.chores import Chore, Chores
from facho.engine.scheduling.grid import Gap
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.pollers import PollerManager, PoolSize
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.runner import GiveUp, Runner
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.scheduling.snapshot import describe, snapshot
from facho.problems.loop import ProblemLoop
from facho.runtime import logs
from facho.runtime.clocks import ClockWatch
from facho.runtime.config import AUTOMATIC_POLLERS, Config
from facho.runtime.forecasting import ForecastRuns
from facho.runtime.metrics import Meters, OltCollector
from facho.runtime.monitoring import Monitoring
from facho.store import maintenance, outbox, quotas, recovery, runs
from facho.store.breakers import BreakerPolicy
from facho.store.database import DbThread, is_away
from facho.store.devices import DeviceWatch
from facho.store.events import EventRows, Journal, Pool
from facho.store.group_commit import GATHERING, GroupCommit
from facho.store.history import Closing
from facho.store.inventory import Inventories
from facho.store.nodes import DbNodeSource
from facho.store.plans import Planner
from facho.store.push import Push
from facho.store.questions import DbQuestions
from facho.store.removal import Removal
from facho.store.retention import Sweep, rules
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots
from facho.store.spool import MEGABYTE, ResultDelivery, Spool

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)

# Interval between checks for addresses that were changed directly in the database.
DEVICES_EVERY = 5 * SECOND

# Interval between looks at the windows of maintenance. The scheduler follows them by itself.
MAINTENANCE_EVERY = 5 * SECOND

# Interval between deliveries of spooled results.
DELIVER_EVERY = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Engine:
    """Parts with a life cycle."""

    scheduler: Scheduler
    prober: Prober
    answerer: Answerer
    chores: Chores
    alerts: AlertLoop
    problems: ProblemLoop
    journal: Journal
    events: EventRows
    bus: LocalBus
    snmp: Snmp
    # None: without a time series store.
    push: Push | None
    observed: Monitoring
    delivery: ResultDelivery
    threads: tuple[DbThread, ...]
    clock: SystemClock
    clock_watch: ClockWatch

    async def close(self) -> None:
        """Stop in an order that loses nothing: first the work, then the storage."""
        await self.chores.stop()
        await self.prober.stop()
        await self.answerer.stop()
        await self.scheduler.manager.stop()
        await self.alerts.close()
        if self.push is not None:
            self.push.close()
        self.bus.close()
        await self.snmp.close()
        # Nothing is left that would report.
        await self.delivery.close()
        await self.journal.step()
        logs.remove_events(self.events)
        self.observed.close()
        for thread in self.threads:
            thread.close()


class Ports(TypedDict):
    """Ports of a component that polls OLTs."""

    nodes: NodeSource
    runs: Runs
    leases: OltLeases
    snmp: Snmp
    clock: Clock
    bus: EventBus
    observer: Observer


def make_policy(config: Config) -> BreakerPolicy:
    return BreakerPolicy(config.breaker_after, config.auto_recover)


def make_rules(config: Config) -> Rules:
    return Rules(config.misses, config.mass_vanishing, config.max_onus)


def make_delivery(
    config: Config, commits: GroupCommit, disk: DbThread, meters: Meters, inventories: Inventories
) -> ResultDelivery:
    """Return the delivery of results to the database. Claims of the same process may share the commits."""
    results = DbResults(
        commits,
        rules=make_rules(config),
        policy=make_policy(config),
        observer=meters,
        inventories=inventories,
    )
    spool = Spool.take(config.spool_dir, config.spool_mb * MEGABYTE)
    delivery = ResultDelivery(results.finish, spool=spool, thread=disk)
    meters.spool_entries.set_function(lambda: delivery.waiting)
    meters.spool_bytes.set_function(lambda: delivery.waiting_bytes)
    return delivery


def engine(config: Config) -> Engine:
    """Build the embedded engine: everything in this process."""
    clock, bus = SystemClock(), LocalBus()
    observed = Monitoring("run", clock, token=config.metrics_token)
    meters = observed.meters()
    names = ("read", "write", "chores", "alerts", "push", "spool")
    reader, writer, helper, watcher, pusher, disk = threads = tuple(DbThread(f"store-{name}") for name in names)
    inventories = Inventories()
    commits = GroupCommit(writer, GATHERING)
    delivery = make_delivery(config, commits, disk, meters, inventories)
    slots = DbSlots(writer, claims=commits, policy=make_policy(config), settle=delivery.flush, observer=meters)
    snmp, nodes = SnmpByVersion(observer=meters), DbNodeSource(reader)
    worker, host = config.worker_name, socket.gethostname()
    olts = observed.show_olts(config.metrics_per_olt, lambda: True)
    events = EventRows()
    logs.add_events(events)
    ports: Ports = {
        "nodes": nodes,
        "runs": DbRuns(reader, commits, delivery, inventories),
        "leases": LocalLeases(),
        "snmp": snmp,
        "clock": clock,
        "bus": bus,
        "observer": meters,
    }
    runner = make_runner(worker, most_onus=config.max_onus, **ports)
    prober = Prober(name=worker, slots=slots, **ports)
    planner = Planner(helper)
    least, most = AUTOMATIC_POLLERS

    def on_tick(manager: PollerManager) -> None:
        now = clock.now()
        # Nothing starts while results are spooled.
        manager.outages.note("spool", Cause.DATABASE_UNAVAILABLE if delivery.waiting else None, now)
        pollers = describe(manager.pollers, now, manager.started_at, worker, host)
        bus.publish("snapshot", snapshot(manager, now, pollers))

    scheduler = Scheduler(
        pollers=config.pollers or least,
        size=None if config.pollers else PoolSize(least, most, lambda: observed.loop.lag),
        nodes=nodes,
        slots=slots,
        runner=runner,
        clock=clock,
        prober=prober,
        on_tick=on_tick,
        on_change=planner.changed,
        outages=Outages(is_away),
        observer=meters,
    )
    observed.show_pool(bus, lambda: scheduler.standings, lambda: True)
    alerts = AlertLoop(clock, watcher, snapshot=partial(live.snapshot_of, bus), public_url=config.public_url)
    problems = ProblemLoop(clock, watcher, bus, snapshot=partial(live.snapshot_of, bus))
    chores = make_chores(
        config,
        clock,
        writer=writer,
        helper=helper,
        planner=planner,
        gap=lambda: scheduler.gap,
        # Executions with spooled results are about to end by themselves.
        may_reap=lambda: not delivery.waiting,
        also=[deliver(delivery), olt_figures(olts, helper)],
    )
    return Engine(
        scheduler=scheduler,
        prober=prober,
        answerer=make_answerer(
            worker, scheduler, ports, DbQuestions(reader, writer, delivery, inventories, make_rules(config))
        ),
        chores=chores,
        alerts=alerts,
        problems=problems,
        push=make_push(config, pusher, clock, meters),
        journal=Journal(bus=bus, clock=clock, thread=writer, events=events, pool=Pool()),
        events=events,
        bus=bus,
        snmp=snmp,
        observed=observed,
        delivery=delivery,
        threads=threads,
        clock=clock,
        clock_watch=ClockWatch(clock, f"{config.worker_name} (run)", scheduler.clock_set),
    )


def make_push(config: Config, thread: DbThread, clock: Clock, observer: Observer) -> Push | None:
    """Return the sender of runs to a time series store; None without a store."""
    if not config.tsdb_url:
        return None
    client = RemoteWrite(config.tsdb_url, config.tsdb_token)
    return Push(client=client, thread=thread, clock=clock, hours=config.tsdb_hours, observer=observer)


def deliver(delivery: ResultDelivery) -> Chore:
    """Return the chore that delivers spooled results."""
    return Chore("spool", DELIVER_EVERY, delivery.step)


def olt_figures(olts: OltCollector, thread: DbThread) -> Chore:
    """Return the chore that reads the figures of OLTs for /metrics."""
    return Chore("olt-figures", MINUTE, in_thread(thread, olts.refresh), offset=25 * SECOND)


def make_runner(name: str, *, most_onus: int, give_up: GiveUp | None = None, **ports: Unpack[Ports]) -> Runner:
    """Return a runner with all brands."""
    return Runner(
        name=name,
        brand=brand,
        brands=BRANDS.values,
        candidates=candidates,
        raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
        is_away=is_away,
        give_up=give_up,
        most_onus=most_onus,
        **ports,
    )


def make_answerer(name: str, scheduler: Scheduler, ports: Ports, questions: Questions) -> Answerer:
    """Return the component that answers users' questions between the runs of the scheduler."""
    return Answerer(
        name=name,
        questions=questions,
        nodes=ports["nodes"],
        runs=ports["runs"],
        leases=ports["leases"],
        snmp=ports["snmp"],
        clock=ports["clock"],
        bus=ports["bus"],
        gate=scheduler.manager,
        brand=brand,
        raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
        observer=ports["observer"],
    )


def make_chores(
    config: Config,
    clock: Clock,
    *,
    writer: DbThread,
    helper: DbThread,
    planner: Planner,
    gap: Callable[[], Gap | None],
    may_reap: Callable[[], bool] = lambda: True,
    also: Sequence[Chore] = (),
) -> Chores:
    """Return the periodic tasks beside polling.

    Quotas are written by the thread that writes slots, shortly after each full minute. Plans of a large fleet take
    seconds in many short transactions, so they have their own thread.
    """
    keep = rules(
        logs=config.keep_logs,
        executions=config.keep_executions,
        history=config.keep_history,
        daily=config.keep_daily,
        changes=config.keep_changes,
    )

    def reap(now: datetime) -> int:
        return recovery.reap(now, gap()) if may_reap() else 0

    # Runs for a store that is no longer set.
    forgetting = [] if config.tsdb_url else [Chore("outbox", HOUR, in_thread(writer, outbox.clear), offset=45 * SECOND)]
    sweep = Sweep(thread=writer, clock=clock, rules=keep)
    return Chores(
        clock,
        [
            Chore("devices", DEVICES_EVERY, DeviceWatch(helper, Resolver()).step),
            Chore("open-hour", MINUTE, in_thread(writer, quotas.open_hour), offset=1 * SECOND),
            Chore("reap", MINUTE, in_thread(writer, reap), offset=3 * SECOND),
            Chore("settle", MINUTE, in_thread(writer, quotas.settle), offset=5 * SECOND),
            Chore("maintenance", MAINTENANCE_EVERY, in_thread(writer, maintenance.step)),
            Chore("plans", 2 * SECOND, planner.step),
            Chore("forecasts", 5 * SECOND, ForecastRuns(thread=helper, clock=clock).step),
            Chore("identification", HOUR, in_thread(writer, runs.repair), offset=15 * SECOND),
            Chore("history", 10 * MINUTE, Closing(thread=helper, clock=clock).run, offset=20 * SECOND),
            Chore("removal", 5 * SECOND, Removal(thread=helper, clock=clock).run, offset=2 * SECOND),
            Chore("retention", 10 * MINUTE, sweep.run, offset=30 * SECOND),
            *forgetting,
            *also,
        ],
    )


def in_thread(thread: DbThread, work: Callable[[datetime], object]) -> Callable[[datetime], Awaitable[None]]:
    """Return database work as a chore of this thread."""

    async def chore(now: datetime) -> None:
        await thread.run(lambda: work(now))

    return chore
