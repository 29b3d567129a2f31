"""Start of a role before its servers are available: it waits, logs the reason, and answers probes.

It ends at once if waiting does not help: wrong password, missing database, an old server, an embedded engine. Pending
migrations are waited for, so that roles need no restart after `facho migrate`.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

import uvloop
from django.core.checks import ERROR, CheckMessage, run_checks
from django.db import Error, connection, connections

from facho.adapters.bus.redis import RedisBus
from facho.adapters.clock import SystemClock
from facho.engine.ports import Clock
from facho.runtime import checks
from facho.runtime.checks import OUTDATED
from facho.runtime.config import Config, ConfigError
from facho.runtime.health import App, Check, Checks, NotWell, mount, probes, unavailable
from facho.runtime.metrics import make_registry
from facho.runtime.monitoring import OK
from facho.runtime.serving import make_server, stop_on_signals
from facho.store.database import is_away, is_refusal

logger = logging.getLogger(__name__)

# Seconds between checks, and between log messages.
TRY_EVERY = 2.0
SAY_EVERY = 60.0

# Seconds after which a check counts as hung and is started again.
LONGEST_LOOK = 60.0

# From `runtime/checks.py`: the database is unreachable. It may come back, like one that is OUTDATED.
AWAY = "facho.E002"
# Redis checks that waiting does not fix. Without Redis a role starts, and its bus reconnects.
REFUSED_BY_REDIS = {"facho.E009", "facho.E010", "facho.E011", "facho.E014"}


class NotYet(Exception):
    """Reason why a role cannot start now, as a message for anyone; `detail` is for the log."""

    def __init__(self, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail


def look(config: Config) -> None:
    """Return if a role can start; `NotYet` if it may start later, `ConfigError` if the admin must act."""
    try:
        connection.ensure_connection()
    except Error as error:
        if is_away(error) and not (is_refusal(error) and _is_refused_again()):
            detail = " ".join(str(error).split()) or type(error).__name__
            raise NotYet("the database cannot be reached", detail) from error
        # The checks have the message for it.
        raise ConfigError(_sentences(run_checks(databases=["default"]))) from error
    messages = run_checks(databases=["default"])
    away = [message for message in messages if message.id == AWAY]
    if away:
        raise NotYet("the database cannot be reached", away[0].msg)
    serious = [message for message in messages if message.level >= ERROR]
    serious += [message for message in checks.redis(config.redis_url) if message.id in REFUSED_BY_REDIS]
    if serious:
        raise ConfigError(_sentences(serious))
    if any(message.id == OUTDATED for message in messages):
        raise NotYet("the database is not up to date: run `facho migrate`")


def _is_refused_again() -> bool:
    """Check again: a server that has just started may refuse connections for a moment."""
    try:
        connection.ensure_connection()
    except Error as error:
        return is_refusal(error)
    return False


def _sentences(messages: Sequence[CheckMessage]) -> str:
    return "\n".join(f"{message.msg} {message.hint or ''}".strip() for message in messages if message.level >= ERROR)


def await_start(config: Config, role: str, listener: socket.socket | None) -> bool:
    """Wait until a role can start, answering probes; False if it was stopped before that."""
    return uvloop.run(Waiting(config, role, SystemClock()).run(listener))


class Waiting:
    """A role that waits for its start."""

    def __init__(
        self, config: Config, role: str, clock: Clock, look: Callable[[Config], None] = look, every: float = TRY_EVERY
    ) -> None:
        self._config = config
        self._role = role
        self._clock = clock
        self._look = look
        self._every = every
        # Last logged reason, and its time.
        self._reason = "just started"
        self._said_at: float | None = None

    async def run(self, listener: socket.socket | None) -> bool:
        stop = stop_on_signals()
        # The server closes its socket.
        server = make_server(self.app)
        serving = asyncio.create_task(server.serve(sockets=[listener.dup()])) if listener is not None else None
        try:
            return await self._wait(stop)
        finally:
            server.should_exit = True
            if serving is not None:
                await serving

    async def _wait(self, stop: "asyncio.Future[None]") -> bool:
        while not stop.done():
            try:
                await _until(stop, asyncio.wait_for(_in_thread(lambda: self._look(self._config)), LONGEST_LOOK))
            except TimeoutError:
                self._say("the database cannot be reached", f"no answer in {LONGEST_LOOK:.0f} s")
            except NotYet as trouble:
                self._say(str(trouble), trouble.detail)
            else:
                if not stop.done() and self._said_at is not None:
                    logger.info("the %s continues starting: its dependencies are available", self._role)
                return not stop.done()
            await _until(stop, self._clock.sleep(self._every))
        return False

    def _say(self, reason: str, detail: str) -> None:
        """Log the reason: at once, then once a minute."""
        now = self._clock.monotonic()
        if self._said_at is None or reason != self._reason or now - self._said_at >= SAY_EVERY:
            self._said_at, self._reason = now, reason
            suffix = f" ({detail})" if detail else ""
            logger.warning("the %s is waiting to start: %s%s", self._role, reason, suffix)

    @property
    def app(self) -> App:
        """Return an app that is alive but not ready."""

        async def alive() -> str:
            return OK

        async def ready() -> str:
            raise NotWell(f"waiting to start: {self._reason}")

        checks = Checks([Check("loop", alive)], [Check("start", ready)])
        ours = probes(checks, make_registry(self._role), token=self._config.metrics_token)
        pages = unavailable("Facho is starting and is waiting for the database.")
        return mount(pages, ours) if self._role == "web" else ours


async def _until(stop: "asyncio.Future[None]", work: Coroutine[Any, Any, None]) -> None:
    """Run something, unless stopped before it is done."""
    doing = asyncio.ensure_future(work)
    await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
    if doing.done():
        doing.result()
        return
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)


async def _in_thread(work: Callable[[], None]) -> None:
    """Run something that may hang, in a daemon thread."""
    done: Future[None] = Future()
    # Cancelling the caller does not stop the thread.
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            try:
                work()
            finally:
                connections.close_all()
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="store-start", daemon=True).start()
    await asyncio.wrap_future(done)


async def remind(bus: RedisBus, clock: Clock) -> None:
    """Log once a minute that Redis is still unavailable. The bus logs the start."""
    while True:
        await clock.sleep(SAY_EVERY)
        if not bus.is_connected:
            logger.warning(
                "Redis is still unavailable: no new runs are started and pages show old data until it is back"
            )
