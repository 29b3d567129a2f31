"""The dashboard as a browser draws it: the news, the tables that follow it, and honesty when it stops."""

from datetime import timedelta
from typing import Any

import pytest
from dashboard_bridge import DESK, Bridge
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.engine.quota.quota import hour_of
from history_rows import add_reading
from search_rows import add_text

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

EVIL = '<img src=x onerror="alert(7)">'
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def node(bridge: Bridge) -> WorkflowNode:
    """Optical power on OLT-CENTRAL-01, with State behind it."""
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    job = SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"])
    SnmpJob.objects.create(name="State", brand="huawei", kind="table", columns=["state"], follows=job)
    [node] = job.apply_to([olt])
    return node


@pytest.fixture
def onu(node: WorkflowNode) -> Onu:
    """ONU 7, whose name means no good."""
    now = timezone.now()
    onu = Onu.objects.create(
        olt=node.olt, index="1.7", slot=0, port=1, onu=7, name=EVIL, serial="HWTC00000007", description=EVIL,
        state="online", rx_dbm=-28.4, tx_dbm=2.2, first_seen_at=now,
        own_read_at=now, own_state_at=now, own_power_at=now,
    )  # fmt: skip
    add_text(onu)
    for minutes in range(0, 60, 5):
        add_reading(onu, now - timedelta(minutes=minutes), state="online", rx_dbm=-28.0 - minutes / 100)
    return onu


@pytest.fixture
def execution(node: WorkflowNode) -> Execution:
    return run(node, timezone.now() - timedelta(minutes=5))


def run(node: WorkflowNode, slot: Any, chained: WorkflowNode | None = None) -> Execution:
    """Make a composite of two links that ended at its slot."""
    made: dict[str, Any] = {"olt": node.olt, "slot": slot, "started_at": slot, "ended_at": slot, "poller_id": 3}
    master = Execution.objects.create(node=node, node_name="Optical power", status="SUCCESS", **made)
    chained = chained or node.chain.get()
    Execution.objects.create(node=chained, node_name="State", status="FAILED", master_execution=master, **made)
    return master


def snapshot(**more: Any) -> dict[str, Any]:
    """Return news of two pollers, one of them at work for ten seconds, and of one composite that waits."""
    now = timezone.now()
    since = (now - timedelta(seconds=10)).isoformat()
    busy = {"id": 1, "status": "BUSY", "olt_id": 1, "olt": EVIL, "node_id": 1, "node": EVIL, "busy_since": since}
    free = {"id": 2, "status": "FREE", "olt_id": None, "olt": None, "node_id": None, "node": None, "busy_since": None}
    waiting = {
        "node_id": 2, "node": EVIL, "olt_id": 1, "olt": EVIL, "slot": since, "late": 10.0, "priority": 90,
        "trigger": "manual", "links": 3, "waiting_for": "olt_busy",
    }  # fmt: skip
    stats = {**live.EMPTY["stats"], "total_pollers": 2, "busy_pollers": 1, "busy_percentage": 80.0, "samples": [80.0]}
    return {
        "at": now.isoformat(),
        "pollers": [{**busy, "link": 2, "links": 3}, {**free, "link": None, "links": None}],
        "queue": {"size": 1, "delayed": 1, "next": [waiting]},
        "stats": {**stats, "queue_size": 1, "delayed": 1, "is_saturated": True},
        **more,
    }


def test_news_draws_pollers_and_queue_with_names_as_text(bridge):
    bridge.publish("snapshot", snapshot())

    page = bridge.open("/")
    page.locator(".pool-strip").click()

    pollers = page.locator("#pollers .poller")
    expect(pollers).to_have_count(2)
    busy, free = pollers.all()
    expect(busy).to_contain_text(EVIL)
    expect(busy).to_contain_text("link 2 of 3")
    expect(busy.locator(".poller-status")).to_have_text("busy")
    expect(busy.locator("[data-slot=seconds]")).to_have_text("10 s")
    expect(free.locator(".poller-status")).to_have_text("free")
    expect(page.locator("#queue")).to_contain_text(EVIL)
    expect(page.locator("#queue")).to_contain_text("waiting for its OLT to be free")
    expect(page.locator("#queue")).to_contain_text("10 s late")
    expect(page.locator("#saturation")).to_have_text("saturated")
    expect(page.locator("#engine-state")).to_contain_text("saturated")
    expect(page.locator("#banner")).to_be_hidden()
    assert page.locator("img[src=x]").count() == 0


