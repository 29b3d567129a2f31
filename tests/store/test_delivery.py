"""Results while the database is unavailable: they wait in the spool, are stored in order, and are reported."""

import asyncio
import logging
import sqlite3
from dataclasses import replace

import psycopg
import pytest
from builders import SEC, T0, make_composite, make_node
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, InternalError, OperationalError
from worlds import Inline

from facho.engine.errors import LeaseLost
from facho.engine.events import Event
from facho.engine.model import (
    Claim,
    Collected,
    Completeness,
    Identification,
    Lease,
    Outcome,
    Reading,
    RunResult,
    Status,
    Traffic,
)
from facho.store.database import is_away, is_short_of_something
from facho.store.runs import DbRuns
from facho.store.slots import DbSlots
from facho.store.spool import LIMIT, MOST_FAILURES, NotKept, ResultDelivery, Spool

NODE = make_node(1, olt_id=7)
LEASE = Lease(7, "noc/3", 200)
COLLECTED = Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {"rx_dbm": -21.53, "last_up": T0}),))
DONE = Outcome(Status.SUCCESS, readings=1, completeness=Completeness.COMPLETE, traffic=Traffic(pdus=9))
AWAY = OperationalError("could not connect to server")


class Store:
    """A database that keeps results in a list. `errors` are raised for the executions they are listed by."""

    def __init__(self):
        self.stored = []
        self.errors = {}
        self.is_away = False

    def ping(self):
        if self.is_away:
            raise AWAY

    async def store(self, result):
        self.ping()
        error = self.errors.get(result.execution_ids[0])
        if error is not None and (result.has_data or error is AWAY):
            raise error
        self.stored.append(result)

    @property
    def ids(self):
        return [result.execution_ids[0] for result in self.stored]


class Desk:
    """A delivery in front of such a database."""

    def __init__(self, folder, limit_bytes=LIMIT):
        self.database = Store()
        self.path = folder / "1.sqlite3"
        self.open(limit_bytes)

    def open(self, limit_bytes=LIMIT):
        self.spool = Spool(self.path, limit_bytes)
        self.delivery = ResultDelivery(
            lambda result: self.database.store(result), spool=self.spool, thread=Inline(), ping=self.database.ping
        )

    async def finish(self, execution_id=1, collected=COLLECTED, outcome=DONE):
        await self.delivery.finish(RunResult((execution_id,), outcome, LEASE, T0, NODE, collected))

    async def end(self, execution_id=1, outcome=DONE):
        await self.delivery.finish(RunResult((execution_id,), outcome, LEASE, T0 + SEC))


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    yield desk
    desk.spool.close()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "facho")
    return lambda: [record.event for record in caplog.records if isinstance(getattr(record, "event", None), Event)]


async def test_with_the_database_available_results_are_stored_at_once(desk, told):
    await desk.finish(1)
    await desk.end(2)

    assert desk.database.ids == [1, 2]
    assert (desk.delivery.waiting, told()) == (0, [])


async def test_every_kind_of_result_comes_out_of_the_spool_as_it_went_in(desk):
    identification = Identification("huawei", {"sysDescr": "MA5800"})
    failed = Outcome(Status.FAILED, error="no answer", retry_at=T0 + SEC)
    results = [
        RunResult((1,), DONE, LEASE, T0, NODE, COLLECTED),
        RunResult((2,), DONE, LEASE, T0, NODE, identification=identification),
        RunResult((3, 4), failed, LEASE, T0),
        RunResult((5, 6), failed, None, T0),
    ]
    desk.database.is_away = True
    for result in results:
        await desk.delivery.finish(result)
    before = list(desk.database.stored)
    desk.database.is_away = False

    await desk.delivery.flush()

    assert (before, desk.database.stored) == ([], results)


async def test_a_result_behind_others_that_wait_waits_too(desk):
    desk.database.is_away = True
    await desk.finish(1)
    desk.database.is_away = False

    await desk.end(2)
    await desk.finish(3)

    assert desk.database.ids == []
    await desk.delivery.flush()
    assert desk.database.ids == [1, 2, 3]


class Refusing:
    """A thread of a database that must not be used."""

    async def run(self, work):
        raise AssertionError("the database was asked before the spool was empty")


@pytest.mark.parametrize("step", ["claim", "reclaim", "start", "recover"])
async def test_nothing_new_starts_before_all_results_are_stored(desk, step):
    slots = DbSlots(Refusing(), settle=desk.delivery.flush)
    runs = DbRuns(Refusing(), Refusing(), desk.delivery)
    start = {
        "claim": lambda: slots.claim(make_composite(9), poller_id=1, now=T0, waits={}),
        "reclaim": lambda: slots.reclaim(Claim(make_composite(9), (9,), 1, None), poller_id=1, now=T0),
        "start": lambda: runs.start(9, lease=LEASE, now=T0),
        "recover": lambda: slots.recover(T0),
    }[step]
    desk.database.is_away = True
    await desk.end(1)

    with pytest.raises(OperationalError):
        await start()
    desk.database.is_away = False
    with pytest.raises(AssertionError, match="before the spool was empty"):
        await start()

    assert desk.database.ids == [1]


