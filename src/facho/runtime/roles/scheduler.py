"""The role that decides: what is due, and who gets it. One is active, others stand by and take over."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import uvloop

from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock
from facho.adapters.runner.celery import CeleryRunner
from facho.adapters.snmp.dispatch import SnmpByVersion
from facho.apps.polling import live
from facho.engine.chores import Chore, Chores
from facho.engine.events import Event, tell
from facho.engine.manager import PollerManager
from facho.engine.model import Cause, Status
from facho.engine.ports import Clock, EventBus, Snmp
from facho.engine.prober import Prober
from facho.engine.roster import Roster
from facho.engine.scheduler import Scheduler
from facho.engine.snapshot import snapshot
from facho.runtime import logs
from facho.runtime.build import make_chores
from facho.runtime.celery import Sender, make_app
from facho.runtime.config import Config, ConfigError
from facho.runtime.metered import Metering, WatchedNodes
from facho.runtime.observed import Observed
from facho.runtime.readiness import connects, ticks
from facho.runtime.roles.news import act_on
from facho.runtime.roles.waiting import await_start, remind
from facho.runtime.serving import probe_listener, serve_probes, stop_on_signals
from facho.store.alerts.loop import AlertLoop
from facho.store.journal import EventRows, Journal
from facho.store.lease_reaper import LeaseReaper
from facho.store.leases import DbLeases, Terms
from facho.store.ledger import DbLedger
from facho.store.nodes import DbNodeSource
from facho.store.pool import Pool
from facho.store.tenancy import EngineAtWork
from facho.store.threads import DbThread
from facho.store.turns import TRY_EVERY, SchedulerTurn

logger = logging.getLogger(__name__)

REAP_EVERY = timedelta(seconds=5)

# What has been due for so long may have waited in the queue of the scheduler before: it waits on with us. What has been
# due for longer, in a fleet where nobody was scheduling, is lost; or it would all come at once.
QUEUED_FOR = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Parts:
    """What one turn is made of. The next turn makes everything anew: nothing stale survives."""

    scheduler: Scheduler
    runner: CeleryRunner
    prober: Prober
    leases: DbLeases
    chores: Chores
    alerts: AlertLoop
    journal: Journal
    events: EventRows
    roster: Roster
    snmp: Snmp
    nodes: WatchedNodes
    sender: Sender
    threads: tuple[DbThread, ...]

    def jobs(self, bus: EventBus, clock: Clock) -> dict[str, Coroutine[Any, Any, None]]:
        """Return what has a life of its own."""
        return {
            "scheduler": self.scheduler.run(),
            "ends": self.runner.watch(),
            "leases": self.leases.run(),
            "workers": act_on(bus, "worker", lambda report: self.roster.heard(report, clock.now())),
            "chores": self.chores.run(),
            "alerts": self.alerts.run(),
            "journal": self.journal.run(),
        }

    async def close(self) -> None:
        """Stop in the order in which nothing is lost. Workers go on with what they have."""
        await self.chores.stop()
        await self.prober.stop()
        self.runner.leave()
        await self.scheduler.manager.stop()
        await self.alerts.close()
        await self.snmp.close()
        await self.journal.step()
        logs.remove_events(self.events)
        self.sender.close()
        for thread in self.threads:
            thread.close()


def make_parts(config: Config, turn: SchedulerTurn, bus: EventBus, clock: Clock, metering: Metering) -> Parts:
    names = ("read", "write", "chores", "alerts", "leases")
    reader, writer, helper, watcher, keeper = threads = tuple(DbThread(f"store-{name}") for name in names)
    nodes, snmp = metering.nodes(DbNodeSource(reader)), metering.snmp(SnmpByVersion())
    leases = DbLeases(keeper, clock, Terms.lasting(config.lease_seconds))
    ledger = metering.ledger(
        DbLedger(writer, breaker_after=config.breaker_after, auto_recover=config.auto_recover, fence=turn.fence)
    )
    events = EventRows()
    logs.add_events(events)
    sender, roster = Sender(make_app(config)), Roster()
    runner = CeleryRunner(send=sender.send, ledger=ledger, bus=bus, clock=clock)
    prober = Prober(
        name=turn.holder, nodes=nodes, ledger=ledger, leases=metering.leases(leases), snmp=snmp, clock=clock
    )
    scheduler = Scheduler(
        pollers=0,
        nodes=nodes,
        ledger=ledger,
        runner=metering.runner(runner),
        clock=clock,
        prober=prober,
        on_tick=lambda manager: _on_tick(manager, roster, turn, bus, clock),
        restart_grace=QUEUED_FOR,
    )
    reaper = LeaseReaper(clock)

    async def reap(now: datetime) -> None:
        # Looked up here, and not in the thread: what the scheduler has in hand changes all the time.
        ours, spooling = {*runner.offered, *scheduler.waiting_executions}, roster.spooling
        ended = await writer.run(lambda: reaper.reap(now, answered_for=ours, spooling=spooling))
        metering.meters.slots_over(Status.INTERRUPTED, Cause.LEASE_LOST, ended)

    reaping = Chore("reap-leases", REAP_EVERY, reap)
    chores = make_chores(config, clock, writer=writer, helper=helper, also=[reaping])
    journal = Journal(bus=bus, clock=clock, thread=writer, events=events, pool=Pool(owns_pollers=False))
    alerts = AlertLoop(clock, watcher, snapshot=partial(live.snapshot_of, bus), public_url=config.public_url)
    return Parts(
        scheduler, runner, prober, leases, chores, alerts, journal, events, roster, snmp, nodes, sender, threads
    )


def _on_tick(manager: PollerManager, roster: Roster, turn: SchedulerTurn, bus: EventBus, clock: Clock) -> None:
    """Have as many seats as the workers have, and tell how things stand."""
    now = clock.now()
    roster.forget_silent(now)
    manager.resize(roster.seats)
    if turn.is_ours:
        bus.publish("snapshot", snapshot(manager, now, roster.pollers))


def serve(config: Config, on_ready: Callable[[], None] = lambda: None) -> None:
    """Stand by, take a turn when there is one, and stand by again; until SIGINT or SIGTERM."""
    with probe_listener(config) as listener:
        if await_start(config, "scheduler", listener):
            uvloop.run(Standby(config).run(listener, on_ready))


class Standby:
    """What lasts longer than a turn."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._clock = clock = SystemClock()
        self._thread = DbThread("store-turn")
        self._turn = SchedulerTurn(self._thread, clock, f"{config.worker_name}/{os.getpid()}")
        self._bus = RedisBus(config.redis_url, clock=clock)
        self._observed = Observed("scheduler", clock, token=config.metrics_token)
        self._metering = self._observed.metering()
        # How often in a row an engine in one process had the database when we tried.
        self._refusals = 0
        # Those of the present turn, or of the last one.
        self._parts: Parts | None = None

    async def run(self, listener: socket.socket | None, on_ready: Callable[[], None]) -> None:
        """Take turns until we are stopped."""
        await self._bus.start()
        turn, observed = self._turn, self._observed
        observed.show_pool(self._bus, lambda: self._parts.nodes.last if self._parts else {}, lambda: turn.is_ours)
        ticking = ticks(lambda: self._bus.latest("snapshot"), self._clock, lambda: turn.is_ours)
        probes = serve_probes(listener, observed.probes(connects(self._bus), ticking))
        reminding = remind(self._bus, self._clock)
        beside = [asyncio.create_task(job) for job in (probes, observed.loop.run(), reminding)]
        stop = stop_on_signals()
        on_ready()
        try:
            while not stop.done():
                await self._wait(stop)
                if turn.is_ours:
                    await self._take(stop)
        finally:
            await turn.give_back()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._bus.stop()
            observed.close()
            self._thread.close()

    async def _wait(self, stop: "asyncio.Future[None]") -> None:
        waiting = asyncio.create_task(self._turn.wait(), name="stand-by")
        await asyncio.wait({waiting, stop}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        (found,) = await asyncio.gather(waiting, return_exceptions=True)
        if isinstance(found, EngineAtWork):
            await self._beside_engine(found)
        elif isinstance(found, Exception):
            raise found
        else:
            self._refusals = 0

    async def _beside_engine(self, error: EngineAtWork) -> None:
        """Give up where an engine in one process has the database; one that only tries to start soon lets go of it."""
        self._refusals += 1
        if self._refusals > 1:
            raise ConfigError(error.for_roles) from error
        await self._clock.sleep(TRY_EVERY)

    async def _take(self, stop: "asyncio.Future[None]") -> None:
        """Be the scheduler until it is another's turn, or we are stopped. A job that ends by itself ends them all."""
        turn = self._turn
        self._parts = parts = make_parts(self._config, turn, self._bus, self._clock, self._metering)
        # Only now is there somebody who writes it down.
        tell(logger, Event.SCHEDULER_TOOK_OVER, holder=turn.holder)
        tasks = {asyncio.create_task(job, name=name) for name, job in parts.jobs(self._bus, self._clock).items()}
        keeping = asyncio.create_task(turn.keep(), name="turn")
        await asyncio.wait({*tasks, keeping, stop}, return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            self._metering.meters.lease_losses.labels("scheduler").inc()
            tell(logger, Event.SCHEDULER_LOST_TURN, holder=turn.holder)
        crashed = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await parts.close()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        for task in crashed:
            task.result()
