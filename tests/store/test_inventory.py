"""Only changes are written, and the tables hold the same as if every row were written in full."""

import re
from dataclasses import replace

import pytest
from builders import MIN, T0, make_node
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import port_counts
from examples import examples
from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from facho.engine.batch import UNREAD, Batch
from facho.engine.model import Collected, Completeness, JobKind, KnownOnu, Reading
from facho.engine.presence import Census, Rules, find_moves, take_census
from facho.store.inventory import Columns, Inventory, compare, is_step
from facho.store.runs import write_collected

pytestmark = pytest.mark.django_db

RULES = Rules(misses=2, mass=100)
FIELDS = (
    "serial",
    "mac",
    "name",
    "state",
    "down_cause",
    "rx_dbm",
    "tx_dbm",
    "in_octets",
    "last_up",
    "last_down",
    "vlan",
)


class Desk:
    """An OLT whose inventory is kept from run to run, as a polling process does."""

    def __init__(self):
        self.olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
        self.inventory = Inventory.load(self.olt.pk)
        self.now = T0

    def run(self, *readings, absent=None):
        """Write a run; a discovery has a list of who is absent."""
        self.now += 5 * MIN
        collected = Collected(Completeness.COMPLETE, Batch.of(readings), absent=tuple(absent or ()))
        kind = JobKind.TABLE if absent is None else JobKind.DISCOVERY
        write_collected(self.inventory, replace(make_node(olt_id=self.olt.pk), kind=kind), collected, RULES, self.now)

    def events(self, **wanted):
        """Return the events of the last run."""
        rows = OnuEvent.objects.filter(at=self.now, **wanted).order_by("id")
        return list(rows.values_list("onu__serial", "field", "old", "new", "cause"))


@pytest.fixture
def desk(db):
    return Desk()


def onu(number, port=1, **values):
    return Reading(f"{port}.{number}", 0, port, number, {"serial": f"S{number}", **values})


