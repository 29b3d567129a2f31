"""A stage for the commands: simulated OLTs in a thread of their own, and `facho` called as a person types it."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from contracts.snmp_agents import ScriptedAgent
from facho.runtime.cli import main
from facho.simulator.fleet import MUTE, OltSpec, SimulatedFleet
from facho.simulator.pdulog import Pdu, PduLog


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def simulated(*specs: OltSpec, log: PduLog | None = None) -> Iterator[SimulatedFleet]:
    """Let these OLTs answer while the test's own thread runs commands."""
    fleet = SimulatedFleet(specs, log=log)
    with loop_in_a_thread() as loop:

        def call(coroutine: Any) -> None:
            asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)

        if isinstance(log, Tripwire):
            log.fleet = fleet
        call(fleet.__aenter__())
        try:
            yield fleet
        finally:
            call(fleet.__aexit__(None, None, None))


@contextmanager
def answering(agent: ScriptedAgent) -> Iterator[ScriptedAgent]:
    """Let a scripted agent answer while the test's own thread runs commands."""

    async def stop() -> None:
        agent.stop()
        # A transport lets go of its socket in the next round of the loop.
        await asyncio.sleep(0)

    with loop_in_a_thread() as loop:
        asyncio.run_coroutine_threadsafe(agent.start(), loop).result(60)
        try:
            yield agent
        finally:
            asyncio.run_coroutine_threadsafe(stop(), loop).result(60)


class Tripwire(PduLog):
    """Presses Ctrl-C when an agent has been asked so often. It is mute from then on: nobody can be faster than that."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.fleet: SimulatedFleet | None = None
        self._at = at

    def add(self, pdu: Pdu) -> None:
        super().add(pdu)
        if self.count() == self._at and self.fleet is not None:
            self.fleet[pdu.agent].change(MUTE)
            os.kill(os.getpid(), signal.SIGINT)


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """`facho`, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Said:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        written = self._capsys.readouterr()
        return Said(int(ended.value.code or 0), written.out, written.err)


def where(fleet: SimulatedFleet, name: str) -> str:
    return f"{fleet[name].host}:{fleet[name].port}"
