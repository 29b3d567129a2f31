"""What the engine told, kept: each event once, the pollers as they last stood, the load by the minute."""

import asyncio
import logging
import threading
from contextlib import contextmanager

import pytest
from builders import HOUR, T0
from django.db import OperationalError

from contracts.worlds import Inline, done
from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Poller, PollerStats
from facho.engine.events import Event, log_event
from facho.engine.model import Cause
from facho.store import events as journal_module
from facho.store.events import EventRows, Journal, Pool

pytestmark = pytest.mark.django_db


class Away(Inline):
    """A database that is unavailable while `away` is set."""

    away = False
    jobs = 0

    async def run(self, work):
        self.jobs += 1
        if self.away:
            raise OperationalError("the database is away")
        return work()


@contextmanager
def unreported(logger):
    """Keep what is told out of the report of the tests, which cannot write down all that a device may say."""
    logger.propagate = False
    yield
    logger.propagate = True


class Desk:
    def __init__(self, logger, backlog=5000):
        self.logger = logger
        self.bus = LocalBus()
        self.thread = Away()
        self.events = EventRows(backlog)
        logger.addHandler(self.events)
        self.journal = Journal(bus=self.bus, clock=SystemClock(), thread=self.thread, events=self.events, pool=Pool())

    def step(self):
        done(self.journal.step())

    def log(self, task="Optical power", olt_id=None, **more):
        details = {"olt": "OLT-CENTRAL-01", "task": task} | more
        with unreported(self.logger):
            log_event(self.logger, Event.TASK_ADDED, olt_id=olt_id, **details)

    @property
    def tasks(self):
        """What was told of, in the order of the table."""
        rows = CoordinatorLog.objects.order_by("id").values_list("details", flat=True)
        return [details["task"] for details in rows if "task" in details]


@pytest.fixture
def make_desk(db):
    logger = logging.getLogger("facho.tests.journal")
    logger.setLevel(logging.INFO)
    made = []

    def make(**more):
        made.append(Desk(logger, **more))
        # What the journal itself has to tell goes the same way.
        logging.getLogger(journal_module.__name__).addHandler(made[-1].events)
        return made[-1]

    yield make
    for desk in made:
        logger.removeHandler(desk.events)
        logging.getLogger(journal_module.__name__).removeHandler(desk.events)


@pytest.fixture
def desk(make_desk):
    return make_desk()


def poller(number, **more):
    return {
        "id": number,
        "worker": "noc-1",
        "host": "noc",
        "status": "FREE",
        "olt_id": None,
        "node_id": None,
        "link": None,
        "links": None,
        "busy_since": None,
        "busy_time": 1.5,
        "total_time": 60.0,
        "tasks_completed": 3,
        "tasks_delayed": 1,
        "created_at": (T0 - HOUR).isoformat(),
    } | more


def snapshot(*pollers, at=T0, **stats):
    counted = {
        "total_pollers": len(pollers),
        "free_pollers": 2,
        "busy_pollers": 1,
        "busy_percentage": 50.0,
        "queue_size": 4,
        "delayed": 2,
        "is_saturated": False,
        "total_tasks_completed": 9,
        "total_tasks_delayed": 3,
    }
    return {"at": at.isoformat(), "pollers": list(pollers), "stats": counted | stats}


def test_an_event_becomes_a_row(desk):
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")

    details = {"olt": olt.name, "task": "Optical power", "slots": 3, "slot": T0, "cause": Cause.OLT_BUSY}
    log_event(desk.logger, Event.SLOTS_LOST, olt_id=olt.pk, **details)
    desk.step()

    (row,) = CoordinatorLog.objects.all()
    assert (row.olt_id, row.event_type, row.level) == (olt.pk, "SLOTS_LOST", "WARNING")
    assert row.message.startswith("OLT-CENTRAL-01: Optical power missed 3 slots, the first at 2026-03-01 10:00:00")
    assert row.details == details | {"slot": "2026-03-01T10:00:00+00:00", "cause": "olt_busy"}


