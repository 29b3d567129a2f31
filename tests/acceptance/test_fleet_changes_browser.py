"""Questions about the fleet, and a change of a job on many OLTs, in a browser."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from test_accessibility_browser import AXE, violations

from apps.cast import make_job, make_olt
from apps.forecast_answers import ANSWER
from facho.apps.changes.models import Change
from facho.apps.coordinator.models import Forecast
from facho.apps.jobs.models import WorkflowNode

pytestmark = [pytest.mark.browser, pytest.mark.django_db]


@pytest.fixture
def job(bridge):
    """State every five minutes on five OLTs; a sixth has another brand."""
    olts = [make_olt(f"OLT-{number}", host=f"127.0.0.{number}") for number in range(1, 6)]
    make_olt("OLT-ZTE", "zte", host="127.0.0.9")
    found = make_job("State", columns=["state"], interval_seconds=300)
    found.apply_to(olts)
    WorkflowNode.objects.update(durations={"recent": [12.0]})
    return found


def intervals():
    return set(WorkflowNode.objects.values_list("own_interval_seconds", flat=True))


def preview_of_all(bridge):
    page = bridge.page
    bridge.open("/olts/")
    page.locator("[data-tick-all]").check()
    page.get_by_label("Action").select_option("change_job")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Interval").fill("15")
    page.get_by_role("button", name="Preview").click()
    return page


def test_an_interval_is_changed_on_many_olts(bridge, job):
    page = preview_of_all(bridge)

    expect(page.get_by_role("heading", name="State will run every 15 min on 5 OLTs.")).to_be_visible()
    expect(page.locator("#preview tbody tr")).to_have_count(6)
    expect(page.locator("#preview tr.off")).to_contain_text("OLT-ZTE")
    assert intervals() == {None}
    page.get_by_role("button", name="Apply").click()

    expect(page.get_by_text("State: 5 OLTs now every 15 min, 1 was left out.")).to_be_visible()
    assert intervals() == {900}
    assert Change.objects.filter(object_type="jobs.workflownode").values("request_id").distinct().count() == 1


def test_an_olt_that_changed_after_the_preview_is_told(bridge, job):
    page = preview_of_all(bridge)
    WorkflowNode.objects.get(olt__name="OLT-3").set_interval(60)
    page.get_by_role("button", name="Apply").click()

    expect(page.get_by_text("State: 4 OLTs now every 15 min, 2 were left out.")).to_be_visible()
    expect(page.get_by_text("OLT-3: It was changed after the preview: every 5 min, now every 1 min.")).to_be_visible()
    assert intervals() == {900, 60}


def test_the_interval_is_asked_for_only_where_it_matters(bridge, job):
    page = preview_of_all(bridge)
    page.get_by_label("Change").select_option("disable")

    expect(page.get_by_label("Interval")).to_be_hidden()


def test_a_question_leads_from_the_preview_to_its_answer(bridge, job):
    page = preview_of_all(bridge)
    page.get_by_role("link", name="Will it fit?").click()

    expect(page.get_by_text("On 5 OLTs:")).to_be_visible()
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("heading", name="State (Huawei MA5600T / MA5800) every 15 min on 5 OLTs")).to_be_visible()
    expect(page.get_by_text("The engine is not running")).to_be_visible()
    forecast = Forecast.objects.get()
    assert forecast.begin(timezone.now())
    forecast.show_progress(42)
    # The page follows by itself.
    expect(page.get_by_text("42 %")).to_be_visible()
    forecast.end(timezone.now(), result=ANSWER)

    expect(page.get_by_text("Use 14 pollers instead of 9 (FACHO_POLLERS).")).to_be_visible(timeout=15000)
    page.get_by_role("link", name="Change the question").click()
    expect(page.locator("[name=interval]")).to_have_value("15")
    expect(page.locator("#questions")).to_contain_text("State (Huawei MA5600T / MA5800) every 15 min on 5 OLTs")


def test_the_preview_violates_no_rule_of_axe(bridge, job):
    bridge.page.add_init_script(path=AXE)
    page = preview_of_all(bridge)

    assert violations(page, "preview") + violations(page, "preview", is_dark=True) == []


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_screen(bridge, job, width):
    forecast = Forecast.objects.create(params={"question": {"more_olts": 20}}, status="DONE", result=ANSWER)
    page = preview_of_all(bridge)
    page.set_viewport_size({"width": width, "height": 844})

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for path in ("/forecast/", f"/forecast/{forecast.pk}/"):
        bridge.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