def test_old_news_is_called_old(bridge):
    bridge.publish("snapshot", snapshot(at=(timezone.now() - timedelta(seconds=12)).isoformat()))

    page = bridge.open("/")

    expect(page.locator("#banner")).to_have_text("The engine has not reported for 12 s: it may be down.")
    expect(page.locator("#engine-state")).to_contain_text("not reporting")


def test_a_lost_connection_is_said_after_a_moment(bridge):
    bridge.stop_timers()
    bridge.publish("snapshot", snapshot())
    page = bridge.open("/")
    expect(page.locator("#connection-state")).to_have_text("Connected")

    bridge.is_down = True
    page.clock.run_for(8000)

    expect(page.locator("#banner")).to_contain_text("The connection to Facho was lost")
    expect(page.locator("#connection-state")).to_have_text("Disconnected")


def test_an_execution_in_the_news_refreshes_the_table_and_leaves_open_what_was_open(bridge, execution):
    page = bridge.open("/executions/")
    page.locator("details.composite summary").click()
    newer = run(execution.node, timezone.now())

    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    expect(page.locator("details.composite")).to_have_count(2)
    expect(page.locator(f"#run-{execution.pk}")).to_have_attribute("open", "")
    expect(page.locator(f"#run-{newer.pk}")).not_to_have_attribute("open", "")
    expect(page.locator(f"#run-{execution.pk}")).to_contain_text("link 2 of 2")


def test_a_burst_of_news_fetches_the_page_once(bridge, execution):
    bridge.stop_timers()
    for _ in range(50):
        bridge.publish("execution", {"id": 1, "olt_id": execution.olt_id, "node_id": 1, "status": "SUCCESS"})
    page = bridge.open("/executions/")
    expect(page.locator("#connection-state")).to_have_text("Connected")

    with page.expect_response("**/executions/"):
        page.clock.run_for(2000)
    page.clock.run_for(10_000)
    page.wait_for_load_state("networkidle")

    assert bridge.fetched.count("/executions/") == 2


def test_news_of_another_olt_leaves_the_page_alone(bridge, execution):
    bridge.stop_timers()
    bridge.publish("execution", {"id": 1, "olt_id": execution.olt_id + 1, "node_id": 1, "status": "SUCCESS"})
    page = bridge.open(f"/olts/{execution.olt_id}/")
    expect(page.locator("#connection-state")).to_have_text("Connected")

    page.clock.run_for(10_000)
    page.wait_for_load_state("networkidle")

    assert bridge.fetched.count(f"/olts/{execution.olt_id}/") == 1


def test_run_now_asks_once_and_reports_it(bridge, node):
    page = bridge.open(f"/olts/{node.olt_id}/")
    button = page.get_by_role("button", name="Run now Optical power")

    button.click()
    expect(page.locator(".toast")).to_contain_text("Requested.")
    button.click()

    expect(page.locator(".toast").last).to_contain_text("already requested")
    assert WorkflowNode.objects.get(pk=node.pk).run_requested_at is not None


def test_run_now_of_an_olt_that_was_disabled_meanwhile_says_why(bridge, node):
    page = bridge.open(f"/olts/{node.olt_id}/")
    node.olt.disable()

    page.get_by_role("button", name="Run now Optical power").click()

    expect(page.locator(".toast")).to_have_text("OLT-CENTRAL-01 is disabled. Enable it first.")


def test_the_search_box_is_used_by_keyboard(bridge, onu):
    bridge.page.set_viewport_size(PHONE)
    page = bridge.open("/olts/")
    box = page.get_by_role("combobox", name="Search ONUs, ports and OLTs")
    options = page.get_by_role("listbox", name="Results").get_by_role("option")

    page.keyboard.press("/")
    page.keyboard.type("central 0/1/7")
    expect(options).to_have_count(1)
    expect(options).to_contain_text(EVIL)
    expect(box).to_have_attribute("aria-expanded", "true")

    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(box).to_have_value("central 0/1/7")
    expect(box).to_have_attribute("aria-expanded", "false")

    page.keyboard.press("ArrowDown")
    expect(options).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(options).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", f"suggested-onu-{onu.pk}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"http://localhost/onus/{onu.pk}/")

    page.keyboard.press("/")
    page.keyboard.type("HWTC-00000007")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"http://localhost/onus/{onu.pk}/")