async def test_an_outage_is_reported_once_when_it_starts_and_once_when_it_is_over(desk, told):
    desk.database.is_away = True
    for execution_id in range(4):
        await desk.finish(execution_id)
        await desk.end(execution_id)
        await desk.delivery.step(T0)
    seen = told()
    desk.database.is_away = False

    await desk.delivery.step(T0)
    await desk.delivery.step(T0)

    assert seen == [Event.SPOOLING]
    assert told() == [Event.SPOOLING, Event.SPOOL_LANDED]


async def test_a_second_outage_is_reported_as_well(desk, told):
    for _ in range(2):
        desk.database.is_away = True
        await desk.end()
        desk.database.is_away = False
        await desk.delivery.step(T0)

    assert told() == [Event.SPOOLING, Event.SPOOL_LANDED] * 2


@pytest.mark.parametrize("error", [IntegrityError("no"), DataError("no"), LeaseLost("no"), RuntimeError("no")])
async def test_an_error_that_is_no_outage_goes_to_the_caller(desk, error):
    desk.database.errors[1] = error

    with pytest.raises(type(error)):
        await desk.finish(1)

    assert desk.delivery.waiting == 0


async def test_a_result_that_comes_too_late_is_dropped_and_reported(desk, told):
    desk.database.is_away = True
    await desk.finish(1)
    await desk.finish(2)
    desk.database.is_away = False
    desk.database.errors[1] = LeaseLost("execution 1 is no longer ours")

    await desk.delivery.flush()

    assert (desk.database.ids, desk.delivery.waiting) == ([2], 0)
    assert told() == [Event.SPOOLING, Event.SPOOL_LANDED, Event.SPOOL_DROPPED]


async def test_a_result_that_cannot_be_stored_is_set_aside_and_its_execution_fails(desk, told):
    desk.database.is_away = True
    await desk.finish(1)
    await desk.finish(2)
    desk.database.is_away = False
    desk.database.errors[1] = DataError("value out of range")

    await desk.delivery.flush()

    spoiled, well = desk.database.stored
    assert (spoiled.execution_ids, spoiled.has_data, spoiled.at) == ((1,), False, T0)
    assert (spoiled.outcome.status, spoiled.outcome.readings) == (Status.FAILED, 0)
    assert (spoiled.outcome.error_class, spoiled.outcome.traffic) == ("NotKept", DONE.traffic)
    assert "they stay in the spool" in spoiled.outcome.error
    assert (well.execution_ids, well.outcome) == ((2,), DONE)
    assert [reason for _, reason in desk.spool.refused()] == ["value out of range"]
    assert Event.SPOOL_REFUSED in told()


async def test_a_result_that_was_no_success_keeps_its_status(desk):
    stopped = Outcome(Status.INTERRUPTED)
    desk.database.is_away = True
    await desk.finish(1, outcome=stopped)
    desk.database.is_away = False
    desk.database.errors[1] = DataError("value out of range")

    await desk.delivery.flush()

    assert [result.outcome.status for result in desk.database.stored] == [Status.INTERRUPTED]


@pytest.mark.parametrize("body", ["{", b"{", b"\x81", b""], ids=["text", "JSON", "MessagePack", "nothing"])
async def test_a_damaged_result_does_not_block_the_others(desk, body):
    desk.database.is_away = True
    await desk.end(1)
    await desk.end(2)
    with desk.spool._file:
        desk.spool._file.execute("UPDATE results SET body = ? WHERE id = ?", (body, desk.spool.first()))
    desk.database.is_away = False

    await desk.delivery.flush()

    assert (desk.database.ids, desk.delivery.waiting) == ([2], 0)
    assert len(desk.spool.refused()) == 1


async def test_a_result_that_always_breaks_a_database_that_answers_others_is_set_aside(desk):
    desk.database.is_away = True
    await desk.finish(1)
    await desk.end(2)
    for _ in range(3 * MOST_FAILURES):
        await desk.delivery.step(T0)
    desk.database.is_away = False
    desk.database.errors[1] = OperationalError("server closed the connection unexpectedly")
    for _ in range(MOST_FAILURES - 1):
        await desk.delivery.step(T0)
    # It is unavailable for everything once more: the failures before may have been the beginning of that.
    desk.database.is_away = True
    await desk.delivery.step(T0)
    desk.database.is_away = False
    waited = []
    for _ in range(MOST_FAILURES):
        waited.append(desk.delivery.waiting)
        await desk.delivery.step(T0)

    assert waited == [2] * MOST_FAILURES
    assert (desk.delivery.waiting, len(desk.spool.refused())) == (0, 1)
    assert [(each.execution_ids, each.has_data) for each in desk.database.stored] == [((1,), False), ((2,), False)]


