"""The rows after a discovery: a moved ONU keeps its history, a missing or replaced one keeps its data."""

import logging
from dataclasses import replace
from datetime import timedelta
from importlib import import_module

import pytest
from builders import MIN, T0
from django.apps import apps
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.worlds import OLD, RunDesk, done
from examples import examples
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu
from facho.engine.errors import LeaseLost
from facho.engine.model import Completeness, JobKind, KnownOnu, Reading
from facho.engine.presence import Rules, is_identity
from history_rows import readings

pytestmark = pytest.mark.django_db


class Desk(RunDesk):
    """Discoveries of OLT-CENTRAL-01, five minutes apart."""

    def __init__(self, rules=Rules()):  # noqa: B008 - a frozen value
        self.now = T0
        super().__init__("Discovery", JobKind.DISCOVERY, rules)

    def result(self, *readings, absent=(), **more):
        self.now += 5 * MIN
        return super().result(*readings, absent=tuple(absent), now=self.now, **more)

    def known(self):
        return {onu.index: onu for onu in super().known()}

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


def test_an_onu_that_is_absent_keeps_the_time_of_its_last_state(desk):
    desk.write(*fleet())
    read_at = desk.now

    desk.write(*fleet(gone=[7]), absent=[index_of(7)])
    first = row("S7").own_state_at
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    assert first == row("S7").own_state_at == read_at
    assert row("S7").missing_since == desk.now
    assert row("S6").own_state_at is None


def test_an_onu_that_moved_is_the_same_row_with_its_history(desk):
    desk.write(*fleet())
    before = row("S7")

    desk.write(*fleet(gone=[7]), onu(3, "S7", port=2, rx_dbm=-21.53), absent=[index_of(7)])

    after = row("S7")
    assert (after.pk, after.index, after.port, after.onu) == (before.pk, "2.3", 2, 3)
    assert (after.moved_from, after.moved_at, after.misses) == ("0/1/7", desk.now, 0)
    assert after.first_seen_at == before.first_seen_at
    assert [row["at"] for row in readings(after)] == [desk.now - 5 * MIN, desk.now]
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


def replacement(serial):
    """Return who replaced an ONU, since when it is missing, and the index that it shows."""
    old = row(serial)
    return old.replaced_by and old.replaced_by.serial, old.missing_since, old.index


def test_a_new_serial_at_its_place_replaces_an_onu_at_once(desk):
    desk.write(*fleet(), onu(11, name="client-11", rx_dbm=-19.0))
    old = row("S11")

    desk.write(*fleet(), onu(11, "N1", name="client-11", rx_dbm=-22.0))

    assert replacement("S11") == ("N1", desk.now, "1.11")
    new = row("N1")
    assert (new.pk != old.pk, new.index, new.missing_since, new.first_seen_at) == (True, "1.11", None, desk.now)
    assert list(new.replaces.values_list("serial", flat=True)) == ["S11"]
    assert (row("S11").rx_dbm, row("S11").name, row("S11").onu) == (-19.0, "client-11", 11)
    assert [len(readings(each)) for each in (old, new)] == [1, 1]
    assert row("S11").missing_cause == "replaced by N1"


@pytest.mark.parametrize("misses", [1, 2], ids=["vanished in one discovery", "missing after two"])
def test_an_onu_that_vanished_before_is_replaced_when_its_place_is_taken(desk, misses):
    desk.write(*fleet(), onu(11))
    for _ in range(misses):
        desk.write(*fleet(), absent=[index_of(11)])
    since = row("S11").missing_since

    desk.write(*fleet(), onu(11, "N1"))

    assert replacement("S11") == ("N1", since or desk.now, "1.11")
    assert row("N1").missing_since is None


def test_a_known_onu_that_moves_onto_a_place_replaces_the_one_there(desk):
    desk.write(*fleet(), onu(11, name="client-11", rx_dbm=-19.0))

    desk.write(*fleet(gone=[7]), onu(11, "S7"), absent=[index_of(7)])

    assert replacement("S11") == ("S7", desk.now, "1.11")
    assert (row("S7").index, row("S7").moved_from) == ("1.11", "0/1/7")
    assert set(desk.known()) == {*(index_of(number) for number in range(1, 12))} - {"1.7"}
    assert desk.known()["1.11"].serial == "S7"


@pytest.mark.parametrize("kind", [JobKind.GET, JobKind.TABLE, JobKind.WALK])
@pytest.mark.parametrize("completeness", [Completeness.COMPLETE, Completeness.PARTIAL])
def test_any_run_that_reads_the_other_serial_is_proof(desk, kind, completeness):
    desk.write(*fleet())

    desk.write(onu(7, "N1"), kind=kind, completeness=completeness)

    assert replacement("S7") == ("N1", desk.now, "1.7")


