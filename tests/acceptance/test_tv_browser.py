"""TV mode as a browser shows it: panels in rotation, a new critical problem, and the sound."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from apps.cast import make_olt, make_onu
from problem_rows import make_problem

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

REFRESH = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture
def olt(bridge):
    olt = make_olt("OLT-CENTRAL-01", reachability="reachable")
    make_onu(olt, 1)
    make_onu(olt, 2, state="los", state_since=timezone.now())
    return olt


def panel(page):
    return page.locator(".tv-panel:visible")


def test_the_panels_change_by_themselves_until_a_user_stops_them(bridge, olt):
    bridge.stop_timers()
    page = bridge.open("/?tv")
    expect(panel(page)).to_have_attribute("id", "tv-problems-1")
    expect(panel(page)).to_contain_text("No problems.")

    page.clock.run_for(16_000)
    expect(panel(page)).to_have_attribute("id", "tv-olts-1")
    expect(panel(page)).to_contain_text("OLT-CENTRAL-01")
    page.clock.run_for(16_000)
    expect(panel(page)).to_have_attribute("id", "tv-onus")
    expect(panel(page)).to_contain_text("client-2")
    page.clock.run_for(16_000)
    expect(panel(page)).to_have_attribute("id", "tv-problems-1")

    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_have_attribute("aria-pressed", "true")
    page.clock.run_for(60_000)
    expect(panel(page)).to_have_attribute("id", "tv-problems-1")
    page.keyboard.press("ArrowLeft")
    expect(panel(page)).to_have_attribute("id", "tv-onus")


def test_many_problems_have_several_panels(bridge, olt):
    for number in range(1, 8):
        make_problem(olt, port=number, key=f"outage/{number}")

    page = bridge.open("/?tv")

    expect(page.locator("#tv-problems-1 .problem")).to_have_count(5)
    expect(page.locator("#tv-problems-2 .problem")).to_have_count(2)
    expect(page.locator("#tv-figures")).to_contain_text("Critical problems7")


def test_a_new_critical_problem_is_shown_at_once_and_others_are_not(bridge, olt):
    page = bridge.open("/?tv")
    page.keyboard.press("ArrowRight")
    expect(panel(page)).to_have_attribute("id", "tv-olts-1")

    make_problem(olt, severity="major", key="outage/1")
    page.evaluate(REFRESH)
    expect(page.locator("#tv-figures")).to_contain_text("1 open problem")
    expect(panel(page)).to_have_attribute("id", "tv-olts-1")
    make_problem(olt, severity="critical", port=2, key="outage/2")
    page.evaluate(REFRESH)

    expect(panel(page)).to_have_attribute("id", "tv-problems-1")
    expect(page.locator("#tv-panels.alarm .problem.critical")).to_have_count(1)


def test_the_sound_is_off_until_a_user_enables_it(bridge, olt):
    page = bridge.open("/?tv")
    button = page.locator("#tv-sound")
    expect(button).to_have_text("Enable sound")

    button.click()
    expect(button).to_have_text("Sound on")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()

    expect(button).to_have_text("Enable sound")


def test_tv_mode_is_dark_for_users_of_the_light_colours(bridge, olt):
    bridge.page.emulate_media(color_scheme="light")
    bridge.page.add_init_script("localStorage.setItem('facho-theme', 'light')")

    page = bridge.open("/?tv")

    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
