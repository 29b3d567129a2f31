"""Outages of each database with real connections in threads: a lock, a full disk, a cut line."""

import asyncio
import sqlite3
import threading

import pytest
from builders import SEC, T0
from django.db import OperationalError, connection, connections, transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.engine.model import (
    Collected,
    Completeness,
    CompositeNode,
    Lease,
    Outcome,
    Reading,
    RunResult,
    Status,
    Traffic,
)
from facho.store import runs
from facho.store.group_commit import GroupCommit
from facho.store.inventory import Inventories
from facho.store.nodes import DbNodeSource
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots
from facho.store.spool import ResultDelivery, Spool
from history_rows import stored

ONUS = 500
HARVEST = Collected(
    Completeness.COMPLETE,
    tuple(Reading(f"1.{onu}", 0, 1, onu, {"state": "online", "name": f"client-{onu}" * 4}) for onu in range(ONUS)),
    traffic=Traffic(pdus=40),
)
DONE = Outcome(Status.SUCCESS, readings=ONUS, completeness=Completeness.COMPLETE, traffic=Traffic(pdus=40))


class Installation:
    """Slots and runs with threads as in production."""

    def __init__(self, make_thread, folder):
        self.writer, self.reader = make_thread("store-write"), make_thread("store-read")
        self.spool = Spool(folder / "1.sqlite3")
        results = DbResults(GroupCommit(self.writer))
        self.delivery = ResultDelivery(results.finish, spool=self.spool, thread=make_thread("store-spool"))
        self.slots = DbSlots(self.writer, settle=self.delivery.flush)
        self.runs = DbRuns(self.reader, self.writer, self.delivery)

    async def begin(self):
        """Let a run of OLT-CENTRAL-01 begin."""
        olt_id = await self.writer.run(make_rows)
        states = await DbNodeSource(self.reader).states([olt_id])
        (self.node,) = states[olt_id].nodes
        self.lease = Lease(olt_id, "noc/3", 200)
        claim = await self.slots.claim(CompositeNode(self.node, (), T0), poller_id=3, now=T0, waits={})
        (self.execution_id,) = claim.execution_ids
        assert await self.start()

    async def start(self):
        return await self.runs.start(self.execution_id, lease=self.lease, now=T0)

    @property
    def result(self):
        return RunResult((self.execution_id,), DONE, self.lease, T0 + 9 * SEC, self.node, HARVEST)

    async def finish(self):
        await self.runs.finish(self.result)

    async def rows(self):
        """Return how many ONUs and readings there are, and how the run stands."""
        return await self.reader.run(lambda: (Onu.objects.count(), len(stored()), Execution.objects.get().status))


def make_rows():
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"]).apply_to([olt])
    WorkflowNode.objects.update(next_run_at=T0)
    return olt.pk


@pytest.fixture
def facho(make_thread, tmp_path, monkeypatch):
    if connection.vendor == "sqlite":
        # As long as a test waits for a lock that is not given back meanwhile.
        options = connections.settings["default"]["OPTIONS"]
        monkeypatch.setitem(connections.settings["default"], "OPTIONS", {**options, "timeout": 0.05})
    installation = Installation(make_thread, tmp_path / "spool")
    yield installation
    installation.spool.close()


only_sqlite = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="SQLite's own way to be away")
only_postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="PostgreSQL's own way to be away")


@only_sqlite
async def test_a_lock_that_another_program_holds_is_waited_out(facho, tmp_path):
    await facho.begin()
    other = sqlite3.connect(tmp_path / "facho.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await facho.finish()
    locked = await facho.rows(), facho.delivery.waiting
    with pytest.raises(OperationalError, match="locked"):
        await facho.start()
    await facho.delivery.step(T0)
    still = facho.delivery.waiting
    other.execute("COMMIT")
    other.close()

    await facho.delivery.step(T0)

    assert (locked, still) == (((0, 0, "RUNNING"), 1), 1)
    assert (await facho.rows(), facho.delivery.waiting) == ((ONUS, ONUS, "SUCCESS"), 0)


@only_sqlite
async def test_a_disk_that_is_full_for_the_database_is_waited_out(facho):
    def limit(pages):
        with connection.cursor() as cursor:
            # Pages that are free could still be used.
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA page_count")
            (count,) = cursor.fetchone()
            cursor.execute(f"PRAGMA max_page_count = {pages or count}")

    await facho.begin()
    await facho.writer.run(lambda: limit(None))
    await facho.finish()
    full = await facho.rows(), facho.delivery.waiting
    for _ in range(30):
        await facho.delivery.step(T0)
    still = facho.delivery.waiting
    await facho.writer.run(lambda: limit(2**30))

    await facho.delivery.step(T0)

    assert (full, still) == (((0, 0, "RUNNING"), 1), 1)
    assert (await facho.rows(), facho.delivery.waiting) == ((ONUS, ONUS, "SUCCESS"), 0)


@only_postgres
async def test_a_line_that_is_cut_in_the_middle_of_a_harvest_costs_nothing(facho, monkeypatch):
    def cut(*_, **_more):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    await facho.begin()
    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_columns", cut)
        await facho.finish()
    cut_off = await facho.rows(), facho.delivery.waiting

    await facho.delivery.step(T0)

    assert cut_off == ((0, 0, "RUNNING"), 1)
    assert (await facho.rows(), facho.delivery.waiting) == ((ONUS, ONUS, "SUCCESS"), 0)


def is_anybody_waiting():
    """Return whether a connection waits for a lock that another has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0


@only_postgres
async def test_a_harvest_whose_first_commit_is_still_under_way_when_it_is_brought_again_is_there_once(
    facho, make_thread, monkeypatch
):
    store, written, may_commit = runs.store, threading.Event(), threading.Event()
    await facho.begin()

    @transaction.atomic
    def commit_late():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        store(facho.result, Inventories())
        written.set()
        may_commit.wait(60)

    def lose_the_line(*_):
        raise OperationalError("server closed the connection unexpectedly")

    under_way = asyncio.create_task(make_thread("broken").run(commit_late))
    await asyncio.to_thread(written.wait, 60)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "store", lose_the_line)
        await facho.finish()
    landing = asyncio.create_task(facho.delivery.step(T0))
    while not await facho.reader.run(is_anybody_waiting):
        pass
    may_commit.set()
    await asyncio.gather(under_way, landing)

    assert (await facho.rows(), facho.delivery.waiting) == ((ONUS, ONUS, "SUCCESS"), 0)
