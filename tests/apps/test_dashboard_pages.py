"""The pages: for whom, with what, and at what cost."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from cast import (
    SECRETS,
    T0,
    make_event,
    make_execution,
    make_job,
    make_olt,
    make_onu,
    make_plan,
    make_port,
    make_quota,
    make_violation,
)
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from facho.adapters.bus.local import LocalBus
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.models import Execution, PollerStats
from facho.apps.telemetry.models import Onu, OnuPosition
from facho.engine.quota.quota import hour_of

EVIL = '<script>alert("7")</script>'

# For session, user, permissions of the user and of the groups, which every page reads first.
LOGIN = 4


@pytest.fixture
def page(reader: User) -> Client:
    """A browser of somebody of the NOC."""
    client = Client()
    client.force_login(reader)
    return client


def html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def boot(text: str) -> dict[str, Any]:
    """Return what a page hands to its scripts."""
    found = re.search(r'<script id="boot" type="application/json">(.*?)</script>', text, re.S)
    assert found
    return dict(json.loads(found[1]))


@pytest.mark.parametrize(
    "path", ["/", "/olts/", "/olts/1/", "/nodes/1/", "/onus/", "/onus/1/", "/onus/1/history/", "/executions/"]
)
def test_a_stranger_is_sent_to_the_login(db, client, path):
    response = client.get(path)

    assert response.status_code == 302
    assert response["Location"] == f"/login/?next={path}"


def test_who_logs_in_comes_to_the_page_they_wanted(db, client):
    User.objects.create_user("noc", password="a-long-password")

    response = client.post("/login/", {"username": "noc", "password": "a-long-password", "next": "/onus/"})

    assert response["Location"] == "/onus/"


def test_a_wrong_password_is_said_on_the_login_page(db, client):
    response = client.post("/login/", {"username": "noc", "password": "wrong"})

    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()


def test_logging_out_leads_back_to_the_login(page):
    response = page.post("/logout/")

    assert response["Location"] == "/login/"
    assert page.get("/").status_code == 302


def test_the_language_can_be_switched(page):
    page.post("/i18n/setlang/", {"language": "es", "next": "/"})

    assert '<html lang="es-419">' in html(page, "/")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("/", "No OLT yet", id="overview"),
        pytest.param("/olts/", "No OLT yet", id="OLTs"),
        pytest.param("/onus/", "No ONU was found yet", id="ONUs"),
        pytest.param("/executions/", "No execution to show", id="executions"),
    ],
)
def test_a_new_installation_says_what_is_missing(page, path, said):
    assert said in html(page, path)


def test_only_who_may_add_an_olt_is_asked_to_add_the_first_one(page, admin_page):
    add = reverse("dashboard:new-olt")

    assert add in html(admin_page, "/")
    assert add not in html(page, "/")


@pytest.mark.parametrize("path", ["/olts/12345/", "/nodes/12345/", "/onus/12345/", "/nowhere/"])
def test_what_is_not_there_is_a_page_of_ours(page, path):
    response = page.get(path)

    assert response.status_code == 404
    assert "Page not found" in response.content.decode()


def test_the_overview_counts_onus_by_how_they_stand(page, central):
    make_onu(central, 1)
    make_onu(central, 2, state="los", rx_dbm=-40.0)
    make_onu(central, 3, rx_dbm=-27.01)
    make_onu(central, 4, rx_dbm=-27.0)

    onus = page.get("/").context["network"].onus

    assert (onus.total, onus.online, onus.dark, onus.weak) == (4, 3, 1, 1)


def test_the_overview_puts_the_olt_in_trouble_first(page, central, norte, sur):
    tiles = page.get("/").context["tiles"]

    assert [tile.olt for tile in tiles] == [sur, norte, central]
    assert "No answer in 5 s." in html(page, "/")


def test_the_overview_counts_each_skipped_slot_of_the_last_hour(page, node):
    now = timezone.now()
    make_execution(node, now - timedelta(minutes=5))
    make_execution(node, now - timedelta(minutes=30), status="SKIPPED", slots=4)
    make_execution(node, now - timedelta(minutes=61))

    outcomes = page.get("/").context["outcomes"]

    assert outcomes["total"] == 5
    assert [(status, n) for status, _, n in outcomes["shown"]] == [("SUCCESS", 1), ("SKIPPED", 4)]


def test_scripts_get_the_snapshot_and_the_minutes_of_the_pool(page):
    now = timezone.now()
    PollerStats.objects.create(
        timestamp=now - timedelta(minutes=2),
        total_pollers=10,
        free_pollers=6,
        busy_pollers=4,
        busy_percentage=40.0,
        queue_size=0,
        delayed=0,
        is_saturated=False,
        total_tasks_completed=1,
        total_tasks_delayed=0,
    )

    handed = boot(html(page, "/"))

    assert handed["snapshot"]["stale"] is True
    assert handed["busy"]["above"] == 75.0
    assert handed["busy"]["until"] == 65.0
    assert [percentage for _, percentage in handed["busy"]["minutes"]] == [40.0]


def test_a_chain_is_folded_under_its_master(page, execution):
    text = html(page, "/executions/")

    assert text.count('<details class="composite"') == 1
    assert "link 2 of 2" in text
    assert "No answer in 5 s." in text


@pytest.mark.parametrize("path", ["/", "/executions/", "/olts/{}/"], ids=["overview", "executions", "OLT"])
def test_a_chain_is_shown_in_the_order_in_which_it_ran(page, execution, chained, path):
    third = make_job("Third", follows=execution.node.job).nodes.get()
    make_execution(third, master_execution=execution)

    [master] = page.get(path.format(execution.olt_id)).context["composites"]

    assert [link.node_name for link in master.links.all()] == ["Names", "Third"]


def test_executions_can_be_filtered_by_the_status_of_a_link(page, execution, node):
    make_execution(node, T0 + timedelta(minutes=5))

    found = page.get("/executions/?status=FAILED").context["composites"]

    assert found == [execution]


def test_the_executions_of_an_olt_continue_where_its_page_ends(page, node):
    made = [make_execution(node, T0 + timedelta(minutes=n)) for n in range(14)]

    first = page.get(f"/olts/{node.olt_id}/").context
    second = page.get(f"/executions/?olt={node.olt_id}&before={first['older']}").context

    assert first["composites"] == made[:1:-1]
    assert second["composites"] == made[1::-1]


def test_an_olt_shows_its_nodes_in_the_order_in_which_they_run(page, central, node, chained, execution):
    rows = page.get(f"/olts/{central.pk}/").context["nodes"]

    assert [(row.node, row.last.status) for row in rows] == [(node, "SUCCESS"), (chained, "FAILED")]


def test_run_now_is_offered_only_to_who_may(page, admin_page, central, node):
    path = f"/olts/{central.pk}/"
    button = f'data-run="/api/v1/pollers/nodes/{node.pk}/run/"'

    assert button in html(admin_page, path)
    assert button not in html(page, path)


def test_a_node_that_is_off_cannot_be_run(admin_page, central, node):
    central.disable()

    assert f"/nodes/{node.pk}/run/" not in html(admin_page, f"/olts/{central.pk}/")


def test_an_onu_page_answers_why_its_power_is_old(page, node, onu, execution):
    Execution.objects.filter(pk=execution.pk).update(status="FAILED", error="OLT-CENTRAL-01 did not answer within 5 s")
    live.attach(bus := LocalBus())
    bus.publish("snapshot", {**live.EMPTY, "at": timezone.now().isoformat()})

    try:
        response = page.get(f"/onus/{onu.pk}/")
    finally:
        live.attach(None)

    fresh = response.context["power"]
    assert fresh.sentence == "The last run failed. OLT-CENTRAL-01 did not answer within 5 s"
    assert [row.node for row in fresh.readers] == [node]


@pytest.mark.parametrize(
    "path", ["/", "/olts/", "/olts/{olt}/", "/nodes/{node}/", "/onus/", "/onus/{onu}/", "/executions/"]
)
def test_what_a_device_calls_itself_is_never_markup(page, node, path):
    Olt.objects.filter(pk=node.olt_id).update(
        name=f"A{EVIL}", last_error=EVIL, location=EVIL, reachability="slow", extra={EVIL: EVIL}
    )
    onu = make_onu(
        node.olt, 7, name=EVIL, description=EVIL, serial="<b>7", model=EVIL, rx_dbm=-30.0, extra={EVIL: EVIL}
    )
    make_execution(node, node_name=EVIL, status="FAILED", error=EVIL)
    now = hour_of(timezone.now())
    make_quota(node, now, task_type=EVIL, failed=1)
    make_violation(node, now, task_type=EVIL)
    make_plan(node, now, plan_data=[{"node_id": node.pk, "task": EVIL, "slot": now.isoformat()}])

    text = html(page, path.format(olt=node.olt_id, onu=onu.pk, node=node.pk))

    assert EVIL not in text
    assert "<b>7" not in text
    assert "&lt;script&gt;" in text


def test_names_in_the_news_cannot_end_the_script_they_are_handed_over_in(page):
    live.attach(bus := LocalBus())
    poller = {"id": 1, "status": "BUSY", "olt": "</script><script>alert(7)</script>"}
    bus.publish("snapshot", {**live.EMPTY, "at": timezone.now().isoformat(), "pollers": [poller]})

    try:
        text = html(page, "/")
    finally:
        live.attach(None)

    assert "<script>alert(7)" not in text
    assert boot(text)["snapshot"]["pollers"] == [poller]


@pytest.mark.parametrize("path", ["/", "/login/", "/onus/", "/olts/{olt}/", "/nodes/{node}/"])
def test_a_page_runs_nothing_but_our_own_files(page, client, node, execution, path):
    now = hour_of(timezone.now())
    make_quota(node, now, failed=1)
    make_plan(node, now)

    response = (client if path == "/login/" else page).get(path.format(olt=node.olt_id, node=node.pk))

    assert "default-src 'self'" in response["Content-Security-Policy"]
    text = response.content.decode()
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    assert " style=" not in text
    assert not re.findall(r"<script(?![^>]*(?:src=|application/json))", text)


@pytest.mark.parametrize("path", ["/", "/olts/", "/olts/{olt}/", "/onus/{onu}/"])
def test_no_secret_is_on_a_page(admin_page, central, onu, path):
    text = html(admin_page, path.format(olt=central.pk, onu=onu.pk))

    assert not [secret for secret in SECRETS.values() if secret in text]


def fill(central: Olt, node: WorkflowNode, chained: WorkflowNode, times: int) -> Onu:
    """Make so many of everything that a page shows."""
    for n in range(times):
        other = make_olt(f"OLT-{n}", reachability="unreachable", last_error="No answer in 5 s.")
        make_onu(other, n, rx_dbm=-30.0)
        make_onu(central, 100 + n)
        lost = make_onu(central, n, state="los")
        make_event(lost)
        OnuPosition.at(lost.pk, central.pk, -12.0, -77.0).save()
        make_port(central, 0, n + 1, online=1, los=1)
        master = make_execution(node, T0 + timedelta(minutes=n), status="FAILED", error="No answer in 5 s.")
        make_execution(chained, T0 + timedelta(minutes=n), master_execution=master, status="SKIPPED")
        now = hour_of(timezone.now())
        make_quota(node, now - timedelta(hours=n), completed=1, failed=3)
        make_violation(node, now - timedelta(hours=n))
    make_plan(node, now)
    return Onu.objects.filter(olt=central).latest("id")


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize(
    ("path", "queries"),
    [
        # Each page counts the open problems for its menu.
        # Problems, OLTs and those with a tile, their ONUs, all ONUs, ports that are down, outcomes, masters, their
        # links, minutes of the pool, weakest, dark by each of three states and the latest of them, excused slots, sums
        # of the quotas and those of OLTs that missed slots, violations, maintenance.
        pytest.param("/", 20, id="overview"),
        # Problems, critical ones, OLTs and those with a tile, their ONUs, all ONUs, ports that are down, dark by each
        # of three states, weakest.
        pytest.param("/?tv", 12, id="TV mode"),
        # Views, OLTs, ONUs and ports by OLT, their tags, and tags for the filter.
        pytest.param("/olts/", 8, id="OLTs"),
        # OLT, counters, masters, links, nodes, how they ended, what runs, quotas, the plan and what ran in its hour,
        # other OLTs with its device, its tags, its changes, the power of its ports, its problems, raw OIDs, replaced
        # devices, maintenance now and next.
        pytest.param("/olts/{olt}/", 20, id="one OLT"),
        # Count, ports, their power, OLTs with their sites for the filter, and tags.
        pytest.param("/ports/", 6, id="ports"),
        # Port with OLT, its problems, ONUs, events, yesterday and a week ago in open and closed periods, runs, changes,
        # maintenance.
        pytest.param("/olts/{olt}/ports/0/1/?hours=720", 13, id="one port"),
        # Node, its slots, the plans, and its changes.
        pytest.param("/nodes/{node}/", 5, id="why a node is late"),
        # Views, ids, rows, OLTs with their sites for the filter, and tags.
        pytest.param("/onus/", 6, id="ONUs"),
        # Ports, the chosen OLT for the filter and its name, and the texts of OLTs for the search.
        pytest.param("/onus/?olt={olt}&port=0/1&q=client&sort=rx_dbm", 10, id="ONUs, with the ports of an OLT"),
        # ONU with OLT, problems, those it replaced, nodes, how they ended, what runs, events, notes, places, others,
        # maintenance.
        pytest.param("/onus/{onu}/", 13, id="one ONU"),
        # ONU with OLT, count, rows.
        pytest.param("/onus/{onu}/events/", 4, id="the events of an ONU"),
        # ONU with OLT, its id, runs, chunks, neighbours on the port, their runs and chunks, events before and in the
        # period, changes, maintenance.
        pytest.param("/onus/{onu}/history/", 14, id="the history of an ONU"),
        # Positions, their number, sites, OLTs with their sites for the filter, tags, and counters.
        pytest.param("/map/", 7, id="map"),
        # Views, ids, masters, links, OLTs with their sites for the filter, and tags.
        pytest.param("/executions/", 7, id="executions"),
        pytest.param("/executions/?olt={olt}&status=FAILED", 9, id="executions, filtered"),
    ],
)
def test_a_page_costs_a_few_queries_whatever_it_shows(
    page, central, node, chained, django_assert_num_queries, path, queries, times
):
    onu = fill(central, node, chained, times)
    # The first request stores the address and browser of the session.
    page.get("/account/sessions/")

    with django_assert_num_queries(LOGIN + queries):
        html(page, path.format(olt=central.pk, onu=onu.pk, node=node.pk))


def test_a_job_of_which_no_slot_has_come_yet_has_no_percentage(page, node, central):
    make_quota(node, hour_of(timezone.now()), completed=0, pending=4)

    shown = page.get(f"/olts/{central.pk}/").content.decode()

    assert re.search(r'class="strip-sum">\s*([^<]*)<', shown)[1] == "–"


def test_an_olt_has_charts_of_its_figures(page, central):
    shown = page.get(f"/olts/{central.pk}/").content.decode()

    assert f'data-url="/api/v1/olts/{central.pk}/stats/"' in shown
    assert re.findall(r'data-figure="(\w+)"', shown) == [
        "success",
        "duration",
        "round_trip",
        "retransmissions",
        "retry_gap",
        "lost",
    ]
    for hours, step in re.findall(r'data-figure-hours="(\d+)" data-step="(\w+)"', shown):
        since = timezone.now() - timedelta(hours=int(hours))
        answer = page.get(f"/api/v1/olts/{central.pk}/stats/", {"from": since.isoformat(), "step": step})
        assert 48 <= len(answer.json()["points"]) <= 62
