"""What the contracts of several ports share."""

import asyncio
import logging

import pytest
from bus_world import Said
from snmp_agents import UntilNothingMoves

from real_database import make_thread  # noqa: F401 - a fixture


@pytest.fixture
async def hurried():
    """Let nobody wait for an answer that does not come."""
    UntilNothingMoves(asyncio.get_running_loop())


@pytest.fixture
async def said():
    """What the Redis bus says in the log."""
    logger, handler = logging.getLogger("facho.adapters.bus.redis"), Said()
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)
