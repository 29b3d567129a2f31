"""The device of each OLT follows its address, and DNS."""

import pytest
from builders import SEC, T0

from facho.adapters.resolver import Resolver
from facho.apps.inventory.models import Olt
from facho.store.devices import REFRESH_EVERY, DeviceWatch

pytestmark = pytest.mark.django_db(transaction=True)


class Dns(dict):
    """Addresses by name; a name that is not in it cannot be resolved."""

    asked = 0

    def look_up(self, name):
        self.asked += 1
        if name not in self:
            raise OSError("no such name")
        return self[name]


@pytest.fixture
def dns():
    return Dns()


@pytest.fixture
def thread(make_thread):
    return make_thread("devices")


@pytest.fixture
def watch(thread, dns):
    return DeviceWatch(thread, Resolver(dns.look_up))


@pytest.fixture
def add(thread):
    """Set up OLTs past all checks, as an older version or SQL would."""

    async def add(*hosts, port=161):
        rows = [Olt(name=f"OLT-{number}", brand="huawei", host=host, port=port) for number, host in enumerate(hosts, 1)]
        await thread.run(lambda: Olt.objects.bulk_create(rows))

    return add


@pytest.fixture
def devices(thread):
    async def devices():
        return await thread.run(lambda: list(Olt.objects.order_by("pk").values_list("device", flat=True)))

    return devices


def told(caplog, name):
    return [each.getMessage() for each in caplog.records if getattr(each, "event", None) and each.event.name == name]


async def test_rows_that_went_past_the_forms_get_their_device(watch, add, devices, dns):
    dns["olt-7.example.net"] = ("10.0.0.7",)
    await add("127.0.0.1", "::ffff:127.0.0.1", "localhost", "OLT-7.example.net.", "10.0.0.7")

    await watch.step(T0)

    assert await devices() == ["127.0.0.1:161"] * 3 + ["10.0.0.7:161"] * 2


async def test_ip_addresses_never_touch_dns(watch, add, dns):
    await add("127.0.0.1", "2001:db8::1", "localhost")

    await watch.step(T0)

    assert dns.asked == 0


async def test_olts_that_are_one_device_are_reported_once_and_so_is_the_end_of_it(watch, add, thread, caplog):
    caplog.set_level("INFO")
    await add("127.0.0.1", "localhost", "127.0.0.2")

    await watch.step(T0)
    await watch.step(T0 + 5 * SEC)
    await thread.run(lambda: Olt.objects.filter(host="localhost").update(port=162))
    await watch.step(T0 + 10 * SEC)

    assert told(caplog, "DEVICE_SHARED") == [
        "OLT-1 and OLT-2 are the same device, 127.0.0.1:161: only one of them is polled at a time. Delete "
        "one of them or correct its address"
    ]
    assert told(caplog, "DEVICE_NOT_SHARED") == ["127.0.0.1:161 belongs to one OLT again"]


async def test_a_name_that_leads_elsewhere_is_followed(watch, add, devices, dns, caplog):
    caplog.set_level("INFO")
    dns["olt-7"] = ("10.0.0.7",)
    await add("olt-7", "10.0.0.8")
    await watch.step(T0)

    dns["olt-7"] = ("10.0.0.8",)
    await watch.step(T0 + 5 * SEC)
    too_early = await devices()
    await watch.step(T0 + REFRESH_EVERY)

    assert too_early == ["10.0.0.7:161", "10.0.0.8:161"]
    assert await devices() == ["10.0.0.8:161"] * 2
    assert told(caplog, "DEVICE_MOVED") == ["OLT-1: the address of olt-7 changed from 10.0.0.7 to 10.0.0.8"]
    assert len(told(caplog, "DEVICE_SHARED")) == 1


async def test_without_dns_a_name_keeps_its_last_address(watch, thread, add, devices, dns):
    dns["olt-7"] = ("10.0.0.7",)
    await add("olt-7")
    await watch.step(T0)

    dns.clear()
    await watch.step(T0 + REFRESH_EVERY)
    # A process that starts while there is no DNS.
    await DeviceWatch(thread, Resolver(dns.look_up)).step(T0 + 2 * REFRESH_EVERY)

    assert await devices() == ["10.0.0.7:161"]


async def test_a_name_that_was_changed_has_nothing_of_the_one_before(watch, thread, add, devices, dns):
    dns["olt-7"] = ("10.0.0.7",)
    await add("olt-7")
    await watch.step(T0)

    await thread.run(lambda: Olt.objects.update(host="olt-8"))
    await watch.step(T0 + 5 * SEC)
    unresolved = await devices(), await thread.run(lambda: Olt.objects.get().agent().target)
    dns["olt-8"] = ("10.0.0.8",)
    await watch.step(T0 + 20 * SEC)

    assert unresolved == (["olt-8:161"], "")
    assert await devices() == ["10.0.0.8:161"]


async def test_of_several_addresses_a_name_takes_the_one_that_another_olt_has(watch, add, devices, dns):
    dns["olt-7"] = ("10.0.0.1", "10.0.0.9", "2001:db8::1")
    await add("olt-7", "2001:db8::1")

    await watch.step(T0)

    assert await devices() == ["[2001:db8::1]:161"] * 2


async def test_a_change_of_a_person_is_not_undone(watch, thread, add, devices, dns, monkeypatch):
    await add("10.0.0.7")
    find = watch._resolve

    async def change_meanwhile(rows, now):
        await thread.run(lambda: Olt.objects.update(host="10.0.0.8", device="10.0.0.8:161"))
        return await find(rows, now)

    monkeypatch.setattr(watch, "_resolve", change_meanwhile)
    await watch.step(T0)

    assert await devices() == ["10.0.0.8:161"]
