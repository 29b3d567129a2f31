"""What is said while the database is away: what waits, what goes on, and what an operator is told of it."""

import asyncio
import logging
import sqlite3

import pytest
from builders import SEC, T0, make_composite
from django.db import DataError, IntegrityError, OperationalError
from spool_desk import AWAY, DONE, HARVEST, LEASE, NODE, Desk, events_in, of_sqlite

from facho.engine.errors import LeaseLost
from facho.engine.events import Event
from facho.engine.model import Claim, Completeness, Coverage, Outcome, Status
from facho.store.forwarder import PATIENCE


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "spool")
    yield desk
    desk.spool.close()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "facho")
    return lambda: events_in(caplog)


async def test_with_the_database_there_everything_is_said_at_once(desk, told):
    await desk.write()
    await desk.close()
    assert await desk.start()

    assert desk.store.told == [("harvest", 1), ("end", 1), ("start", 9)]
    assert (desk.forwarder.waiting, told()) == (0, [])


async def test_all_that_a_runner_says_comes_as_it_was_said(desk):
    outcome = Outcome(Status.FAILED, error="no answer", coverage=(Coverage("rx_dbm", 0, 1, Completeness.PARTIAL),))
    desk.store.is_away = True
    await desk.write()
    await desk.sink.identified(NODE, 2, "huawei", {"sysDescr": "MA5800"}, lease=LEASE)
    await desk.ledger.put_off([3, 4], outcome, retry_at=T0 + SEC, lease=LEASE, now=T0)
    await desk.ledger.close([5, 6], outcome, lease=None, now=T0)
    before = list(desk.store.heard)
    desk.store.is_away = False

    await desk.forwarder.land()

    assert before == []
    assert desk.store.heard == [
        ("harvest", 1, NODE, HARVEST, LEASE, T0),
        ("identification", 2, NODE, "huawei", {"sysDescr": "MA5800"}, LEASE),
        ("postponement", 3, (3, 4), outcome, T0 + SEC, LEASE, T0),
        ("end", 5, (5, 6), outcome, None, T0),
    ]


async def test_what_comes_behind_something_that_waits_waits_too(desk):
    desk.store.is_away = True
    await desk.write(1)
    desk.store.is_away = False

    await desk.close(1)
    await desk.write(2)

    assert desk.store.told == []
    await desk.forwarder.land()
    assert desk.store.told == [("harvest", 1), ("end", 1), ("harvest", 2)]


@pytest.mark.parametrize("what", ["claim", "reclaim", "start", "recover"])
async def test_nothing_new_begins_before_all_has_landed(desk, what):
    begin = {
        "claim": lambda: desk.ledger.claim(make_composite(9), poller_id=1, now=T0, waits={}),
        "reclaim": lambda: desk.ledger.reclaim(Claim(make_composite(9), (9,), 1, None), poller_id=1, now=T0),
        "start": lambda: desk.start(9),
        "recover": lambda: desk.ledger.recover(T0),
    }[what]
    desk.store.is_away = True
    await desk.close(1)
    with pytest.raises(OperationalError):
        await begin()
    desk.store.is_away = False
    # The database is there again, but not for what waits.
    desk.store.errors["end", 1] = AWAY
    with pytest.raises(OperationalError):
        await begin()
    nothing = list(desk.store.heard)
    desk.store.errors.clear()

    assert await begin()

    assert nothing == []
    assert [name for name, _ in desk.store.told] == ["end", what]


async def test_an_operator_is_told_once_that_it_is_away_and_once_that_it_is_back(desk, told):
    desk.store.is_away = True
    for execution_id in range(4):
        await desk.write(execution_id)
        await desk.close(execution_id)
        await desk.forwarder.step(T0)
    seen = told()
    desk.store.is_away = False

    await desk.forwarder.step(T0)
    await desk.forwarder.step(T0)

    assert seen == [Event.SPOOLING]
    assert told() == [Event.SPOOLING, Event.SPOOL_LANDED]


async def test_a_second_outage_is_told_as_well(desk, told):
    for _ in range(2):
        desk.store.is_away = True
        await desk.close()
        desk.store.is_away = False
        await desk.forwarder.step(T0)

    assert told() == [Event.SPOOLING, Event.SPOOL_LANDED] * 2


@pytest.mark.parametrize("error", [IntegrityError("no"), DataError("no"), LeaseLost("no"), RuntimeError("no")])
async def test_what_is_no_outage_is_the_callers_as_ever(desk, error):
    desk.store.errors["harvest", 1] = error

    with pytest.raises(type(error)):
        await desk.write(1)

    assert desk.forwarder.waiting == 0


async def test_a_harvest_that_comes_too_late_is_dropped_and_told(desk, told):
    desk.store.is_away = True
    await desk.write(1)
    await desk.write(2)
    desk.store.is_away = False
    desk.store.errors["harvest", 1] = LeaseLost("execution 1 is no longer ours")

    await desk.forwarder.land()

    assert (desk.store.told, desk.forwarder.waiting) == ([("harvest", 2)], 0)
    assert told() == [Event.SPOOLING, Event.SPOOL_LANDED, Event.SPOOL_DROPPED]


async def test_a_harvest_that_may_have_been_heard_before_is_said_as_one(desk):
    await desk.write(1)
    desk.store.is_away = True
    await desk.write(2)
    desk.store.is_away = False

    await desk.forwarder.land()

    assert (desk.store.told, desk.store.again) == ([("harvest", 1), ("harvest", 2)], [2])


