"""What the engine told, kept: each event once, the pollers as they last stood, the load by the minute."""

import asyncio
import logging
from collections import deque

import pytest
from builders import T0
from django.db import OperationalError

from contracts.worlds import Inline, done
from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.apps.coordinator.models import CoordinatorLog
from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Poller, PollerStats
from facho.engine.events import Event, tell
from facho.store import journal as journal_module
from facho.store.journal import EventRows, Journal

pytestmark = pytest.mark.django_db


class Away(Inline):
    """A database that is away as long as somebody says so."""

    away = False

    async def run(self, work):
        if self.away:
            raise OperationalError("the database is away")
        return work()


class Desk:
    def __init__(self, logger):
        self.logger = logger
        self.bus = LocalBus()
        self.thread = Away()
        self.events = EventRows()
        logger.addHandler(self.events)
        self.journal = Journal(
            bus=self.bus, clock=SystemClock(), thread=self.thread, events=self.events, worker="noc-1"
        )

    def step(self):
        done(self.journal.step())

    def tell(self, message="it happened", level=logging.INFO, **more):
        tell(self.logger, level, Event.SLOTS_LOST, message, **more)


@pytest.fixture
def desk(db):
    logger = logging.getLogger("facho.tests.journal")
    logger.setLevel(logging.INFO)
    desk = Desk(logger)
    yield desk
    logger.removeHandler(desk.events)


def poller(number, **more):
    return {
        "id": number,
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
    } | more


def snapshot(*pollers, at=T0, **stats):
    counted = {
        "total_pollers": len(pollers),
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

    desk.tell("OLT-CENTRAL-01: Optical power missed 3 slots", logging.WARNING, olt_id=olt.pk)
    desk.step()

    (row,) = CoordinatorLog.objects.all()
    assert (row.olt_id, row.event_type, row.level) == (olt.pk, "SLOTS_LOST", "WARNING")
    assert row.message == "OLT-CENTRAL-01: Optical power missed 3 slots"


def test_a_log_line_that_is_no_event_becomes_none(desk):
    desk.logger.warning("just a line")
    desk.step()

    assert CoordinatorLog.objects.count() == 0


def test_an_event_is_written_once(desk):
    desk.tell()
    for _ in range(3):
        desk.step()

    assert CoordinatorLog.objects.count() == 1


def test_an_event_of_an_olt_that_was_deleted_is_kept_without_it(desk):
    desk.tell(olt_id=999_999)
    desk.step()

    assert CoordinatorLog.objects.get().olt_id is None


def test_events_wait_for_a_database_that_is_away(desk):
    desk.thread.away = True
    desk.tell("first")
    desk.step()
    desk.tell("second")
    desk.step()

    desk.thread.away = False
    desk.step()

    assert list(CoordinatorLog.objects.order_by("id").values_list("message", flat=True)) == ["first", "second"]


def test_a_row_that_fails_with_the_rest_is_written_with_the_rest_later(desk):
    desk.bus.publish("snapshot", snapshot(poller(1, status="NO SUCH STATUS", id=None)))
    desk.tell("first")
    desk.step()
    left = CoordinatorLog.objects.count()

    desk.bus.publish("snapshot", snapshot(poller(1)))
    desk.step()

    assert left == 0
    assert CoordinatorLog.objects.get().message == "first"


def test_events_that_come_while_a_full_backlog_is_written_are_not_lost(desk, monkeypatch):
    desk.events.pending = deque(maxlen=3)
    for number in range(3):
        desk.tell(f"event {number}")

    async def run(work):
        desk.tell("in between")
        return work()

    monkeypatch.setattr(desk.thread, "run", run)
    desk.step()
    monkeypatch.undo()
    desk.step()

    assert CoordinatorLog.objects.filter(message="in between").count() == 1


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


def test_the_load_is_kept_once_a_minute(desk):
    for second in (0, 5, 59, 60, 65):
        at = T0.replace(minute=second // 60, second=second % 60)
        desk.bus.publish("snapshot", snapshot(poller(1), at=at, queue_size=second))
        desk.step()

    rows = PollerStats.objects.order_by("timestamp").values_list("timestamp", "queue_size", "busy_percentage")
    assert list(rows) == [(T0, 0, 50.0), (T0.replace(minute=1), 60, 50.0)]


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
    journal = Journal(bus=LocalBus(), clock=Clock(), thread=thread, events=EventRows(), worker="noc-1")

    with pytest.raises(asyncio.CancelledError):
        await journal.run()

    assert beats == [journal_module.EVERY] * 4
