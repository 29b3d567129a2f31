"""One OLT being asked by one command: its agent, the time it may take, and what Ctrl-C does."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta

from facho.adapters.clock import SystemClock
from facho.adapters.snmp.dispatch import SnmpByVersion
from facho.engine.errors import OltUnreachable, Refused
from facho.engine.snmp import Agent
from facho.runtime.commands.screen import STOPPED, UNREACHABLE, CommandError

STOPPED_EARLY = "stopped by Ctrl-C before it was through"


class OltSession:
    """What a command asks through.

    Ctrl-C, or a SIGTERM, closes the socket and nothing else: whoever is asking
    sees an agent that no longer answers, and ends with what it has. A second
    Ctrl-C ends the command at once.
    """

    def __init__(self, agent: Agent, timeout: float) -> None:
        self.agent = agent
        self.snmp = SnmpByVersion()
        self.clock = SystemClock()
        self.deadline = self.clock.now() + timedelta(seconds=timeout)
        self.is_stopped = False
        self._closing: asyncio.Task[None] | None = None

    def stop(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        self.is_stopped = True
        self._closing = loop.create_task(self.snmp.close())

    async def run(self, work: Callable[["OltSession"], Awaitable[int]]) -> int:
        """Return the status of the work, or the one that says that it was stopped."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            status = await work(self)
        except (OltUnreachable, Refused) as error:
            if not self.is_stopped:
                raise CommandError(str(error), UNREACHABLE) from error
            raise CommandError(STOPPED_EARLY, STOPPED) from error
        finally:
            await self.snmp.close()
        return STOPPED if self.is_stopped else status


def run(agent: Agent, timeout: float, work: Callable[[OltSession], Awaitable[int]]) -> int:
    """Run a command on the event loop that there is, and return its status."""

    async def main() -> int:
        return await OltSession(agent, timeout).run(work)

    # A command keeps nearly all that it makes, and ends with it: looking for garbage costs a tenth of its time.
    gc.freeze()
    gc.set_threshold(200_000)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest event loop there is."""
    try:
        import uvloop
    except ImportError:
        # There is none for this system; the standard one does the same, slower.
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
