"""A worker without its database: it stops all the same, and comes back under numbers that nobody else has."""

import pytest
from builders import T0
from clocks import HandClock
from django.db import OperationalError

from facho.adapters.bus.local import LocalBus
from facho.runtime.roles import worker
from facho.runtime.roles.worker import WorkerPollers
from facho.store import events


class Away:
    """A thread whose database is unavailable."""

    async def run(self, work):
        raise OperationalError("server closed the connection")


class Enough(Exception):
    """The loop went round once more."""


class OneRound(HandClock):
    """A clock by which nobody waits twice."""

    async def sleep(self, seconds):
        raise Enough


@pytest.fixture
def clock():
    return OneRound(T0)


@pytest.fixture
def pool(clock):
    return WorkerPollers(name="noc-1/77", host="noc-1", numbers=[1, 2], runner=None, clock=clock)


@pytest.fixture
def bus():
    return LocalBus()


async def test_it_can_stop_while_the_database_is_unavailable(pool, bus, caplog):
    await worker._leave(pool, bus, Away())

    assert "server closed the connection" in caplog.text


async def test_it_says_goodbye_so_that_nobody_counts_on_its_pollers(pool, bus):
    await worker._leave(pool, bus, Away())

    farewell = bus.latest("worker")
    assert (farewell["worker"], farewell["draining"], farewell["pollers"]) == ("noc-1/77", True, [])


async def test_its_numbers_are_written_down_as_they_stand(pool, bus, clock, make_thread):
    thread = make_thread("write")

    with pytest.raises(Enough):
        await worker._write(pool, thread, clock)
    await worker._leave(pool, bus, thread)

    assert await thread.run(lambda: events.enlist("noc-2/1", "noc-2", 1, T0)) == [1]


async def test_it_takes_other_numbers_where_others_have_its_own(pool, clock, make_thread):
    thread = make_thread("write")
    await thread.run(lambda: events.enlist("noc-2/1", "noc-2", 1, T0))

    with pytest.raises(Enough):
        await worker._write(pool, thread, clock)

    assert pool.numbers == [2, 3]
