"""Every brand reads its simulated OLT right. Neither knows how the other does it: they share facts, and no code."""

import pytest

from facho.brands import BRANDS, candidates
from facho.engine import oid
from facho.engine.brand import Position
from facho.engine.oid import Oid
from facho.engine.snmp import Missing
from facho.simulator.agent import SimulatedAgent
from facho.simulator.fleet import MAKERS, OltSpec, build
from facho.simulator.life import observe

# How finely a brand can tell powers, in dB: tenths, or whole ten-thousandths of a milliwatt of a weak signal.
FINENESS = {"bdcom_gpon": 0.051, "nokia_isam": 0.051, "calix_axos": 0.4, "cdata_fd11": 0.4}
# Those whose state does not tell more than up or not.
UP = {"online", "degraded", "syncing"}


@pytest.fixture(scope="module", params=list(MAKERS))
def device(request):
    return build(OltSpec("OLT-CENTRAL-01", request.param, onus=250, seed=21))


@pytest.fixture
def found(device, ask):
    """Return each row that the brand finds, as (place, values), joined by place, or by index where there is none."""
    profile, rows = BRANDS[device.brand], {}
    for column in profile.columns.values():
        for index, value in walk(ask, device, column.oid):
            place = column.space.decode(index)
            if place is not None:
                rows.setdefault(place, {})[column.field] = column.decode(value)
    placing = [column.field for column in profile.columns.values() if column.places]
    finish = profile.finish or dict
    return [(place, finish(values)) for place, values in rows.items() if all(values.get(field) for field in placing)]


def walk(ask, device, column):
    """Yield index and value of each row of a column."""
    agent, last = SimulatedAgent(device), column
    while True:
        answer = ask(agent, "GET_BULK", last, repetitions=40)
        for name, value in answer:
            if not name.startswith(column) or value is Missing.END_OF_MIB_VIEW:
                return
            yield oid.unpack(name[len(column) :]), value
        last = answer.oids[-1]


def identity(onu, values):
    """Return what tells this ONU from others in a row with these values."""
    if values.get("serial"):
        return onu.serial[:4].decode() + onu.serial[4:].hex().upper()
    if values.get("mac"):
        return onu.mac.hex()
    return str(1000 + onu.number)


def told(values):
    """Return what a row tells that no other ONU has."""
    if values.get("serial"):
        return values["serial"].upper()
    return values["mac"].replace(":", "").lower() if values.get("mac") else values["name"]


@pytest.fixture
def pairs(device, found):
    """Return each ONU of the plant with the row that tells of it."""
    rows = {told(values): (place, values) for place, values in found}
    sample = found[0][1]
    return [(onu, *rows[identity(onu, sample)]) for onu in device.plant.onus]


@pytest.mark.slow
def test_all_onus_are_found_and_nothing_else(device, found, pairs):
    assert len(pairs) == len(found) == len(device.plant.onus) == 250


def test_places_are_those_of_the_plant(device, pairs):
    # Ports of this one are counted behind its uplinks.
    uplinks = 12 if device.brand == "cdata_epon" else 0
    for onu, place, values in pairs:
        place = next((value for value in values.values() if isinstance(value, Position)), place)
        if isinstance(place, Position):
            assert (place.port - uplinks, place.onu) == (onu.position.port, onu.position.onu)
            assert values.get("slot", place.slot) in (None, onu.position.slot)


def test_an_onu_is_up_if_and_only_if_it_is(device, pairs, now):
    states = {observe(onu, now).up: set() for onu in device.plant.onus}
    for onu, _, values in pairs:
        states[observe(onu, now).up].add(values["state"])

    assert states[True] <= UP
    assert not states[False] & UP


@pytest.mark.slow
def test_powers_are_those_of_the_plant_and_none_in_the_dark(device, pairs, now):
    read = 0
    for onu, _, values in pairs:
        optics = observe(onu, now).optics
        for name in ("rx_dbm", "tx_dbm", "olt_rx_dbm"):
            if optics is None or values["state"] == "syncing":
                assert values.get(name) is None
            elif name in values:
                read += 1
                assert values[name] == pytest.approx(getattr(optics, name), abs=FINENESS.get(device.brand, 0.006))

    assert read > 200


@pytest.mark.slow
def test_what_else_is_read_is_as_it_is_in_the_plant(device, pairs, now):
    for onu, _, values in pairs:
        seen = observe(onu, now)
        if seen.up:
            expected = {"in_octets": seen.in_octets, "out_octets": seen.out_octets, "software": onu.software}
            for name in values.keys() & expected.keys():
                assert values[name] == expected[name]
            if "distance_m" in values:
                assert values["distance_m"] == pytest.approx(
                    onu.distance_m, abs=51 if device.brand == "nokia_isam" else 0
                )
        if "admin_state" in values:
            assert values["admin_state"] == ("enabled" if onu.enabled else "disabled")
        if "model" in values:
            assert values["model"] == onu.model


def test_columns_of_a_brand_are_served_and_the_dear_ones_are_dear(device):
    columns = {column.prefix: column for column in device.mib.columns}
    for column in BRANDS[device.brand].columns.values():
        assert columns[column.oid].optical == column.optical, column.field


def test_a_device_is_known_by_what_it_says_and_by_its_probe(device, ask):
    object_id, descr = ask(SimulatedAgent(device), "GET", "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.1.0").values

    fitting = candidates(Oid(object_id), descr.decode())
    answering = [each.id for each in fitting if next(walk(ask, device, each.probe), None)]

    assert answering[:1] == [device.brand]
