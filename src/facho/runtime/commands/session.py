"""Session of one command with one OLT: agent, time limit, and Ctrl-C."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta

from facho.adapters.clock import SystemClock
from facho.adapters.snmp.client import SnmpByVersion
from facho.engine.errors import OltUnreachable, Refused
from facho.engine.snmp import Agent
from facho.runtime.commands.screen import STOPPED, UNREACHABLE, CommandError

STOPPED_EARLY = "stopped by Ctrl-C before the end"


class OltSession:
    """SNMP access of a command.

    Ctrl-C or SIGTERM closes only the socket: the command sees an agent that no longer answers, and ends with the
    values so far. A second Ctrl-C ends the command at once.
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
        """Return the status of the work, or STOPPED."""
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
    """Run a command on the event loop, and return its status."""

    async def main() -> int:
        return await OltSession(agent, timeout).run(work)

    # A command keeps nearly all objects until its end: garbage collection would take a tenth of its time.
    gc.freeze()
    gc.set_threshold(200_000)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest available event loop."""
    try:
        import uvloop
    except ImportError:
        # Not available on this system; the standard loop is slower.
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
