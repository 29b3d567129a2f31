"""The pollers of several workers, and how busy they were, as a browser draws them."""

from datetime import timedelta
from typing import Any

import pytest
from dashboard_bridge import DESK
from django.utils import timezone
from playwright.sync_api import expect

from facho.apps.polling import live
from facho.apps.polling.models import PollerStats

pytestmark = [pytest.mark.browser, pytest.mark.django_db]

PHONE = {"width": 400, "height": 844}
# Longer than anybody would choose, and without a place to break it.
LONG = "a-worker-whose-name-somebody-made-as-long-as-it-may-be-and-then-some-more/4194304"


def poller(number: int, worker: str = "", **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(["olt_id", "olt", "node_id", "node", "link", "links", "busy_since"])
    host = f"{worker.partition('/')[0]}.example.net" if worker else ""
    return {"id": number, "status": "FREE", "worker": worker, "host": host, **empty, **more}


def busy(number: int, worker: str = "", *, seconds: int = 10) -> dict[str, Any]:
    since = (timezone.now() - timedelta(seconds=seconds)).isoformat()
    work = {"olt_id": 1, "olt": "OLT-CENTRAL-01", "node_id": 1, "node": "Optical power", "link": 1, "links": 2}
    return poller(number, worker, status="BUSY", busy_since=since, **work)


def snapshot(*pollers: dict[str, Any], **more: Any) -> dict[str, Any]:
    stats = {**live.EMPTY["stats"], "total_pollers": len(pollers), "samples": [0.0]}
    return {**live.EMPTY, "at": timezone.now().isoformat(), "pollers": list(pollers), "stats": stats, **more}


def open_pool(bridge):
    """Open the overview, and the strip of the pollers on it."""
    page = bridge.open("/")
    page.locator(".pool-strip").click()
    return page


def test_pollers_stand_with_their_worker_and_its_machine(bridge):
    bridge.publish("snapshot", snapshot(poller(1, "noc-10/7"), busy(2, "noc-9/8"), poller(3, "noc-9/8")))

    page = open_pool(bridge)

    workers = page.locator("#pollers .worker")
    expect(workers).to_have_count(2)
    nine, ten = workers.all()
    expect(nine.locator(".worker-head")).to_have_text("noc-9/8 on noc-9.example.net 1 of 2 busy")
    expect(nine.locator(".poller")).to_have_count(2)
    expect(nine.locator(".poller").first.locator("[data-slot=seconds]")).to_have_text("10 s")
    expect(ten.locator(".worker-head")).to_have_text("noc-10/7 on noc-10.example.net 0 of 1 busy")
    expect(ten.locator(".poller")).to_have_count(1)


def test_the_seconds_go_on_where_their_poller_stands(bridge):
    bridge.stop_timers()
    bridge.publish("snapshot", snapshot(poller(1, "noc-10/7"), busy(2, "noc-9/8")))
    page = open_pool(bridge)
    expect(page.locator("#pollers .poller.busy [data-slot=seconds]")).to_have_text("10 s")

    page.clock.run_for(3000)

    expect(page.locator("#pollers .poller.busy [data-slot=seconds]")).to_have_text("13 s")
    expect(page.locator("#pollers .poller:not(.busy) [data-slot=seconds]")).to_have_text("")


def test_in_one_process_there_is_nobody_to_tell_apart(bridge):
    bridge.publish("snapshot", snapshot(poller(1), busy(2)))

    page = open_pool(bridge)

    expect(page.locator("#pollers .poller")).to_have_count(2)
    expect(page.locator("#pollers .worker-head")).to_be_hidden()


def test_a_worker_that_leaves_takes_its_pollers_along(bridge):
    bridge.publish("snapshot", snapshot(poller(1, "noc-1/7"), poller(2, "noc-2/8"), poller(3, "noc-2/8")))
    bridge.publish("snapshot", snapshot(poller(2, "noc-2/8"), poller(3, "noc-2/8")))

    page = open_pool(bridge)

    expect(page.locator("#pollers .worker")).to_have_count(1)
    expect(page.locator("#pollers .worker-head")).to_contain_text("noc-2/8")
    expect(page.locator("#pollers .poller-name")).to_have_text(["Poller 2", "Poller 3"])


def test_an_engine_without_workers_says_how_to_get_one(bridge):
    bridge.publish("snapshot", snapshot())

    page = open_pool(bridge)

    expect(page.locator("#pollers-empty")).to_have_text("No worker is running. Start one with `facho worker`.")
    expect(page.locator("#pollers .poller")).to_have_count(0)


def test_of_an_engine_that_is_silent_nothing_is_said_about_workers(bridge):
    bridge.publish("snapshot", snapshot(at=(timezone.now() - timedelta(minutes=5)).isoformat()))

    page = open_pool(bridge)

    expect(page.locator("#banner")).to_contain_text("The engine has not reported for 5 min")
    expect(page.locator("#pollers-empty")).to_have_text("No poller has reported yet.")


def test_the_strip_tells_the_most_important_and_stays_as_the_user_left_it(bridge):
    stats = {**live.EMPTY["stats"], "total_pollers": 3, "busy_pollers": 1, "queue_size": 4, "delayed": 2}
    bridge.publish("snapshot", snapshot(poller(1), busy(2), poller(3), stats=stats))

    page = bridge.open("/")

    strip = page.locator(".pool-strip")
    expect(strip).to_contain_text("1 / 3 busy")
    expect(strip).to_contain_text("In the queue 4")
    expect(strip.locator(".late")).to_have_text("2 delayed")
    expect(strip.locator(".pool-cells i")).to_have_count(3)
    expect(strip.locator(".pool-cells i.on")).to_have_count(1)
    expect(page.locator("#pollers")).to_be_hidden()
    strip.click()
    expect(page.locator("#pollers")).to_be_visible()
    page.reload()
    expect(page.locator("#pollers")).to_be_visible()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("many", [1, 30])
def test_the_pollers_fit_the_screen(bridge, many, size):
    workers = [LONG, "noc-2/8", "noc-3/9"]
    bridge.page.set_viewport_size(size)
    bridge.publish("snapshot", snapshot(*(busy(number, workers[number % 3]) for number in range(many))))

    page = open_pool(bridge)

    expect(page.locator("#pollers .poller")).to_have_count(many)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def make_minutes(*percentages: float) -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    totals = {"queue_size": 0, "delayed": 0, "is_saturated": False, "total_tasks_completed": 1}
    for ago, percentage in enumerate(percentages, 1):
        at = {"timestamp": now - timedelta(hours=ago), "busy_percentage": percentage}
        PollerStats.objects.create(
            **at, **totals, total_tasks_delayed=0, total_pollers=10, free_pollers=6, busy_pollers=4
        )


def test_the_last_days_of_the_pool_can_be_looked_at(bridge):
    make_minutes(40.0, 90.0)
    bridge.publish("snapshot", snapshot(poller(1)))
    page = open_pool(bridge)

    page.get_by_role("button", name="24 h", exact=True).click()

    # Two minutes with hours between them are two dots, each with the busiest of its minutes behind it.
    expect(page.locator("#busy-chart .chart-dot.busy")).to_have_count(2)
    expect(page.locator("#busy-chart .chart-dot.busiest")).to_have_count(2)
    expect(page.get_by_role("button", name="24 h", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="15 min").click()
    expect(page.locator("#busy-chart .busiest")).to_have_count(0)


def test_days_of_which_nothing_is_known_report_it(bridge):
    bridge.publish("snapshot", snapshot(poller(1)))
    page = open_pool(bridge)

    page.get_by_role("button", name="7 d").click()

    expect(page.locator("#busy-chart")).to_have_text("There is no data about the pollers for this period.")
