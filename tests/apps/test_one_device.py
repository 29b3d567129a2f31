"""A device is set up once: by API, admin and import."""

import threading

import pytest
from cast import import_olts, make_olt
from django.urls import reverse

from facho.adapters.resolver import Resolver
from facho.apps.coordinator.obstacles import _busy
from facho.apps.inventory import models
from facho.apps.inventory.models import Olt

NEW = {"name": "OLT-OESTE-04", "brand": "huawei", "community": "public"}

REFUSAL = (
    "{olt} already has this device, at {host} port 161. Change that OLT, or correct the address and port of this one."
)


class Dns(dict):
    """Addresses by name. A name that is not in it cannot be resolved."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def look_up(self, name):
        self.asked.append(name)
        if name not in self:
            raise OSError("no such name")
        return self[name]


@pytest.fixture(autouse=True)
def dns(monkeypatch):
    dns = Dns()
    monkeypatch.setattr(models, "RESOLVER", Resolver(dns.look_up))
    return dns


def post(api, host, **more):
    return api.post("/api/v1/olts/", NEW | {"host": host} | more, format="json")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("10.0.0.7", "10.0.0.7", id="the same address"),
        pytest.param("10.0.0.7", "::ffff:10.0.0.7", id="IPv4 in IPv6"),
        pytest.param("2001:db8::7", "2001:0DB8:0:0::7", id="IPv6 in another spelling"),
        pytest.param("127.0.0.1", "localhost", id="this machine"),
        pytest.param("LOCALHOST.", "::ffff:127.0.0.1", id="this machine, the other way round"),
        pytest.param("10.0.0.7", "olt-7.example.net", id="a name of the address"),
        pytest.param("olt-7.example.net", "10.0.0.7", id="the address of a name"),
        pytest.param("olt-7.example.net", "OLT-7.Example.NET.", id="a name in another spelling"),
        pytest.param("olt-7.example.net", "alias.example.net", id="two names with a common address"),
        pytest.param("alias.example.net", "2001:db8::7", id="an address of the name that is not the one asked"),
        pytest.param("unknown.example.net", "Unknown.example.net", id="a name that cannot be resolved"),
    ],
)
def test_a_second_olt_with_the_same_device_is_refused_with_the_name_of_the_first(api, dns, first, second):
    dns["olt-7.example.net"] = ("10.0.0.7",)
    dns["alias.example.net"] = ("10.0.0.7", "2001:db8::7")
    # Disabled ones count as well.
    assert post(api, first, name="OLT-CENTRAL-01", enabled=False).status_code == 201

    answer = post(api, second)

    assert answer.status_code == 400
    assert answer.data == {"host": [REFUSAL.format(olt="OLT-CENTRAL-01", host=first)]}
    assert Olt.objects.count() == 1


def test_another_port_of_the_same_address_is_another_device(api):
    make_olt("OLT-CENTRAL-01", host="10.0.0.7")

    assert post(api, "10.0.0.7", port=1161).status_code == 201


def test_a_name_that_cannot_be_resolved_now_is_accepted(api):
    answer = post(api, "olt-7.example.net")

    assert answer.status_code == 201
    assert Olt.objects.get().device == "olt-7.example.net:161"


def test_a_name_that_was_resolved_is_refused_by_its_text_while_dns_is_down(api, dns):
    dns["olt-7.example.net"] = ("10.0.0.7",)
    post(api, "olt-7.example.net", name="OLT-CENTRAL-01")
    models.RESOLVER._known.clear()
    dns.clear()

    assert post(api, "OLT-7.example.net").data["host"][0].startswith("OLT-CENTRAL-01 already has this device")


def test_a_name_server_that_is_silent_holds_nobody_up(api, monkeypatch):
    over = threading.Event()

    def silence(name):
        over.wait()
        return ()

    monkeypatch.setattr(models, "RESOLVER", Resolver(silence))
    monkeypatch.setattr(models, "RESOLVE_TIMEOUT", 0.01)

    answers = [post(api, f"olt-{number}.example.net", name=f"OLT-{number}").status_code for number in range(3)]
    over.set()

    assert answers == [201] * 3


@pytest.mark.parametrize("change", [{"host": "localhost"}, {"host": "127.0.0.1", "port": 161}])
def test_a_change_to_the_device_of_another_is_refused(api, central, norte, change):
    answer = api.patch(f"/api/v1/olts/{norte.pk}/", change, format="json")

    assert answer.data == {"host": [REFUSAL.format(olt="OLT-CENTRAL-01", host="127.0.0.1")]}


def test_a_change_of_the_port_to_that_of_another_is_refused(api, central):
    other = make_olt("OLT-NORTE-02", host="127.0.0.1", port=1161)

    assert api.patch(f"/api/v1/olts/{other.pk}/", {"port": 161}, format="json").status_code == 400


def test_olts_that_share_a_device_already_can_be_changed_otherwise(api, central):
    twin = make_olt("OLT-TWIN", host="localhost")

    answer = api.patch(f"/api/v1/olts/{twin.pk}/", {"location": "Norte", "enabled": False}, format="json")
    moved = api.patch(f"/api/v1/olts/{twin.pk}/", {"host": "10.0.0.8", "community": "public"}, format="json")

    assert (answer.status_code, moved.status_code) == (200, 200)
    assert Olt.objects.get(pk=twin.pk).device == "10.0.0.8:161"


def test_a_change_of_the_address_changes_the_device(api, central, dns):
    dns["olt-7.example.net"] = ("10.0.0.7", "2001:db8::7")
    moved = {"host": "olt-7.example.net", "port": 1161, "community": "public"}
    api.patch(f"/api/v1/olts/{central.pk}/", moved, format="json")

    central.refresh_from_db()
    assert (central.device, central.addresses) == ("10.0.0.7:1161", "10.0.0.7 2001:db8::7")
    assert central.agent().target == "10.0.0.7"


def test_a_row_that_was_read_long_ago_does_not_put_back_an_old_device(central):
    central.host = "olt-7.example.net"
    central.save()
    old = Olt.objects.get()
    Olt.objects.update(device="10.0.0.7:161", resolved_name="olt-7.example.net", addresses="10.0.0.7")

    old.location = "Norte"
    old.save()

    assert Olt.objects.get().device == "10.0.0.7:161"


def test_ip_addresses_never_touch_dns(api, dns):
    for number, host in enumerate(["10.0.0.7", "2001:db8::7", "localhost", "::ffff:10.0.0.9"]):
        post(api, host, name=f"OLT-{number}")

    assert dns.asked == []


@pytest.mark.parametrize("count", [10, 1000])
def test_the_check_asks_as_much_with_a_thousand_olts_as_with_ten(db, count, django_assert_max_num_queries):
    Olt.objects.bulk_create(
        Olt(
            name=f"OLT-{number}",
            host=f"10.0.{number // 250}.{number % 250}",
            device=f"10.0.{number // 250}.{number % 250}:161",
        )
        for number in range(count)
    )

    with django_assert_max_num_queries(1):
        assert Olt(name="OLT-NEW", host="10.9.9.9")._same_device("", ("10.9.9.9",), 161) is None


def test_the_admin_refuses_it_beside_the_address(admin_page, central):
    form = {"name": "OLT-TWIN", "brand": "huawei", "host": "localhost", "port": "161", "version": "2c"}
    form |= {"community": "public", "max_in_flight": "1", "enabled": "on"}

    answer = admin_page.post(reverse("admin:inventory_olt_add"), form)

    assert answer.context["errors"] == [[REFUSAL.format(olt="OLT-CENTRAL-01", host="127.0.0.1")]]
    assert Olt.objects.count() == 1


@pytest.mark.parametrize("twin", ["OLT-CENTRAL-01", "OLT-A"], ids=["of an OLT that is there", "of another row"])
def test_an_import_refuses_the_row(admin_page, central, dns, twin):
    host = {"OLT-CENTRAL-01": "localhost", "OLT-A": "olt-7.example.net"}[twin]
    dns["olt-7.example.net"] = ("10.0.0.7",)
    text = f"name,brand,host\nOLT-A,huawei,10.0.0.7\nOLT-B,huawei,{host}\n"

    answer = import_olts(admin_page, text)

    assert f"{twin} already has this device" in answer.content.decode()
    assert Olt.objects.count() == 1


@pytest.fixture
def twins(db):
    """OLTs that came to share a device past the forms."""
    return [
        make_olt("OLT-CENTRAL-01"),
        make_olt("OLT-TWIN", host="localhost"),
        make_olt("OLT-SUR-03", host="127.0.0.3"),
    ]


def test_the_api_lists_the_others_of_a_shared_device(api, twins):
    shown = {each["name"]: each for each in api.get("/api/v1/olts/").data["results"]}

    assert shown["OLT-CENTRAL-01"]["shares_device_with"] == [{"id": twins[1].pk, "name": "OLT-TWIN"}]
    assert shown["OLT-TWIN"]["shares_device_with"] == [{"id": twins[0].pk, "name": "OLT-CENTRAL-01"}]
    assert shown["OLT-SUR-03"]["shares_device_with"] == []
    assert shown["OLT-TWIN"]["device"] == "127.0.0.1:161"


@pytest.mark.parametrize("many", [2, 20])
def test_a_page_of_shared_devices_costs_the_same_however_many_there_are(api, db, django_assert_num_queries, many):
    for number in range(many):
        make_olt(f"OLT-{number}")

    with django_assert_num_queries(5):
        api.get("/api/v1/olts/")


NOTE = (
    "This is the same device as OLT-TWIN: 127.0.0.1:161. Only one of them is polled at a time. Delete "
    "one of them or correct its address."
)


def test_the_page_of_the_olt_and_its_admin_report_it(admin_page, twins):
    central, _, sur = twins
    pages = [reverse("dashboard:olt", args=[central.pk]), reverse("admin:inventory_olt_change", args=[central.pk])]

    assert [NOTE in admin_page.get(page).content.decode() for page in pages] == [True, True]
    assert "same device as" not in admin_page.get(reverse("dashboard:olt", args=[sur.pk])).content.decode()


def test_a_node_that_waits_for_its_device_says_what_keeps_it_busy(twins, power):
    central, twin, _ = twins
    [mine], [others] = power.apply_to([central]), power.apply_to([twin])
    at_work = {
        "id": 2,
        "olt_id": twin.pk,
        "node": "Optical power",
        "node_id": others.pk,
        "seconds": 7,
        "busy_since": None,
    }

    [obstacle] = _busy(mine, {"pollers": [at_work]}, set())

    assert (obstacle.code, obstacle.poller, obstacle.node) == ("olt_busy", 2, others.pk)