def times(serial):
    """Return when an ONU was read, in minutes since the first run: anything, its state, its power."""
    row = Onu.objects.with_freshness().get(serial=serial)
    lazy = Onu.objects.get(serial=serial)
    assert (lazy.read_at, lazy.state_at, lazy.power_at) == (row.read_at, row.state_at, row.power_at)
    return tuple(at and (at - T0) // MIN for at in (row.read_at, row.state_at, row.power_at))


def written(work):
    """Return the tables that were written, a name for each statement.

    Left out are those that every run writes: the history, and the OLT with the version of its inventory.
    """
    with CaptureQueriesContext(connection) as queries:
        work()
    tables = [each for query in queries for each in re.findall(r'(?:INSERT INTO|UPDATE|COPY) "(\w+)"', query["sql"])]
    return [table for table in tables if table not in ("onu_history_runs", "olts")]


class TestChangedCells:
    def test_a_run_that_repeats_the_last_one_moves_one_time_of_each_port(self, desk):
        fleet = [onu(n, port, state="online", name=f"client-{n}", vlan=100) for n in range(5) for port in (1, 2)]
        desk.run(*fleet)

        assert written(lambda: desk.run(*fleet)) == ["pon_ports"]
        assert desk.events() == []

    def test_only_the_rows_that_changed_are_written(self, desk):
        desk.run(*(onu(n, name="client", software="v1") for n in range(5)))

        with CaptureQueriesContext(connection) as queries:
            desk.run(*(onu(n, name="client", software="v2" if n == 3 else "v1") for n in range(5)))

        updates = [each["sql"] for each in queries if 'UPDATE "onu_data"' in each["sql"]]
        assert len(updates) == 1
        assert "name" not in updates[0]
        assert set(Onu.objects.values_list("onu", "software")) == {(n, "v2" if n == 3 else "v1") for n in range(5)}

    def test_an_extra_value_that_repeats_is_not_written(self, desk):
        desk.run(onu(1, vlan=100, profile="ftth"))

        assert written(lambda: desk.run(onu(1, vlan=100))) == ["pon_ports"]
        assert "onu_data" in written(lambda: desk.run(onu(1, vlan=200)))
        assert Onu.objects.get().extra == {"vlan": 200, "profile": "ftth"}

    @pytest.mark.parametrize(
        ("first", "again"),
        [
            pytest.param({"distance_m": 1200}, {"distance_m": 1200.0}, id="an integer is the same number"),
            pytest.param({"name": "x" * 300}, {"name": "x" * 299}, id="a text that is cut alike"),
            pytest.param({"name": "a\0b"}, {"name": "ab"}, id="NUL is left out"),
            pytest.param({"rx_dbm": float("nan")}, {"rx_dbm": None}, id="no number is no value"),
            pytest.param({"state": None}, {"state": "unknown"}, id="no state is unknown"),
            pytest.param({"in_octets": 2**64}, {"in_octets": None}, id="a counter no database can hold"),
        ],
    )
    def test_values_that_are_stored_alike_are_no_change(self, desk, first, again):
        desk.run(onu(1, **first))
        inventory = Inventory.load(desk.olt.pk, {"serial", *again})

        changes = compare(inventory, Columns.of([onu(1, **again)]), desk.now)

        assert not any(changes.cells.values())


class TestFreshness:
    def test_an_onu_that_failed_keeps_its_time_while_its_port_moves_on(self, desk):
        desk.run(onu(1, state="online", rx_dbm=-20.0), onu(2, state="online", rx_dbm=-20.0))
        desk.run(onu(1, state="online", rx_dbm=-20.0), Reading("1.2", 0, 1, 2, {"state": "online"}))
        desk.run(onu(1, rx_dbm=-20.0))

        assert times("S1") == (15, 10, 15)
        assert times("S2") == (10, 10, 5)

    def test_one_that_is_read_again_has_the_time_of_its_port(self, desk):
        desk.run(onu(1, rx_dbm=-20.0), onu(2, rx_dbm=-20.0))
        desk.run(onu(1, rx_dbm=-20.0))
        assert Onu.objects.get(serial="S2").own_read_at == T0 + 5 * MIN

        desk.run(onu(1, rx_dbm=-20.0), onu(2, rx_dbm=-20.0))

        assert Onu.objects.filter(own_read_at=None, own_power_at=None).count() == 2
        assert times("S2") == (15, None, 15)

    def test_one_whose_power_was_never_read_has_no_time_though_its_port_has(self, desk):
        desk.run(onu(1, rx_dbm=-20.0))
        desk.run(onu(2))

        assert times("S2") == (10, None, None)
        desk.run(onu(1, rx_dbm=-20.0))
        assert times("S2") == (10, None, None)

    def test_a_mover_takes_its_times_along(self, desk):
        desk.run(onu(1, state="online", rx_dbm=-20.0), onu(2, port=2, state="online", rx_dbm=-20.0))
        desk.run(onu(2, port=2, state="online", rx_dbm=-20.0))

        desk.run(onu(5, port=2, serial="S1", state="online"), absent=["1.1"])

        assert times("S1") == (15, 15, 5)
        assert PonPort.objects.count() == 2

    def test_onus_of_unknown_place_share_a_port(self, desk):
        desk.run(*(Reading(f"9.{n}", None, None, None, {"serial": f"S{n}"}) for n in range(3)))
        desk.run(*(Reading(f"9.{n}", None, None, None, {"serial": f"S{n}"}) for n in range(3)))

        assert list(PonPort.objects.values_list("slot", "port")) == [(None, None)]


def since(serial="S1"):
    """Return the start of a state, in minutes since T0. Runs are at 5, 10, 15, ..."""
    at = Onu.objects.get(serial=serial).state_since
    return at and (at - T0) / MIN


def down(minutes):
    return {"last_down": T0 + minutes * MIN}


class TestStartOfStates:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            pytest.param({"state": "los", **down(8)}, 8, id="as the device reports"),
            pytest.param({"state": "los"}, 10, id="not reported: that of the run"),
            pytest.param({"state": "los", **down(4)}, 4, id="read before it was down, and stored after"),
            pytest.param({"state": "los", **down(-1)}, 10, id="of an outage before the last reading"),
            pytest.param({"state": "los", **down(70)}, 10, id="a clock that is wrong"),
            pytest.param({"state": "los", **down(12)}, 10, id="a clock that is a little fast"),
            pytest.param({"state": "degraded", **down(8)}, 10, id="not a state that began with it"),
            pytest.param({"state": "online", **down(8)}, 5, id="no change"),
        ],
    )
    def test_a_change_is_dated_by_the_device_if_its_time_fits(self, desk, values, expected):
        desk.run(onu(1, state="online"))
        desk.run(onu(1, **values))

        assert since() == expected

    def test_a_change_from_dark_to_dark_keeps_the_start(self, desk):
        desk.run(onu(1, state="online"))
        desk.run(onu(1, state="los", **down(8)))
        desk.run(onu(1, state="dying_gasp", **down(13)))
        assert since() == 8

        desk.run(onu(1, state="online", last_up=T0 + 17 * MIN))
        assert since() == 17

    def test_the_first_state_may_be_old(self, desk):
        desk.run(onu(1, state="los", **down(-10_000)), onu(2, state="online", last_up=T0 - MIN, **down(3)), onu(3))
        assert (since("S1"), since("S2"), since("S3")) == (-10_000, 5, None)

        desk.run(onu(3, state="dying_gasp", **down(-300)))
        assert since("S3") == -300