def test_a_replaced_onu_that_turns_up_elsewhere_has_moved(desk):
    desk.write(*fleet(), onu(11, name="client-11"))
    desk.write(*fleet(), onu(11, "N1"))
    old = row("S11")

    desk.write(*fleet(), onu(11, "N1"), onu(5, "S11", port=2))

    assert replacement("S11") == (None, None, "2.5")
    assert (row("S11").pk, row("S11").moved_from, row("S11").moved_at) == (old.pk, "0/1/11", desk.now)
    assert len(readings(old)) == 2
    assert not row("N1").replaces.exists()


def test_a_replaced_onu_that_comes_back_to_its_place_has_not_moved(desk):
    desk.write(*fleet(), onu(11))
    desk.write(*fleet(), onu(11, "N1"))

    desk.write(*fleet(), onu(11))

    assert replacement("S11") == (None, None, "1.11")
    assert (row("S11").moved_at, row("S11").moved_from) == (None, "")
    assert replacement("N1") == ("S11", desk.now, "1.11")


def test_one_place_may_be_replaced_again_and_again(desk):
    for serial in ("A1", "B2", "C3"):
        desk.write(*fleet(), onu(11, serial))

    assert [replacement(serial)[0] for serial in ("A1", "B2", "C3")] == ["B2", "C3", None]
    assert set(Onu.objects.filter(index="1.11").values_list("serial", "place_taken")) == {
        ("A1", True),
        ("B2", True),
        ("C3", False),
    }


@pytest.mark.parametrize("serial", [None, "", "000000000000", "HWTC00000000", "S6"], ids=str)
def test_a_serial_that_proves_nothing_leaves_the_known_one(desk, serial):
    desk.write(*fleet())

    reading = onu(7, rx_dbm=-20.0)
    desk.write(*fleet(gone=[7]), replace(reading, values={**reading.values, "serial": serial}))

    assert replacement("S7") == (None, None, "1.7")
    assert row("S7").rx_dbm == -20.0
    assert Onu.objects.count() == 10


def test_a_mass_replacement_is_no_mass_vanishing(desk):
    desk.write(*fleet())

    desk.write(*(onu(number, f"N{number}") for number in range(1, 11)))

    assert desk.olt.suspect_since is None
    assert missing() == 10
    assert Onu.objects.filter(missing_since=None).count() == 10


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

    vanish(desk, 4)
    before = desk.olt.revision
    desk.deliver(desk.result(*fleet(gone=range(1, 5)), absent=map(index_of, range(1, 5))))

    assert desk.olt.revision == before


def test_the_onus_of_another_olt_are_left_alone(desk):
    other = Olt.objects.create(name="OLT-NORTE-02", brand="zte_c300", host="127.0.0.2", community="public")
    Onu.objects.create(olt=other, index="9.9", serial="S7", first_seen_at=T0, own_read_at=T0)
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

    desk.known()

    with CaptureQueriesContext(connection) as queries:
        known = desk.known()

    # Whether another process has changed the ONUs since.
    assert len(queries) == 1
    assert known["1.7"] == KnownOnu("1.7", "online", 0, 1, 7, "S7", None, 2, True)
    assert known["2.1"] == KnownOnu("2.1", "unknown", 0, 2, 1, None, "00:11:22:33:44:55", 0, False)


def test_what_was_learned_is_there_for_the_next_run_and_after_it(desk):
    desk.write(learned={"onus": {"repetitions": 20}})

    desk.write(*fleet())

    assert done(desk.world.nodes.olt(desk.world.olt_id)).learned == {"onus": {"repetitions": 20}}


def test_a_discovery_of_thousands_takes_a_few_statements(desk):
    desk.write(*fleet(4000))

    moved = [onu(number, f"S{number % 4000 + 1}") for number in range(1, 3001)]
    result = desk.result(*moved, absent=map(index_of, range(3001, 4001)))
    with CaptureQueriesContext(connection) as queries:
        desk.deliver(result)

    assert len(queries) <= 28
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
        ("ONUS_MISSING", "OLT-CENTRAL-01: 9 ONUs are missing: S1, S2, S3, S4, S5 and 4 more"),
        ("ONUS_MOVED", "OLT-CENTRAL-01: 1 ONU moved: S20"),
        ("ONUS_BACK", "OLT-CENTRAL-01: 9 ONUs are back: S1, S2, S3, S4, S5 and 4 more"),
    ]


