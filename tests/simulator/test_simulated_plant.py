"""The synthetic plant looks like a real one, and its ONUs live through time without memory."""

from collections import Counter
from dataclasses import replace

import pytest

from facho.simulator.fleet import OltSpec, build
from facho.simulator.huawei import CHASSIS
from facho.simulator.life import Cycle, Down, observe
from facho.simulator.plant import grow, share

MINUTE, DAY = 60, 86400


@pytest.fixture(scope="module")
def plant():
    return grow(CHASSIS, 2000, seed=1)


def test_the_same_seed_grows_the_same_plant():
    assert grow(CHASSIS, 300, seed=5) == grow(CHASSIS, 300, seed=5)
    assert grow(CHASSIS, 300, seed=5) != grow(CHASSIS, 300, seed=6)


@pytest.mark.parametrize("brand", ["huawei", "zte_c300"])
@pytest.mark.parametrize("onus", [0, 1, 44, 46, 1000])
def test_a_device_has_exactly_as_many_onus_as_asked_for(brand, onus):
    device = build(OltSpec("OLT-CENTRAL-01", brand, onus=onus))

    assert len({onu.position for onu in device.plant.onus}) == onus
    assert len({onu.serial for onu in device.plant.onus}) == onus


def test_more_onus_than_the_chassis_holds_are_refused():
    with pytest.raises(ValueError, match="slots"):
        grow(CHASSIS, 50_000, seed=1)


def test_ids_have_gaps_and_stay_within_the_port(plant):
    ids = Counter(replace(onu.position, onu=None) for onu in plant.onus)
    highest = {replace(onu.position, onu=None): onu.position.onu for onu in plant.onus}

    assert all(highest[port] > number for port, number in ids.items())
    assert max(highest.values()) <= 127


def test_onu_7_is_on_every_port(plant):
    ports = {replace(onu.position, onu=None) for onu in plant.onus}

    with_7 = {replace(onu.position, onu=None) for onu in plant.onus if onu.position.onu == 7}

    assert with_7 == ports


def test_some_ports_have_no_onus(plant):
    used = {replace(onu.position, onu=None) for onu in plant.onus}

    assert used < set(plant.ports)


def test_about_nine_in_ten_are_up_and_the_others_are_down_for_different_reasons(plant, now):
    seen = [observe(onu, now) for onu in plant.onus]
    down = Counter(each.cause for each in seen if not each.up)

    assert 0.88 < sum(each.up for each in seen) / len(seen) < 0.94
    assert set(down) == set(Down)


def test_a_few_onus_that_are_up_have_weak_power(plant, now):
    powers = [seen.optics.rx_dbm for onu in plant.onus if (seen := observe(onu, now)).optics]

    assert 10 < sum(power < -27 for power in powers) < 80
    assert min(powers) > -32
    assert max(powers) < -10


def test_serials_that_look_like_text_are_among_them(plant):
    ends = {onu.serial[4:] for onu in plant.onus}

    assert {b"PW:y", b"&BY ", b"\x01\x02\x03\x00"} <= ends


def test_a_dark_port_is_down_as_a_whole_since_one_moment(now):
    plant = grow(CHASSIS, 300, seed=1, dark_ports=1)
    by_port = {}
    for onu in plant.onus:
        by_port.setdefault(replace(onu.position, onu=None), []).append(observe(onu, now))

    dark = [seen for seen in by_port.values() if not any(each.up for each in seen)]

    assert len(dark) == 1
    assert {each.cause for each in dark[0]} == {Down.LOS}
    assert len({each.last_down for each in dark[0]}) == 1


def test_a_handful_goes_down_and_comes_back_within_minutes(plant, now):
    changed = {
        onu.serial for onu in plant.onus if len({observe(onu, now + minute * MINUTE).up for minute in range(21)}) == 2
    }

    assert 5 <= len(changed) <= 30


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(0, (False, -80, 0), id="it has just gone"),
        pytest.param(19, (False, -80, 0), id="it is down"),
        pytest.param(20, (True, 20, 0), id="it has just come back"),
        pytest.param(99, (True, 20, 0), id="it is up"),
        pytest.param(100, (False, 20, 100), id="it goes again"),
    ],
)
def test_a_cycle_knows_when_it_last_came_and_went(at, expected):
    assert Cycle(period=100, down=20, phase=0).at(at) == expected


def test_power_moves_a_little_and_comes_back(plant, now):
    onu = next(onu for onu in plant.onus if observe(onu, now).up and observe(onu, now + 420).up)

    powers = [observe(onu, now + second).optics.rx_dbm for second in range(0, 421, 10)]

    assert 0.4 < max(powers) - min(powers) <= 0.61
    assert powers[-1] == pytest.approx(powers[0])


def test_octets_grow_while_an_onu_is_up(plant, now):
    onu = next(onu for onu in plant.onus if observe(onu, now).up and observe(onu, now + DAY).last_up < now)

    counts = [observe(onu, now + hour * 3600).out_octets for hour in range(25)]

    assert counts == sorted(set(counts))
    assert observe(onu, now).in_octets < observe(onu, now).out_octets


def test_octets_do_not_change_while_an_onu_is_down_and_start_again_when_it_is_back(plant, now):
    steady = next(onu for onu in plant.onus if observe(onu, now).up)
    onu = replace(steady, cycle=Cycle(period=1000, down=200, phase=-now))

    before, down, still_down, back = (observe(onu, now + second) for second in (999, 1001, 1150, 1201))

    assert down.out_octets == still_down.out_octets >= before.out_octets
    assert 0 < back.out_octets < down.out_octets
    assert down.optics is None
    assert back.syncing


def test_a_disabled_onu_was_never_seen(plant, now):
    disabled = [observe(onu, now) for onu in plant.onus if not onu.enabled]

    assert disabled
    assert all((seen.up, seen.last_up, seen.optics) == (False, None, None) for seen in disabled)


@pytest.mark.parametrize(
    ("total", "weights"),
    [(2100, [0.6, 1.2, 0.0, 0.9]), (7, [1, 1, 1]), (0, [1, 2]), (1, [1, 1, 1, 1])],
    ids=["one gets nothing", "thirds", "nothing to share", "fewer than sharers"],
)
def test_shares_add_up(total, weights):
    parts = share(total, weights)

    assert sum(parts) == total
    assert all(part >= 0 for part in parts)
    assert all(part == 0 for part, weight in zip(parts, weights, strict=True) if weight == 0)
