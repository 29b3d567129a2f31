"""On PostgreSQL the lock of the engine is the server's: it ends with its connection, and keeps roles away."""

import asyncio
import threading
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone

from facho.apps.polling.models import Lease
from facho.runtime import config
from facho.runtime.config import ConfigError
from facho.runtime.lock import EngineLock
from facho.store import events, leases
from facho.store.engine_lock import EngineAtWork

pytestmark = pytest.mark.django_db(transaction=True)

TTL = timedelta(seconds=30)


@pytest.fixture
def configured(db):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no server")
    return config.load({"DATABASE_URL": "postgresql://facho@127.0.0.1/facho"})


def test_a_second_engine_is_refused(configured):
    with EngineLock(configured), pytest.raises(ConfigError, match="Another Facho engine is running on this database"):
        EngineLock(configured).__enter__()


def test_an_engine_that_ended_gives_the_lock_back(configured):
    for _ in range(2):
        with EngineLock(configured):
            pass


def test_an_engine_whose_connection_died_gives_the_lock_back(configured):
    dead = EngineLock(configured).__enter__()
    with connection.cursor() as cursor:
        pid = dead._connection.connection.info.backend_pid
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    with EngineLock(configured):
        pass
    dead._connection.close()


class Ticks:
    """A clock whose seconds pass at once, so many of them; then it is over."""

    def __init__(self, seconds):
        self._left = seconds

    async def sleep(self, seconds):
        if not self._left:
            raise EOFError
        self._left -= 1


def keep(lock):
    """Look after a lock for some seconds."""
    with pytest.raises(EOFError):
        asyncio.run(lock.keep(Ticks(3)))


def break_off(lock):
    """End the connection of a lock, as a server that restarts does."""
    pid = lock._connection.connection.info.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def take_scheduler():
    return leases.acquire("scheduler", "noc-1/7", TTL)


def enlist():
    return events.enlist("noc-1/7", "noc-1", 2, timezone.now())


@pytest.mark.parametrize("begin", [take_scheduler, enlist], ids=["a lease", "pollers"])
def test_no_role_gets_anything_beside_an_engine(configured, begin):
    with EngineLock(configured), pytest.raises(EngineAtWork, match="`facho run` or `facho migrate-to` is using"):
        begin()

    assert begin()


def test_no_engine_starts_while_somebody_has_a_lease(configured):
    token = take_scheduler()
    with pytest.raises(ConfigError, match="such as noc-1/7"):
        EngineLock(configured).__enter__()

    leases.release("scheduler", token)
    with EngineLock(configured):
        pass


def test_an_engine_does_not_get_in_between_the_question_and_the_lease(configured, monkeypatch):
    """A role that has found no engine takes its lease; an engine that has found no lease starts."""
    refused = []

    def start_engine():
        try:
            EngineLock(configured).__enter__()
        except ConfigError as error:
            refused.append(str(error))
        finally:
            connections.close_all()

    def take_it_late(*args, **kwargs):
        thread = threading.Thread(target=start_engine)
        thread.start()
        thread.join()
        return genuine(*args, **kwargs)

    genuine = leases.LeaseRow.objects.bulk_create
    monkeypatch.setattr(type(leases.LeaseRow.objects), "bulk_create", lambda manager, *a, **k: take_it_late(*a, **k))

    token = take_scheduler()

    assert token is not None
    assert len(refused) == 1


@pytest.mark.parametrize("order", ["the engine first", "the roles first"])
def test_of_two_that_start_together_one_kind_wins(configured, order):
    lock = EngineLock(configured)
    if order == "the engine first":
        lock.__enter__()
        with pytest.raises(EngineAtWork):
            take_scheduler()
        lock.__exit__(None, None, None)
    else:
        assert take_scheduler()
        with pytest.raises(ConfigError):
            lock.__enter__()


def test_an_engine_whose_connection_breaks_takes_the_lock_again(configured):
    with EngineLock(configured) as lock:
        break_off(lock)

        keep(lock)

        with pytest.raises(EngineAtWork):
            take_scheduler()


def test_an_engine_that_finds_roles_at_work_when_it_had_lost_the_lock_ends(configured):
    with EngineLock(configured) as lock:
        break_off(lock)
        take_scheduler()

        with pytest.raises(ConfigError, match="such as noc-1/7"):
            asyncio.run(lock.keep(Ticks(3)))


def test_an_engine_that_never_lost_the_lock_looks_at_no_lease(configured):
    """The clock of the database may be set back, and what is long over seem to last."""
    with EngineLock(configured) as lock:
        Lease.objects.create(key="scheduler", token=1, expires_at=timezone.now() + timedelta(hours=1))

        keep(lock)
