"""ONUs below a power, found by the index on whole decibels."""

import pytest
from builders import T0

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import Onu

pytestmark = pytest.mark.django_db

POWERS = [-31.2, -28.0, -27.6, -27.5, -27.4, -27.01, -27.0, -26.99, -26.5, -0.4, 0.0, 0.4, 1.7]


@pytest.fixture
def olt(db):
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


def add(olt, *powers):
    for number, power in enumerate(powers):
        Onu.objects.create(olt=olt, index=f"1.{number}", rx_dbm=power, first_seen_at=T0, own_read_at=T0)


@pytest.mark.parametrize("limit", [-31.2, -27.5, -27, -26.99, -26.4, -0.5, 0, 0.4, 30])
def test_exactly_the_onus_below_a_power_are_found(olt, limit):
    add(olt, None, *POWERS)

    found = Onu.objects.below(limit).values_list("rx_dbm", flat=True)

    assert sorted(found) == [power for power in POWERS if power < limit]


def test_the_order_by_level_and_power_is_that_of_the_powers(olt):
    add(olt, *reversed(POWERS))

    assert list(Onu.objects.order_by("rx_level", "rx_dbm").values_list("rx_dbm", flat=True)) == sorted(POWERS)


def test_a_power_that_no_integer_can_hold_is_stored(olt):
    add(olt, 1e30, -1e30)

    assert list(Onu.objects.order_by("index").values_list("rx_dbm", "rx_level")) == [(1e30, None), (-1e30, None)]
