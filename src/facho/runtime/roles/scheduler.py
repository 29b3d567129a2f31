"""Scheduler role: due nodes and their assignment. One is active, others are on standby."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import uvloop

from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock
from facho.adapters.runner.celery import CeleryRunner
from facho.adapters.snmp.client import SnmpByVersion
from facho.alerts.loop import AlertLoop
from facho.apps.polling import live
from facho.engine.events import Event, log_event
from facho.engine.model import Cause, Status
from facho.engine.ports import Clock
from facho.engine.scheduling.chores import Chore
from facho.engine.scheduling.outages import Outages
from facho.engine.scheduling.pollers import PollerManager
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.scheduling.snapshot import snapshot
from facho.engine.scheduling.workers import WorkerRegistry
from facho.problems.loop import ProblemLoop
from facho.runtime import logs
from facho.runtime.build import Ports, make_answerer, make_chores, make_policy, make_push, make_rules, olt_figures
from facho.runtime.celery import Sender, make_app
from facho.runtime.clocks import ClockWatch, skew_of_database
from facho.runtime.config import Config, ConfigError
from facho.runtime.metrics import Meters, OltCollector
from facho.runtime.monitoring import Monitoring, connects, follows_clock, ticks, writes
from facho.runtime.roles import act_on
from facho.runtime.roles.waiting import await_start, remind
from facho.runtime.serving import probe_listener, serve_probes, stop_on_signals
from facho.store.database import DbThread, is_away
from facho.store.engine_lock import EngineAtWork
from facho.store.events import EventRows, Journal, Pool
from facho.store.inventory import Inventories
from facho.store.leases import TRY_EVERY, DbLeases, SchedulerTurn, Terms
from facho.store.nodes import DbNodeSource
from facho.store.plans import Planner
from facho.store.questions import DbQuestions
from facho.store.recovery import LeaseReaper
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots, TurnFence

logger = logging.getLogger(__name__)

REAP_EVERY = timedelta(seconds=5)

# A run that has been due for less than this may have been queued by the previous scheduler, and stays queued. Older
# ones, in a fleet without a scheduler, are lost; otherwise all would come at once.
QUEUED_FOR = timedelta(seconds=60)

# ONUs that are kept in memory for questions.
ONUS_OF_QUESTIONS = 100_000


class Parts:
    """Parts of one turn. The next turn creates all again, so no stale state survives."""

    def __init__(
        self, config: Config, turn: SchedulerTurn, bus: RedisBus, clock: Clock, meters: Meters, olts: OltCollector
    ) -> None:
        names = ("read", "write", "chores", "alerts", "push", "leases")
        reader, writer, helper, watcher, pusher, keeper = self.threads = tuple(
            DbThread(f"store-{name}") for name in names
        )
        policy = make_policy(config)
        slots = DbSlots(writer, policy=policy, fence=TurnFence(turn.fence), observer=meters)
        self.snmp = SnmpByVersion(observer=meters)
        self.leases = DbLeases(keeper, clock, Terms.lasting(config.lease_seconds))
        results = DbResults(writer, policy=policy, observer=meters)
        # Of OLTs that users asked. The workers have those of their runs.
        inventories = Inventories(ONUS_OF_QUESTIONS)
        questions = DbQuestions(reader, writer, results, inventories, make_rules(config))
        ports: Ports = {
            "nodes": DbNodeSource(reader),
            "runs": DbRuns(reader, writer, results, inventories),
            "leases": self.leases,
            "snmp": self.snmp,
            "clock": clock,
            "bus": bus,
            "observer": meters,
        }
        self.events = EventRows()
        logs.add_events(self.events)
        self.sender = Sender(make_app(config))
        self.workers = workers = WorkerRegistry()
        self.runner = runner = CeleryRunner(
            send=self.sender.send, slots=slots, bus=bus, clock=clock, choose=workers.choose, outages=turn.outages
        )
        self.prober = Prober(name=turn.holder, slots=slots, **ports)
        planner = Planner(helper)

        def on_tick(manager: PollerManager) -> None:
            """Set the pool size from the workers, record the reason for an empty pool, and publish a snapshot."""
            now = clock.now()
            manager.outages.note("broker", None if bus.is_connected else Cause.BROKER_UNAVAILABLE, now)
            manager.outages.note("workers", Cause.DATABASE_UNAVAILABLE if workers.is_cut_off else None, now)
            workers.drop_silent(clock.monotonic())
            manager.resize(workers.capacity)
            if turn.is_ours:
                bus.publish("snapshot", snapshot(manager, now, workers.pollers))

        self.scheduler = scheduler = Scheduler(
            pollers=0,
            nodes=ports["nodes"],
            slots=slots,
            runner=runner,
            clock=clock,
            prober=self.prober,
            on_tick=on_tick,
            on_change=planner.changed,
            restart_grace=QUEUED_FOR,
            outages=turn.outages,
            observer=meters,
        )
        self.answerer = make_answerer(turn.holder, scheduler, ports, questions)
        reaper = LeaseReaper(clock)

        async def reap(now: datetime) -> None:
            # Read here and not in the thread, because the scheduler's state changes all the time.
            ours, spooling = {*runner.offered, *scheduler.waiting_executions}, workers.spooling
            ended = await writer.run(lambda: reaper.reap(now, answered_for=ours, spooling=spooling))
            meters.slots_ended(Status.INTERRUPTED, Cause.LEASE_LOST, ended)

        self.chores = make_chores(
            config,
            clock,
            writer=writer,
            helper=helper,
            planner=planner,
            gap=lambda: scheduler.gap,
            also=[Chore("reap-leases", REAP_EVERY, reap), olt_figures(olts, helper)],
        )
        self.journal = Journal(bus=bus, clock=clock, thread=writer, events=self.events, pool=Pool(owns_pollers=False))
        self.alerts = AlertLoop(clock, watcher, snapshot=partial(live.snapshot_of, bus), public_url=config.public_url)
        self.problems = ProblemLoop(clock, watcher, bus, snapshot=partial(live.snapshot_of, bus))
        self.push = make_push(config, pusher, clock, meters)

    async def close(self) -> None:
        """Stop in an order that loses nothing. Workers continue their runs."""
        await self.chores.stop()
        await self.prober.stop()
        await self.answerer.stop()
        self.runner.leave()
        await self.scheduler.manager.stop()
        await self.alerts.close()
        if self.push is not None:
            self.push.close()
        await self.snmp.close()
        await self.journal.step()
        logs.remove_events(self.events)
        self.sender.close()
        for thread in self.threads:
            thread.close()


def serve(config: Config, on_ready: Callable[[], None] = lambda: None) -> None:
    """Wait on standby and schedule in turns, until SIGINT or SIGTERM."""
    with probe_listener(config) as listener:
        if await_start(config, "scheduler", listener):
            uvloop.run(Standby(config).run(listener, on_ready))


class Standby:
    """State that outlives a turn."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._clock = clock = SystemClock()
        self._thread = DbThread("store-turn")
        holder = f"{config.worker_name}/{os.getpid()}"
        # Outages outlive turns: an unavailable database ends a turn. It reports an error, or does not answer in time.
        outages = Outages(lambda error: is_away(error) or isinstance(error, TimeoutError))
        self._turn = SchedulerTurn(self._thread, clock, holder, outages=outages)
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
        observed.show_pool(
            self._bus, lambda: self._parts.scheduler.standings if self._parts else {}, lambda: turn.is_ours
        )
        ticking = ticks(lambda: self._bus.latest("snapshot"), self._clock, lambda: turn.is_ours)
        following = follows_clock(
            lambda: turn.is_ours and self._parts is not None and self._parts.scheduler.follows_clock
        )
        writing = writes(lambda: turn.outages.present(self._clock.now()) if turn.is_ours else None)
        probes = serve_probes(listener, observed.probes(connects(self._bus), ticking, following, writing))

        def on_set(by: timedelta) -> None:
            if self._parts is not None:
                self._parts.scheduler.clock_set(by)

        watching = ClockWatch(self._clock, f"{self._config.worker_name} (scheduler)", on_set).run()
        jobs = (probes, observed.loop.run(), remind(self._bus, self._clock), watching)
        beside = [asyncio.create_task(job) for job in jobs]
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
            self._refusals += 1
            # An embedded engine that only tries to start releases the database soon.
            if self._refusals > 1:
                raise ConfigError(found.for_roles) from found
            await self._clock.sleep(TRY_EVERY)
        elif isinstance(found, Exception):
            raise found
        else:
            self._refusals = 0

    async def _take(self, stop: "asyncio.Future[None]") -> None:
        """Be the active scheduler until the lease is lost or the process is stopped.

        A task that ends stops the turn.
        """
        turn = self._turn
        self._parts = parts = Parts(self._config, turn, self._bus, self._clock, self._meters, self._olts)
        # Only now is there a component that stores the event.
        log_event(logger, Event.SCHEDULER_TOOK_OVER, holder=turn.holder)
        jobs = {
            "scheduler": parts.scheduler.run(),
            "ends": parts.runner.watch(),
            "leases": parts.leases.run(),
            "workers": act_on(
                self._bus, "worker", lambda report: parts.workers.update(report, self._clock.monotonic())
            ),
            "questions": parts.answerer.run(),
            "chores": parts.chores.run(),
            "alerts": parts.alerts.run(),
            "problems": parts.problems.run(),
            "journal": parts.journal.run(),
        }
        if parts.push is not None:
            jobs["push"] = parts.push.run()
        tasks = {asyncio.create_task(job, name=name) for name, job in jobs.items()}
        keeping = asyncio.create_task(turn.keep(), name="turn")
        await asyncio.wait({*tasks, keeping, stop}, return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            self._meters.lease_losses.labels("scheduler").inc()
            log_event(logger, Event.SCHEDULER_LOST_TURN, holder=turn.holder)
        crashed = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await parts.close()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        for task in crashed:
            task.result()
