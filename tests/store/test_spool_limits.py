"""A spool that takes no more, and what counts as a database that is away."""

import errno
import logging
import os
import sqlite3

import pytest
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, InternalError, OperationalError
from spool_desk import HARVEST, Desk, caused, events_in, of_postgres, of_sqlite

from facho.engine.events import Event
from facho.engine.model import Collected, Completeness, Coverage, Outcome, Reading, Status
from facho.store.away import is_away, is_short_of_something
from facho.store.spool import NotKept

COVERAGE = tuple(Coverage("rx_dbm", 0, port, Completeness.COMPLETE, 64) for port in range(16))


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "spool")
    yield desk
    desk.spool.close()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "facho")
    return lambda: events_in(caplog)


async def test_at_the_limit_a_harvest_is_refused_and_its_end_is_kept_without_its_lists(tmp_path, told):
    desk = Desk(tmp_path / "spool", limit_bytes=30_000)
    wide = Collected(Completeness.COMPLETE, HARVEST.readings * 100)
    desk.store.is_away = True
    refused = []
    for execution_id in range(8):
        try:
            await desk.write(execution_id, wide)
        except NotKept as error:
            refused.append((execution_id, str(error)))
        await desk.close(execution_id, Outcome(Status.SUCCESS, coverage=COVERAGE, error="x" * 5000))
    size = desk.spool.size
    desk.store.is_away = False

    await desk.forwarder.land()

    ids, sentences = zip(*refused, strict=True)
    assert ids == tuple(range(ids[0], 8))
    assert "the database is away" in sentences[0]
    assert "the spool is full" in sentences[0]
    assert size <= 30_000
    ends = [outcome for what, _, _, outcome, *_ in desk.store.heard if what == "end"]
    assert len(ends) == 8
    assert (ends[0].coverage, len(ends[0].error)) == (COVERAGE, 5000)
    assert (ends[-1].coverage, len(ends[-1].error)) == ((), 1000)
    assert told().count(Event.SPOOL_FULL) == 1
    desk.spool.close()


async def test_a_full_disk_costs_the_harvest_and_not_its_end(desk, monkeypatch, told):
    def no_space(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    desk.store.is_away = True
    await desk.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(NotKept, match="No space left on device"):
            await desk.write(2)
        await desk.close(2, Outcome(Status.FAILED, error="the readings could not be kept"))
    files = len(list(desk.folder.glob("0*")))
    await desk.close(1)
    desk.store.is_away = False

    await desk.forwarder.land()

    assert files == 1
    assert desk.store.told == [("harvest", 1), ("end", 2), ("end", 1)]
    assert Event.SPOOL_FULL in told()


async def test_what_cannot_be_written_down_is_a_sentence_too(desk):
    odd = Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {"rx_dbm": object()}),))
    desk.store.is_away = True

    with pytest.raises(NotKept, match="no place in a message"):
        await desk.write(1, odd)


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
