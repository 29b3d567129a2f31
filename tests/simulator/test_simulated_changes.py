"""ONUs come, go, move, fall silent and fade while an OLT is being polled; the others notice nothing."""

from dataclasses import replace

import pytest

from facho.engine.brand import Position
from facho.engine.oid import Oid, pack
from facho.engine.snmp import ErrorStatus, Missing
from facho.simulator import changes
from facho.simulator.agent import SimulatedAgent
from facho.simulator.bdcom import onu_number
from facho.simulator.faults import Faults
from facho.simulator.fleet import OltSpec, build
from facho.simulator.huawei import CHASSIS, onu_index
from facho.simulator.life import Cycle, Down, observe
from facho.simulator.plant import Chassis, Plant, grow

HOUR = 3600


@pytest.fixture
def plant():
    return grow(CHASSIS, 100, seed=4)


@pytest.fixture
def onu_7(plant, now):
    """An ONU that is up for hours to come."""
    return next(onu for onu in plant.onus if onu.position.onu == 7 and observe(onu, now + 9 * HOUR).last_up < now)


def other_port(plant, onu):
    return next(port for port in plant.ports if port != replace(onu.position, onu=None))


def test_new_onus_take_free_ids_of_their_port_and_have_just_come_up(plant, onu_7, now):
    port = replace(onu_7.position, onu=None)

    changed = changes.come(plant, port, now, onus=3)

    new = [onu for onu in changed.onus if onu not in plant.onus]
    assert len(new) == 3
    assert {replace(onu.position, onu=None) for onu in new} == {port}
    assert len({onu.position for onu in changed.onus}) == len({onu.serial for onu in changed.onus}) == 103
    assert len({onu.number for onu in changed.onus}) == 103
    assert all(observe(onu, now).last_up == pytest.approx(now) for onu in new)
    assert all(observe(onu, now + 5).syncing for onu in new)
    assert all(observe(onu, now + HOUR).up for onu in new)


def test_onus_stay_in_the_order_of_their_places(plant, onu_7, now):
    changed = changes.come(plant, onu_7.position, now, onus=5)

    places = [(onu.position.slot, onu.position.port, onu.position.onu) for onu in changed.onus]
    assert places == sorted(places)


def test_a_deleted_onu_is_gone_and_nobody_else(plant, onu_7):
    changed = changes.go(plant, onu_7.position)

    assert set(plant.onus) - set(changed.onus) == {onu_7}
    assert len(changed.onus) == 99


def test_an_onu_that_moves_keeps_its_serial_and_registers_again(plant, onu_7, now):
    port = other_port(plant, onu_7)

    changed = changes.move(plant, onu_7.position, port, now)

    moved = next(onu for onu in changed.onus if onu.serial == onu_7.serial)
    assert replace(moved.position, onu=None) == port
    assert moved.number > max(onu.number for onu in plant.onus)
    assert observe(moved, now).last_up == pytest.approx(now)
    assert observe(moved, now).in_octets == 0
    assert len(changed.onus) == 100


@pytest.mark.parametrize("cause", list(Down))
def test_an_onu_goes_down_and_comes_back(plant, onu_7, now, cause):
    down = changes.fall(plant, onu_7.position, cause, now)
    back = changes.come_back(down, onu_7.position, now + HOUR)

    fallen, risen = (changes.find(each, onu_7.position) for each in (down, back))
    assert (observe(fallen, now).up, observe(fallen, now).cause) == (False, cause)
    assert not observe(fallen, now + 24 * HOUR).up
    assert fallen.enabled == (cause is not Down.DEACTIVATED)
    assert observe(risen, now + HOUR).up
    assert observe(risen, now + HOUR).last_up == pytest.approx(now + HOUR)