async def test_a_database_without_space_is_waited_for_as_long_as_it_takes(desk):
    desk.database.is_away = True
    await desk.finish(1)
    desk.database.is_away = False
    desk.database.errors[1] = of_sqlite(OperationalError, sqlite3.OperationalError, sqlite3.SQLITE_FULL)
    for _ in range(3 * MOST_FAILURES):
        await desk.delivery.step(T0)
    del desk.database.errors[1]

    await desk.delivery.step(T0)

    assert [(each.execution_ids, each.has_data) for each in desk.database.stored] == [((1,), True)]


async def test_a_caller_that_is_cancelled_does_not_stop_the_flush_for_others(desk):
    gate = asyncio.Event()
    store = desk.database.store

    async def slowly(result):
        await gate.wait()
        await store(result)

    desk.database.is_away = True
    await desk.end(1)
    desk.database.is_away = False
    desk.database.store = slowly
    waiting = [asyncio.create_task(desk.delivery.flush()) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)

    gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    assert isinstance(results[0], asyncio.CancelledError)
    assert (results[1], desk.database.ids) == (None, [1])


async def test_closing_waits_for_a_flush_that_is_under_way(desk):
    desk.database.is_away = True
    await desk.end(1)
    desk.database.is_away = False
    flushing = asyncio.create_task(desk.delivery.flush())
    await asyncio.sleep(0)

    await desk.delivery.close()
    await flushing

    assert desk.database.ids == [1]
    desk.open()


async def test_at_the_limit_readings_are_refused_and_outcomes_are_kept(tmp_path, told):
    desk = Desk(tmp_path, limit_bytes=30_000)
    wide = replace(COLLECTED, readings=COLLECTED.readings * 100)
    desk.database.is_away = True
    refused = []
    for execution_id in range(8):
        try:
            await desk.finish(execution_id, wide)
        except NotKept as error:
            refused.append((execution_id, str(error)))
            await desk.end(execution_id, Outcome(Status.FAILED, error="the readings could not be saved to disk"))
    size = desk.spool.size
    desk.database.is_away = False

    await desk.delivery.flush()

    ids, sentences = zip(*refused, strict=True)
    assert ids == tuple(range(ids[0], 8))
    assert "the database is unavailable" in sentences[0]
    assert "the spool is full" in sentences[0]
    assert size <= 30_000
    assert desk.database.ids == list(range(8))
    assert told().count(Event.SPOOL_FULL) == 1
    desk.spool.close()


async def test_a_value_that_cannot_be_written_to_the_spool_is_an_error_with_a_reason(desk):
    odd = Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {"rx_dbm": object()}),))
    desk.database.is_away = True

    with pytest.raises(NotKept, match="a value cannot be saved"):
        await desk.finish(1, odd)


def caused(kind, cause):
    error = kind("no")
    error.__cause__ = cause
    return error


def of_sqlite(kind, cause, code):
    error = cause("no")
    error.sqlite_errorcode = code
    return caused(kind, error)


def of_postgres(kind, state):
    return caused(kind, psycopg.errors.lookup(state)("no"))


@pytest.mark.parametrize(
    ("error", "away", "short"),
    [
        pytest.param(OperationalError("no"), True, False, id="a connection that was refused"),
        pytest.param(InterfaceError("no"), True, False, id="a connection that is closed"),
        pytest.param(of_postgres(OperationalError, "57P01"), True, False, id="a server that stops"),
        pytest.param(of_postgres(OperationalError, "53100"), True, True, id="a server whose disk is full"),
        pytest.param(of_postgres(OperationalError, "40P01"), True, False, id="a deadlock"),
        pytest.param(of_postgres(InternalError, "25P03"), True, False, id="a process that was paused"),
        pytest.param(of_postgres(InternalError, "25006"), True, False, id="a server that only reads"),
        pytest.param(of_postgres(OperationalError, "54001"), False, False, id="a statement that is too much"),
        pytest.param(of_postgres(DataError, "22003"), False, False, id="a number out of range"),
        pytest.param(IntegrityError("no"), False, False, id="a row that may not be"),
        pytest.param(DatabaseError("no"), False, False, id="an error that says nothing"),
        pytest.param(ValueError("no"), False, False, id="a defect"),
        pytest.param(
            of_sqlite(OperationalError, sqlite3.OperationalError, sqlite3.SQLITE_BUSY), True, True, id="a lock"
        ),
        pytest.param(
            of_sqlite(OperationalError, sqlite3.OperationalError, sqlite3.SQLITE_BUSY_SNAPSHOT),
            True,
            True,
            id="a snapshot",
        ),
        pytest.param(
            of_sqlite(OperationalError, sqlite3.OperationalError, sqlite3.SQLITE_FULL), True, True, id="a full disk"
        ),
        pytest.param(
            of_sqlite(OperationalError, sqlite3.OperationalError, sqlite3.SQLITE_ERROR), False, True, id="bad SQL"
        ),
        pytest.param(
            caused(InterfaceError, sqlite3.InterfaceError("no")), False, False, id="a value that cannot be bound"
        ),
    ],
)
def test_what_counts_as_away(error, away, short):
    assert (is_away(error), is_short_of_something(error)) == (away, short)
