"""OLTs are in the networks of FACHO_OLT_NETWORKS, if it is set: others are neither saved nor polled."""

import ipaddress

import pytest
from cast import make_olt
from django.core.exceptions import ValidationError

from facho.apps.inventory.models import RESOLVER, Olt
from facho.apps.polling.errors import in_words


@pytest.fixture
def networks(settings):
    settings.FACHO_OLT_NETWORKS = (ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("2001:db8::/32"))


@pytest.fixture
def dns(monkeypatch):
    """Names that resolve to these addresses."""
    known = {"olt-7.example.net": ("10.20.0.7",), "listener.example.net": ("10.20.0.7", "192.0.2.7")}
    monkeypatch.setattr(RESOLVER, "_look_up", lambda name: known[name])
    monkeypatch.setattr(RESOLVER, "_known", {})


def check(host):
    Olt(name="OLT-NEW", brand="huawei", host=host, community="public").full_clean()


@pytest.mark.parametrize("host", ["10.20.0.7", "::ffff:10.20.0.7", "2001:db8::7", "olt-7.example.net"])
def test_an_olt_in_the_networks_is_accepted(db, networks, dns, host):
    check(host)


@pytest.mark.parametrize("host", ["10.21.0.7", "127.0.0.1", "localhost", "::1", "listener.example.net", "224.0.0.1"])
def test_an_olt_elsewhere_is_refused(db, networks, dns, host):
    with pytest.raises(ValidationError, match=r"may not be polled. Allowed networks .*: 10.20.0.0/16, 2001:db8::/32"):
        check(host)


@pytest.mark.parametrize(("host", "is_accepted"), [("10.21.0.7", True), ("127.0.0.1", True), ("224.0.0.1", False)])
def test_without_networks_all_but_multicast_addresses_are_accepted(db, host, is_accepted):
    if is_accepted:
        check(host)
    else:
        with pytest.raises(ValidationError, match="all, except multicast addresses"):
            check(host)


def test_an_olt_that_was_saved_before_stays_and_nothing_is_sent_to_it(api, networks, db):
    olt = make_olt("OLT-CENTRAL-01")

    answer = api.patch(f"/api/v1/olts/{olt.pk}/", {"location": "Sur"}, format="json")

    assert answer.status_code == 200
    assert olt.agent().obstacle.startswith(
        "OLT-CENTRAL-01 has the address 127.0.0.1, which is not in FACHO_OLT_NETWORKS"
    )
    assert in_words(olt.agent().obstacle) == olt.barred_note


def test_a_name_that_points_elsewhere_later_is_not_polled(networks, db):
    olt = make_olt("OLT-CENTRAL-01", host="olt-7.example.net")
    Olt.objects.update(resolved_name="olt-7.example.net", addresses="192.0.2.7")
    olt.refresh_from_db()

    assert "192.0.2.7, which is not in FACHO_OLT_NETWORKS" in olt.agent().obstacle
