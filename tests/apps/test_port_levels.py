"""Level, capacity and ONU ids of a PON port."""

from itertools import product

import pytest
from cast import make_olt, make_port

from facho.apps.telemetry.models import PonPort
from facho.apps.telemetry.pon_ports import free_spans, spans_of, with_numbers
from facho.apps.telemetry.port_levels import Level


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        pytest.param({}, "empty", id="no ONU"),
        pytest.param({"missing": 4}, "empty", id="missing ONUs only"),
        pytest.param({"online": 50}, "good", id="all online"),
        pytest.param({"los": 50}, "dark", id="0 of 50 online"),
        pytest.param({"online": 5, "los": 16, "dying_gasp": 7}, "dark", id="23 of 28 down"),
        pytest.param({"online": 25, "los": 25}, "dark", id="half of it down"),
        pytest.param({"online": 26, "los": 24}, "degraded", id="less than half of it down"),
        pytest.param({"online": 2, "los": 2}, "good", id="two of four down: a coincidence"),
        pytest.param({"offline": 1}, "degraded", id="its only ONU is down: no outage of a port"),
        pytest.param({"offline": 2}, "degraded", id="both of its ONUs are down"),
        pytest.param({"online": 41, "offline": 4}, "good", id="some customers turned off their ONUs"),
        pytest.param({"online": 37, "los": 8}, "degraded", id="a branch of 1:8"),
        pytest.param({"syncing": 30}, "degraded", id="none gets beyond logging in"),
        pytest.param({"unknown": 30}, "good", id="no state was read yet"),
        pytest.param({"disabled": 30}, "good", id="disabled by the operator"),
        pytest.param({"online": 45, "weak": 5}, "degraded", id="low power on a tenth"),
        pytest.param({"online": 45, "weak": 4}, "good", id="low power on a few"),
        pytest.param({"online": 10, "weak": 2}, "good", id="low power on two of ten"),
        pytest.param({"online": 5, "los": 5, "missing": 40}, "dark", id="missing ONUs do not count"),
    ],
)
def test_a_port_has_the_level_of_its_counters(db, counters, expected):
    port = make_port(make_olt("A"), **counters)

    assert port.level == expected
    assert with_numbers(PonPort.objects).filter(level=expected).get() == port


def test_the_database_finds_the_level_that_the_port_shows(db):
    olt = make_olt("A")
    names = ("online", "los", "syncing", "weak", "missing")
    numbers = product((0, 1, 20), (0, 1, 3, 20), (0, 3), (0, 3, 20), (0, 5))
    counters = [dict(zip(names, each, strict=True)) for each in numbers]
    ports = [PonPort(olt=olt, slot=1, port=port, **each) for port, each in enumerate(counters)]
    for port in ports:
        port.total = port.online + port.los + port.syncing + port.missing
    PonPort.objects.bulk_create(ports)

    for level in Level:
        found = {port.port for port in with_numbers(PonPort.objects.all()).filter(level=level)}
        assert found == {port.port for port in ports if port.level == level}
        assert found


@pytest.mark.parametrize(
    ("brand", "own", "capacity", "first"),
    [
        pytest.param("huawei", None, 128, 0, id="GPON, from 0"),
        pytest.param("zte_c300", None, 128, 1, id="GPON, from 1"),
        pytest.param("vsol_epon", None, 64, 1, id="EPON"),
        pytest.param("", None, 128, 1, id="a brand that is not known yet"),
        pytest.param("huawei", 32, 32, 0, id="its own"),
    ],
)
def test_a_port_has_its_own_capacity_or_that_of_its_brand(db, brand, own, capacity, first):
    port = make_port(make_olt("A", brand), capacity=own, online=16, missing=2)

    assert (port.effective_capacity, port.first_onu, port.free) == (capacity, first, capacity - 16)
    [found] = with_numbers(PonPort.objects).filter(effective_capacity=capacity, free=capacity - 16)
    assert found.used_percent == round(1600 / capacity, 1)


@pytest.mark.parametrize(
    ("first", "capacity", "taken", "expected"),
    [
        pytest.param(0, 128, [], [(0, 127)], id="an empty port"),
        pytest.param(1, 16, [1, 2, 3, 4, 8, 9, 10, 11, 13, 14, 15, 16], [(5, 7), (12, 12)], id="gaps"),
        pytest.param(0, 4, [0, 1, 2, 3], [], id="a full port"),
        pytest.param(1, 4, [2, 200, 0], [(1, 1), (3, 4)], id="ids beyond the capacity"),
        pytest.param(0, 4, [0, 3], [(1, 2)], id="the first and the last"),
    ],
)
def test_free_ids_are_spans(first, capacity, taken, expected):
    assert free_spans(first, capacity, taken) == expected


def test_ids_are_joined_to_spans():
    assert spans_of([7, 5, 6, 12, 5]) == [(5, 7), (12, 12)]


@pytest.mark.parametrize(
    ("slot", "port", "place", "name"),
    [
        pytest.param(1, 9, "1/9", "1/9", id="slot and port"),
        pytest.param(0, 0, "0/0", "0/0", id="numbered from 0"),
        pytest.param(None, 9, "9", "9", id="an OLT without slots"),
        pytest.param(None, None, "", "without a place", id="ONUs without a place"),
    ],
)
def test_a_port_is_called_by_its_place(db, slot, port, place, name):
    found = make_port(make_olt("A"), slot, port)

    assert (found.place, found.name, str(found)) == (place, name, f"A {name}")


def test_saving_a_port_keeps_the_counters_of_the_engine(db):
    port = make_port(make_olt("A"), online=5)
    PonPort.objects.filter(pk=port.pk).update(online=6, total=6)

    port.capacity = 32
    port.save()

    port.refresh_from_db()
    assert (port.capacity, port.online, port.total) == (32, 6, 6)