def test_a_log_line_that_is_no_event_becomes_none(desk):
    desk.logger.warning("just a line")
    desk.step()

    assert CoordinatorLog.objects.count() == 0


def test_an_event_is_written_once(desk):
    desk.log()
    for _ in range(3):
        desk.step()

    assert CoordinatorLog.objects.count() == 1


def test_an_event_of_an_olt_that_was_deleted_is_kept_without_it(desk):
    desk.log(olt_id=999_999)
    desk.step()

    assert CoordinatorLog.objects.get().olt_id is None


def test_events_wait_for_a_database_that_is_unavailable(desk):
    desk.thread.away = True
    desk.log("first")
    desk.step()
    desk.log("second")
    desk.step()

    desk.thread.away = False
    desk.step()

    assert desk.tasks == ["first", "second"]


@pytest.mark.parametrize(
    ("count", "jobs"),
    [
        pytest.param(4, 1, id="a few"),
        pytest.param(5, 2, id="a batch"),
        pytest.param(17, 4, id="more than three batches"),
    ],
)
def test_a_backlog_is_written_in_order_and_in_pieces_that_others_fit_between(desk, monkeypatch, count, jobs):
    monkeypatch.setattr(journal_module, "BATCH", 5)
    for number in range(count):
        desk.log(number)

    desk.step()

    assert desk.tasks == list(range(count))
    assert desk.thread.jobs == jobs


def test_a_snapshot_that_cannot_be_written_keeps_no_event_from_its_row(desk):
    desk.bus.publish("snapshot", snapshot(poller(1, id=None)))
    desk.log("first")

    desk.step()

    assert desk.tasks == ["first"]
    assert Poller.objects.count() == 0


def test_a_full_backlog_lets_the_oldest_go_and_says_how_many(make_desk):
    desk = make_desk(backlog=3)
    desk.thread.away = True
    for number in range(5):
        desk.log(number)
    desk.step()

    desk.thread.away = False
    desk.step()

    (dropped,) = CoordinatorLog.objects.filter(event_type="EVENTS_DROPPED")
    # The failure of the journal itself is no event, and takes nobody's place.
    assert (desk.tasks, dropped.details) == ([2, 3, 4], {"events": 2})


def test_events_that_come_while_a_full_backlog_is_written_are_not_lost(make_desk, monkeypatch):
    desk = make_desk(backlog=3)
    for number in range(3):
        desk.log(number)
    told = iter(["in between"])
    write = journal_module._write_events

    def interrupted(rows):
        for task in told:
            desk.log(task)
        write(rows)

    monkeypatch.setattr(journal_module, "_write_events", interrupted)
    desk.step()
    desk.step()

    assert desk.tasks == [0, 1, 2, "in between"]
    assert not CoordinatorLog.objects.filter(event_type="EVENTS_DROPPED").exists()


async def test_a_journal_that_is_stopped_while_it_writes_does_not_write_twice(make_thread, monkeypatch):
    thread, events = make_thread("store-write"), EventRows()
    journal = Journal(bus=LocalBus(), clock=SystemClock(), thread=thread, events=events, pool=Pool())
    events.handle(logging.makeLogRecord({"event": Event.ENGINE_STOPPED, "msg": "it stops", "levelname": "INFO"}))
    begun, go_on = threading.Event(), threading.Event()
    write = journal_module._write_events

    def slowly(rows):
        begun.set()
        go_on.wait(10)
        write(rows)

    monkeypatch.setattr(journal_module, "_write_events", slowly)
    step = asyncio.ensure_future(journal.step())
    await asyncio.to_thread(begun.wait, 10)
    step.cancel()
    last = asyncio.ensure_future(journal.step())
    await asyncio.to_thread(go_on.set)
    await last

    assert await thread.run(CoordinatorLog.objects.count) == 1


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("a\0b", "ab", id="a NUL"),
        pytest.param("a\ud800b", "a?b", id="half of a character"),
        pytest.param("ñandú 密码", "ñandú 密码", id="any other text"),
        pytest.param(float("inf"), "inf", id="infinity"),
        pytest.param(float("nan"), "nan", id="no number"),
        pytest.param(1.5, 1.5, id="a number"),
        pytest.param(True, True, id="a truth"),
        pytest.param(None, None, id="nothing"),
        pytest.param(T0, "2026-03-01T10:00:00+00:00", id="a time"),
        pytest.param(Cause.OLT_BUSY, "olt_busy", id="a word of ours"),
        pytest.param(OSError("the OLT is away"), "the OLT is away", id="an error"),
        pytest.param(["Names", "Power"], "['Names', 'Power']", id="a list"),
    ],
)
def test_whatever_an_event_tells_of_can_be_written(desk, value, kept):
    desk.log(value)
    desk.step()

    assert desk.tasks == [kept]
    assert "\0" not in CoordinatorLog.objects.get().message


