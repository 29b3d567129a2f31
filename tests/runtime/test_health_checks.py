"""What makes a process ready, and what does not."""

import asyncio
import sqlite3
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from builders import T0
from django.db import OperationalError, connection
from metrics_stage import SNAPSHOT
from prometheus_client import CollectorRegistry

from facho.engine.model import Cause
from facho.runtime import config, monitoring
from facho.runtime.clocks import Skew
from facho.runtime.health import NotWell
from facho.runtime.monitoring import (
    HANGS_AFTER,
    DatabaseLink,
    DatabaseWatch,
    DataWatch,
    LoopWatch,
    connects,
    follows_clock,
    takes_work,
    ticks,
    writes,
)
from facho.store.database import DbThread


class Inline:
    """Stands in for a `DbThread`: does the work at once, on the connection of the test."""

    def __init__(self):
        self.times = 0

    async def run(self, work):
        self.times += 1
        return work()


class Hands:
    """A clock that moves when somebody sleeps, and is late by as much as a test says."""

    def __init__(self):
        self.seconds = 0.0
        self.late = 0.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return T0 + timedelta(seconds=self.seconds)

    async def sleep(self, seconds):
        self.seconds += seconds + self.late


@pytest.fixture
def clock():
    return Hands()


class TestDatabase:
    @pytest.fixture(autouse=True)
    def _database_in_a_coroutine(self, monkeypatch):
        monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

    async def ask(self, watch):
        return {check.name: await check.ask() for check in watch.checks}

    @pytest.mark.django_db(transaction=True)
    async def test_one_that_answers_and_is_up_to_date_is_well(self):
        assert await self.ask(DatabaseWatch(Inline())) == {"database": "ok", "migrations": "ok"}

    async def test_one_that_is_not_up_to_date_says_what_to_do(self, monkeypatch):
        monkeypatch.setattr(monitoring, "_missing_migrations", lambda: 3)
        _, migrations = DatabaseWatch(Inline()).checks

        with pytest.raises(NotWell, match="not applied: 3; run `facho migrate`"):
            await migrations.ask()

    async def test_it_is_well_as_soon_as_somebody_has_done_it_and_is_not_asked_again(self, monkeypatch):
        left, thread = [1, 0], Inline()
        monkeypatch.setattr(monitoring, "_missing_migrations", lambda: left.pop(0))
        _, migrations = DatabaseWatch(thread).checks
        with pytest.raises(NotWell):
            await migrations.ask()

        answers = [await migrations.ask(), await migrations.ask()]

        assert (answers, thread.times) == (["ok", "ok"], 2)

    async def test_one_that_is_unavailable_is_not_well_and_its_address_is_not_told(self, monkeypatch):
        def refuse():
            raise OperationalError('connection to "10.1.2.3" as user "facho" refused')

        monkeypatch.setattr(monitoring, "_write", refuse)
        database, _ = DatabaseWatch(Inline()).checks

        with pytest.raises(NotWell) as trouble:
            await database.ask()

        assert str(trouble.value) == "the database cannot be reached"

    @pytest.mark.parametrize(
        ("code", "sentence"),
        [
            (sqlite3.SQLITE_READONLY_DBMOVED, "the database is read-only"),
            (sqlite3.SQLITE_FULL, "the disk of the database is full"),
            (sqlite3.SQLITE_BUSY_SNAPSHOT, "the database is locked by another program"),
        ],
    )
    async def test_one_that_cannot_be_written_says_why(self, monkeypatch, code, sentence):
        def refuse():
            cause = sqlite3.OperationalError("secret path")
            cause.sqlite_errorcode = code
            raise OperationalError("secret path") from cause

        monkeypatch.setattr(monitoring, "_write", refuse)
        database, _ = DatabaseWatch(Inline()).checks

        with pytest.raises(NotWell) as trouble:
            await database.ask()

        assert str(trouble.value) == sentence

    @pytest.mark.django_db
    def test_one_that_is_read_only_is_not_well(self):
        is_sqlite = connection.vendor == "sqlite"
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = on" if is_sqlite else "SET TRANSACTION READ ONLY")
        try:
            with pytest.raises((NotWell, OperationalError)) as trouble:
                monitoring._write()
        finally:
            if is_sqlite:
                with connection.cursor() as cursor:
                    cursor.execute("PRAGMA query_only = off")

        said = monitoring._sentence(trouble.value) if is_sqlite else str(trouble.value)
        assert said == "the database is read-only"

    @pytest.mark.django_db(transaction=True)
    async def test_one_with_another_time_is_not_well(self):
        skews = [Skew(timedelta(seconds=-3600)), Skew(timedelta(seconds=3))]
        database, _ = DatabaseWatch(Inline(), skew=lambda: skews.pop(0)).checks

        with pytest.raises(NotWell, match=r"the clock of the database is 3600\.0 s behind the clock of this machine"):
            await database.ask()

        assert await database.ask() == "ok"

    async def test_one_that_is_back_is_well_again(self, monkeypatch):
        answers = [OperationalError("away"), None]

        def select():
            answer = answers.pop(0)
            if answer is not None:
                raise answer

        monkeypatch.setattr(monitoring, "_write", select)
        database, _ = DatabaseWatch(Inline()).checks
        with pytest.raises(NotWell):
            await database.ask()

        assert await database.ask() == "ok"

    async def test_one_that_hangs_is_asked_once_however_often_probes_come(self, monkeypatch):
        answer, asked, thread = threading.Event(), [], DbThread("test-probe")

        def hang():
            asked.append(1)
            answer.wait(60)

        monkeypatch.setattr(monitoring, "_write", hang)
        watch = DatabaseWatch(thread, patience=0)
        try:
            for _ in range(3):
                with pytest.raises(NotWell, match="did not answer within 0 s"):
                    await watch.checks[0].ask()
        finally:
            answer.set()
            thread.close()

        assert len(asked) == 1


