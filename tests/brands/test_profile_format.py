"""A profile from a plain mapping: what each key becomes."""

from datetime import UTC, datetime, timedelta

import pytest
from acme import PROFILE, ROOT, profile, with_column

from facho.brands.named import DECODERS
from facho.brands.profile import read_profile
from facho.engine.brand import OPAQUE, JobTemplate, Manners, Position
from facho.engine.model import JobKind
from facho.engine.oid import parse


def test_a_profile_is_a_brand():
    brand = read_profile(profile())

    assert (brand.id, brand.label, brand.experimental) == ("acme_gpon", "ACME G-8000", False)
    assert brand.sys_object_ids == (parse(f"{ROOT}.1"),)
    assert brand.sys_descr.search("ACME 1")
    assert brand.probe == parse(f"{ROOT}.2.1")
    assert brand.discovery == ("serial", "name")
    assert list(brand.columns) == [*PROFILE["columns"], "uptime_s"]
    assert brand.manners == Manners()
    assert brand.ports is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({}, (128, 1), id="the defaults"),
        pytest.param({"onus_per_port": 64, "first_onu": 0}, (64, 0), id="written"),
    ],
)
def test_a_brand_has_the_capacity_of_a_port_and_its_first_onu_id(written, expected):
    brand = read_profile(profile(**written))

    assert (brand.onus_per_port, brand.first_onu) == expected


def test_oids_stand_below_the_base_unless_they_are_whole():
    columns = read_profile(profile()).columns

    assert columns["serial"].oid == parse(f"{ROOT}.2.1")
    assert columns["rx_dbm"].oid == parse(f"{ROOT}.5")
    assert columns["in_octets"].oid == parse("1.3.6.1.2.1.31.1.1.1.6")


def test_a_column_is_of_the_first_index_unless_it_says_otherwise():
    brand = read_profile(profile())

    assert brand.columns["serial"].space is brand.space
    assert brand.space.decode((0x0203, 7)) == Position(0, 2, 3, 7)
    assert brand.columns["rx_dbm"].space.decode((0x0203, 7, 1)) == Position(0, 2, 3, 7)


def test_a_column_keeps_what_makes_it_dear():
    rx = read_profile(profile()).columns["rx_dbm"]

    assert (rx.optical, rx.floor, rx.places, rx.needs) == (True, timedelta(minutes=15), False, ())
    assert rx.decode(-2153) == -21.53


def test_what_a_column_needs_is_followed_to_the_end():
    columns = {**PROFILE["columns"], "down_cause": {**PROFILE["columns"]["down_cause"], "needs": "name"}}

    assert read_profile(profile(columns=columns)).columns["state"].needs == ("down_cause", "name")


def test_rules_go_in_the_order_in_which_they_are_written():
    finish = read_profile(profile()).finish

    assert finish({"state": "offline", "down_cause": "los", "rx_dbm": -21.5}) == {
        "state": "los",
        "down_cause": "los",
        "rx_dbm": None,
    }


def test_a_profile_without_rules_has_nothing_to_finish():
    assert read_profile(profile(rules=None)).finish is None


@pytest.mark.parametrize(
    ("written", "arcs"),
    [
        pytest.param(["port", "onu"], (3, 7), id="one for all tables"),
        pytest.param([["port:8 onu:8"], ["port", "onu"]], (3, 7), id="in more than one way"),
    ],
)
def test_an_index_without_a_name_is_the_only_one(written, arcs):
    columns = {name: options for name, options in PROFILE["columns"].items() if name != "rx_dbm"}

    brand = read_profile(profile(index=written, columns=columns))

    assert brand.space.decode(arcs) == Position(0, 0, 3, 7)


def test_an_opaque_index_is_a_name():
    columns = {name: options for name, options in PROFILE["columns"].items() if name != "rx_dbm"}

    assert read_profile(profile(index="opaque", columns=columns)).space is OPAQUE


def test_a_column_can_say_where_an_onu_is():
    place = {"oid": "2.7", "read": "place", "regex": r"^gpon(?P<port>\d+):(?P<onu>\d+)$"}

    column = read_profile(with_column("place", **place)).columns["place"]

    assert column.places
    assert column.decode(b"gpon3:7") == Position(0, 0, 3, 7)
    assert column.decode(b"gpon3") is None


def test_ports_are_a_table_of_their_own():
    ports = {"oid": "3.1", "index": ["slot:8 port:8"], "counts": True}

    table = read_profile(profile(ports=ports)).ports

    assert (table.oid, table.counts) == (parse(f"{ROOT}.3.1"), True)
    assert table.decode((0x0203,)) == Position(0, 2, 3)


def test_manners_are_the_usual_ones_unless_written():
    manners = {"timeout": "10s", "min_timeout": "2s", "max_repetitions": 25}

    assert read_profile(profile(manners=manners)).manners == Manners(timeout=10.0, min_timeout=2.0, max_repetitions=25)


def test_jobs_are_the_usual_ones_as_far_as_the_columns_go():
    jobs = {job.name: job for job in read_profile(profile()).templates}

    assert {name: job.columns for name, job in jobs.items()} == {
        "Discovery": (),
        "State": ("state", "down_cause"),
        "Traffic": ("in_octets",),
        "Optical power": ("rx_dbm",),
        "Inventory": ("uptime_s",),
    }
    assert jobs["Optical power"].interval == timedelta(minutes=30)
    assert jobs["Traffic"].follows == "State"