def test_searching_changes_the_rows_and_the_address(bridge, onu):
    page = bridge.open("/onus/")
    expect(page.locator("#onus tbody tr")).to_have_count(1)

    page.get_by_role("searchbox").fill("nobody")

    expect(page.locator("#onus")).to_contain_text("No ONU matches the filter.")
    expect(page).to_have_url("http://localhost/onus/?q=nobody")
    page.get_by_role("searchbox").fill("0/1/7")
    expect(page.locator("#onus tbody tr")).to_contain_text(EVIL)
    assert page.locator("img[src=x]").count() == 0


def test_the_page_of_an_onu_draws_its_states_and_its_power(bridge, onu):
    # Before it was known it had no state.
    Onu.objects.filter(pk=onu.pk).update(first_seen_at=timezone.now() - timedelta(days=2))

    page = bridge.open(f"/onus/{onu.pk}/")

    expect(page.locator("#power-chart path.rx_dbm")).to_have_count(1)
    expect(page.locator("#power-legend button")).to_have_text(["ONU receives", "mean of the port"])
    expect(page.locator("#timeline-chart rect.span-online")).not_to_have_count(0)
    expect(page.locator("#why")).to_contain_text("Optical power reads it every 5 min: it is on schedule.")


def test_times_are_in_the_zone_of_the_viewer(bridge, onu):
    Onu.objects.filter(pk=onu.pk).update(last_up="2025-06-01T10:00:00Z")

    page = bridge.open(f"/onus/{onu.pk}/")

    expect(page.locator("#fields")).to_contain_text("05:00:00")
    expect(page.locator("#zone")).to_have_text("America/Lima")


@pytest.mark.parametrize(
    ("accepted", "power", "distance", "date"),
    [
        pytest.param("en-US,en", "-28.40", "12,345", "Jun 1, 2025, 05:00:00", id="United States"),
        pytest.param("en-GB,en", "-28.40", "12,345", "1 Jun 2025, 05:00:00", id="United Kingdom"),
        pytest.param("es-PE,es", "-28.40", "12,345", "1 jun 2025, 05:00:00", id="Peru"),
        pytest.param("es-ES,es", "-28,40", "12.345", "1 jun 2025, 05:00:00", id="Spain"),
    ],
)
def test_server_and_scripts_use_the_formats_of_the_region(bridge, onu, accepted, power, distance, date):
    Onu.objects.filter(pk=onu.pk).update(last_up="2025-06-01T10:00:00Z", distance_m=12345)
    bridge.client.defaults["HTTP_ACCEPT_LANGUAGE"] = accepted

    page = bridge.open(f"/onus/{onu.pk}/")

    expect(page.locator("#fields")).to_contain_text(date)
    expect(page.locator("#onu-numbers")).to_contain_text(power)
    expect(page.locator("#onu-numbers")).to_contain_text(distance)
    script = """async () => {
        const { number } = await import("/static/dashboard/time.js");
        return [number(-28.4, 2), number(12345)];
    }"""
    assert page.evaluate(script) == [power.removesuffix("0"), distance]


