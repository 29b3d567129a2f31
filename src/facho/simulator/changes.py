"""Changes of a plant during polling: ONUs are added, deleted, moved, fail and fade.

Each change takes a plant and returns another one; ValueError explains an impossible one. `now` is its time.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from facho.engine.brand import Position
from facho.simulator.life import Cycle, Down, Onu
from facho.simulator.plant import LONG, Plant, install

Change = Callable[[Plant], Plant]

# Outage before an ONU that has just come back, in seconds.
AWAY = 300.0


def come(plant: Plant, port: Position, now: float, onus: int = 1) -> Plant:
    """Return the plant with new ONUs on this port, on the first free ids."""
    port = _port(plant, port)
    random = Random(f"come {port} {now}")
    for _ in range(onus):
        position = replace(port, onu=_free_id(plant, port))
        new = install(random, position, plant.chassis, plant.registrations)
        plant = _register(plant, replace(new, enabled=True, cause=Down.DYING_GASP, cycle=_up_since(now)))
    return plant


def go(plant: Plant, position: Position) -> Plant:
    """Return the plant without an ONU, as after its deletion."""
    return _without(plant, find(plant, position))


def move(plant: Plant, position: Position, port: Position, now: float) -> Plant:
    """Return the plant with an ONU on another port: same serial, new place, new registration."""
    onu, port = find(plant, position), _port(plant, port)
    moved = replace(port, onu=_free_id(plant, port))
    return _register(_without(plant, onu), replace(onu, position=moved, cycle=_up_since(now)))


def fall(plant: Plant, position: Position, cause: Down, now: float) -> Plant:
    """Return the plant with an ONU down from now on."""
    onu = find(plant, position)
    cycle = Cycle(2 * LONG, LONG, -now)
    return _changed(plant, onu, replace(onu, enabled=cause is not Down.DEACTIVATED, cause=cause, cycle=cycle))


def come_back(plant: Plant, position: Position, now: float) -> Plant:
    """Return the plant with an ONU up from now on."""
    onu = find(plant, position)
    return _changed(plant, onu, replace(onu, enabled=True, cycle=_up_since(now)))


def fade(plant: Plant, position: Position | None, db_per_hour: float, now: float) -> Plant:
    """Return the plant with one or all ONUs whose power changes from now on; 0 keeps the current power."""
    changed = {}
    for onu in plant.onus if position is None else (find(plant, position),):
        # The current power becomes the base.
        lost = onu.fade_per_hour * max(now - onu.fade_from, 0.0) / 3600
        rx_dbm, olt_rx_dbm = onu.rx_dbm + lost, onu.olt_rx_dbm + lost
        changed[onu.position] = replace(
            onu, rx_dbm=rx_dbm, olt_rx_dbm=olt_rx_dbm, fade_per_hour=db_per_hour, fade_from=now
        )
    return replace(plant, onus=tuple(changed.get(onu.position, onu) for onu in plant.onus))


def find(plant: Plant, position: Position) -> Onu:
    """Return the ONU at this place. There is only one shelf."""
    for onu in plant.onus:
        if _place(onu.position) == _place(position):
            return onu
    raise ValueError(f"there is no ONU {position.slot}/{position.port}/{position.onu}")


def _port(plant: Plant, wanted: Position) -> Position:
    for port in plant.ports:
        if (port.slot, port.port) == (wanted.slot, wanted.port):
            return port
    raise ValueError(f"there is no port {wanted.slot}/{wanted.port}")


def _free_id(plant: Plant, port: Position) -> int:
    taken = {onu.position.onu for onu in plant.onus if replace(onu.position, onu=None) == port}
    first = plant.chassis.first_onu
    for onu in range(first, first + plant.chassis.onus_per_port):
        if onu not in taken:
            return onu
    raise ValueError(f"the port {port.slot}/{port.port} is full")


def _up_since(now: float) -> Cycle:
    return Cycle(LONG, AWAY, AWAY - now)


def _register(plant: Plant, onu: Onu) -> Plant:
    """Return the plant with one more ONU, with a new number."""
    number = plant.registrations
    onus = sorted((*plant.onus, replace(onu, number=number)), key=lambda each: _place(each.position))
    return replace(plant, onus=tuple(onus), registrations=number + 1)


def _without(plant: Plant, onu: Onu) -> Plant:
    return replace(plant, onus=tuple(each for each in plant.onus if each is not onu))


def _changed(plant: Plant, onu: Onu, changed: Onu) -> Plant:
    return replace(plant, onus=tuple(changed if each is onu else each for each in plant.onus))


def _place(position: Position) -> tuple[int, int, int]:
    return position.slot, position.port, position.onu or 0