def test_the_usual_jobs_keep_to_the_floor():
    slow = with_column("rx_dbm", oid=5, read="power", optical=True, floor="2h", space="optics")

    optics = next(job for job in read_profile(slow).templates if job.name == "Optical power")

    assert (optics.interval, optics.timeout) == (timedelta(hours=2), timedelta(minutes=100))


def test_jobs_can_be_written():
    jobs = [
        {"name": "Find", "kind": "discovery", "every": "1h"},
        {"name": "Look", "kind": "table", "every": "5m", "columns": ["state"], "priority": 70},
        {"name": "Count", "kind": "get", "every": "5m", "columns": "in_octets", "follows": "Look", "timeout": "1m"},
    ]

    assert read_profile(profile(jobs=jobs)).templates == (
        JobTemplate("Find", JobKind.DISCOVERY, timedelta(hours=1), (), 90),
        JobTemplate("Look", JobKind.TABLE, timedelta(minutes=5), ("state", "down_cause"), 70),
        JobTemplate("Count", JobKind.GET, timedelta(minutes=5), ("in_octets",), 40, "Look", timedelta(minutes=1)),
    )


MOMENT = datetime(2024, 5, 31, 13, 45, tzinfo=UTC)

READ = {
    "text": ("name", {"padding": "_"}, "José_7____".encode(), "José_7"),
    "word": ("down_cause", {}, b"Dying-Gasp", "dying_gasp"),
    "serial": ("serial", {}, bytes.fromhex("485754437d4630c3"), "HWTC7D4630C3"),
    "mac": ("mac", {}, bytes.fromhex("a24f0218e580"), "a2:4f:02:18:e5:80"),
    "ip": ("address", {}, bytes([10, 0, 0, 7]), "10.0.0.7"),
    "hex": ("octets", {}, b"\x07\xff", "07ff"),
    "oid": ("kind", {}, parse("1.3.6.1.2"), "1.3.6.1.2"),
    "date": ("last_up", {}, bytes.fromhex("07e8051f0d2d0000"), MOMENT),
    "date_in_text": ("last_down", {}, b"2024/05/31 13:45:00", MOMENT),
    "counter": ("in_octets", {}, 2**40, 2**40),
    "number": ("distance_m", {"scale": 0.1, "add": 2, "digits": 1, "none": 7}, 123, 14.3),
    "power": ("rx_dbm", {"scale": "0.01"}, -2153, -21.53),
    "milliwatts": ("tx_dbm", {"scale": "0.0001"}, 301, -15.21),
    "choice": ("admin_state", {"words": {1: "enabled"}, "other": "disabled"}, 4, "disabled"),
    "cause": ("down_cause", {"words": {1: "los"}, "none": [0]}, 4, "code_4"),
    "place": ("place", {"regex": r"(?P<port>\d+):(?P<onu>\d+)"}, b"3:7", Position(0, 0, 3, 7)),
}


def read_column(name, field, options):
    kept = {key: options_ for key, options_ in PROFILE["columns"].items() if key in ("serial", "name")}
    column = {"oid": "7.7", "read": name, **options}
    known = field in ("address", "octets", "kind", "seen")
    changes = {"extra": {field: column}} if known else {"columns": {**kept, field: column}, "extra": None}
    data = profile(**{"columns": kept, "rules": None, **changes})
    return read_profile(data).columns[field]


def test_every_way_to_read_a_value_is_tried_here():
    assert set(READ) == set(DECODERS)


@pytest.mark.parametrize(("name", "case"), READ.items(), ids=READ)
def test_a_value_is_read_in_the_way_that_is_named(name, case):
    field, options, raw, expected = case

    assert read_column(name, field, options).decode(raw) == expected


@pytest.mark.parametrize(
    ("options", "raw", "expected"),
    [
        pytest.param({"none": [7, 8]}, 8, None, id="no value"),
        pytest.param({"none": 7}, 2147483647, None, id="the largest Integer32 never is one"),
        pytest.param({"low": 0}, -1, None, id="too low"),
        pytest.param({"high": "10.5"}, 11, None, id="too high"),
        pytest.param({"signed_16": True}, 65526, -10, id="negative in 16 bits"),
        pytest.param({"signed_16": True}, 65535, None, id="all ones in 16 bits"),
        pytest.param({"regex": r"\((-?[\d.]+) m\)", "scale": 2}, b"about (3.5 m)", 7.0, id="in a text"),
        pytest.param({"regex": r"\((-?[\d.]+) m\)"}, b"nowhere", None, id="not in the text"),
        pytest.param({"regex": r"([\d.]+)"}, b"...", None, id="dots are no number"),
        pytest.param({"scale": 0.5, "digits": 0}, 5, 2, id="whole"),
        pytest.param({}, 5, 5, id="as it is"),
    ],
)
def test_a_number_is_read_with_its_options(options, raw, expected):
    assert read_column("number", "distance_m", options).decode(raw) == expected


def test_power_that_no_transceiver_has_is_none():
    decode = read_column("power", "rx_dbm", {}).decode

    assert (decode(-61), decode(-60), decode(20), decode(21)) == (None, -60, 20, None)


def test_a_time_in_extra_is_text_that_json_can_hold():
    assert read_column("date_in_text", "seen", {}).decode(b"2024/05/31 13:45:00") == "2024-05-31T13:45:00+00:00"
    assert read_column("date", "seen", {}).decode(b"") is None
