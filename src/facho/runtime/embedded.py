"""The embedded mode: web, engine and every SNMP socket in one process and one event loop."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
import uvloop

from facho.apps.polling import live
from facho.engine.events import Event, tell
from facho.runtime import build
from facho.runtime.asgi import application
from facho.runtime.config import Config, ConfigError

logger = logging.getLogger(__name__)

# Requests that are still open when Facho stops get this long.
GRACE_SECONDS = 5


class Server(uvicorn.Server):
    """A uvicorn that leaves the signals to us: it re-raises them after serving, and code behind it would never run."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(config: Config, on_ready: Callable[[], None] = lambda: None) -> None:
    """Run until SIGINT or SIGTERM. `on_ready` is called when the port is open. The caller holds the `EngineLock`."""
    with contextlib.closing(listen(config.host, config.port)) as listener:
        uvloop.run(_serve(config, listener, on_ready))


def listen(host: str, port: int) -> socket.socket:
    """Open the port before anything else starts: a port in use must not be found out halfway."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"Port {port} on {host} cannot be used ({error.strerror}). "
            "Stop what listens there, or choose another with --port or FACHO_PORT."
        ) from error
    return listener


async def _serve(config: Config, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    engine = build.engine(config)
    live.attach(engine.bus)
    server = Server(
        uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
            # Behind a proxy the client's scheme comes in a header that the proxy sets; see FACHO_PUBLIC_URL.
            proxy_headers=False,
        )
    )
    stop = _stop_on_signals()
    tasks = {
        asyncio.create_task(engine.scheduler.run(), name="scheduler"),
        asyncio.create_task(engine.chores.run(), name="chores"),
        asyncio.create_task(engine.alerts.run(), name="alerts"),
        asyncio.create_task(engine.journal.run(), name="journal"),
        asyncio.create_task(server.serve(sockets=[listener]), name="web"),
    }
    tell(logger, Event.ENGINE_STARTED, pollers=config.pollers)
    on_ready()
    try:
        await asyncio.wait({*tasks, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        tell(logger, Event.ENGINE_STOPPED)
        live.attach(None)
        await _stop(engine, server, tasks)


def _stop_on_signals() -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def ask() -> None:
        if not stop.done():
            stop.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask)
    return stop


async def _stop(engine: build.Engine, server: Server, tasks: set["asyncio.Task[None]"]) -> None:
    """Stop everything, and raise what had stopped one of the tasks by itself."""
    crashed = [task for task in tasks if task.done()]
    server.should_exit = True
    for task in tasks:
        if task.get_name() != "web":
            task.cancel()
    # What the scheduler had in hand must be back in the queue before the queue is cleared. Web is asked to stop, and
    # does when the bus has closed its streams.
    await asyncio.gather(*(task for task in tasks if task.get_name() != "web"), return_exceptions=True)
    await engine.close()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in crashed:
        task.result()