class TestCounters:
    def test_they_are_written_only_where_they_change(self, desk):
        fleet = [onu(n, port, state="online", rx_dbm=-26.0) for n in range(3) for port in (1, 2)]
        desk.run(*fleet, absent=[])

        # A power that stays on its side of the limit is no change of a counter.
        assert written(lambda: desk.run(onu(1, rx_dbm=-26.9))).count("pon_ports") == 1
        assert written(lambda: desk.run(onu(1, rx_dbm=-27.1))).count("pon_ports") == 2
        assert written(lambda: desk.run(onu(0, state="los"))).count("pon_ports") == 2
        # One goes dark, another one comes back: the port counts the same.
        assert written(lambda: desk.run(onu(0, state="online"), onu(2, state="los"))).count("pon_ports") == 1
        assert dict(PonPort.objects.values_list("port", "los")) == {1: 1, 2: 0}

    def test_wrong_counters_are_corrected_after_a_restart(self, desk):
        desk.run(onu(1, state="online"), onu(2, port=2, state="los"))
        PonPort.objects.update(total=7, online=3, los=0)

        desk.inventory = Inventory.load(desk.olt.pk)
        desk.run(onu(1, state="online"))

        assert port_counts.stored() == port_counts.scanned()


class TestEvents:
    def test_a_step_of_the_received_power_is_an_event(self, desk):
        for powers in [(-20.0, -20.0, -20.0), (-23.0, -22.9, None), (-20.0, -25.0, -20.0)]:
            desk.run(*(onu(n, state="online", rx_dbm=power) for n, power in enumerate(powers)))
        # Neither small steps nor the return of light.
        assert [event[1:4] for event in desk.events()] == [("rx_dbm", "-23.0", "-20.0")]
        assert list(OnuEvent.objects.filter(field="rx_dbm").values_list("old", "new")) == [
            ("-23.0", "-20.0"),
            ("-20.0", "-23.0"),
        ]
        assert str(OnuEvent.objects.filter(field="rx_dbm").last()) == "received power: -20.00 dBm → -23.00 dBm"

    def test_a_new_onu_is_found_and_nothing_else(self, desk):
        desk.run(onu(1, state="los", down_cause="fiber cut"))

        assert desk.events() == [("S1", "presence", "", "present", "found")]

    def test_the_first_state_of_an_onu_is_no_change(self, desk):
        desk.run(onu(1))
        desk.run(onu(1, state="online"))
        assert desk.events() == []

        desk.run(onu(1, state="los"))
        assert desk.events() == [("S1", "state", "online", "los", "")]

    def test_a_state_has_the_down_cause_that_was_read_with_it(self, desk):
        desk.run(onu(1, state="online", down_cause="power off"))
        desk.run(onu(1, state="los", down_cause="fiber cut"))
        assert desk.events() == [
            ("S1", "state", "online", "los", "fiber cut"),
            ("S1", "down_cause", "power off", "fiber cut", ""),
        ]

        desk.run(onu(1, state="online", down_cause="fiber cut"))
        assert desk.events() == [("S1", "state", "los", "online", "")]
        # Not read with this change, so it may be that of the last outage.
        desk.run(onu(1, state="offline"))
        assert desk.events() == [("S1", "state", "online", "offline", "")]

    def test_missing_and_back(self, desk):
        desk.run(onu(1), onu(2), absent=[])
        desk.run(onu(1), absent=["1.2"])
        assert desk.events() == []

        desk.run(onu(1), absent=["1.2"])
        assert desk.events() == [("S2", "presence", "present", "missing", "not found by discoveries")]

        desk.run(onu(1), onu(2), absent=[])
        assert desk.events() == [("S2", "presence", "missing", "present", "found again")]

    def test_moved_and_replaced(self, desk):
        desk.run(onu(1), onu(2), absent=[])

        desk.run(onu(7, port=2, serial="S1"), onu(2, serial="N2"), absent=["1.1"])

        assert desk.events() == [
            ("N2", "presence", "", "present", "replaces S2"),
            ("S1", "place", "0/1/1", "0/2/7", "moved"),
            ("S2", "presence", "present", "replaced", "replaced by N2"),
        ]
        assert str(OnuEvent.objects.get(new="replaced").cause_text) == "replaced by N2"
        assert str(OnuEvent.objects.get(onu__serial="N2").cause_text) == "replaces S2"
        with override("es"):
            assert str(OnuEvent.objects.get(onu__serial="N2").cause_text) == "reemplaza a S2"

    def test_a_mover_that_takes_the_place_of_another(self, desk):
        desk.run(onu(1), onu(2), absent=[])
        desk.run(onu(1), absent=["1.2"])

        desk.run(onu(2, serial="S1"), absent=["1.1"])

        assert desk.events() == [
            ("S1", "place", "0/1/1", "0/1/2", "replaces S2"),
            ("S2", "presence", "present", "replaced", "replaced by S1"),
        ]

    def test_one_that_was_replaced_and_returns_to_its_place(self, desk):
        desk.run(onu(1), absent=[])
        desk.run(onu(1, serial="N1"), absent=[])

        desk.run(onu(1), absent=[])

        assert desk.events() == [
            ("S1", "presence", "replaced", "present", "replaces N1"),
            ("N1", "presence", "present", "replaced", "replaced by S1"),
        ]

    def test_values_that_are_read_for_the_first_time_are_no_changes(self, desk):
        desk.run(Reading("1.1", 0, 1, 1, {"mac": "00:11:22:33:44:55"}))
        desk.run(Reading("1.1", 0, 1, 1, {"serial": "S1", "state": "online", "down_cause": "power off"}))

        assert desk.events() == []

    def test_a_first_down_cause_is_a_change_if_the_state_changed_with_it(self, desk):
        desk.run(onu(1, state="online"))
        desk.run(onu(1, state="los", down_cause="fiber cut"))

        assert desk.events() == [
            ("S1", "state", "online", "los", "fiber cut"),
            ("S1", "down_cause", "", "fiber cut", ""),
        ]


