"""What a discovery leaves in the tables: who moved keeps its history, who is missing keeps its data."""

import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from builders import MIN, T0
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.worlds import OLD, DbWorld, Inline, done, scheduled
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.census import Rules
from facho.engine.errors import LeaseLost
from facho.engine.model import Collected, Completeness, JobKind, KnownOnu, Reading
from facho.store.writer import DbReadingSink

pytestmark = pytest.mark.django_db


class Desk:
    """A sink, and a running discovery on OLT-CENTRAL-01 to write under."""

    def __init__(self, rules=Rules()):  # noqa: B008 - a frozen value
        self.world = DbWorld()
        self.node = replace(self.world.add("Discovery", next_check=T0), kind=JobKind.DISCOVERY)
        (self.execution_id,) = self.world.claim(scheduled(self.node)).execution_ids
        self.world.start(self.execution_id)
        self.sink = DbReadingSink(Inline(), Inline(), rules)
        self.now = T0

    def write(
        self, *readings, absent=(), kind=JobKind.DISCOVERY, token=None, completeness=Completeness.COMPLETE, **more
    ):
        self.now += 5 * MIN
        lease = self.world.lease(*([token] if token else []))
        collected = Collected(completeness, readings, absent=tuple(absent), **more)
        node = replace(self.node, kind=kind)
        done(self.sink.write(node, self.execution_id, collected, lease=lease, now=self.now))

    def known(self):
        return {onu.index: onu for onu in done(self.sink.known(self.world.olt_id))}

    @property
    def olt(self):
        return Olt.objects.get(pk=self.world.olt_id)


@pytest.fixture
def desk(db):
    return Desk()


def onu(number, serial=None, port=1, **values):
    return Reading(f"{port}.{number}", 0, port, number, {"serial": serial or f"S{number}", "state": "online", **values})


def fleet(size=10, gone=()):
    return [onu(number) for number in range(1, size + 1) if number not in gone]


def index_of(number):
    return f"1.{number}"


def row(serial):
    return Onu.objects.get(serial=serial)


def test_an_onu_that_moved_is_the_same_row_with_its_history(desk):
    desk.write(*fleet())
    before = row("S7")

    desk.write(*fleet(gone=[7]), onu(3, "S7", port=2, rx_dbm=-21.53), absent=[index_of(7)])

    after = row("S7")
    assert (after.pk, after.index, after.port, after.onu) == (before.pk, "2.3", 2, 3)
    assert (after.moved_from, after.moved_at, after.misses) == ("0/1/7", desk.now, 0)
    assert after.first_seen_at == before.first_seen_at
    assert list(OnuHistory.objects.filter(onu=after).values_list("at", flat=True)) == [desk.now, desk.now - 5 * MIN]
    assert Onu.objects.count() == 10


@pytest.mark.parametrize(
    "serials",
    [
        pytest.param({1: "S2", 2: "S1", 3: "S3"}, id="two have changed places"),
        pytest.param({1: "S3", 2: "S1", 3: "S2"}, id="a ring of three"),
        pytest.param({2: "S1", 3: "S2", 4: "S3"}, id="a chain into a free place"),
    ],
)
def test_movers_do_not_meet_on_the_way(desk, serials):
    desk.write(*fleet(3))
    rows = {each.serial: each.pk for each in Onu.objects.all()}

    desk.write(*(onu(number, serial) for number, serial in serials.items()), absent=[index_of(1)])

    assert {each.index: each.serial for each in Onu.objects.all()} == {
        index_of(number): serial for number, serial in serials.items()
    }
    assert {each.serial: each.pk for each in Onu.objects.all()} == rows


def test_who_is_pushed_out_of_its_place_loses_nothing_and_cannot_be_asked_for(desk):
    desk.write(*fleet(), onu(11, name="client-11", rx_dbm=-19.0))

    desk.write(*fleet(gone=[7]), onu(11, "S7"), absent=[index_of(7)])

    pushed = row("S11")
    assert (pushed.name, pushed.rx_dbm, pushed.port, pushed.onu) == ("client-11", -19.0, 1, 11)
    assert (pushed.misses, pushed.missing_since) == (0, None)
    assert row("S7").index == "1.11"
    assert pushed.index not in desk.known()
    assert OnuHistory.objects.filter(onu=pushed).count() == 1


@pytest.mark.parametrize(
    ("completeness", "misses", "is_missing"),
    [
        pytest.param(Completeness.COMPLETE, 2, True, id="that read the whole OLT"),
        pytest.param(Completeness.PARTIAL, 0, False, id="that may have passed it by"),
    ],
)
def test_who_was_pushed_out_goes_missing_after_two_discoveries(desk, completeness, misses, is_missing):
    desk.write(*fleet(), onu(11))
    desk.write(*fleet(gone=[7]), onu(11, "S7"), absent=[index_of(7)])

    for _ in range(2):
        desk.write(*fleet(gone=[7]), onu(11, "S7"), completeness=completeness)

    assert (row("S11").misses, row("S11").is_missing) == (misses, is_missing)


