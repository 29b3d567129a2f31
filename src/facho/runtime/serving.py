"""HTTP serving of every role: listen, serve, stop."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from facho.runtime.config import Config, ConfigError
from facho.runtime.health import App

# Seconds for open requests when Facho stops.
GRACE_SECONDS = 5


class Server(uvicorn.Server):
    """A uvicorn without signal handling: it would re-raise signals after serving, and skip the code after it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(application: Any) -> Server:
    """Return a server of an application; `should_exit` stops it."""
    return Server(
        uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
            # The scheme comes from a header of the proxy; see FACHO_PUBLIC_URL.
            proxy_headers=False,
        )
    )


def listen(host: str, port: int, setting: str = "--port or FACHO_PORT") -> socket.socket:
    """Open the port first, so that a port in use is found before anything starts."""
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
            f"Stop the program that uses it, or choose another port with {setting}."
        ) from error
    return listener


@contextlib.contextmanager
def probe_listener(config: Config) -> Iterator[socket.socket | None]:
    """Open the port for /metrics, /healthz and /readyz, if one is set."""
    if not config.metrics_port:
        yield None
        return
    with contextlib.closing(listen(config.host, config.metrics_port, "FACHO_METRICS_PORT")) as listener:
        yield listener


async def serve_probes(listener: socket.socket | None, probes: App) -> None:
    """Answer probes until this is cancelled."""
    if listener is None:
        await asyncio.Event().wait()
        return
    await make_server(probes).serve(sockets=[listener])


def stop_on_signals() -> "asyncio.Future[None]":
    """Call this when the process is asked to stop."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def ask() -> None:
        if not stop.done():
            stop.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask)
    return stop