@pytest.mark.django_db(transaction=True)
def test_ports_and_events_go_with_their_olt(transactional_db):
    desk = Desk()
    desk.run(onu(1), onu(2, port=2))

    desk.olt.delete()

    assert [model.objects.count() for model in (Onu, PonPort, OnuEvent)] == [0, 0, 0]


class Model:
    """The table as a full upsert of every reading would leave it: plain dicts, one for each row."""

    def __init__(self):
        self.rows = []

    def holder(self, index):
        return next((row for row in self.rows if row["index"] == index and not row["place_taken"]), None)

    def run(self, readings, absent, now):
        self.columns = {name for reading in readings for name in reading.values}
        known = [
            KnownOnu(f"~{n}" if row["place_taken"] else row["index"], row["state"], row["slot"], row["port"],
                     row["onu"], row["serial"], row["mac"], row["misses"], row["missing_since"] is not None)
            for n, row in enumerate(self.rows)
        ]  # fmt: skip
        by_key = {each.index: row for each, row in zip(known, self.rows, strict=True)}
        if absent is not None:
            census = take_census(known, readings, absent, was_suspect=False, rules=RULES)
        elif any(reading.values.keys() & {"serial", "mac"} for reading in readings):
            census = find_moves(known, readings)
        else:
            census = Census()
        self._apply(census, by_key, now)
        for reading in readings:
            values = dict(reading.values)
            if reading.index in census.unproven:
                values.pop("serial", None), values.pop("mac", None)
            self._upsert(replace(reading, values=values), now)
        for key in census.replaced:
            by_key[key]["replaced_by_id"] = self.holder(key)["id"]

    def _apply(self, census, by_key, now):
        for key in census.found:
            by_key[key] |= {"misses": 0, "missing_since": None}
        for key in census.missed:
            by_key[key]["misses"] += 1
            if key in census.gone:
                by_key[key]["missing_since"] = now
        for key in census.replaced:
            by_key[key] |= {"place_taken": True, "missing_since": by_key[key]["missing_since"] or now}
        for move in census.moved:
            row = by_key[move.known.index]
            place = (row["slot"], row["port"], row["onu"])
            if row["index"] != move.reading.index:
                row["moved_from"] = row["index"] if None in place else "/".join(map(str, place))
                row["moved_at"] = now
            row |= {"index": move.reading.index, "place_taken": False, "replaced_by_id": None}

    def _upsert(self, reading, now):
        row = self.holder(reading.index)
        if row is None:
            empty = dict.fromkeys(
                ("slot", "port", "onu", *FIELDS[:-1], "missing_since", "replaced_by_id", "moved_at", "state_since")
            )
            row = empty | {"index": reading.index, "place_taken": False, "state": "unknown", "extra": {}, "misses": 0}
            row |= {"id": len(self.rows), "moved_from": "", "state_at": None, "power_at": None, "first_seen_at": now}
            self.rows.append(row)
        for name in ("slot", "port", "onu"):
            row[name] = row[name] if getattr(reading, name) is None else getattr(reading, name)
        values = dict(reading.values)
        if "vlan" in values:
            row["extra"] = {**row["extra"], "vlan": values.pop("vlan")}
        if "state" in values:
            values["state"] = values["state"] or "unknown"
            self._date(row, values, now)
            row["state_at"] = now
        if values.keys() & {"rx_dbm", "tx_dbm"}:
            row["power_at"] = now
        row |= {**values, "read_at": now}

    def _date(self, row, values, now):
        """Set the start of the state: a time of the device counts if it is between two readings of the state."""
        was, state, before = row["state"], values["state"], row["state_at"]
        is_dark = state in port_counts.DARK
        if state == was or (before and is_dark and was in port_counts.DARK):
            return
        times = [values.get(name, row[name]) if name in self.columns else None for name in ("last_down", "last_up")]
        start, end = times if is_dark else times[::-1]
        fits = start and (is_dark or state == "online") and not (end and end > start)
        fits = fits and start <= now + 5 * MIN and (before is None or start >= before - 5 * MIN)
        row["state_since"] = min(start, now) if fits else now

    def content(self):
        return [dict(row) for row in self.rows]