def test_an_event_whose_sentence_cannot_be_said_stops_nobody(desk, monkeypatch):
    complaints = []
    monkeypatch.setattr(desk.events, "handleError", complaints.append)

    with unreported(desk.logger):
        log_event(desk.logger, Event.TASK_ADDED, olt="OLT-CENTRAL-01")
    desk.log("after it")
    desk.step()

    assert len(complaints) == 1
    assert desk.tasks == ["after it"]


def test_pollers_are_as_they_last_stood(desk):
    busy = {"status": "BUSY", "olt_id": 1, "node_id": 2, "link": 1, "links": 3, "busy_since": T0.isoformat()}
    desk.bus.publish("snapshot", snapshot(poller(1), poller(2), poller(3)))
    desk.step()
    desk.bus.publish("snapshot", snapshot(poller(1, **busy), poller(2)))
    desk.step()

    first, second = Poller.objects.all()
    assert (first.poller_id, first.status, first.current_olt_id, first.current_node_id) == (1, "BUSY", 1, 2)
    assert (first.link, first.links, first.busy_since, first.worker) == (1, 3, T0, "noc-1")
    assert (second.poller_id, second.status, second.updated_at) == (2, "FREE", T0)
    assert (first.created_at, second.created_at) == (T0 - HOUR, T0 - HOUR)


def test_the_load_is_kept_once_a_minute(desk):
    for second in (0, 5, 59, 60, 65):
        at = T0.replace(minute=second // 60, second=second % 60)
        desk.bus.publish("snapshot", snapshot(poller(1), at=at, queue_size=second))
        desk.step()

    rows = PollerStats.objects.order_by("timestamp").values_list("timestamp", "queue_size", "busy_percentage")
    assert list(rows) == [(T0, 0, 50.0), (T0.replace(minute=1), 60, 50.0)]
    assert set(PollerStats.objects.values_list("free_pollers", flat=True)) == {2}


def test_a_restart_within_the_minute_goes_on_with_its_row(desk):
    PollerStats.objects.create(timestamp=T0, **snapshot(poller(1))["stats"])

    desk.bus.publish("snapshot", snapshot(poller(1), queue_size=8))
    desk.step()

    assert PollerStats.objects.get().queue_size == 8


def test_an_engine_that_has_not_ticked_yet_has_nothing_to_keep(desk):
    desk.step()

    assert Poller.objects.count() == PollerStats.objects.count() == 0


async def test_the_journal_goes_on_after_a_beat_that_failed(monkeypatch):
    beats = []

    class Clock:
        async def sleep(self, seconds):
            beats.append(seconds)
            if len(beats) == 4:
                raise asyncio.CancelledError

    thread = Away()
    thread.away = True
    journal = Journal(bus=LocalBus(), clock=Clock(), thread=thread, events=EventRows(), pool=Pool())

    with pytest.raises(asyncio.CancelledError):
        await journal.run()

    assert beats == [journal_module.EVERY] * 4