class TestLifeline:
    class Silent:
        silence = 0.0

    @pytest.fixture
    def thread(self):
        return self.Silent()

    @pytest.fixture
    def database_link(self, thread, clock):
        return DatabaseLink(DatabaseWatch(Inline(), patience=HANGS_AFTER), [self.Silent(), thread], clock)

    async def test_it_is_whole_while_the_database_answers(self, database_link, monkeypatch):
        monkeypatch.setattr(monitoring, "_write", lambda: None)

        await database_link.step()

        assert not database_link.is_cut

    async def test_it_is_cut_while_the_database_does_not_and_whole_again_when_it_does(self, database_link, monkeypatch):
        answers = [OperationalError("away"), OperationalError("away"), None]

        def select():
            answer = answers.pop(0)
            if answer is not None:
                raise answer

        monkeypatch.setattr(monitoring, "_write", select)
        seen = []
        while answers:
            await database_link.step()
            seen.append(database_link.is_cut)

        assert seen == [True, True, False]

    async def test_it_is_cut_while_the_clocks_differ(self, clock, monkeypatch, caplog):
        monkeypatch.setattr(monitoring, "_write", lambda: None)
        skews = [timedelta(hours=1), timedelta(hours=1), timedelta(0)]
        watch = DatabaseWatch(Inline(), patience=HANGS_AFTER, skew=lambda: Skew(skews.pop(0)))
        database_link = DatabaseLink(watch, [], clock)
        seen = []
        while skews:
            await database_link.step()
            seen.append(database_link.is_cut)

        assert seen == [True, True, False]
        assert (
            caplog.text.count(
                "no new runs are started: the clock of the database is 3600.0 s ahead of the clock of this machine"
            )
            == 1
        )

    async def test_it_is_cut_while_a_thread_of_the_process_is_left_without_an_answer(self, database_link, thread):
        thread.silence = HANGS_AFTER
        before = database_link.is_cut
        thread.silence = HANGS_AFTER + 0.1

        assert (before, database_link.is_cut) == (False, True)


