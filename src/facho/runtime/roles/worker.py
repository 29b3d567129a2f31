"""Worker role: polls OLTs. Celery threads pass each composite to one event loop and wait."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import uvloop
from celery import Celery, bootsteps, signals
from celery.worker.consumer import consumer
from celery.worker.consumer.consumer import CONNECTION_ERROR
from celery.worker.consumer.tasks import Tasks
from django.db import Error

from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock
from facho.adapters.runner.celery import DEFAULT, HIGH, RETRY, own_queue
from facho.adapters.snmp.client import SnmpByVersion
from facho.adapters.wire import claim_from_message
from facho.engine.model import Claim, Outcome
from facho.engine.ports import Clock, EventBus, NodeRunner
from facho.engine.scheduling.chores import Chores
from facho.engine.scheduling.grid import is_delayed
from facho.engine.scheduling.pollers import Poller
from facho.engine.scheduling.runner import ReturnToScheduler
from facho.engine.scheduling.snapshot import describe
from facho.runtime import logs
from facho.runtime.build import deliver, make_delivery, make_runner
from facho.runtime.celery import POLL, make_app
from facho.runtime.clocks import ClockWatch, skew_of_database
from facho.runtime.config import Config, ConfigError
from facho.runtime.monitoring import DatabaseLink, Monitoring, connects, takes_work
from facho.runtime.roles import act_on
from facho.runtime.roles.waiting import await_start, remind
from facho.runtime.serving import probe_listener, serve_probes
from facho.store import events
from facho.store.database import DbThread
from facho.store.engine_lock import EngineAtWork
from facho.store.events import EventRows, Journal
from facho.store.group_commit import GroupCommit
from facho.store.inventory import Inventories
from facho.store.leases import DbLeases, Terms
from facho.store.nodes import DbNodeSource
from facho.store.runs import DbRuns
from facho.store.spool import ResultDelivery

logger = logging.getLogger(__name__)

# Seconds between reports, and between writes of the poller rows.
REPORT_EVERY = 1.0
WRITE_EVERY = 5.0

# A composite that cannot be started for this long, because the database is unavailable, is returned to the scheduler.
GIVE_BACK_AFTER = timedelta(seconds=10)

# A worker whose pollers were all busy asks for messages again within so many seconds. Nothing wakes Celery when one of
# its threads is free, and by itself it looks once a second.
LOOK_EVERY = 0.1

# Seconds between attempts to reach the database at the start.
TRY_EVERY = 2.0


def serve(config: Config, pollers: int, on_ready: Callable[[], None] = lambda: None) -> None:
    """Run until SIGINT or SIGTERM; current runs are finished."""
    with probe_listener(config) as listener:
        if not await_start(config, "worker", listener):
            return
        # Until Celery handles the signals.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit(0))
        worker = Worker(config, pollers, listener)
        worker.start()
        app = make_app(config, (HIGH, own_queue(config.worker_name), DEFAULT, RETRY))
        app.task(name=POLL, ignore_result=True)(worker.poll)
        # The bus logs once that Redis is unavailable, Celery with each try.
        logging.getLogger(consumer.__name__).addFilter(lambda record: str(record.msg) != str(CONNECTION_ERROR))
        put_gate(app, lambda: not worker.is_cut_off)
        signals.worker_shutting_down.connect(worker.drain, weak=False)
        on_ready()
        try:
            app.worker_main(
                [
                    "--quiet",
                    "worker",
                    "--pool=threads",
                    f"--concurrency={pollers}",
                    f"--hostname={worker.name.replace('/', '-')}@%h",
                    "--without-gossip",
                    "--without-mingle",
                    "--without-heartbeat",
                    "--loglevel=WARNING",
                ]
            )
        finally:
            worker.stop()


def put_gate(app: Celery, is_open: Callable[[], bool]) -> None:
    """Make a worker leave messages in the queues while the gate is closed, because other workers share the queues."""

    class Gate(bootsteps.StartStopStep):  # type: ignore[misc]  # celery has no types
        """Created again with each connection, like the consumer behind it."""

        requires = (Tasks,)

        def start(self, consumer: Any) -> None:
            credit = consumer.task_consumer.channel.qos
            has_credit = credit.can_consume
            # The transport checks this before it requests the next message.
            credit.can_consume = lambda: is_open() and has_credit()
            self._looking = consumer.hub.call_repeatedly(LOOK_EVERY, lambda: None)

        def stop(self, consumer: Any) -> None:
            self._looking.cancel()

    app.steps["consumer"].add(Gate)


class WorkerPollers:
    """Assigns composites to pollers. The scheduler sends no more than there are pollers; an early one waits."""

    def __init__(self, *, name: str, host: str, numbers: Sequence[int], runner: NodeRunner, clock: Clock) -> None:
        self.name = name
        self.host = host
        self.is_draining = False
        self.pollers = [Poller(number) for number in numbers]
        self._runner = runner
        self._clock = clock
        self._started_at = clock.now()
        self._free = asyncio.Queue[Poller]()
        for poller in self.pollers:
            self._free.put_nowait(poller)
        # By OLT.
        self._running: dict[int, asyncio.Task[Sequence[Outcome]]] = {}

    async def run(self, claim: Claim) -> None:
        """Run a composite to its end, or until it is interrupted."""
        poller = await self._free.get()
        began = self._clock.now()
        poller.assign(claim.composite, began)
        poller.take(claim)
        task = asyncio.ensure_future(self._runner.run(replace(claim, poller_id=poller.id), poller))
        self._running[claim.composite.olt_id] = task
        try:
            # It may be interrupted; that must not cancel the caller.
            await asyncio.wait({task})
        finally:
            if self._running.get(claim.composite.olt_id) is task:
                del self._running[claim.composite.olt_id]
            # A composite that was returned unstarted has no outcomes, and does not count.
            if not task.done() or task.cancelled() or task.exception() or task.result():
                poller.tasks_completed += 1
                poller.tasks_delayed += is_delayed(claim.composite.retry_at or claim.composite.slot, began)
            poller.release(self._clock.now())
            self._free.put_nowait(poller)
        if not task.cancelled():
            task.result()

    def clock_set(self, by: timedelta) -> None:
        """Shift the times after the clock was set."""
        self._started_at += by
        for poller in self.pollers:
            poller.clock_set(by)

    def interrupt(self, olt_id: int) -> None:
        """Cancel the run on an OLT. Its executions have ended already."""
        if olt_id in self._running:
            self._running[olt_id].cancel()

    @property
    def numbers(self) -> list[int]:
        return [poller.id for poller in self.pollers]

    def renumber(self, numbers: Sequence[int]) -> None:
        """Give the pollers new numbers. Their runs continue."""
        for poller, number in zip(self.pollers, numbers, strict=True):
            poller.id = number

    @property
    def running(self) -> int:
        return len(self._running)

    def report(self) -> Mapping[str, Any]:
        """Return the report that is sent once a second."""
        return {
            "worker": self.name,
            "host": self.host,
            "at": self._clock.now().isoformat(),
            "draining": self.is_draining,
            "pollers": self.describe(),
        }

    def describe(self) -> list[dict[str, Any]]:
        return describe(self.pollers, self._clock.now(), self._started_at, self.name, self.host)


class Worker:
    """An event loop in its own thread, and its interface for Celery's threads."""

    def __init__(self, config: Config, pollers: int, listener: socket.socket | None) -> None:
        self._listener = listener
        self.name = f"{config.worker_name}/{os.getpid()}"
        self._config = config
        self._pollers = pollers
        self._clock = SystemClock()
        self._thread = threading.Thread(target=self._live, name="loop", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._pool: WorkerPollers | None = None
        self._database_link: DatabaseLink | None = None

    @property
    def is_cut_off(self) -> bool:
        """Return whether nothing can be started because the database is unavailable."""
        return self._database_link is None or self._database_link.is_cut

    def start(self) -> None:
        """Start the loop, and return when it accepts work."""
        self._thread.start()
        while not self._ready.wait(1.0):
            if not self._thread.is_alive():
                raise SystemExit("facho: the worker could not start. The reason is in the lines above.")

    def poll(self, claim: Mapping[str, Any], not_after: str) -> None:
        """Run a message of a queue to its end."""
        if datetime.fromisoformat(not_after) < self._clock.now():
            # It took too long to arrive. The scheduler sends another one if it is still needed.
            logger.info("a run arrived too late and was not started")
            return
        pool, loop = self._pool, self._loop
        if pool is not None and loop is not None:
            asyncio.run_coroutine_threadsafe(pool.run(claim_from_message(claim)), loop).result()

    def drain(self, **_: Any) -> None:
        """Accept no new work from here on."""
        if self._pool is not None:
            self._pool.is_draining = True

    def stop(self) -> None:
        """Stop the loop. Nothing runs in it any more, except in a forced stop."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _live(self) -> None:
        try:
            uvloop.run(self._main())
            return
        except ConfigError as error:
            logger.error("%s", error)
            sys.stderr.write(f"facho: {error}\n")
        except Exception:
            logger.exception("the worker stopped because of an unexpected error")
        # Without the loop no run can end, and Celery would wait forever. Its executions are recovered when the leases
        # have expired.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(1)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            clock, bus = self._clock, RedisBus(self._config.redis_url, clock=self._clock)
            names = ("read", "write", "leases", "spool")
            reader, writer, keeper, disk = threads = tuple(DbThread(f"store-{name}") for name in names)
            for thread in threads:
                stack.callback(thread.close)
            await bus.start()
            stack.push_async_callback(bus.stop)
            observed = Monitoring("worker", clock, token=self._config.metrics_token, skew=skew_of_database)
            stack.callback(observed.close)
            meters, inventories = observed.meters(), Inventories()
            delivery = make_delivery(self._config, GroupCommit(writer), disk, meters, inventories)
            stack.push_async_callback(delivery.close)
            rows = EventRows()
            journal = Journal(bus=bus, clock=clock, thread=writer, events=rows)
            stack.push_async_callback(journal.step)
            logs.add_events(rows)
            stack.callback(logs.remove_events, rows)
            snmp = SnmpByVersion(observer=meters)
            stack.push_async_callback(snmp.close)
            chores = Chores(clock, [deliver(delivery)])
            stack.push_async_callback(chores.stop)
            leases = DbLeases(keeper, clock, Terms.lasting(self._config.lease_seconds))
            runner = make_runner(
                self.name,
                most_onus=self._config.max_onus,
                nodes=DbNodeSource(reader),
                runs=DbRuns(reader, writer, delivery, inventories),
                snmp=snmp,
                leases=leases,
                bus=bus,
                clock=clock,
                observer=meters,
                give_up=ReturnToScheduler(GIVE_BACK_AFTER),
            )
            host = socket.gethostname()
            numbers = await self._enlist(writer)
            self._pool = pool = WorkerPollers(name=self.name, host=host, numbers=numbers, runner=runner, clock=clock)
            stack.push_async_callback(_leave, pool, bus, writer)
            self._database_link = database_link = observed.database_link(threads)
            probes = observed.probes(connects(bus), takes_work(lambda: pool.is_draining))
            await self._work(
                chores.run(),
                leases.run(),
                journal.run(),
                serve_probes(self._listener, probes),
                observed.loop.run(),
                remind(bus, clock),
                ClockWatch(clock, f"{self._config.worker_name} (worker)", pool.clock_set).run(),
                database_link.run(),
                _report(pool, own_queue(self._config.worker_name), delivery, database_link, bus, clock),
                _write(pool, writer, clock),
                # Disabled by a user.
                act_on(bus, "interrupt", lambda news: pool.interrupt(int(news["olt_id"]))),
            )

    async def _enlist(self, writer: DbThread) -> list[int]:
        """Get numbers for our pollers; wait if the database is unavailable."""
        while True:
            enlist = partial(events.enlist, self.name, socket.gethostname(), self._pollers, self._clock.now())
            try:
                return await writer.run(enlist)
            except EngineAtWork as error:
                raise ConfigError(error.for_roles) from error
            except Error as error:
                logger.warning("the database is unavailable, polling has not started: %s", error)
                await self._clock.sleep(TRY_EVERY)

    async def _work(self, *jobs: Coroutine[Any, Any, None]) -> None:
        """Run all tasks until stopped; a task that ends stops the worker."""
        tasks = [asyncio.create_task(job) for job in jobs]
        stopping = asyncio.create_task(self._stop.wait())
        self._ready.set()
        done, _ = await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in (*tasks, stopping):
            task.cancel()
        await asyncio.gather(*tasks, stopping, return_exceptions=True)
        for task in done:
            task.result()


async def _report(
    pool: WorkerPollers, queue: str, delivery: ResultDelivery, database_link: DatabaseLink, bus: EventBus, clock: Clock
) -> None:
    while True:
        news = {"queue": queue, "cut_off": database_link.is_cut, "spooled": delivery.waiting}
        bus.publish("worker", {**pool.report(), **news})
        await clock.sleep(REPORT_EVERY)


async def _write(pool: WorkerPollers, thread: DbThread, clock: Clock) -> None:
    """Keep the rows of our pollers up to date."""
    refusals = 0
    while True:
        try:
            if not await thread.run(partial(events.keep_pollers, pool.describe(), clock.now())):
                enlist = partial(events.enlist, pool.name, pool.host, len(pool.pollers), clock.now())
                pool.renumber(await thread.run(enlist))
            refusals = 0
        except EngineAtWork as error:
            refusals += 1
            # An engine that only tries to start releases the database soon. Our current runs have leases, which exclude
            # it.
            if refusals > 1 and not pool.running:
                raise ConfigError(error.for_roles) from error
        except Error as error:
            logger.warning("the state of the pollers could not be stored: %s", error)
        await clock.sleep(WRITE_EVERY)


async def _leave(pool: WorkerPollers, bus: EventBus, thread: DbThread) -> None:
    """Delete the rows of our pollers. A worker can also stop while the database is unavailable."""
    bus.publish("worker", {**pool.report(), "draining": True, "pollers": []})
    try:
        await thread.run(lambda: events.strike_out(pool.name, pool.numbers))
    except Error as error:
        logger.warning(
            "the pollers of this worker could not be removed from the list; they expire in a few seconds: %s", error
        )
