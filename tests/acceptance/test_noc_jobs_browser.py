"""Everyday jobs of a NOC, each from the overview in at most three clicks.

Typing is no click; what is chosen from a list is two.
"""

import csv
import io
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from apps.cast import make_execution, make_job, make_olt, make_quota, make_violation
from facho.apps.dashboard.models import SavedView
from facho.apps.inventory.models import Olt, Question
from facho.apps.jobs.models import WorkflowNode
from facho.apps.telemetry.models import Onu, PonPort
from facho.engine.quota.quota import hour_of
from facho.problems.models import Problem
from facho.store.history import append
from problem_rows import evaluate, fill_port, make_problem, onus_of, take_down
from search_rows import add_text

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

MOST_CLICKS = 3
SEC, MIN, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# Choosing from a list is two clicks: one opens it.
COUNT = """
const count = (number) => sessionStorage.setItem("clicks", number + Number(sessionStorage.getItem("clicks")));
addEventListener("pointerdown", () => count(1), true);
addEventListener("change", ({ target }) => { if (target.matches("select")) count(2); }, true);
"""


class Noc:
    """The network of the tests: a port whose fibre is cut, a weak port, a full port, and a job that is late."""

    def __init__(self, now):
        self.now = now
        self.central = make_olt("OLT-CENTRAL-01", reachability="reachable", last_answer_at=now)
        self.norte = make_olt("OLT-NORTE-02", host="127.0.0.2", reachability="reachable", last_answer_at=now)
        for place, up in (("0/1", 12), ("0/2", 10), ("0/3", 40)):
            fill_port(self.central, place, up=up, now=now)
        self.cut, self.weak, self.full = ("0/1", "0/2", "0/3")
        Onu.objects.filter(olt=self.central, port=2, onu__lte=5).update(rx_dbm=-28.4)
        take_down(onus_of(self.central, self.cut), at=now - 20 * MIN, seen_at=now)
        Onu.objects.filter(olt=self.central, port=1).update(
            rx_dbm=None, last_rx_dbm=-19.5, last_rx_at=now - 25 * MIN, last_distance_m=4210, last_distance_at=now - HOUR
        )
        self.customer = onus_of(self.central, self.full)[6]
        self.customer.name, self.customer.mac = "Rosa Quispe", "00:25:9E:12:34:56"
        self.customer.save()
        for onu in Onu.objects.all():
            add_text(onu)
        self.node = make_job("State", columns=["state"]).apply_to([self.central])[0]
        evaluate(now)


@pytest.fixture
def noc(db, bridge):
    return Noc(timezone.now())


@pytest.fixture
def page(bridge, noc):
    """The overview. Afterwards the clicks are counted."""
    page = bridge.page
    page.add_init_script(COUNT)
    bridge.open("/")
    yield page
    clicks = page.evaluate("Number(sessionStorage.getItem('clicks'))")
    assert clicks <= MOST_CLICKS, f"{clicks} clicks"


def search(page, words):
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")


def tab(page, name):
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=name)
    address = link.get_attribute("href")
    link.click()
    page.wait_for_url(f"**{address}")
    # Its scripts have run.
    expect(page.locator("#connection-state")).to_have_text("Connected")


def test_who_is_down_and_why(page, noc):
    problem = page.locator(".problem").filter(has_text="OLT-CENTRAL-01 0/1")
    expect(problem).to_contain_text("12 of 12 ONUs down: 12 with loss of signal")
    expect(problem).to_contain_text("Probable cause: fibre cut before the first splitter")

    problem.get_by_role("link", name="Port down").click()

    expect(page.locator("#onus tbody tr")).to_have_count(12)
    expect(page.locator("#evidence")).to_contain_text("none reported a loss of power")


def test_the_port_of_a_customer(page, noc):
    search(page, "rosa quispe")

    page.locator("#onu-head").get_by_role("link", name="0/3/7").click()

    expect(page.get_by_role("heading", name="Port 0/3")).to_be_visible()
    expect(page.locator("#port-onus tbody tr")).to_have_count(40)