async def test_a_defect_is_set_aside_and_its_end_does_not_boast_of_it(desk, told):
    desk.store.is_away = True
    await desk.write(1)
    await desk.write(2)
    await desk.close(2)
    desk.store.is_away = False
    desk.store.errors["harvest", 1] = DataError("value out of range")

    await desk.forwarder.land()
    await desk.close(1)

    assert desk.store.told == [("harvest", 2), ("end", 2), ("end", 1)]
    well, spoiled = (outcome for _, _, _, outcome, _, _ in desk.store.heard[1:])
    assert well == DONE
    assert (spoiled.status, spoiled.readings, spoiled.traffic) == (Status.FAILED, 0, DONE.traffic)
    assert "refused" in spoiled.error
    assert desk.spool.refused_labels() == ["harvest-1"]
    assert Event.SPOOL_REFUSED in told()


async def test_what_was_set_aside_is_known_after_a_restart_too(desk):
    desk.store.is_away = True
    await desk.write(1)
    await desk.close(1)
    (harvest, *_) = sorted(desk.folder.glob("*.json"))
    harvest.write_bytes(harvest.read_bytes()[:-20])
    desk.store.is_away = False
    desk.store.errors["end", 1] = AWAY
    with pytest.raises(OperationalError):
        await desk.forwarder.land()
    desk.spool.close()
    desk.store.errors.clear()

    desk.open()
    await desk.forwarder.land()

    assert desk.spool.refused_labels() == ["harvest-1"]
    ((_, _, _, outcome, _, _),) = desk.store.heard
    assert outcome.status is Status.FAILED


async def test_an_end_that_was_no_success_stays_what_it_was(desk):
    stopped = Outcome(Status.INTERRUPTED)
    desk.store.is_away = True
    await desk.write(1)
    await desk.close(1, stopped)
    desk.store.is_away = False
    desk.store.errors["harvest", 1] = DataError("value out of range")

    await desk.forwarder.land()

    ((*_, outcome, _, _),) = desk.store.heard
    assert outcome == stopped


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[1, 2]", id="another thing"),
        pytest.param(b'{"kind": "dream", "entry": {}}', id="a kind of another version"),
        pytest.param(b'{"kind": "end", "entry": {"now": "2026-03-01T10:00:00+00:00"}}', id="half of it"),
        pytest.param(b'{"kind": "end"}', id="none of it"),
    ],
)
async def test_a_file_that_cannot_be_read_blocks_nobody(desk, content):
    desk.store.is_away = True
    await desk.close(1)
    await desk.close(2)
    min(desk.folder.glob("*.json")).write_bytes(content)
    desk.store.is_away = False

    await desk.forwarder.land()

    assert (desk.store.told, desk.forwarder.waiting) == ([("end", 2)], 0)
    assert len(desk.spool.refused()) == 1


async def test_an_entry_for_which_a_database_that_answers_is_always_away_is_set_aside_in_the_end(desk):
    desk.store.is_away = True
    await desk.write(1)
    await desk.close(2)
    for _ in range(3 * PATIENCE):
        await desk.forwarder.step(T0)
    desk.store.is_away = False
    desk.store.errors["harvest", 1] = OperationalError("server closed the connection unexpectedly")
    for _ in range(PATIENCE - 1):
        await desk.forwarder.step(T0)
    # It is away for everybody once more: what was before may have been the beginning of that.
    desk.store.is_away = True
    await desk.forwarder.step(T0)
    desk.store.is_away = False
    waited = []
    for _ in range(PATIENCE):
        waited.append(desk.forwarder.waiting)
        await desk.forwarder.step(T0)

    assert waited == [2] * PATIENCE
    assert (desk.forwarder.waiting, desk.spool.refused_labels()) == (0, ["harvest-1"])
    assert desk.store.told == [("end", 2)]


async def test_a_database_that_is_short_of_space_is_waited_for_as_long_as_it_takes(desk):
    desk.store.is_away = True
    await desk.write(1)
    desk.store.is_away = False
    desk.store.errors["harvest", 1] = of_sqlite(OperationalError, sqlite3.OperationalError, sqlite3.SQLITE_FULL)
    for _ in range(3 * PATIENCE):
        await desk.forwarder.step(T0)
    del desk.store.errors["harvest", 1]

    await desk.forwarder.step(T0)

    assert desk.store.told == [("harvest", 1)]


async def test_who_gives_up_waiting_does_not_stop_the_landing_for_others(desk):
    gate = asyncio.Event()
    close = desk.store.close

    async def slowly(*args, **kwargs):
        await gate.wait()
        await close(*args, **kwargs)

    desk.store.is_away = True
    await desk.close(1)
    desk.store.is_away = False
    desk.store.close = slowly
    waiting = [asyncio.create_task(desk.start(execution_id)) for execution_id in (8, 9)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)

    gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    assert isinstance(results[0], asyncio.CancelledError)
    assert desk.store.told == [("end", 1), ("start", 9)]


async def test_a_forwarder_that_closes_lets_the_landing_come_to_its_end(desk):
    desk.store.is_away = True
    await desk.close(1)
    desk.store.is_away = False
    landing = asyncio.create_task(desk.forwarder.land())
    await asyncio.sleep(0)

    await desk.forwarder.close()
    await landing

    assert desk.store.told == [("end", 1)]
    desk.open()
