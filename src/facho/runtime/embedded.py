"""Embedded mode: web, engine and SNMP in one process and one event loop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

import uvloop

from facho.apps.polling import live
from facho.engine.events import Event, log_event
from facho.runtime import build
from facho.runtime.asgi import application
from facho.runtime.config import Config
from facho.runtime.health import mount
from facho.runtime.lock import EngineLock
from facho.runtime.monitoring import DataWatch, follows_clock, ticks, writes
from facho.runtime.serving import listen, make_server, stop_on_signals

logger = logging.getLogger(__name__)


def serve(config: Config, on_ready: Callable[[], None] = lambda: None, lock: EngineLock | None = None) -> None:
    """Run until SIGINT or SIGTERM, or until the lock is lost. `on_ready` is called when the port is open."""
    with contextlib.closing(listen(config.host, config.port)) as listener:
        uvloop.run(_serve(config, listener, on_ready, lock))


async def _serve(
    config: Config, listener: socket.socket, on_ready: Callable[[], None], lock: EngineLock | None
) -> None:
    engine = build.engine(config)
    live.attach(engine.bus)
    data = DataWatch(config, engine.clock)
    probes = engine.observed.probes(
        ticks(lambda: engine.bus.latest("snapshot"), engine.clock),
        follows_clock(lambda: engine.scheduler.follows_clock),
        writes(lambda: engine.scheduler.outages.present(engine.clock.now())),
        data.check,
    )
    server = make_server(mount(application, probes))
    stop = stop_on_signals()
    tasks = {
        asyncio.create_task(engine.scheduler.run(), name="scheduler"),
        asyncio.create_task(engine.answerer.run(), name="questions"),
        asyncio.create_task(engine.chores.run(), name="chores"),
        asyncio.create_task(engine.alerts.run(), name="alerts"),
        asyncio.create_task(engine.problems.run(), name="problems"),
        asyncio.create_task(engine.journal.run(), name="journal"),
        asyncio.create_task(engine.observed.loop.run(), name="loop-watch"),
        asyncio.create_task(engine.clock_watch.run(), name="clock-watch"),
        asyncio.create_task(data.run(), name="data-watch"),
    }
    if engine.push is not None:
        tasks.add(asyncio.create_task(engine.push.run(), name="push"))
    web = asyncio.create_task(server.serve(sockets=[listener]), name="web")
    if lock is not None:
        tasks.add(asyncio.create_task(lock.keep(engine.clock), name="lock"))
    log_event(logger, Event.ENGINE_STARTED, pollers=len(engine.scheduler.manager.pollers))
    on_ready()
    try:
        await asyncio.wait({*tasks, web, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        log_event(logger, Event.ENGINE_STOPPED)
        live.attach(None)
        crashed = [task for task in (*tasks, web) if task.done()]
        server.should_exit = True
        for task in tasks:
            task.cancel()
        # Composites of the scheduler must be back in the queue before it is cleared. The web server stops after the bus
        # has closed its streams.
        await asyncio.gather(*tasks, return_exceptions=True)
        await engine.close()
        await asyncio.gather(web, return_exceptions=True)
        for task in crashed:
            task.result()
