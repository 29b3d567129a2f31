"""Scheduler role: due nodes and their assignment. One is active, others are on standby."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import uvloop

from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock
from facho.adapters.runner.celery import CeleryRunner
from facho.adapters.snmp.client import SnmpByVersion
from facho.alerts.loop import AlertLoop
from facho.apps.polling import live
from facho.engine.events import Event, tell
from facho.engine.model import Cause, Standing, Status
from facho.engine.ports import Clock, EventBus, Snmp
from facho.engine.questions import Answerer
from facho.engine.scheduling.chores import Chore, Chores
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.pollers import PollerManager
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.scheduling.snapshot import snapshot
from facho.engine.scheduling.workers import Roster
from facho.runtime import logs
from facho.runtime.build import make_answerer, make_chores, make_policy, olt_figures
from facho.runtime.celery import Sender, make_app
from facho.runtime.clocks import ClockWatch, skew_of_database
from facho.runtime.config import Config, ConfigError
from facho.runtime.metrics import Meters, OltCollector
from facho.runtime.monitoring import Monitoring
from facho.runtime.readiness import connects, follows_clock, ticks, writes
from facho.runtime.roles.news import act_on
from facho.runtime.roles.waiting import await_start, remind
from facho.runtime.serving import probe_listener, serve_probes, stop_on_signals
from facho.store.database import DbThread, is_away
from facho.store.engine_lock import EngineAtWork
from facho.store.events import EventRows, Journal, Pool
from facho.store.leases import TRY_EVERY, DbLeases, SchedulerTurn, Terms
from facho.store.nodes import DbNodeSource
from facho.store.plans import Planner
from facho.store.recovery import LeaseReaper
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots, TurnFence

logger = logging.getLogger(__name__)

REAP_EVERY = timedelta(seconds=5)

# A run that has been due for less than this may have been queued by the previous scheduler, and stays queued. Older
# ones, in a fleet without a scheduler, are lost; otherwise all would come at once.
QUEUED_FOR = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of one turn. The next turn creates all again, so no stale state survives."""

    scheduler: Scheduler
    runner: CeleryRunner
    prober: Prober
    answerer: Answerer
    leases: DbLeases
    chores: Chores
    alerts: AlertLoop
    journal: Journal
    events: EventRows
    roster: Roster
    snmp: Snmp
    sender: Sender
    threads: tuple[DbThread, ...]

    def jobs(self, bus: EventBus, clock: Clock) -> dict[str, Coroutine[Any, Any, None]]:
        """Return the tasks of the parts."""
        return {
            "scheduler": self.scheduler.run(),
            "ends": self.runner.watch(),
            "leases": self.leases.run(),
            "workers": act_on(bus, "worker", lambda report: self.roster.heard(report, clock.monotonic())),
            "questions": self.answerer.run(),
            "chores": self.chores.run(),
            "alerts": self.alerts.run(),
            "journal": self.journal.run(),
        }

    @property
    def follows_clock(self) -> bool:
        return self.scheduler.follows_clock

    async def close(self) -> None:
        """Stop in an order that loses nothing. Workers continue their runs."""
        await self.chores.stop()
        await self.prober.stop()
        await self.answerer.stop()
        self.runner.leave()
        await self.scheduler.manager.stop()
        await self.alerts.close()
        await self.snmp.close()
        await self.journal.step()
        logs.remove_events(self.events)
        self.sender.close()
        for thread in self.threads:
            thread.close()


def make_parts(
    config: Config, turn: SchedulerTurn, bus: RedisBus, clock: Clock, meters: Meters, olts: OltCollector
) -> Parts:
    names = ("read", "write", "chores", "alerts", "leases")
    reader, writer, helper, watcher, keeper = threads = tuple(DbThread(f"store-{name}") for name in names)
    nodes, snmp = DbNodeSource(reader), SnmpByVersion(observer=meters)
    leases = DbLeases(keeper, clock, Terms.lasting(config.lease_seconds))
    policy = make_policy(config)
    slots = DbSlots(writer, policy=policy, fence=TurnFence(turn.fence), observer=meters)
    runs = DbRuns(reader, writer, DbResults(writer, policy=policy, observer=meters))
    events = EventRows()
    logs.add_events(events)
    sender, roster = Sender(make_app(config)), Roster()
    runner = CeleryRunner(
        send=sender.send, slots=slots, bus=bus, clock=clock, choose=roster.choose, outages=turn.outages
    )
    prober = Prober(
        name=turn.holder,
        nodes=nodes,
        slots=slots,
        runs=runs,
        leases=leases,
        snmp=snmp,
        bus=bus,
        clock=clock,
        observer=meters,
    )
    planner = Planner(helper)
    scheduler = Scheduler(
        pollers=0,
        nodes=nodes,
        slots=slots,
        runner=runner,
        clock=clock,
        prober=prober,
        on_tick=lambda manager: _on_tick(manager, roster, turn, bus, clock),
        on_change=planner.changed,
        restart_grace=QUEUED_FOR,
        outages=turn.outages,
        observer=meters,
    )
    answerer = make_answerer(
        turn.holder,
        scheduler,
        nodes=nodes,
        leases=leases,
        snmp=snmp,
        clock=clock,
        reader=reader,
        writer=writer,
        observer=meters,
    )
    reaper = LeaseReaper(clock)

    async def reap(now: datetime) -> None:
        # Read here and not in the thread, because the scheduler's state changes all the time.
        ours, spooling = {*runner.offered, *scheduler.waiting_executions}, roster.spooling
        ended = await writer.run(lambda: reaper.reap(now, answered_for=ours, spooling=spooling))
        meters.slots_ended(Status.INTERRUPTED, Cause.LEASE_LOST, ended)

    reaping = Chore("reap-leases", REAP_EVERY, reap)
    also = [reaping, olt_figures(olts, helper)]
    chores = make_chores(
        config, clock, writer=writer, helper=helper, planner=planner, gap=lambda: scheduler.gap, also=also
    )
    journal = Journal(bus=bus, clock=clock, thread=writer, events=events, pool=Pool(owns_pollers=False))
    alerts = AlertLoop(clock, watcher, snapshot=partial(live.snapshot_of, bus), public_url=config.public_url)
    return Parts(
        scheduler,
        runner,
        prober,
        answerer,
        leases,
        chores,
        alerts,
        journal,
        events,
        roster,
        snmp,
        sender,
        threads,
    )


