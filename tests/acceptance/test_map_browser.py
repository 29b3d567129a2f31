"""The map in a browser: markers, their details, problems, the keyboard, and the lists beside it."""

import re

import pytest
from playwright.sync_api import expect

from apps.cast import make_olt, make_onu
from facho.apps.inventory.models import Site
from facho.apps.telemetry.models import OnuPosition
from problem_rows import make_problem

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

PHONE = {"width": 390, "height": 844}


@pytest.fixture
def onus(bridge):
    """Two ONUs in one house, and one 20 km away with a problem."""
    olt = make_olt("OLT-CENTRAL-01", site=Site.objects.create(name="Lima", latitude=-12.1, longitude=-77.1))
    onus = [make_onu(olt, number) for number in (1, 2)] + [make_onu(olt, 3, state="los", rx_dbm=None)]
    for onu, longitude in zip(onus, (-77.0, -77.0, -77.2), strict=True):
        OnuPosition.at(onu.pk, olt.pk, -12.0, longitude).save()
    make_problem(olt, onus=[onus[2].pk])
    return onus


def test_markers_lead_to_onus_ports_problems_and_sites(bridge, onus):
    page = bridge.open("/map/")
    expect(page.locator("#map-summary")).to_have_text("3 ONUs, 1 down, 1 in a problem")

    page.locator(".map-onu").click()
    popup = page.locator("#map-popup")
    expect(popup).to_contain_text("loss of signal")
    expect(popup.get_by_role("link", name="client-3")).to_have_attribute("href", f"/onus/{onus[2].pk}/")
    expect(popup.get_by_role("link", name="OLT-CENTRAL-01 · 0/1/3")).to_have_attribute(
        "href", re.compile("/ports/0/1/")
    )
    expect(popup.get_by_role("link", name=re.compile("Port down"))).to_have_attribute("href", re.compile("/problems/"))

    page.locator(".map-site rect").click()
    expect(popup.get_by_role("link", name="Lima")).to_have_attribute("href", "/olts/?site=Lima")

    # Two ONUs in one house cannot be divided further.
    page.locator(".map-count").click()
    popup.get_by_role("link", name="2 ONUs").click()
    expect(page.locator("tbody .row-link")).to_have_count(2)
    assert bridge.complaints == []


def test_the_map_works_with_the_keyboard(bridge, onus):
    page = bridge.open("/map/")
    expect(page.locator("#map-list li")).to_have_count(2)
    page.get_by_label("Map of ONUs and sites").focus()
    before = page.url
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    assert page.url != before

    page.get_by_role("button", name=re.compile("^Port down")).press("Enter")
    expect(page).to_have_url(re.compile(r"\?problem=\d+#17/-12.00000/-77.20000"))
    expect(page.locator("#map-list li")).to_have_count(1)
    expect(page.locator("#map-list li")).to_have_text(re.compile("client-3"))
    page.locator("#map-list button").press("Enter")
    expect(page.get_by_role("link", name="client-3")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#map-popup")).to_be_hidden()

    page.get_by_role("button", name="Lima").press("Enter")
    expect(page.get_by_role("link", name="Lima")).to_be_focused()


def test_filters_stay_in_the_address(bridge, onus):
    page = bridge.open("/map/")
    # The script has run.
    expect(page.locator("#map-summary")).to_have_text("3 ONUs, 1 down, 1 in a problem")
    page.get_by_label("State").select_option("dark")
    expect(page.locator("#map-summary")).to_have_text("1 ONU, 1 down, 1 in a problem")
    expect(page).to_have_url(re.compile(r"\?state=dark#"))

    page.reload()
    expect(page.locator("#map-summary")).to_have_text("1 ONU, 1 down, 1 in a problem")

    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
