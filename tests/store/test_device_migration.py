"""A database of an earlier version gets devices, also where it holds the same device twice."""

from importlib import import_module

import pytest
from django.apps import apps

from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Lease
from facho.store.leases import NEVER

pytestmark = pytest.mark.django_db


def test_every_olt_gets_its_device_and_names_wait_for_the_engine():
    hosts = ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "2001:DB8::7", "OLT-7.example.net."]
    Olt.objects.bulk_create([Olt(name=f"OLT-{number}", host=host) for number, host in enumerate(hosts)])

    import_module("facho.apps.inventory.migrations.0005_device").fill_devices(apps, None)

    devices = list(Olt.objects.order_by("pk").values_list("device", flat=True))
    assert devices == ["127.0.0.1:161"] * 3 + ["[2001:db8::7]:161", "olt-7.example.net:161"]


def test_leases_of_olts_are_deleted_and_that_of_the_scheduler_stays():
    for key in ("olt:7", "scheduler"):
        Lease.objects.create(key=key, holder="noc-1/1", token=1, expires_at=NEVER)

    import_module("facho.apps.polling.migrations.0007_device").delete_leases_of_olts(apps, None)

    assert list(Lease.objects.values_list("key", flat=True)) == ["scheduler"]