def _on_tick(manager: PollerManager, roster: Roster, turn: SchedulerTurn, bus: RedisBus, clock: Clock) -> None:
    """Set the pool size from the workers, record the reason for an empty pool, and publish a snapshot."""
    now = clock.now()
    manager.outages.note("broker", None if bus.is_connected else Cause.BROKER_UNAVAILABLE, now)
    manager.outages.note("workers", Cause.DATABASE_UNAVAILABLE if roster.is_cut_off else None, now)
    roster.forget_silent(clock.monotonic())
    manager.resize(roster.seats)
    if turn.is_ours:
        bus.publish("snapshot", snapshot(manager, now, roster.pollers))


def serve(config: Config, on_ready: Callable[[], None] = lambda: None) -> None:
    """Wait on standby and schedule in turns, until SIGINT or SIGTERM."""
    with probe_listener(config) as listener:
        if await_start(config, "scheduler", listener):
            uvloop.run(Standby(config).run(listener, on_ready))


def _is_outage(error: BaseException) -> bool:
    """Return whether the database is unavailable: an error, or no answer in time."""
    return is_away(error) or isinstance(error, TimeoutError)


class Standby:
    """State that outlives a turn."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._clock = clock = SystemClock()
        self._thread = DbThread("store-turn")
        holder = f"{config.worker_name}/{os.getpid()}"
        # Outages outlive turns: an unavailable database ends a turn.
        self._turn = SchedulerTurn(self._thread, clock, holder, outages=Outages(_is_outage))
        self._bus = RedisBus(config.redis_url, clock=clock)
        self._observed = Monitoring("scheduler", clock, token=config.metrics_token, skew=skew_of_database)
        self._meters = self._observed.meters()
        self._olts = self._observed.show_olts(config.metrics_per_olt, lambda: self._turn.is_ours)
        # Consecutive attempts at which an embedded engine had the database.
        self._refusals = 0
        # Parts of the current or last turn.
        self._parts: Parts | None = None

    async def run(self, listener: socket.socket | None, on_ready: Callable[[], None]) -> None:
        """Take turns until stopped."""
        await self._bus.start()
        turn, observed = self._turn, self._observed
        observed.show_pool(self._bus, self._standings, lambda: turn.is_ours)
        ticking = ticks(lambda: self._bus.latest("snapshot"), self._clock, lambda: turn.is_ours)
        following = follows_clock(lambda: turn.is_ours and self._parts is not None and self._parts.follows_clock)
        writing = writes(lambda: turn.outages.present(self._clock.now()) if turn.is_ours else None)
        probes = serve_probes(listener, observed.probes(connects(self._bus), ticking, following, writing))
        reminding, watching = remind(self._bus, self._clock), self._watch_clock()
        beside = [asyncio.create_task(job) for job in (probes, observed.loop.run(), reminding, watching)]
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

    def _standings(self) -> Mapping[int, Standing]:
        return self._parts.scheduler.standings if self._parts else {}

    async def _watch_clock(self) -> None:
        def on_set(by: timedelta) -> None:
            if self._parts is not None:
                self._parts.scheduler.clock_set(by)

        await ClockWatch(self._clock, f"{self._config.worker_name} (scheduler)", on_set).run()

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
        """Give up if an embedded engine has the database; one that only tries to start releases it soon."""
        self._refusals += 1
        if self._refusals > 1:
            raise ConfigError(error.for_roles) from error
        await self._clock.sleep(TRY_EVERY)

    async def _take(self, stop: "asyncio.Future[None]") -> None:
        """Be the active scheduler until the lease is lost or the process is stopped.

        A task that ends stops the turn.
        """
        turn = self._turn
        self._parts = parts = make_parts(self._config, turn, self._bus, self._clock, self._meters, self._olts)
        # Only now is there a component that stores the event.
        tell(logger, Event.SCHEDULER_TOOK_OVER, holder=turn.holder)
        tasks = {asyncio.create_task(job, name=name) for name, job in parts.jobs(self._bus, self._clock).items()}
        keeping = asyncio.create_task(turn.keep(), name="turn")
        await asyncio.wait({*tasks, keeping, stop}, return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            self._meters.lease_losses.labels("scheduler").inc()
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