def test_the_colours_can_be_chosen_and_stay(bridge):
    page = bridge.open("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)

    page.locator("#theme-toggle").click()
    dark = page.evaluate(ground)
    page.reload()

    assert light != dark
    assert page.evaluate(ground) == dark


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize(
    "path", ["/", "/?tv", "/olts/", "/olts/{olt}/", "/onus/", "/onus/{onu}/", "/executions/", "/nowhere/"]
)
def test_a_page_fits_its_screen(bridge, onu, execution, path, size):
    bridge.page.set_viewport_size(size)
    bridge.publish("snapshot", snapshot())

    page = bridge.open(path.format(olt=onu.olt_id, onu=onu.pk))
    page.wait_for_load_state("networkidle")
    page.evaluate("document.querySelectorAll('.pool, .composite').forEach((each) => (each.open = true))")

    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


# The words of each of these elements, as rectangles; those that lie over each other are returned.
OVERLAPS = """selector => {
  const boxes = [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility()).map((each) => {
    const range = document.createRange();
    range.selectNodeContents(each);
    return [each.textContent.trim(), range.getBoundingClientRect()];
  });
  return boxes.flatMap(([word, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map(([other]) => [word, other]));
}"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("language", ["en", "es"])
def test_words_do_not_lie_over_each_other(bridge: Bridge, node: WorkflowNode, language: str, size: dict[str, int]):
    now = timezone.now()
    SnmpJob.objects.create(name="Names", brand="huawei", kind="table", columns=["name"], follows=node.job)
    master = run(node, now - timedelta(minutes=12), node.chain.get(job__name="State"))
    Execution.objects.create(
        node=node.chain.get(job__name="Names"), node_name="Names", status="SUCCESS", master_execution=master,
        olt=node.olt, slot=master.slot, started_at=master.slot, ended_at=master.slot,
    )  # fmt: skip
    Olt.objects.update(reachability="unreachable", breaker_opened_at=now, failures=3)
    bridge.client.cookies["django_language"] = language
    bridge.page.set_viewport_size(size)

    page = bridge.open("/")

    expect(page.locator(".run-chain small").first).to_be_visible()
    assert page.evaluate(OVERLAPS, ".tile .row-link, .tile .badge") == []
    assert page.evaluate(OVERLAPS, ".composite .run-chain small, .composite summary .end") == []


def test_a_long_cell_of_the_admin_is_shown_whole_on_a_phone(bridge: Bridge, node: WorkflowNode):
    CoordinatorLog.objects.create(
        timestamp=timezone.now(), level="WARNING", event_type="QUOTA_VIOLATED", olt=node.olt, message="so long " * 20
    )
    bridge.page.set_viewport_size(PHONE)

    page = bridge.open("/admin/coordinator/coordinatorlog/")

    cell = page.locator("td.field-said")
    assert cell.evaluate("cell => cell.scrollHeight <= cell.clientHeight")


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_fields_of_a_plan_do_not_lie_over_each_other(bridge: Bridge, node: WorkflowNode, language: str):
    hour = hour_of(timezone.now())
    plan = ExecutionPlan.objects.create(
        olt=node.olt, period_start=hour, period_end=hour + timedelta(hours=1), plan_data=[], needed_seconds=0,
        utilisation=0, total_tasks=4, status="SUPERSEDED",
    )  # fmt: skip
    bridge.client.cookies["django_language"] = language

    page = bridge.open(f"/admin/coordinator/executionplan/{plan.pk}/change/")

    assert page.evaluate(OVERLAPS, ".field-row label, .field-row .readonly") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= DESK["width"]


def test_the_marks_of_a_chart_differ(bridge: Bridge, node: WorkflowNode):
    run(node, timezone.now() - timedelta(minutes=20))
    Execution.objects.update(ended_at=F("started_at") + timedelta(seconds=0.2))

    page = bridge.open(f"/olts/{node.olt.pk}/")

    expect(page.locator("[data-figure=duration] svg")).to_be_visible()
    marks = page.locator("[data-figure=duration] .chart-tick[text-anchor=end]").all_text_contents()
    values = [mark for mark in marks if ":" not in mark]
    assert values == ["0", "0.05", "0.1", "0.15", "0.2"]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param("2026-11-12T22:48:17Z", "2026-11-15T22:48:17Z", ["13", "14", "15"], id="midnights in Lima"),
        pytest.param("2026-11-12T03:10:00Z", "2026-11-13T03:10:00Z", ["12", "12", "12", "12"], id="every six hours"),
    ],
)
def test_the_times_of_a_chart_are_round_in_the_zone_of_the_user(bridge: Bridge, since, until, expected):
    page = bridge.open("/")

    found = page.evaluate(
        """async ([since, until]) => {
            const { roundTimes } = await import("/static/dashboard/chart.js");
            return roundTimes(Date.parse(since), Date.parse(until), 4).map((ms) => new Date(ms).toISOString());
        }""",
        [since, until],
    )

    assert [each[8:10] for each in found] == expected
    hours = {int(each[11:13]) for each in found}
    assert hours <= {5, 11, 17, 23}
    assert {each[13:] for each in found} == {":00:00.000Z"}


def test_the_figures_of_an_olt_are_drawn_and_their_range_can_be_chosen(bridge: Bridge, node: WorkflowNode):
    now = timezone.now()
    for number in range(1, 40):
        run(node, now - timedelta(minutes=20 * number))

    page = bridge.open(f"/olts/{node.olt.pk}/")

    figures = page.locator("#figures")
    expect(figures.locator("[data-figure=success] svg .chart-line")).to_have_count(1)
    expect(figures.locator("[data-figure=duration] .legend")).to_have_text("mean95th percentile of runs")
    expect(figures.locator("[data-figure=lost] .empty")).to_have_text("No slot was lost in this period.")
    chosen = figures.locator("[aria-pressed=true]")
    expect(chosen).to_have_text("24 h")
    figures.get_by_role("button", name="7 d", exact=True).click()
    expect(chosen).to_have_text("7 d")
    expect(figures.locator("[data-figure=success] svg .chart-line")).to_have_count(1)
