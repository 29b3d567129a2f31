"""Web role: pages and API. It only reads from the database and the bus."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import uvloop

from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock
from facho.apps.polling import live
from facho.runtime.asgi import application
from facho.runtime.clocks import ClockWatch, skew_of_database
from facho.runtime.config import Config
from facho.runtime.health import mount
from facho.runtime.monitoring import Monitoring, connects
from facho.runtime.roles.waiting import await_start, remind
from facho.runtime.serving import listen, make_server, stop_on_signals


def serve(config: Config, on_ready: Callable[[], None] = lambda: None) -> None:
    """Run until SIGINT or SIGTERM. `on_ready` is called when pages are served."""
    with contextlib.closing(listen(config.host, config.port)) as listener:
        if await_start(config, "web", listener):
            uvloop.run(_serve(config, listener, on_ready))


async def _serve(config: Config, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    clock = SystemClock()
    bus = RedisBus(config.redis_url, clock=clock)
    observed = Monitoring("web", clock, token=config.metrics_token, skew=skew_of_database)
    await bus.start()
    live.attach(bus)
    server = make_server(mount(application, observed.probes(connects(bus))))
    stop = stop_on_signals()
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="web")
    watching = ClockWatch(clock, f"{config.worker_name} (web)", lambda by: None).run()
    beside = [asyncio.create_task(job) for job in (observed.loop.run(), remind(bus, clock), watching)]
    on_ready()
    try:
        await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        live.attach(None)
        # An open stream would delay the stop of the server; it ends with the bus.
        await bus.stop()
        await serving
        for task in beside:
            task.cancel()
        observed.close()