NAMES = (*FIELDS[:-1], "index", "place_taken", "slot", "port", "onu", "extra", "misses", "missing_since")
NAMES += ("state_since", "replaced_by_id", "moved_at", "moved_from", "first_seen_at", "read_at", "state_at", "power_at")


def stored():
    rows = list(Onu.objects.with_freshness().order_by("id").values("id", *NAMES))
    numbers = {row["id"]: number for number, row in enumerate(rows)} | {None: None}
    return [row | {"id": numbers[row["id"]], "replaced_by_id": numbers[row["replaced_by_id"]]} for row in rows]


def differences(before, after):
    """Return who changed in what: the events that there must be."""
    for row in after[len(before) :]:
        yield row["id"], "presence", "", "present"
    for old, new in zip(before, after[: len(before)], strict=True):
        for field, was, is_now in (
            ("presence", presence(old), presence(new)),
            ("place", *places(old, new)),
            *((name, old[name], new[name] or "") for name in ("serial", "mac") if old[name]),
            *(
                [("down_cause", old["down_cause"] or "", new["down_cause"] or "")]
                if old["down_cause"] or (old["state_at"] and old["state"] != new["state"])
                else []
            ),
            *([("state", old["state"], new["state"])] if old["state_at"] else []),
            *([("rx_dbm", str(old["rx_dbm"]), str(new["rx_dbm"]))] if is_step(old["rx_dbm"], new["rx_dbm"]) else []),
        ):
            if was != is_now:
                yield new["id"], field, was, is_now


def presence(row):
    return "present" if row["missing_since"] is None else "replaced" if row["place_taken"] else "missing"


def places(old, new):
    """Return both places; both indexes where only they differ, as for a mover whose new place is not known."""
    was, is_now = place(old), place(new)
    return (was, is_now) if was != is_now else (old["index"], new["index"])