class TestData:
    @pytest.fixture
    def data(self, tmp_path):
        loaded = config.load({"FACHO_DATA_DIR": str(tmp_path / "data")})
        loaded.data_dir.mkdir()
        Path(loaded.database["NAME"]).touch()
        return loaded

    async def test_a_directory_that_is_there_is_well(self, data, clock):
        assert await DataWatch(data, clock).check.ask() == "ok"

    async def test_a_directory_that_was_deleted_is_noticed_and_logged(self, data, clock, caplog):
        watch = DataWatch(data, clock)
        watch.step()
        data.data_dir.rename(data.data_dir.with_name("elsewhere"))

        watch.step()

        with pytest.raises(NotWell, match="the data directory was deleted; stop Facho, restore a backup"):
            await watch.check.ask()
        assert [record.levelname for record in caplog.records] == ["ERROR"]

    def test_a_database_that_was_deleted_or_replaced_is_noticed(self, data, clock):
        watch, file = DataWatch(data, clock), Path(data.database["NAME"])
        file.rename(file.with_name("old"))
        with pytest.raises(NotWell, match="the database file was deleted"):
            asyncio.run(watch.check.ask())

        file.touch()

        with pytest.raises(NotWell, match="was replaced; restart Facho if this was intended, otherwise"):
            asyncio.run(watch.check.ask())


class TestScheduler:
    async def test_one_whose_writes_fail_is_not_ready(self):
        assert await writes(lambda: None).ask() == "ok"
        assert await writes(lambda: Cause.BROKER_UNAVAILABLE).ask() == "ok"
        with pytest.raises(NotWell, match="cannot write to the database"):
            await writes(lambda: Cause.DATABASE_UNAVAILABLE).ask()

    @pytest.mark.parametrize("seconds", [0, 5])
    async def test_one_that_ticks_is_ready(self, clock, seconds):
        clock.seconds = seconds

        assert await ticks(lambda: SNAPSHOT, clock).ask() == "ok"

    async def test_one_that_has_stopped_ticking_is_not(self, clock):
        clock.seconds = 6

        with pytest.raises(NotWell, match="not ticked for 6 s"):
            await ticks(lambda: SNAPSHOT, clock).ask()

    async def test_one_that_has_not_ticked_yet_is_not(self, clock):
        with pytest.raises(NotWell, match="not ticked yet"):
            await ticks(lambda: None, clock).ask()

    async def test_one_that_has_not_ticked_since_the_clock_was_set_back_is_not_ready(self, clock):
        clock.seconds = -3600.0
        with pytest.raises(NotWell, match="since the clock was set back"):
            await ticks(lambda: SNAPSHOT, clock).ask()

    async def test_one_whose_slots_have_not_followed_the_clock_is_not_ready(self):
        assert await follows_clock(lambda: False).ask() == "ok"
        with pytest.raises(NotWell, match="the schedule is not adjusted yet"):
            await follows_clock(lambda: True).ask()

    async def test_one_on_standby_is_ready_and_reports_it(self, clock):
        clock.seconds = 3600

        assert await ticks(lambda: SNAPSHOT, clock, is_active=lambda: False).ask() == "standby"


class TestBus:
    class Bus:
        is_connected = True

    async def test_one_that_is_connected_is_well(self):
        assert await connects(self.Bus()).ask() == "ok"

    async def test_one_that_lost_its_connection_is_not(self):
        bus = self.Bus()
        bus.is_connected = False

        with pytest.raises(NotWell, match="no connection to Redis"):
            await connects(bus).ask()


class TestWorker:
    async def test_one_that_takes_work_is_ready(self):
        assert await takes_work(lambda: False).ask() == "ok"

    async def test_one_that_was_asked_to_stop_is_not(self):
        with pytest.raises(NotWell, match="draining"):
            await takes_work(lambda: True).ask()


class TestLoop:
    @pytest.fixture
    def registry(self):
        return CollectorRegistry()

    @pytest.fixture
    def watch(self, registry, clock):
        return LoopWatch(registry, clock)

    async def test_how_late_it_wakes_is_measured(self, watch, registry, clock):
        await watch.step()
        clock.late = 0.2
        await watch.step()

        assert registry.get_sample_value("facho_loop_lag_seconds_count") == 2
        assert registry.get_sample_value("facho_loop_lag_seconds_sum") == pytest.approx(0.2)

    async def test_one_that_turns_is_alive(self, watch, clock):
        clock.seconds = 60
        await watch.step()

        assert await watch.check.ask() == "ok"

    async def test_one_that_is_stuck_is_not(self, watch, clock):
        await watch.step()
        clock.seconds += 11

        with pytest.raises(NotWell, match="not run for 11 s"):
            await watch.check.ask()
