"""The whole line: a simulated OLT, polled, stored, served, and drawn in a browser."""

import re
from collections.abc import Iterator

import pytest
from installation import PASSWORD, USER, Installation
from playwright.sync_api import Browser, Page, expect

# A whole installation is started, perhaps on a machine that does other things, too.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

# A page follows the news within seconds; a mute OLT is given up after fifteen.
SOON = 60_000


@pytest.fixture
def page(demo: Installation, browser: Browser) -> Iterator[Page]:
    """The overview, after logging in by hand. Whatever the page complains of fails the test."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: request.url.startswith(demo.url) or complaints.append(request.url))
    page.goto(demo.url)
    page.get_by_label("User").fill(USER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    yield page
    context.close()
    assert complaints == []


def test_a_stranger_watches_olts_being_polled(page: Page):
    expect(page.get_by_text("Engine running")).to_be_visible(timeout=SOON)
    expect(page.get_by_text("BUSY").first).to_be_visible(timeout=SOON)
    expect(page.get_by_text("2,100").first).to_be_visible(timeout=SOON)
    expect(
        page.locator("tr, article, li").filter(has_text="OLT-SUR-03").get_by_text("unreachable").first
    ).to_be_visible(timeout=SOON)


def test_the_page_of_an_onu_says_why_its_power_is_as_old_as_it_is(demo: Installation, page: Page):
    onu = demo.wait_for(lambda: demo.get("onus/", state="online", rx_dbm__lt=0)["results"])[0]

    page.goto(f"{demo.url}/onus/{onu['id']}/")

    expect(page.get_by_text("Why is this value old?")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Optical power reads it every"))).to_be_visible()


def test_run_now_runs_the_node_within_seconds(demo: Installation, page: Page):
    olt = demo.get("olts/", search="OLT-CENTRAL-01")["results"][0]
    node = next(node for node in demo.get("nodes/", olt=olt["id"])["results"] if node["job_name"] == "Inventory")

    page.goto(f"{demo.url}/olts/{olt['id']}/")
    page.get_by_role("row").filter(has_text="Inventory").get_by_role("button", name="Run now").click()

    run = demo.wait_for(lambda: demo.get("executions/", node=node["id"], trigger="manual", status="SUCCESS")["results"])
    assert run[0]["readings"] > 0
