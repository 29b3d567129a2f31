"""Sites of the demo's OLTs, and positions of their ONUs: around Lima, because the names are from there."""

import random
from collections.abc import Iterable, Sequence

from facho.apps.inventory.models import Olt, Site
from facho.apps.telemetry.models import Onu, OnuPosition

SITES = (
    ("Cercado", -12.0464, -77.0428),
    ("Los Olivos", -11.9707, -77.0737),
    ("Villa El Salvador", -12.2133, -76.9367),
    ("Ate", -12.0255, -76.9183),
    ("San Miguel", -12.0776, -77.0907),
    ("Callao", -12.0566, -77.1181),
)
# Degrees; 0.01 is a kilometre. ONUs of a port are in one neighbourhood.
NEIGHBOURHOODS, HOUSES = 0.015, 0.0015


def place(olts: Sequence[Olt]) -> None:
    """Give new OLTs a site, and their ONUs a position."""
    for number, olt in enumerate(olts):
        name, latitude, longitude = SITES[number % len(SITES)]
        olt.site = Site.objects.get_or_create(name=name, defaults={"latitude": latitude, "longitude": longitude})[0]
        olt.save(update_fields=["site"])
        OnuPosition.objects.bulk_create(_positions(olt, latitude, longitude), batch_size=500)


def _positions(olt: Olt, latitude: float, longitude: float) -> Iterable[OnuPosition]:
    # The same in every demonstration.
    chance = random.Random(olt.name)
    centres: dict[tuple[int | None, int | None], tuple[float, float]] = {}
    for pk, slot, port in Onu.objects.filter(olt=olt).order_by("slot", "port", "onu").values_list("pk", "slot", "port"):
        if (slot, port) not in centres:
            centres[slot, port] = chance.gauss(latitude, NEIGHBOURHOODS), chance.gauss(longitude, NEIGHBOURHOODS)
        centre = centres[slot, port]
        yield OnuPosition.at(pk, olt.pk, *(round(chance.gauss(each, HOUSES), 6) for each in centre))
