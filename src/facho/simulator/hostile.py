"""Tables of an agent that lies: ONUs that do not exist, and names that no person gave."""

from collections.abc import Iterator
from dataclasses import replace

from facho.simulator.device import Device
from facho.simulator.faults import Faults
from facho.simulator.life import Onu

# Clears the screen, sets the title of the terminal, forges a line, and reverses the text after it.
HOSTILE = "\x1b[2J\x1b]0;title\x07\r\n\x9b31m\u202e"


def lies(faults: Faults) -> tuple[int, int, bool]:
    """Return the faults that change the tables."""
    return faults.invented, faults.name_bytes, faults.hostile_names


def pretended(device: Device, faults: Faults) -> Device:
    """Return the device that the agent shows."""
    if device.maker is None or not any(lies(faults)):
        return device
    plant = device.plant
    onus = [*plant.onus, *_invented(device, faults.invented)]
    if faults.hostile_names:
        onus = [replace(onu, name=HOSTILE + onu.name, charset="utf-8") for onu in onus]
    if faults.name_bytes:
        onus = [replace(onu, name="n" * faults.name_bytes, charset="ascii") for onu in onus]
    return device.replanted(replace(plant, onus=tuple(onus)))


def _invented(device: Device, count: int) -> Iterator[Onu]:
    """Return ONUs with numbers that are free on their ports, one port after the other."""
    plant = device.plant
    if not plant.onus or not plant.ports:
        return
    first = max(onu.position.onu or 0 for onu in plant.onus) + 1
    for number in range(count):
        port = plant.ports[number % len(plant.ports)]
        onu = plant.onus[number % len(plant.onus)]
        position = replace(port, onu=first + number // len(plant.ports))
        serial = onu.serial[:4] + (0x80000000 + number).to_bytes(4, "big")
        yield replace(onu, position=position, serial=serial, number=plant.registrations + number)