@pytest.mark.parametrize("kind", [JobKind.GET, JobKind.TABLE, JobKind.WALK])
def test_rows_follow_their_onus_whichever_run_reads_the_serials(desk, kind):
    desk.write(*fleet())
    rows = {each.serial: each.pk for each in Onu.objects.all()}

    desk.write(onu(1, "S2"), onu(2, "S1"), kind=kind)

    assert (row("S1").pk, row("S1").index) == (rows["S1"], "1.2")
    assert (row("S2").pk, row("S2").index) == (rows["S2"], "1.1")


def test_a_run_that_is_no_discovery_moves_a_missing_one_and_leaves_it_missing(desk):
    desk.write(*fleet(), onu(11))
    desk.write(*fleet(), absent=[index_of(11)])
    desk.write(*fleet(), absent=[index_of(11)])

    desk.write(onu(3, "S11", port=2), kind=JobKind.TABLE)

    assert (row("S11").index, row("S11").is_missing) == ("2.3", True)


def test_who_was_pushed_out_is_recognised_when_it_turns_up(desk):
    desk.write(*fleet(), onu(11, name="client-11"))
    desk.write(*fleet(gone=[7]), onu(11, "S7"), absent=[index_of(7)])
    pushed = row("S11")

    desk.write(*fleet(gone=[7]), onu(11, "S7"), onu(5, "S11", port=2))

    back = row("S11")
    assert (back.pk, back.index, back.missing_since, back.moved_from) == (pushed.pk, "2.5", None, "0/1/11")


def test_an_onu_is_missing_after_two_discoveries_without_it_and_keeps_its_data(desk):
    desk.write(*fleet(), onu(11, name="client-11", rx_dbm=-21.53))
    told = []
    for _ in range(3):
        desk.write(*fleet(), absent=[index_of(11)])
        told.append((row("S11").misses, row("S11").missing_since))

    second = desk.now - 5 * MIN
    assert told == [(1, None), (2, second), (2, second)]
    assert (row("S11").name, row("S11").rx_dbm, row("S11").state) == ("client-11", -21.53, "online")


def test_the_setting_says_after_how_many(db):
    desk = Desk(Rules(misses=1))
    desk.write(*fleet())

    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    assert row("S7").missing_since == desk.now


def test_one_that_is_found_again_is_back_with_everything(desk):
    desk.write(*fleet(), onu(11, name="client-11"))
    desk.write(*fleet(), absent=[index_of(11)])
    desk.write(*fleet(), absent=[index_of(11)])

    desk.write(*fleet(), onu(11))

    assert (row("S11").misses, row("S11").missing_since, row("S11").name) == (0, None, "client-11")


@pytest.mark.parametrize("kind", [JobKind.GET, JobKind.TABLE, JobKind.WALK])
def test_only_a_discovery_decides_who_is_there(desk, kind):
    desk.write(*fleet())
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    desk.write(*fleet(gone=[6]), absent=[index_of(6)], kind=kind)

    assert (row("S7").misses, row("S6").misses) == (1, 0)


def test_a_port_that_was_not_read_to_its_end_says_nothing_of_its_onus(desk):
    desk.write(*fleet())
    for _ in range(5):
        desk.write(*fleet(gone=[7]))

    assert (row("S7").misses, row("S7").missing_since) == (0, None)


def vanish(desk, count, times=1):
    gone = range(1, count + 1)
    for _ in range(times):
        desk.write(*fleet(gone=gone), absent=map(index_of, gone))


def missing():
    return Onu.objects.filter(missing_since__isnull=False).count()


def test_a_mass_vanishing_is_held_until_the_next_discovery_confirms_it(desk):
    desk.write(*fleet())

    vanish(desk, 4)
    held = (missing(), desk.olt.suspect_since, row("S1").misses)
    at = desk.now
    vanish(desk, 4)

    assert held == (0, at, 1)
    assert (missing(), desk.olt.suspect_since) == (4, None)


def test_a_mass_vanishing_that_was_none_is_over(desk):
    desk.write(*fleet())
    vanish(desk, 4)

    desk.write(*fleet())

    assert (missing(), desk.olt.suspect_since, row("S1").misses) == (0, None, 0)


def test_a_discovery_that_brought_nothing_leaves_a_suspicion_since_when_it_was(desk):
    desk.write(*fleet())
    vanish(desk, 4)
    at = desk.now

    desk.write()

    assert (missing(), desk.olt.suspect_since) == (0, at)


