"""What simulated OLTs serve is read again by the brands: each ONU is found, as it is in the plant."""

import math
from datetime import UTC, datetime

import pytest

from facho.brands import brand, candidates
from facho.brands.huawei import HUAWEI, decode_port
from facho.brands.zte import decode_if_index, decode_pon
from facho.engine import oid
from facho.engine.oid import Oid, parse
from facho.engine.snmp import Missing
from facho.simulator.agent import SimulatedAgent
from facho.simulator.fleet import OltSpec, build
from facho.simulator.life import Down, observe

IF_NAME = parse("1.3.6.1.2.1.31.1.1.1.1")


@pytest.fixture(params=["central", "norte"])
def device(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def walk(ask):
    """Return a function that reads a column whole: its index and value, row by row."""

    def walk(device, column):
        agent, name, rows = SimulatedAgent(device), column, []
        while True:
            answer = ask(agent, "GET_BULK", name, repetitions=25)
            for name, value in answer:
                if not name.startswith(column) or value is Missing.END_OF_MIB_VIEW:
                    return rows
                rows.append((oid.unpack(name[len(column) :]), value))

    return walk


@pytest.fixture
def collect(walk):
    """Return a function that reads all columns of a device's brand, joined by position."""

    def collect(device):
        profile = brand(device.brand)
        found = {}
        for column in profile.columns.values():
            for index, value in walk(device, column.oid):
                found.setdefault(column.space.decode(index), {})[column.field] = column.decode(value)
        return {position: profile.finish(row) for position, row in found.items()}

    return collect


def expected_state(onu, seen, device):
    if not onu.enabled:
        return "disabled"
    if seen.up:
        return "syncing" if seen.syncing and device.brand == "zte_c300" else "online"
    return {Down.LOS: "los", Down.DYING_GASP: "dying_gasp", Down.OFFLINE: "offline"}[seen.cause]


def test_each_onu_of_the_plant_is_found_again_and_no_other(device, collect):
    found = collect(device)

    assert set(found) == {onu.position for onu in device.plant.onus}
    assert all(set(row) == set(brand(device.brand).columns) for row in found.values())


def test_serials_states_and_names_are_those_of_the_plant(device, collect, now):
    found = collect(device)

    for onu in device.plant.onus:
        row, seen = found[onu.position], observe(onu, now)
        assert row["serial"] == onu.serial[:4].decode() + onu.serial[4:].hex().upper()
        assert row["state"] == expected_state(onu, seen, device)
        assert row["admin_state"] == ("enabled" if onu.enabled else "disabled")
        assert row["name"].startswith(onu.name)
        assert (row["model"], row["software"]) == (onu.model, onu.software)


def test_powers_are_those_of_the_plant_and_none_for_dark_onus(device, collect, now):
    found = collect(device)

    for onu in device.plant.onus:
        row, optics = found[onu.position], observe(onu, now).optics
        for name in ("rx_dbm", "tx_dbm", "olt_rx_dbm"):
            if optics is None or row["state"] == "syncing":
                assert row[name] is None
            else:
                assert row[name] == pytest.approx(getattr(optics, name), abs=0.006)


def test_raw_optics_of_dark_onus_are_sentinels_and_never_zero(device, walk, now):
    dark = {onu.position for onu in device.plant.onus if not observe(onu, now).up}
    sentinels = {2147483647, 65535, -80000, 65535000}

    for column in brand(device.brand).columns.values():
        if column.optical:
            raw = {column.space.decode(index): value for index, value in walk(device, column.oid)}
            assert {raw[position] for position in dark} <= sentinels


def test_times_distances_and_traffic_are_those_of_the_plant(device, collect, now):
    found = collect(device)

    for onu in device.plant.onus:
        row, seen = found[onu.position], observe(onu, now)
        assert (row["in_octets"], row["out_octets"]) == (seen.in_octets, seen.out_octets)
        for name in ("last_up", "last_down"):
            moment = getattr(seen, name)
            tenths = moment and datetime.fromtimestamp(math.floor(10 * moment) / 10, UTC)
            assert row[name] == tenths
        if seen.up:
            assert row["distance_m"] == onu.distance_m


def test_down_causes_say_why_an_onu_went_down_last(device, collect, now):
    words = {Down.LOS: "los", Down.DYING_GASP: "dying_gasp", Down.DEACTIVATED: "deactivated"}

    found = collect(device)

    for onu in device.plant.onus:
        cause = observe(onu, now).cause
        if cause in words:
            assert found[onu.position]["down_cause"] == words[cause]


def test_optical_columns_are_the_same_for_the_brand_and_the_simulator(device):
    of_the_brand = {column.oid for column in brand(device.brand).columns.values() if column.optical}

    of_the_simulator = {column.prefix for column in device.mib.columns if column.optical}

    assert of_the_simulator == of_the_brand


def test_a_device_says_who_made_it(device, ask):
    answer = ask(SimulatedAgent(device), "GET", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.5.0")

    object_id, descr, name = answer.values
    assert candidates(object_id, descr.decode())[0].id == device.brand
    assert candidates(Oid(b"\x2b"), descr.decode())[0].id == device.brand
    assert name.decode() == device.name


def test_uptime_grows_a_hundred_ticks_a_second(device, ask, now):
    agent = SimulatedAgent(device)

    first = ask(agent, "GET", "1.3.6.1.2.1.1.3.0", now=now).values[0]
    later = ask(agent, "GET", "1.3.6.1.2.1.1.3.0", now=now + 60).values[0]

    assert later - first == 6000


def test_huawei_names_its_ports_and_counts_their_onts(central, walk):
    counts = {decode_port(index[0]): value for index, value in walk(central, HUAWEI.probe)}
    names = {decode_port(index[0]): value for index, value in walk(central, IF_NAME)}

    assert sum(counts.values()) == len(central.plant.onus)
    assert 0 in counts.values()
    for port in central.plant.ports:
        assert names[port] == f"GPON {port.shelf}/{port.slot}/{port.port}".encode()


def test_zte_has_two_numbers_for_a_port_that_are_easily_confused(walk):
    device = build(OltSpec("OLT-NORTE-02", "zte_c300", onus=900, seed=12))
    in_1012 = {index[0] for index, _ in walk(device, parse("1.3.6.1.4.1.3902.1012.3.13.1.1.1"))}
    names = {index[0]: value.decode() for index, value in walk(device, IF_NAME)}

    assert {decode_pon(number) for number in in_1012} == set(device.plant.ports)
    assert names[268501248] == "gpon_1/2/2"
    assert decode_pon(268501248) == device.plant.ports[0]
    for number, name in names.items():
        if name.startswith("gpon"):
            port = decode_if_index(number)
            assert name == f"gpon_{port.shelf}/{port.slot}/{port.port}"


def test_a_large_if_index_is_negative_as_a_value(central, walk):
    values = [value for _, value in walk(central, parse("1.3.6.1.2.1.2.2.1.1"))]

    assert min(values) < 0


def test_a_zte_that_does_not_fit_a_c320_is_a_c300(ask):
    device = build(OltSpec("OLT-NORTE-02", "zte_c300", onus=2000))

    answer = ask(SimulatedAgent(device), "GET", "1.3.6.1.2.1.1.1.0")

    assert answer.values[0].startswith(b"C300")
    assert len(device.plant.onus) == 2000


def test_rows_come_in_the_order_of_numbers(device):
    for column in device.mib.columns:
        names = [oid.arcs(column.name(row)) for row in range(len(column.rows))]
        assert names == sorted(names)
