"""The set-up in a browser: menu, words with an explanation, clock, an interval, and the way to the admin and back."""

import pytest
from playwright.sync_api import expect

from apps.cast import make_job, make_olt

pytestmark = [pytest.mark.browser, pytest.mark.django_db]


@pytest.fixture
def power(bridge):
    """Optical power, applied to an OLT."""
    job = make_job("Optical power")
    job.apply_to([make_olt("OLT-CENTRAL-01")])
    return job


@pytest.mark.parametrize("width", [1440, 390])
def test_the_setup_menu_leads_to_the_log(bridge, width):
    page = bridge.open("/glossary/")
    page.set_viewport_size({"width": width, "height": 900})

    page.locator("#setup-menu summary").click()
    page.locator("#setup-menu a", has_text="Log").click()

    expect(page.locator("h1")).to_have_text("Log")
    expect(page.locator("#log")).to_contain_text("The engine has not written anything yet.")


def test_a_word_is_explained_with_pointer_and_keyboard_and_escape_closes_it(bridge, power):
    page = bridge.open("/jobs/")
    word, meaning = page.locator(".term-word").first, page.locator(".term-meaning").first

    expect(meaning).to_be_hidden()
    word.hover()
    expect(meaning).to_be_visible()
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()
    page.mouse.move(0, 0)
    word.focus()
    expect(meaning).to_be_visible()
    box = meaning.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= page.viewport_size["width"]


def test_the_header_names_the_zone_of_the_times(bridge, power):
    page = bridge.open("/jobs/")

    expect(page.locator("#clock")).to_contain_text("GMT-5")


def test_an_interval_is_set_on_the_page_of_a_job_and_its_settings_lead_back(bridge, power):
    page = bridge.open(f"/jobs/{power.pk}/")

    page.locator("[name=interval_seconds]").fill("900")
    page.locator(".interval-form button").click()

    expect(page.locator("#olts")).to_contain_text("15 min")
    page.get_by_role("link", name="All settings").click()
    expect(page.locator("#clock")).to_contain_text("UTC")
    page.locator("#dashboard-page").click()
    expect(page.locator("h1")).to_contain_text("Optical power")


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("width", [1600, 1440, 1280, 1024, 800, 390])
def test_the_header_fits(bridge, width, language):
    page = bridge.page
    page.set_extra_http_headers({"Accept-Language": language})
    bridge.open("/")
    page.set_viewport_size({"width": width, "height": 900})

    box = page.locator(".avatar").bounding_box()

    assert box["x"] + box["width"] <= width