@pytest.mark.parametrize("written", ["0025.9e12.3456", "00-25-9E-12-34-56", "{serial}", "central 0/3/7", "quispe rosa"])
def test_a_customer_by_what_is_on_the_label(page, noc, written):
    search(page, written.format(serial=noc.customer.serial))

    expect(page.get_by_role("heading", name="Rosa Quispe")).to_be_visible()


def test_since_when_a_customer_is_down_and_the_last_good_values(page, noc):
    search(page, "central 0/1/3")

    numbers = page.locator("#onu-numbers")
    expect(numbers).to_contain_text("loss of signal")
    expect(numbers).to_contain_text("20 min ago")
    expect(numbers).to_contain_text("-19.50 dBm")
    expect(numbers).to_contain_text("25 min ago")
    expect(numbers).to_contain_text("4,210 m")
    # It is not alone.
    page.locator("#onu-problems").get_by_role("link", name="Port down").click()
    expect(page.locator("#evidence")).to_be_visible()


def test_the_power_of_a_customer_before_and_after_a_visit(page, noc):
    for hours, power in ((30, -26.5), (2, -26.7), (1, -20.1)):
        append(noc.central.pk, noc.now - hours * HOUR, [noc.customer.pk], {"rx_dbm": [power], "state": ["online"]})
    search(page, noc.customer.serial)

    page.locator("#onu-period").get_by_role("link", name="7 d").click()

    expect(page.locator("#power-chart path.rx_dbm")).to_have_count(1)
    expect(page.locator("#onu-period [aria-current]")).to_have_text("7 d")


def test_the_ports_with_low_power(page, noc):
    tab(page, "Ports")
    page.locator("#rankings").get_by_role("link", name="Weakest").click()

    first = page.locator(".all-ports tbody tr").first
    expect(first).to_contain_text("OLT-CENTRAL-01 0/2")
    first.locator(".row-link").click()
    expect(page.locator("#place-problems")).to_contain_text("5 of 10 ONUs with light are below the limit")


def test_the_fullest_port_and_its_free_ids(page, noc):
    tab(page, "Ports")
    page.locator("#rankings").get_by_role("link", name="Fullest").click()
    page.locator(".all-ports tbody .row-link").first.click()

    expect(page.get_by_role("heading", name="Port 0/3")).to_be_visible()
    expect(page.locator("#port-ids")).to_contain_text("41")


def test_which_customers_are_flapping(page, noc):
    onu = onus_of(noc.central, noc.full)[2]
    for minutes in range(5, 55, 10):
        take_down([onu], at=noc.now - minutes * MIN)
        Onu.objects.filter(pk=onu.pk).update(state="online")
        onu.refresh_from_db()
    evaluate(noc.now)
    tab(page, "Problems")

    page.get_by_label("Type").select_option("flapping")

    expect(page.locator(".problem")).to_have_count(1)
    expect(page.locator(".problem")).to_contain_text("down 5 times within 2 h")


def test_whether_a_port_failed_before(page, noc):
    before = {"until": noc.now - 29 * DAY, "since": noc.now - 30 * DAY, "affected": 0}
    make_problem(noc.central, key="cut", port=3, **before)
    make_problem(noc.central, key="other", port=2, **before)
    search(page, "central 0/3")

    page.get_by_role("link", name="Past problems").click()

    expect(page.locator(".problem")).to_have_count(1)
    expect(page.locator(".problem")).to_contain_text("OLT-CENTRAL-01 0/3")


def test_to_take_a_problem_over_and_to_acknowledge_it(page, noc):
    page.locator(".problem").filter(has_text="OLT-CENTRAL-01 0/1").get_by_role("link", name="Port down").click()
    page.get_by_role("button", name="Assign to me").click()
    page.get_by_role("button", name="Acknowledge", exact=True).click()

    expect(page.locator(".problem-marks")).to_contain_text("acknowledged by boss")
    expect(page.locator(".problem-marks")).to_contain_text("assigned to boss")


def test_to_snooze_a_problem(page, noc):
    page.locator(".problem").filter(has_text="OLT-CENTRAL-01 0/1").get_by_role("link", name="Port down").click()
    page.get_by_role("button", name="Snooze").click()

    expect(page.locator(".problem-marks")).to_contain_text("snoozed until")
    assert Problem.objects.get(key=f"outage/{noc.central.pk}/0/1").is_snoozed


