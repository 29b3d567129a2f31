"""Values of one ONU that a user asked for are stored like those of a run, and every inventory stays valid."""

import pytest
from builders import MIN, SEC, T0
from worlds import InSavepoint, RunDesk, done

from facho.apps.inventory.models import Question
from facho.apps.polling.models import Lease as LeaseRow
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.engine.batch import Batch
from facho.engine.errors import LeaseLost
from facho.engine.model import Collected, Completeness, JobKind, Lease, Node, OnuRead, Reading, Reply
from facho.store.inventory import Inventories
from facho.store.leases import key_of
from facho.store.questions import DbQuestions
from facho.store.runs import DbResults
from history_rows import readings

pytestmark = pytest.mark.django_db

DEVICE = "127.0.0.1:161"
ANSWER = {"values": {"state": "online"}, "unanswered": [], "requests": 1, "seconds": 0.1}


def onu(number, **values):
    return Reading(f"1.{number}", 0, 1, number, {"serial": f"S{number}", "state": "online", **values})


class Reads:
    """What users ask of the OLT of a desk; `inventories` are those of the process that answers."""

    def __init__(self, desk, inventories=None):
        self.desk = desk
        results = DbResults(InSavepoint())
        self.questions = DbQuestions(InSavepoint(), InSavepoint(), results, inventories or Inventories())

    def ask(self, about, state="running"):
        return Question.objects.create(
            olt_id=self.desk.world.olt_id,
            kind="read_onu",
            body={"onu": about.pk},
            state=state,
            asked_at=T0,
            expires_at=T0 + MIN,
        )

    def answer(self, question, reading, now, token=1):
        olt_id = self.desk.world.olt_id
        collected = Collected(Completeness.COMPLETE, Batch.of([reading]))
        node = Node(0, olt_id, "read", JobKind.GET, 0 * SEC)
        read = OnuRead(reading.index, node, collected, Lease(olt_id, "noc", token, DEVICE))
        done(self.questions.reply(question.pk, Reply(ANSWER, read=read), now=now))
        question.refresh_from_db()

    def read(self, reading, now):
        self.answer(question := self.ask(Onu.objects.get(index=reading.index)), reading, now)
        return question


@pytest.fixture
def desk(db):
    return RunDesk()


def test_values_events_history_and_answer_are_stored_together(desk):
    desk.write(onu(1, rx_dbm=-20.0), onu(2, rx_dbm=-21.0))

    question = Reads(desk).read(onu(1, rx_dbm=-24.0, state="los", down_cause="los"), T0 + 5 * MIN)

    read, other = Onu.objects.with_freshness().order_by("onu")
    assert (read.rx_dbm, read.state, read.down_cause) == (-24.0, "los", "los")
    assert (question.state, question.answer) == ("answered", {**ANSWER, "onu": read.pk})
    events = OnuEvent.objects.filter(onu=read, at=T0 + 5 * MIN).values_list("field", "old", "new")
    assert set(events) == {("state", "online", "los"), ("down_cause", "", "los"), ("rx_dbm", "-20.0", "-24.0")}
    assert readings(read)[-1] == {"at": T0 + 5 * MIN, "state": "los", "rx_dbm": -24.0}
    # Its neighbours on the port were not read.
    assert (read.read_at, read.power_at, other.read_at, other.power_at) == (T0 + 5 * MIN, T0 + 5 * MIN, T0, T0)


def test_only_the_onu_that_was_read_is_written(desk, django_assert_max_num_queries):
    desk.write(*(onu(number, rx_dbm=-20.0) for number in range(1, 65)))
    reads = Reads(desk)
    question = reads.ask(Onu.objects.get(onu=1))

    # A fixed number, however many ONUs the port has.
    with django_assert_max_num_queries(20):
        reads.answer(question, onu(1, rx_dbm=-24.0), T0 + 5 * MIN)

    assert Onu.objects.filter(own_read_at__isnull=False).count() == 1


def test_the_next_run_of_all_takes_the_own_times_back(desk):
    desk.write(onu(1, rx_dbm=-20.0), onu(2))
    Reads(desk).read(onu(1, rx_dbm=-24.0), T0 + 5 * MIN)

    desk.write(onu(1, rx_dbm=-20.0), onu(2), now=T0 + 10 * MIN)

    assert Onu.objects.filter(own_read_at__isnull=False).count() == 0
    assert Onu.objects.get(onu=1).power_at == T0 + 10 * MIN


@pytest.mark.parametrize("shares", [True, False], ids=["the inventory of the runs", "one of another process"])
def test_the_next_run_finds_the_value_of_the_run_before_changed(desk, shares):
    """The polling process believed -20.0, and reads it again: without a valid inventory it would not write it."""
    desk.write(onu(1, rx_dbm=-20.0))
    Reads(desk, desk.world.runs._inventories if shares else None).read(onu(1, rx_dbm=-24.0), T0 + 5 * MIN)

    desk.write(onu(1, rx_dbm=-20.0), now=T0 + 10 * MIN)

    assert Onu.objects.get().rx_dbm == -20.0


def test_another_onu_at_the_place_is_told_and_replaces_it(desk):
    desk.write(onu(1))

    question = Reads(desk).read(Reading("1.1", 0, 1, 1, {"serial": "S9", "state": "online"}), T0 + 5 * MIN)

    old, new = Onu.objects.order_by("pk")
    assert (old.place_taken, new.serial, question.answer["onu"]) == (True, "S9", new.pk)


def test_values_read_under_a_lost_lease_are_not_stored(desk):
    desk.write(onu(1, rx_dbm=-20.0))
    LeaseRow.objects.create(key=key_of(DEVICE), holder="worker", token=5, expires_at=T0 + MIN)
    reads = Reads(desk)
    question = reads.ask(Onu.objects.get())

    with pytest.raises(LeaseLost):
        reads.answer(question, onu(1, rx_dbm=-24.0), T0 + 5 * MIN, token=4)

    question.refresh_from_db()
    assert (Onu.objects.get().rx_dbm, question.state) == (-20.0, "running")


def test_a_second_answer_changes_nothing(desk):
    desk.write(onu(1, rx_dbm=-20.0))
    reads = Reads(desk)
    question = reads.ask(Onu.objects.get(), state="failed")

    reads.answer(question, onu(1, rx_dbm=-24.0), T0 + 5 * MIN)

    assert (Onu.objects.get().rx_dbm, question.state) == (-20.0, "failed")


@pytest.mark.parametrize("dark", [None, 0.0], ids=["no distance", "a distance of 0"])
def test_the_last_power_and_distance_are_kept_when_the_light_goes(desk, dark):
    desk.write(onu(1, rx_dbm=-21.4, distance_m=1234.0))
    desk.write(onu(1, rx_dbm=-21.5, distance_m=1234.0), now=T0 + 5 * MIN)
    desk.write(onu(1, state="los", rx_dbm=None, distance_m=dark), now=T0 + 10 * MIN)
    desk.write(onu(1, state="los", rx_dbm=None, distance_m=dark), now=T0 + 15 * MIN)

    found = Onu.objects.get()
    assert (found.rx_dbm, found.last_rx_dbm, found.last_rx_at) == (None, -21.5, T0 + 5 * MIN)
    assert (found.distance_m, found.last_distance_m, found.last_distance_at) == (dark, 1234.0, T0 + 5 * MIN)
