"""The pages that add an OLT and change its settings, and the test of a connection."""

import logging

import pytest
from cast import make_user
from django.test import Client

from command_stage import simulated, where
from facho.apps.accounts.roles import Role
from facho.apps.inventory.models import Olt, Site
from facho.apps.jobs.models import WorkflowNode
from facho.simulator.fleet import MUTE, OltSpec

pytestmark = pytest.mark.django_db

NEW, TEST_NEW = "/olts/new/", "/olts/new/test/"
FORM = {"name": "OLT-NEW", "host": "10.0.0.7", "version": "2c", "community": "s3cret-word", "enabled": "on"}
# Simulated OLTs answer to this community.
ANSWERED = FORM | {"community": "public"}


@pytest.fixture
def engineer():
    client = Client()
    client.force_login(make_user(Role.ENGINEER))
    return client


@pytest.fixture(scope="module")
def fleet():
    with simulated(OltSpec("OLT-CENTRAL-01", onus=40), OltSpec("OLT-SUR-03", faults=MUTE)) as fleet:
        yield fleet


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        pytest.param("10.0.0.7", "10.0.0.7", 161, id="address"),
        pytest.param(" 10.0.0.7:1161 ", "10.0.0.7", 1161, id="with a port"),
        pytest.param("[2001:db8::7]:1161", "2001:db8::7", 1161, id="IPv6 with a port"),
    ],
)
def test_an_engineer_adds_an_olt_in_one_form(engineer, address, host, port):
    shown = engineer.post(NEW, FORM | {"host": address}, follow=True)

    olt = Olt.objects.get()
    assert shown.redirect_chain == [(f"/olts/{olt.pk}/", 302)]
    assert "OLT-NEW was added." in shown.content.decode()
    assert (olt.host, olt.port, olt.community.reveal()) == (host, port, "s3cret-word")
    assert WorkflowNode.objects.filter(olt=olt, job__kind="identify", run_requested_at__isnull=False).exists()


@pytest.mark.parametrize("address", ["10.0.0.7:99999", "10.0.0.7:", "10.0.0.300", "[2001:db8::1"])
def test_a_bad_address_is_explained_beside_its_field(engineer, address):
    shown = engineer.post(NEW, FORM | {"host": address})

    assert shown.context["form"].errors.keys() == {"host"}
    assert "10.0.0.7" in shown.context["form"].errors["host"][0]
    assert not Olt.objects.exists()


def test_the_admin_takes_the_port_in_the_address_too(admin_page):
    form = FORM | {"host": "10.0.0.7:1161", "port": "161", "brand": "huawei"}

    admin_page.post("/admin/inventory/olt/add/", form)

    assert (Olt.objects.get().host, Olt.objects.get().port) == ("10.0.0.7", 1161)


def test_settings_keep_the_port_and_the_secret(engineer, central):
    Olt.objects.filter(pk=central.pk).update(port=1161)
    site = Site.objects.create(name="Lima")
    shown = engineer.get(f"/olts/{central.pk}/settings/")
    form = {**shown.context["form"].initial, "site": site.pk, "enabled": "on"}
    form.pop("tags")
    assert form["host"] == f"{central.host}:1161"

    saved = engineer.post(f"/olts/{central.pk}/settings/", {name: value or "" for name, value in form.items()})

    olt = Olt.objects.get(pk=central.pk)
    assert saved.status_code == 302, saved.context["form"].errors
    assert (olt.site, olt.port) == (site, 1161)
    assert olt.community.reveal() == central.community.reveal()


def test_another_address_asks_for_the_community_again(engineer, central):
    form = {"name": central.name, "brand": central.brand, "host": "10.9.9.9", "version": "2c", "enabled": "on"}

    shown = engineer.post(f"/olts/{central.pk}/settings/", form)

    assert "Write this again" in shown.context["form"].errors["community"][0]
    assert Olt.objects.get(pk=central.pk).host == central.host


def test_a_secret_is_never_shown(engineer, central):
    shown = engineer.get(f"/olts/{central.pk}/settings/").content.decode()
    refused = engineer.post(NEW, FORM | {"name": ""}).content.decode()

    assert central.community.reveal() not in shown
    assert "s3cret-word" not in refused


def test_a_connection_is_tested_before_anything_is_saved(engineer, fleet, caplog):
    caplog.set_level(logging.INFO)

    shown = engineer.post(TEST_NEW, ANSWERED | {"name": "", "host": where(fleet, "OLT-CENTRAL-01")}).content.decode()

    assert "The OLT answers." in shown
    assert "Huawei MA5600T / MA5800" in shown
    assert "Optical power" in shown
    assert not Olt.objects.exists()
    assert "tests the connection to" in caplog.text
    assert fleet.log.peak_in_flight("OLT-CENTRAL-01") == 1


def test_a_silent_olt_says_what_to_check(engineer, fleet, monkeypatch):
    monkeypatch.setattr("facho.apps.dashboard.olt_setup.TEST_SECONDS", 0.2)

    shown = engineer.post(TEST_NEW, FORM | {"host": where(fleet, "OLT-SUR-03")}).content.decode()

    assert "access list" in shown


def test_a_form_with_errors_sends_nothing(engineer, fleet):
    fleet.log.clear()

    shown = engineer.post(TEST_NEW, FORM | {"host": where(fleet, "OLT-CENTRAL-01"), "community": ""}).content.decode()

    assert "need a community" in shown
    assert fleet.log.count("OLT-CENTRAL-01") == 0


def test_the_tables_of_an_olt_that_is_polled_are_not_read(engineer, central, fleet):
    central.host, central.port = fleet["OLT-CENTRAL-01"].host, fleet["OLT-CENTRAL-01"].port
    central.save()
    fleet.log.clear()
    form = ANSWERED | {"name": central.name, "brand": "huawei", "host": where(fleet, "OLT-CENTRAL-01")}

    shown = engineer.post(f"/olts/{central.pk}/settings/test/", form).content.decode()

    assert "The OLT answers." in shown
    assert "polls this OLT already" in shown
    assert fleet.log.count("OLT-CENTRAL-01") <= 2
