"""The life of an OLT in a browser: its values, another device in its place, disabled, and deleted."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from apps.cast import make_job, make_olt, make_onu
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJobOid, WorkflowNode
from facho.apps.telemetry.history import OLT_ITSELF
from facho.apps.telemetry.models import Onu
from facho.store.history import append

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def olt(db, bridge):
    now = timezone.now()
    olt = make_olt("OLT-SUR-03", reachability="reachable", last_answer_at=now, extra={"board": 41})
    onu = make_onu(olt, 1)
    job = make_job("Own values", columns=["rx_dbm"])
    for name, unit, scalar in (("board", "°C", True), ("bias", "mA", False)):
        SnmpJobOid.objects.create(
            job=job, name=name, oid="1.3.6.1.4.1.2011.9", decode="tenths", unit=unit, scalar=scalar
        )
    job.apply_to([olt])
    for hours in range(6):
        at = now - timedelta(hours=hours)
        append(olt.pk, at, [OLT_ITSELF], {"oid.board": [40 + hours]})
        append(olt.pk, at, [onu.pk], {"oid.bias": [12.5 + hours]})
    return olt


@pytest.fixture(params=["desk", "phone"])
def page(request, bridge, olt):
    if request.param == "phone":
        bridge.page.set_viewport_size(PHONE)
    bridge.open(f"/olts/{olt.pk}/")
    yield bridge.page
    assert bridge.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the window"


def test_an_olt_is_deleted_by_its_name(page, olt):
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Delete OLT").click()
    expect(page.locator("#parts")).to_contain_text("ONUs")
    name = page.get_by_label("Write the name of the OLT to delete it: OLT-SUR-03")

    name.fill("OLT-SUR-04")
    page.get_by_role("button", name="Delete OLT").click()
    expect(page.locator(".field-error")).to_contain_text("nothing was deleted. Write exactly: OLT-SUR-03")
    assert Olt.objects.exists()

    name.fill("OLT-SUR-03")
    page.get_by_role("button", name="Delete OLT").click()
    expect(page.get_by_text("OLT-SUR-03 was deleted.")).to_be_visible()
    assert not Olt.objects.exists()


def test_a_device_is_replaced_and_the_page_says_what_is_awaited(page, olt):
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("link", name="Replace OLT").click()
    expect(page.get_by_role("heading", name="What is kept")).to_be_visible()
    expect(page.get_by_text("1 ONU with its history, notes and position.")).to_be_visible()

    page.get_by_label("Address").fill("10.9.9.9:1161")
    page.get_by_role("button", name="Replace OLT").click()
    expect(page.locator(".field-error")).to_contain_text("Write this again")
    page.get_by_label("Community").fill("of-the-new-one")
    page.get_by_label("Brand").select_option("zte_c300")
    page.get_by_role("button", name="Replace OLT").click()

    expect(page.locator("#replacement")).to_contain_text("1 ONU was not found on the new device yet.")
    assert Olt.objects.get().host == "10.9.9.9"
    assert {node.job.brand for node in WorkflowNode.objects.select_related("job")} == {"zte_c300"}
    assert Onu.objects.get().is_unplaced


def test_disabling_asks_first(page, olt):
    page.get_by_role("button", name="Disable…").click()
    expect(page.get_by_text("1 OLT will be disabled")).to_be_visible()
    assert Olt.objects.get().enabled

    page.get_by_role("button", name="Disable", exact=True).click()

    expect(page.get_by_text("1 OLT disabled.")).to_be_visible()
    assert not Olt.objects.get().enabled


def test_raw_oids_have_a_chart_with_their_unit(page, olt, bridge):
    figure = page.locator("#raw-values [data-value=board]")
    expect(figure.locator("figcaption")).to_contain_text("(°C)")
    expect(figure.locator("svg path, svg polyline").first).to_be_attached()
    expect(page.locator("#own")).to_contain_text("41 °C")

    page.get_by_role("group", name="Time shown").last.get_by_role("button", name="7 d").click()
    expect(figure.locator("svg")).to_be_attached()

    bridge.open(f"/onus/{Onu.objects.get().pk}/")
    of_onu = page.locator("#raw-values [data-value=bias]")
    expect(of_onu.locator("figcaption")).to_contain_text("(mA)")
    expect(of_onu.locator("svg")).to_be_attached()


def test_chosen_olts_of_the_admin_are_disabled_after_a_confirmation(bridge, olt):
    page = bridge.open("/admin/inventory/olt/")
    page.locator("input[name=_selected_action]").first.check()
    page.locator("select[name=action]").select_option("disable_chosen")
    page.get_by_role("button", name="Run").click()

    expect(page.get_by_text("Disable these?")).to_be_visible()
    assert Olt.objects.get().enabled
    page.get_by_role("button", name="Yes, I’m sure").click()

    expect(page.get_by_text("Disabled: OLT-SUR-03.")).to_be_visible()
    assert not Olt.objects.get().enabled