def test_a_replacement_is_one_event_that_names_both(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.write(*fleet(), onu(11, name="client-11"))

    desk.write(*fleet(gone=[1]), onu(1, "N1"), onu(11, "N11"))

    assert events(caplog) == [("ONUS_REPLACED", "OLT-CENTRAL-01: 2 ONUs were replaced: S1 by N1, client-11 by N11")]


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
    assert events(caplog)[0][1] == (
        "OLT-CENTRAL-01: 4 of 10 ONUs disappeared at once; waiting for the next discovery to confirm it"
    )
    assert {record.olt_id for record in caplog.records if hasattr(record, "event")} == {desk.world.olt_id}


def test_nothing_new_is_no_news(desk, caplog):
    caplog.set_level(logging.INFO)
    desk.write(*fleet())
    desk.write(*fleet(gone=[7]), absent=[index_of(7)])

    assert events(caplog) == []


def test_a_missing_onu_is_missing_since_the_discovery_that_reported_it(desk):
    desk.write(*fleet())
    vanish(desk, 1, times=2)

    assert row("S1").missing_since - row("S1").read_at == timedelta(minutes=10)


PLACES = st.integers(1, 4)
FOUND = st.dictionaries(PLACES, st.sampled_from(["A1", "B2", "C3", "D4", "E5", None, "00000000"]), max_size=4)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FOUND, min_size=1, max_size=6))
def test_rows_say_what_the_last_discovery_saw_of_each_place(db, discoveries):
    """A model of one line: the last good serial at a place is there, and every serial has one row."""
    with transaction.atomic():
        desk = Desk(Rules(misses=1, mass=100))
        seen = set()
        for places in discoveries:
            twice = {serial for serial in places.values() if list(places.values()).count(serial) > 1}
            good = {place: serial for place, serial in places.items() if is_identity(serial) and serial not in twice}
            # A serial that was read twice is nobody's, and what becomes of its rows is not for this model.
            if any(is_identity(serial) for serial in twice):
                break
            readings = [replace(onu(place), values={"serial": serial}) for place, serial in places.items()]
            desk.write(*readings, absent=[index_of(place) for place in range(1, 5) if place not in places])
            seen |= set(good.values())
            rows = list(Onu.objects.all())
            present = [each for each in rows if not each.is_missing]
            assert {each.index for each in present} == {index_of(place) for place in places}
            assert len(present) == len(places)
            assert {index_of(place): serial for place, serial in good.items()}.items() <= {
                each.index: each.serial for each in present
            }.items()
            assert all(each.is_missing for each in rows if each.place_taken)
            serials = [each.serial for each in rows if is_identity(each.serial)]
            assert sorted(serials) == sorted(seen)
            for each in rows:
                assert (each.replaced_by_id is not None) == each.place_taken
                assert each.index in map(index_of, range(1, 5))
        transaction.set_rollback(True)


LIMITED = Rules(misses=2, mass=100, most_onus=5)


def test_onus_beyond_the_limit_are_not_stored_and_the_olt_is_suspect(db, caplog):
    desk = Desk(LIMITED)

    with caplog.at_level(logging.INFO, "facho"):
        desk.write(*fleet(8))
        first = desk.now
        desk.write(*fleet(9))

    assert sorted(Onu.objects.values_list("onu", flat=True)) == [1, 2, 3, 4, 5]
    assert (desk.olt.suspect_reason, desk.olt.suspect_since) == ("too_many", first)
    [told] = events(caplog)
    assert told[0] == "ONUS_OVER_LIMIT"
    assert told[1].startswith("OLT-CENTRAL-01 reports more ONUs than the limit: 3 new ones were left out.")


def test_known_onus_are_still_read_beyond_the_limit(db):
    desk = Desk(LIMITED)
    desk.write(*fleet(5))

    desk.write(*[onu(number, rx_dbm=-20.0 - number) for number in range(9, 0, -1)])

    assert dict(Onu.objects.values_list("onu", "rx_dbm")) == {number: -20.0 - number for number in range(1, 6)}


def test_a_discovery_within_the_limit_ends_the_suspicion(db, caplog):
    desk = Desk(LIMITED)
    desk.write(*fleet(8))

    with caplog.at_level(logging.INFO, "facho"):
        desk.write(*fleet(5))

    assert (desk.olt.suspect_reason, desk.olt.suspect_since) == ("", None)
    assert [name for name, _ in events(caplog)] == ["ONUS_OVER_LIMIT", "ONUS_WITHIN_LIMIT"]


def test_serials_that_change_in_every_discovery_do_not_fill_the_table(db):
    desk = Desk(LIMITED)
    desk.write(*fleet(3))

    for turn in range(4):
        desk.write(*[onu(number, f"T{turn}-{number}") for number in (1, 2, 3)])

    assert Onu.objects.count() == 5
    assert Onu.objects.filter(place_taken=False).count() == 3
    assert desk.olt.suspect_reason == "too_many"


def test_a_mass_disappearance_comes_before_too_many_onus(db):
    desk = Desk(Rules(misses=2, mass=30, most_onus=5))
    desk.write(*fleet(5))

    desk.write(onu(1), *[onu(number, port=2) for number in range(3)], absent=[index_of(n) for n in (2, 3, 4, 5)])

    assert desk.olt.suspect_reason == "missing"


def test_other_jobs_obey_the_limit_too(db):
    desk = RunDesk("State", JobKind.WALK, LIMITED)

    desk.write(*[Reading(f"1.{number}", 0, 1, number, {"state": "online"}) for number in range(8)])

    assert Onu.objects.count() == 5
    assert Olt.objects.get(pk=desk.world.olt_id).suspect_reason == "too_many"


def test_a_suspicion_of_an_older_version_is_a_mass_disappearance(desk):
    Olt.objects.update(suspect_since=T0)

    import_module("facho.apps.inventory.migrations.0011_suspicion_and_names").name_suspicions(apps, None)

    assert desk.olt.suspect_reason == "missing"