def place(row):
    parts = (row["slot"], row["port"], row["onu"])
    return row["index"] if None in parts else "/".join(map(str, parts))


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "serial": st.sampled_from(["A1", "B2", "C3", "D4", "E5", None, "00000000"]),
        "mac": st.sampled_from(["00:11:22:33:44:01", "00:11:22:33:44:02", None]),
        "name": st.sampled_from(["client", "x\0", None]),
        "state": st.sampled_from(["online", "los", "dying_gasp", "degraded", None]),
        "down_cause": st.sampled_from(["fiber cut", "power off", None]),
        "rx_dbm": st.sampled_from([-20.0, -21.5, -27.0, -27.5, -31.0, None]),
        "tx_dbm": st.sampled_from([2.0, 3]),
        "last_up": st.sampled_from([T0 + 3 * MIN, T0 + 11 * MIN, T0 + 90 * MIN, None]),
        "last_down": st.sampled_from([T0 + 2 * MIN, T0 + 12 * MIN, T0 + 22 * MIN, None]),
        "in_octets": st.integers(0, 2),
        "vlan": st.sampled_from([100, "200", None]),
    },
)
# Places 1 to 3 are on one port, 4 and 5 on another; of 6 the device does not say where it is.
PLACES = {
    **{f"1.{n}": (0, 1, n) for n in (1, 2, 3)},
    **{f"2.{n}": (0, 2, n) for n in (4, 5)},
    "9.6": (None, None, None),
}
READ = st.dictionaries(st.sampled_from(sorted(PLACES)), VALUES, max_size=6)
ABSENT = st.none() | st.sets(st.sampled_from(sorted(PLACES)))


def stored_as(values):
    """Return values as the table has them; that they get there so is the subject of other tests."""
    return values | ({"name": values["name"].replace("\0", "")} if values.get("name") else {})


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(READ, ABSENT), min_size=1, max_size=8))
def test_random_runs_leave_what_a_full_upsert_would_and_events_are_the_differences(db, runs):
    with transaction.atomic():
        desk, model = Desk(), Model()
        for places, missed in runs:
            readings = [Reading(index, *PLACES[index], values) for index, values in places.items()]
            absent = None if missed is None else sorted(missed - places.keys())
            before = model.content()

            desk.run(*readings, absent=absent)

            model.run([replace(each, values=stored_as(each.values)) for each in readings], absent, desk.now)
            assert stored() == [{name: row[name] for name in ("id", *NAMES)} for row in model.content()]
            assert events_of(desk) == sorted(differences(before, model.content()))
            assert_holds_what_is_stored(desk)
        transaction.set_rollback(True)


# What a run reads of some ONUs, by number, and whether a discovery misses the others. Few values, so that they repeat.
STATES = st.sampled_from(["online", "los", "offline", "logging"])
COUNTED = st.fixed_dictionaries({}, optional={"state": STATES, "rx_dbm": st.sampled_from([-20.0, -27.0, -27.5, None])})
HISTORY = st.lists(
    st.tuples(st.dictionaries(st.integers(1, 5), st.tuples(st.sampled_from([1, 1, 1, 2]), COUNTED)), st.booleans()),
    min_size=2,
    max_size=10,
)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HISTORY, st.booleans())
def test_counters_equal_a_scan_after_random_runs(db, history, is_restarted):
    with transaction.atomic():
        desk = Desk()
        # One without the row of a port, as no run leaves any.
        place = {"index": "1.5", "slot": 0, "port": 1, "onu": 5}
        Onu.objects.create(olt=desk.olt, serial="S5", first_seen_at=T0, own_read_at=T0, **place)
        desk.inventory = Inventory.load(desk.olt.pk)
        for read, is_discovery in history:
            readings = [onu(number, port, **values) for number, (port, values) in read.items()]
            found = {each.index for each in readings}
            missed = [index for index in desk.inventory.positions if index not in found]
            if is_restarted:
                desk.inventory = Inventory.load(desk.olt.pk)

            desk.run(*readings, absent=missed if is_discovery else None)

            assert port_counts.stored() == port_counts.scanned()
        transaction.set_rollback(True)


def events_of(desk):
    first = Onu.objects.order_by("id").values_list("id", flat=True).first()
    rows = OnuEvent.objects.filter(at=desk.now).values_list("onu_id", "field", "old", "new")
    return sorted((onu_id - first, *rest) for onu_id, *rest in rows)


def assert_holds_what_is_stored(desk):
    kept, fresh = desk.inventory, Inventory.load(desk.olt.pk, FIELDS)
    kept.ensure(FIELDS)
    assert (kept.ids, kept.positions, kept.port_of) == (fresh.ids, fresh.positions, fresh.port_of)
    assert (kept.port_numbers, kept.port_ids, kept.port_times) == (fresh.port_numbers, fresh.port_ids, fresh.port_times)
    assert {name: kept.columns[name] for name in fresh.columns} == fresh.columns


def test_a_value_that_was_not_read_is_no_value_of_the_device():
    columns = Columns.of([onu(1, name=None), Reading("1.2", 0, 1, 2, {})])

    assert columns.columns == {"serial": ["S1", UNREAD], "name": [None, UNREAD]}
