"""Other writers wait only for the delete itself, not for the search, the disk or garbage collection."""

import gc
import sqlite3
from contextlib import closing, contextmanager

import pytest
from builders import T0
from django.db import DatabaseError, connection
from retention_rows import DAY, RULES, Watch, make_history, sweep

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import HistoryRun, Onu
from facho.store import retention
from facho.store.retention import Sweep

HISTORY = "telemetry.HistoryRun"
OF_HISTORY = [rule for rule in RULES if rule.label == HISTORY]
NORMAL, FULL = 1, 2

pytestmark = pytest.mark.django_db


def make_onu():
    central = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    return Onu.objects.create(olt=central, index="1.7", onu=7, first_seen_at=T0, own_read_at=T0)


class Sections:
    """Lets time pass in one part of a batch."""

    def __init__(self, clock, slow):
        self.clock = clock
        self.slow = slow

    def enter(self, name):
        if name == self.slow:
            self.clock.at += 1 / 32

    def wrap(self, name, function):
        def wrapped(*arguments):
            self.enter(name)
            return function(*arguments)

        return wrapped

    @contextmanager
    def atomic(self):
        self.enter("waiting for the lock")
        yield
        self.enter("committing")


@pytest.mark.parametrize(
    ("slow", "is_held"),
    [
        ("looking for rows", False),
        ("waiting for the lock", False),
        ("deleting", True),
        ("committing", True),
        ("moving pages", False),
    ],
)
def test_a_batch_is_sized_by_how_long_others_could_not_write(monkeypatch, slow, is_held):
    make_history(make_onu(), [91 * DAY] * 5)
    monkeypatch.setattr(retention, "CHECKPOINT_AFTER", 1)
    clock, asked = Watch(), []
    sections = Sections(clock, slow)
    monkeypatch.setattr(retention, "_find", sections.wrap("looking for rows", retention._find))
    monkeypatch.setattr(retention, "_delete", sections.wrap("deleting", retention._delete))
    monkeypatch.setattr(retention, "_checkpoint", sections.wrap("moving pages", retention._checkpoint))
    monkeypatch.setattr(retention, "transaction", sections)
    monkeypatch.setattr(retention, "next_size", lambda size, held: asked.append(held) or size)

    sweep(clock=clock, only=HISTORY)

    assert asked == [1 / 32 if is_held else 0.0]
    # The thread is the engine's too, and was busy all the while.
    assert clock.slept == [3 / 32]


class TestGarbage:
    @pytest.fixture(autouse=True)
    def as_it_was(self):
        was_on = gc.isenabled()
        yield
        (gc.enable if was_on else gc.disable)()

    @pytest.mark.parametrize("before", [True, False], ids=["on", "off"])
    def test_it_is_not_collected_while_rows_are_deleted(self, monkeypatch, before):
        make_history(make_onu(), [91 * DAY] * 5)
        seen, delete = [], retention._delete
        monkeypatch.setattr(retention, "_delete", lambda *rows: seen.append(gc.isenabled()) or delete(*rows))
        (gc.enable if before else gc.disable)()

        sweep(only=HISTORY)
        after = gc.isenabled()

        assert seen == [False]
        assert after is before

    def test_it_is_collected_again_after_a_failure(self, monkeypatch):
        make_history(make_onu(), [91 * DAY] * 5)
        monkeypatch.setattr(retention, "_delete", failing)
        gc.enable()

        with pytest.raises(DatabaseError):
            sweep(only=HISTORY)

        assert gc.isenabled()


def failing(*rows):
    raise DatabaseError("the disk is full")


def ask(pragma):
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
        return cursor.fetchone()


class TestOnFile:
    """SQLite as an installation has it, with a log of its own."""

    @pytest.fixture
    async def thread(self, make_thread):
        if connection.vendor != "sqlite":
            pytest.skip("PostgreSQL has no lock for all who write")
        thread = make_thread("store-write")
        await thread.run(self.make_rows)
        return thread

    @staticmethod
    def make_rows():
        ask("journal_mode=WAL")
        make_history(make_onu(), [91 * DAY] * 150)
        ask("wal_checkpoint(TRUNCATE)")

    async def run(self, thread):
        await Sweep(thread=thread, clock=Watch(), rules=OF_HISTORY).run(T0)

    async def test_the_disk_is_not_waited_for_with_the_lock_and_is_for_all_others(self, thread, monkeypatch):
        seen, delete = [], retention._delete

        def watched(*rows):
            seen.append(ask("synchronous"))
            return delete(*rows)

        monkeypatch.setattr(retention, "_delete", watched)
        before = await thread.run(lambda: ask("synchronous"))
        await self.run(thread)
        after = await thread.run(lambda: ask("synchronous"))

        assert (before, after) == ((FULL,), (FULL,))
        assert set(seen) == {(NORMAL,)}

    async def test_the_disk_is_waited_for_again_after_a_failure(self, thread, monkeypatch):
        monkeypatch.setattr(retention, "_delete", failing)

        with pytest.raises(DatabaseError):
            await self.run(thread)

        assert await thread.run(lambda: ask("synchronous")) == (FULL,)
        assert await thread.run(HistoryRun.objects.count) == 150

    @pytest.mark.parametrize(
        ("after", "checkpoints", "left"),
        [
            pytest.param(50, 3, 0, id="after each batch of fifty"),
            pytest.param(51, 1, 50, id="after two of them, and after the next two"),
            pytest.param(151, 0, 150, id="not for as few as these"),
        ],
    )
    async def test_pages_are_moved_to_their_place_every_so_many_rows(
        self, thread, monkeypatch, after, checkpoints, left
    ):
        monkeypatch.setattr(retention, "CHECKPOINT_AFTER", after)
        monkeypatch.setattr(retention, "MOST", 50)
        times, checkpoint = [], retention._checkpoint
        monkeypatch.setattr(retention, "_checkpoint", lambda: times.append(connection.in_atomic_block) or checkpoint())

        await self.run(thread)
        path = await thread.run(lambda: connection.settings_dict["NAME"])

        assert times == [False] * checkpoints
        assert await thread.run(HistoryRun.objects.count) == 0
        # Nobody who reads the file as if it could not change looks at the log beside it.
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as file:
            assert file.execute("SELECT count(*) FROM onu_history_runs").fetchone() == (left,)
