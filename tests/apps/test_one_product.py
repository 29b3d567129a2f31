"""The admin and the pages belong together: menu, links both ways, clock, words, times, empty lists."""

import re

import pytest
from cast import make_log, make_user
from django.test import Client
from django.urls import reverse

from facho.apps.accounts.roles import Role
from facho.apps.inventory.glossary import GLOSSARY
from facho.apps.inventory.models import Scope
from facho.apps.polling.models import PollerStats


def client_of(role):
    client = Client()
    client.force_login(make_user(role))
    return client


def html(page, path):
    return page.get(path).content.decode()


def test_the_menu_has_no_page_that_a_scope_closes(db):
    user = make_user(Role.ENGINEER)
    Scope.objects.create(user=user)
    client = Client()
    client.force_login(user)

    assert client.get("/forecast/").status_code == 403
    assert 'href="/forecast/"' not in html(client, "/")


SETUP = [
    "/jobs/",
    "/alerts/",
    "/maintenance/",
    "/forecast/",
    "/log/",
    "/users/",
    "/account/tokens/",
    "/changes/",
    "/admin/",
]


@pytest.mark.parametrize(
    ("role", "hidden"),
    [
        pytest.param(Role.VIEWER, {"/users/", "/changes/", "/admin/"}, id="viewer"),
        pytest.param(Role.OPERATOR, {"/users/", "/changes/"}, id="operator"),
        pytest.param(Role.ENGINEER, {"/users/"}, id="engineer"),
        pytest.param(Role.ADMIN, set(), id="admin"),
    ],
)
def test_the_setup_menu_has_the_pages_of_the_role(db, role, hidden):
    shown = html(client_of(role), "/")
    menu = shown[shown.index('id="setup-menu"') :].partition("</details>")[0]

    assert re.findall(r'<a href="([^"]+)"', menu) == [path for path in SETUP if path not in hidden]


@pytest.mark.parametrize(
    ("model", "page"),
    [
        pytest.param("inventory_olt", "/olts/{olt}/", id="OLT"),
        pytest.param("jobs_snmpjob", "/jobs/{job}/", id="job"),
        pytest.param("jobs_workflow", "/olts/{olt}/", id="workflow"),
        pytest.param("jobs_workflownode", "/nodes/{node}/", id="node"),
        pytest.param("telemetry_onu", "/onus/{onu}/", id="ONU"),
        pytest.param("polling_execution", "/executions/?olt={olt}", id="execution"),
        pytest.param("coordinator_coordinatorlog", "/log/?olt={olt}", id="log"),
    ],
)
def test_a_page_of_the_admin_leads_to_that_of_the_dashboard(admin_page, onu, node, execution, model, page):
    ids = {"olt": onu.olt_id, "job": node.job_id, "node": node.pk, "onu": onu.pk, "execution": execution.pk}
    entry = make_log("OLT_DISABLED", olt=onu.olt)
    key = {"snmpjob": "job", "workflownode": "node", "onu": "onu", "execution": "execution"}.get(
        model.split("_")[1], "olt"
    )
    row = entry.pk if model.endswith("log") else ids[key]

    shown = html(admin_page, reverse(f"admin:{model}_change", args=[row]))
    listed = html(admin_page, reverse(f"admin:{model}_changelist"))

    assert re.search(r'id="dashboard-page" href="([^"]+)"', shown)[1] == page.format(**ids)
    assert 'id="dashboard-page"' in listed


def test_pages_lead_to_the_settings_in_the_admin(admin_page, node, power):
    assert f'href="/admin/jobs/snmpjob/{power.pk}/change/"' in html(admin_page, f"/jobs/{power.pk}/")
    assert f'href="/jobs/{power.pk}/"' in html(admin_page, f"/nodes/{node.pk}/")
    assert f'href="/jobs/{power.pk}/"' in html(admin_page, f"/olts/{node.olt_id}/")
    assert f'href="/nodes/{node.pk}/"' in html(admin_page, f"/jobs/{power.pk}/")


def test_the_admin_has_the_logo_and_names_the_zone_beside_a_clock(admin_page, settings):
    shown = html(admin_page, "/admin/")

    assert "dashboard/mark.svg" in shown
    assert re.search(r'<time datetime="[^"]+" data-zone="UTC">\d\d:\d\d:\d\d</time> <small>UTC</small>', shown)


def test_a_harmless_no_has_no_colour(admin_page, db):
    numbers = ("total_pollers", "free_pollers", "busy_pollers", "busy_percentage", "queue_size", "delayed")
    PollerStats.objects.create(
        timestamp="2026-01-01T00:00Z",
        is_saturated=False,
        **dict.fromkeys((*numbers, "total_tasks_completed", "total_tasks_delayed"), 0),
    )
    shown = html(admin_page, "/admin/polling/pollerstats/")
    table = shown[shown.index("<tbody", shown.index('id="result_list"')) :].partition("</table>")[0]

    assert "<span>no</span>" in table
    assert "-red-" not in table
    # The same format as on the pages.
    assert "Jan 1, 2026, 00:00:00" in table


def test_an_empty_list_has_a_plain_sentence(admin_page, db):
    assert "There are no plans yet." in html(admin_page, "/admin/coordinator/executionplan/")
    assert "Nothing matches these filters." in html(admin_page, "/admin/inventory/olt/?q=nothing")
    assert "yielded" not in html(admin_page, "/admin/coordinator/executionplan/")


def test_every_word_that_a_page_explains_is_in_the_glossary(admin_page, node, onu):
    pages = ["/", "/jobs/", f"/jobs/{node.job_id}/", f"/nodes/{node.pk}/", f"/olts/{onu.olt_id}/", "/executions/"]
    for path in pages:
        shown = html(admin_page, path)
        ids = re.findall(r'role="tooltip" id="([^"]+)"', shown)
        assert ids, path
        assert len(set(ids)) == len(ids), path
        assert re.findall(r'class="term-word" aria-describedby="([^"]+)"', shown) == ids, path

    listed = html(admin_page, "/glossary/")
    assert [key for key in GLOSSARY if f'id="{key}"' not in listed] == []


@pytest.mark.parametrize("path", ["/nothing/", "/olts/999999/", "/admin/nothing/"])
def test_an_unknown_address_has_a_page_of_its_own(admin_page, db, path):
    answer = admin_page.get(path)

    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()