def test_light_fades_from_now_on_and_stops_where_it_is(plant, onu_7, now):
    def seen(plant, moment):
        return observe(changes.find(plant, onu_7.position), moment).optics

    fading = changes.fade(plant, onu_7.position, -1.5, now)
    stopped = changes.fade(fading, onu_7.position, 0, now + 2 * HOUR)

    assert seen(fading, now) == seen(plant, now)
    for moment, plant_then, lost in ((2 * HOUR, fading, 3.0), (8 * HOUR, fading, 12.0), (8 * HOUR, stopped, 3.0)):
        usual, faded = seen(plant, now + moment), seen(plant_then, now + moment)
        assert faded.rx_dbm == pytest.approx(usual.rx_dbm - lost)
        assert faded.olt_rx_dbm == pytest.approx(usual.olt_rx_dbm - lost)
        assert faded.tx_dbm == usual.tx_dbm


def test_all_of_them_can_fade(plant, now):
    changed = changes.fade(plant, None, -0.5, now)

    assert {onu.fade_per_hour for onu in changed.onus} == {-0.5}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda plant: changes.go(plant, Position(0, 1, 99, 7)), "no ONU 1/99/7", id="no such ONU"),
        pytest.param(lambda plant: changes.come(plant, Position(0, 40, 1), 0.0), "no port 40/1", id="no such port"),
        pytest.param(lambda plant: changes.come(plant, plant.ports[0], 0.0, 129), "is full", id="no room"),
    ],
)
def test_what_cannot_be_is_refused(plant, change, reason):
    with pytest.raises(ValueError, match=reason):
        change(plant)


def test_an_agent_answers_for_the_plant_that_it_has_now(plant, onu_7, now, ask):
    device = build(OltSpec("OLT-CENTRAL-01", "huawei", onus=100, seed=4))
    agent = SimulatedAgent(device, faults=Faults(gen_err_at=changes.find(device.plant, onu_7.position).position))
    port = other_port(device.plant, onu_7)
    serial = Oid(b"\x2b\x06\x01\x04\x01\x8f\x5b\x06\x81\x00\x01\x01\x02\x2b\x01\x03")
    before = ask(agent, "GET", serial + pack(onu_index(onu_7)))

    agent.install(device.replanted(changes.move(device.plant, onu_7.position, port, now)))
    moved = next(onu for onu in agent.device.plant.onus if onu.serial == onu_7.serial)
    old, new = ask(agent, "GET", serial + pack(onu_index(onu_7)), serial + pack(onu_index(moved))).values

    assert before.error_status == ErrorStatus.GEN_ERR
    assert (old, new) == (Missing.NO_SUCH_INSTANCE, onu_7.serial)


def test_numbers_by_registration_stay_with_their_onus_and_are_never_given_twice(now):
    plant = build(OltSpec("OLT-CENTRAL-01", "bdcom_gpon", onus=60, seed=4)).plant
    gone = max(plant.onus, key=onu_number)

    changed = changes.come(changes.go(plant, gone.position), plant.ports[0], now)

    numbers = {onu.serial: onu_number(onu) for onu in changed.onus}
    new = max(numbers, key=numbers.get)
    assert all(numbers[onu.serial] == onu_number(onu) for onu in plant.onus if onu is not gone)
    assert len(set(numbers.values())) == 60
    assert new not in {onu.serial for onu in plant.onus}
    assert numbers[new] > onu_number(gone)


def test_ports_can_be_full(now):
    chassis = Chassis(CHASSIS.models, ports_per_card=4, onus_per_port=16)

    plant = grow(chassis, 64, seed=1)

    assert {onu.position.onu for onu in plant.onus} == set(range(1, 17))
    with pytest.raises(ValueError, match="hold 64 ONUs, not 65"):
        grow(chassis, 65, seed=1)


def test_the_first_onu_of_all_can_come(now):
    empty = Plant(CHASSIS, (Position(0, 1, 0),), ())

    plant = changes.come(empty, Position(0, 1, 0), now)

    assert [(onu.position.onu, onu.number, type(onu.cycle)) for onu in plant.onus] == [(0, 0, Cycle)]
