"""Coordinates of the demo's sites and ONUs: around Lima, because the names are from there."""

import random
from collections.abc import Iterable, Sequence

from facho.apps.inventory.models import Olt, Site
from facho.apps.telemetry.models import Onu, OnuPosition

CENTRE = (-12.0464, -77.0428)
AREAS = {
    "Central": CENTRE,
    "Norte": (-11.9707, -77.0737),
    "Sur": (-12.1553, -76.9737),
    "Este": (-12.0255, -76.9183),
    "Oeste": (-12.0776, -77.0907),
    "Puerto": (-12.0566, -77.1181),
}
# Degrees; 0.01 is a kilometre. ONUs of a port are in one neighbourhood.
OTHER_AREAS, NEIGHBOURHOODS, HOUSES = 0.1, 0.015, 0.0015

Point = tuple[float, float]


def place(olts: Sequence[Olt]) -> None:
    """Give the sites of new OLTs coordinates, and their ONUs positions. They are the same in every demonstration."""
    for olt in olts:
        chance = random.Random(olt.name)
        area = AREAS.get(olt.site.name if olt.site else "") or _near(CENTRE, OTHER_AREAS, chance)
        Site.objects.filter(olts=olt, latitude=None).update(latitude=area[0], longitude=area[1])
        OnuPosition.objects.bulk_create(_positions(olt, area, chance), batch_size=500)


def _positions(olt: Olt, area: Point, chance: random.Random) -> Iterable[OnuPosition]:
    centres: dict[tuple[int | None, int | None], Point] = {}
    for pk, slot, port in Onu.objects.filter(olt=olt).order_by("slot", "port", "onu").values_list("pk", "slot", "port"):
        if (slot, port) not in centres:
            centres[slot, port] = _near(area, NEIGHBOURHOODS, chance)
        yield OnuPosition.at(pk, olt.pk, *_near(centres[slot, port], HOUSES, chance))


def _near(point: Point, distance: float, chance: random.Random) -> Point:
    return round(chance.gauss(point[0], distance), 6), round(chance.gauss(point[1], distance), 6)