def test_what_changed_in_the_night(page, noc):
    onus = onus_of(noc.central, noc.weak)
    for at, power in ((noc.now - 25 * HOUR, -20.0), (noc.now - MIN, -24.5)):
        append(noc.central.pk, at, [onu.pk for onu in onus], {"state": ["online"] * 10, "rx_dbm": [power] * 10})
    search(page, "OLT-CENTRAL-01")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("link", name="Last 24 hours").click()

    expect(page.locator("#summary")).to_contain_text("10 lost at least 1 dB")


def test_why_a_value_is_old(page, noc):
    PonPort.objects.update(read_at=noc.now - HOUR, state_at=noc.now - HOUR)
    make_execution(noc.node, noc.now - 5 * MIN, status="FAILED", error="No answer in 5 s.")
    search(page, noc.customer.serial)

    expect(page.locator("#why")).to_contain_text("The engine does not report: nothing is read until it is back.")
    page.locator("#why").get_by_role("link", name="Its last slots and current obstacles").click()
    expect(page.locator("main")).to_contain_text("No answer in 5 s.")


def test_to_read_a_customer_now(page, noc):
    answer = {"onu": noc.customer.pk, "values": {"state": "online", "rx_dbm": -21.4}, "unanswered": [], "requests": 3}
    answer["seconds"] = 0.4

    search(page, noc.customer.serial)

    page.get_by_role("button", name="Read now").click()
    expect(page.locator("#read-status")).to_have_text("Waiting for the engine.")
    # The engine answers.
    Question.objects.update(state="answered", answer=answer, answered_at=noc.now)

    expect(page.locator("#read-status")).to_contain_text("2 values")


def test_a_filtered_list_as_a_file(page, bridge, noc):
    tab(page, "ONUs")
    page.locator("input[name=port]").click()
    page.keyboard.type("0/1")
    expect(page.locator("#onus tbody tr")).to_have_count(12)

    # The click; a browser cancels downloads that a test answers.
    link = page.get_by_role("link", name="CSV")
    expect(link).to_have_attribute("download", "")
    text = bridge.fetch(f"/onus/csv/{link.get_attribute('href').partition('/csv/')[2]}").decode("utf-8-sig")

    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["state"] for row in rows] == ["loss of signal"] * 12
    assert {row["last received power (dBm)"] for row in rows} == {"-19.5"}


def test_a_list_is_kept_as_a_view(page, noc):
    tab(page, "ONUs")
    page.locator("#views-menu summary").click()
    page.locator("#new-view-name").click()
    page.keyboard.type("Night shift")
    page.keyboard.press("Enter")

    expect(page.locator("#views-menu summary")).to_contain_text("Night shift")
    assert SavedView.objects.get().name == "Night shift"


def test_to_disable_an_olt_and_to_enable_it(page, noc):
    search(page, "OLT-NORTE-02")
    page.get_by_role("button", name="Disable…").click()
    page.get_by_role("button", name="Disable", exact=True).click()

    expect(page.locator("#olt-head")).to_contain_text("disabled")
    assert not Olt.objects.get(pk=noc.norte.pk).enabled
    expect(page.get_by_role("button", name="Enable")).to_be_visible()


def test_which_jobs_are_late_and_which_quota_is_violated(page, noc):
    hour = hour_of(noc.now) - HOUR
    make_quota(noc.node, hour, completed=2, failed=10)
    make_violation(noc.node, hour, severity="CRITICAL")
    WorkflowNode.objects.filter(pk=noc.node.pk).update(next_run_at=noc.now - HOUR)
    evaluate(noc.now)
    page.reload()

    tab(page, "Problems")
    expect(page.locator(".problem").filter(has_text="Quota violated")).to_contain_text("State completed 2 of 4 runs")
    page.locator(".problem").filter(has_text="Job late").locator(".problem-place").click()

    expect(page.get_by_role("heading", name="State")).to_be_visible()
