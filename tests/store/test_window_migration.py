"""A database of an earlier version: OLTs with the old default find their window, and a chosen number stays."""

from importlib import import_module

import pytest
from django.apps import apps

from facho.apps.inventory.models import Olt

pytestmark = pytest.mark.django_db


def test_the_old_default_becomes_automatic_and_other_numbers_stay():
    numbers = [1, 2, 8, 64, 1]
    Olt.objects.bulk_create(
        Olt(name=f"OLT-{place}", host=f"127.0.0.{place + 1}", max_in_flight=number)
        for place, number in enumerate(numbers)
    )

    import_module("facho.apps.inventory.migrations.0007_automatic_window").make_automatic(apps, None)

    assert list(Olt.objects.order_by("pk").values_list("max_in_flight", flat=True)) == [None, 2, 8, 64, None]
