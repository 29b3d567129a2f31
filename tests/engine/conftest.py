"""The engine's tests run on a virtual clock: hours pass in milliseconds."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from runner_stage import Stage

from facho.adapters.clock import VirtualClock, VirtualTimeLoop

T = TypeVar("T")

T0 = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(T0)


@pytest.fixture
def stage(clock, monkeypatch):
    """Return what sets a runner up: see `runner_stage`."""
    return lambda results=None, kinds=None, retries=0: Stage(clock, monkeypatch, results, kinds, retries)


@pytest.fixture
def virtually() -> Callable[[Awaitable[T]], T]:
    """Run a coroutine in virtual time."""

    def run(coroutine):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(coroutine)

    return run