def test_a_suspicion_is_no_change_by_a_person(desk):
    desk.write(*fleet())
    before = desk.olt.revision

    vanish(desk, 4, times=2)

    assert desk.olt.revision == before


def test_the_onus_of_another_olt_are_left_alone(desk):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="zte_c300", host="127.0.0.2", community="public")
    Onu.objects.create(olt=other, index="9.9", serial="S7", first_seen_at=T0, read_at=T0)
    desk.write(*fleet())

    vanish(desk, 4, times=2)

    assert list(Onu.objects.filter(olt=other).values_list("index", "misses")) == [("9.9", 0)]


def test_a_holder_of_an_older_lease_makes_nobody_missing(desk):
    desk.write(*fleet())
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    with pytest.raises(LeaseLost):
        desk.write(*fleet(gone=[7]), absent=[index_of(7)], token=OLD)

    assert (row("S7").misses, row("S7").missing_since) == (1, None)


def test_a_place_that_a_run_does_not_tell_stays_as_it_was(desk):
    desk.write(onu(7))

    desk.write(Reading(index_of(7), None, None, None, {"state": "offline"}))

    assert (row("S7").slot, row("S7").port, row("S7").onu, row("S7").state) == (0, 1, 7, "offline")


def test_what_planning_needs_is_known_by_one_query(desk):
    desk.write(*fleet(), Reading("2.1", 0, 2, 1, {"mac": "00:11:22:33:44:55"}))
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    with CaptureQueriesContext(connection) as queries:
        known = desk.known()

    assert len(queries) == 1
    assert known["1.7"] == KnownOnu("1.7", "online", 0, 1, 7, "S7", None, 2, True)
    assert known["2.1"] == KnownOnu("2.1", "unknown", 0, 2, 1, None, "00:11:22:33:44:55", 0, False)


def test_what_was_learned_is_there_for_the_next_run_and_after_it(desk):
    desk.write(learned={"onus": {"repetitions": 20}})

    desk.write(*fleet())

    assert done(desk.world.nodes.olt(desk.world.olt_id)).learned == {"onus": {"repetitions": 20}}


def test_a_discovery_of_thousands_takes_a_few_statements(desk):
    desk.write(*fleet(4000))

    with CaptureQueriesContext(connection) as queries:
        desk.write(
            *(onu(number, f"S{number % 4000 + 1}") for number in range(1, 3001)),
            absent=map(index_of, range(3001, 4001)),
        )

    assert len(queries) <= 14
    assert Onu.objects.count() == 4000


def events(caplog):
    return [(record.event.name, record.getMessage()) for record in caplog.records if hasattr(record, "event")]


def test_each_kind_of_news_is_one_event_with_numbers_and_first_names(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.write(*fleet(40), onu(41, name="client-41"))
    desk.write(*fleet(40, gone=range(1, 9)), absent=map(index_of, [*range(1, 9), 41]))
    caplog.clear()

    desk.write(*fleet(40, gone=[*range(1, 9), 20]), onu(1, "S20", port=2), absent=map(index_of, [*range(1, 9), 41]))
    desk.write(*fleet(40, gone=[20]), onu(1, "S20", port=2), onu(41))

    assert events(caplog) == [
        ("ONUS_MISSING", "OLT-CENTRAL-01: 9 ONUs are missing now: S1, S2, S3, S4, S5 and 4 more"),
        ("ONUS_MOVED", "OLT-CENTRAL-01: 1 ONU moved: S20"),
        ("ONUS_BACK", "OLT-CENTRAL-01: 9 ONUs are back: S1, S2, S3, S4, S5 and 4 more"),
    ]


def test_a_mass_vanishing_is_told_when_suspected_confirmed_or_over(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.write(*fleet())

    vanish(desk, 4, times=2)
    desk.write(*fleet())
    vanish(desk, 5)
    desk.write(*fleet())

    assert [event for event, _ in events(caplog)] == [
        "VANISHING_SUSPECTED",
        "VANISHING_CONFIRMED",
        "ONUS_MISSING",
        "ONUS_BACK",
        "VANISHING_SUSPECTED",
        "VANISHING_OVER",
    ]
    assert events(caplog)[0][1] == ("OLT-CENTRAL-01: 4 of 10 ONUs vanished at once; the next discovery must confirm it")
    assert {record.olt_id for record in caplog.records if hasattr(record, "event")} == {desk.world.olt_id}


def test_nothing_new_is_no_news(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.write(*fleet())
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    assert events(caplog) == []


def test_a_missing_onu_is_missing_since_the_discovery_that_said_so(desk):
    desk.write(*fleet())
    vanish(desk, 1, times=2)

    assert row("S1").missing_since - row("S1").read_at == timedelta(minutes=10)
