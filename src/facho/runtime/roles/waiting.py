"""A role that starts before what it needs is there: it waits, says so, and can be probed and stopped meanwhile.

It ends at once where waiting mends nothing: another password, no such database, a server that is too old, an engine
in one process. Tables that are not up to date are waited for, as a server is: somebody is about to run `facho migrate`,
and would have to start every role again otherwise.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import uvloop
from django.core.checks import ERROR, CheckMessage, run_checks
from django.db import Error, connection, connections

from facho.adapters.clock import SystemClock
from facho.engine.ports import Clock
from facho.runtime import server_checks
from facho.runtime.checks import OUTDATED
from facho.runtime.config import Config, ConfigError
from facho.runtime.health import App, Check, Checks, NotWell, mount, probes, unavailable
from facho.runtime.metrics import make_registry
from facho.runtime.readiness import OK, Connected
from facho.runtime.serving import make_server, stop_on_signals
from facho.store.database import is_away, is_refusal

logger = logging.getLogger(__name__)

# How often it is looked whether the time has come, and how often it is said that it has not, in seconds.
TRY_EVERY = 2.0
SAY_EVERY = 60.0

# A database that takes longer than this to answer all that a start asks hangs, and is asked anew.
LONGEST_LOOK = 60.0

# Of the checks of `runtime/checks.py`: a database that cannot be reached. It may come back, like one that is OUTDATED.
AWAY = "facho.E002"
# Of those of Redis: what it does not. Without Redis a role starts, and its bus looks for it.
REFUSED_BY_REDIS = {"facho.E009", "facho.E010", "facho.E011", "facho.E014"}


class NotYet(Exception):
    """Why a role cannot begin now, as a sentence that anybody may read; `detail` is for the log."""

    def __init__(self, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail


def look(config: Config) -> None:
    """Pass if a role can begin; `NotYet` if perhaps later, `ConfigError` if a person has to do something here."""
    try:
        connection.ensure_connection()
    except Error as error:
        if is_away(error) and not (is_refusal(error) and _is_refused_again()):
            raise NotYet("the database cannot be reached", _sentence(error)) from error
        # The checks have the sentence for it.
        raise ConfigError(_sentences(run_checks(databases=["default"]))) from error
    messages = run_checks(databases=["default"])
    away = [message for message in messages if message.id == AWAY]
    if away:
        raise NotYet("the database cannot be reached", away[0].msg)
    serious = [message for message in messages if message.level >= ERROR]
    serious += [message for message in server_checks.redis(config.redis_url) if message.id in REFUSED_BY_REDIS]
    if serious:
        raise ConfigError(_sentences(serious))
    if any(message.id == OUTDATED for message in messages):
        raise NotYet("the database is not up to date: run `facho migrate`")


def _is_refused_again() -> bool:
    """Ask once more: a server that has just started may have been about to."""
    try:
        connection.ensure_connection()
    except Error as error:
        return is_refusal(error)
    return False


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _sentences(messages: Sequence[CheckMessage]) -> str:
    return "\n".join(f"{message.msg} {message.hint or ''}".strip() for message in messages if message.level >= ERROR)


def await_start(config: Config, role: str, listener: socket.socket | None) -> bool:
    """Wait until a role can begin, answering probes; False if it was asked to stop before that."""
    return uvloop.run(Waiting(config, role, SystemClock()).run(listener))


class Waiting:
    """What a role is before it is one."""

    def __init__(
        self, config: Config, role: str, clock: Clock, look: Callable[[Config], None] = look, every: float = TRY_EVERY
    ) -> None:
        self._config = config
        self._role = role
        self._clock = clock
        self._look = look
        self._every = every
        # What is waited for, as it was last said, and when that was.
        self._reason = "it has just started"
        self._said_at: float | None = None

    async def run(self, listener: socket.socket | None) -> bool:
        stop = stop_on_signals()
        # The server closes what it is given.
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
                await _until(stop, self._try())
            except NotYet as trouble:
                self._say(trouble)
            else:
                if not stop.done() and self._said_at is not None:
                    logger.info("the %s goes on: what it waited for is there", self._role)
                return not stop.done()
            await _until(stop, self._clock.sleep(self._every))
        return False

    async def _try(self) -> None:
        try:
            await asyncio.wait_for(_in_thread(lambda: self._look(self._config)), LONGEST_LOOK)
        except TimeoutError:
            raise NotYet("the database cannot be reached", f"no answer in {LONGEST_LOOK:.0f} s") from None

    def _say(self, trouble: NotYet) -> None:
        """Tell what is waited for: at once, and then once a minute."""
        now, reason = self._clock.monotonic(), str(trouble)
        if self._said_at is None or reason != self._reason or now - self._said_at >= SAY_EVERY:
            self._said_at, self._reason = now, reason
            detail = f" ({trouble.detail})" if trouble.detail else ""
            logger.warning("the %s waits with its start: %s%s", self._role, reason, detail)

    @property
    def app(self) -> App:
        """Return what answers meanwhile: it lives, and is not ready. Nothing else is to be had."""
        checks = Checks([Check("loop", self._lives)], [Check("start", self._is_ready)])
        ours = probes(checks, make_registry(self._role), token=self._config.metrics_token)
        pages = unavailable("Facho is starting, and waits for its database.")
        return mount(pages, ours) if self._role == "web" else ours

    async def _lives(self) -> str:
        return OK

    async def _is_ready(self) -> str:
        raise NotWell(f"waits with its start: {self._reason}")


async def _until(stop: "asyncio.Future[None]", work: Coroutine[Any, Any, None]) -> None:
    """Do something, unless we are stopped before it is done."""
    doing = asyncio.ensure_future(work)
    await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
    if doing.done():
        doing.result()
        return
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)


async def _in_thread(work: Callable[[], None]) -> None:
    """Do something that may hang, in a thread that keeps nobody from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def end(error: BaseException | None) -> None:
        if done.done():
            # Nobody waits for it any more.
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except Exception as caught:
            error = caught
        finally:
            connections.close_all()
        with suppress(RuntimeError):
            # The loop may have ended without waiting for us.
            loop.call_soon_threadsafe(end, error)

    threading.Thread(target=run, name="store-start", daemon=True).start()
    await done


async def remind(bus: Connected, clock: Clock) -> None:
    """Say once a minute that Redis is still away. That it went is said by the bus."""
    while True:
        await clock.sleep(SAY_EVERY)
        if not bus.is_connected:
            logger.warning("Redis is still away: until it is back nothing new is polled, and pages show what was")
