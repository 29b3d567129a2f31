"""Pages of maintenance: a start in two clicks, the list, the form, and the badges on other pages."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from cast import make_maintenance, make_onu, make_port
from django.test import Client
from django.utils import timezone

from facho.apps.changes.models import Change
from facho.apps.inventory.models import Site
from facho.apps.maintenance.models import Maintenance
from problem_rows import make_problem

HOUR = timedelta(hours=1)
BADGE = 'class="badge maintenance"'


@pytest.fixture
def page(reader):
    """A browser of a viewer."""
    client = Client()
    client.force_login(reader)
    return client


def html(page, path):
    return page.get(path).content.decode()


def test_a_maintenance_starts_on_the_page_of_an_olt(admin_page, boss, central):
    path = f"/olts/{central.pk}/"
    assert f'action="{path}maintenance/"' in html(admin_page, path)

    answer = admin_page.post(f"{path}maintenance/", {"minutes": "120", "reason": "Fans", "back": path})

    plan = Maintenance.objects.get()
    assert (answer.status_code, answer.url) == (302, path)
    assert (plan.olt, plan.reason, plan.polling, plan.author_name) == (central, "Fans", False, "boss")
    assert plan.ends_at - plan.starts_at == 2 * HOUR
    assert Change.objects.filter(object_type="maintenance.maintenance", action="created", actor="boss").exists()
    shown = html(admin_page, path)
    assert BADGE in shown
    assert "Alerts are held, and nothing is polled." in shown


def test_it_ends_and_is_extended_where_it_is_shown(admin_page, central):
    plan = make_maintenance(central)
    act = f"/maintenance/{plan.pk}/act/"

    admin_page.post(act, {"action": "extend", "minutes": "60"})
    assert plan.windows.get().ends_at == plan.ends_at + HOUR
    admin_page.post(act, {"action": "end"})

    assert plan.windows.get().ends_at == timezone.now()
    assert BADGE not in html(admin_page, f"/olts/{central.pk}/")
    assert "It is not running." in admin_page.post(act, {"action": "end"}, follow=True).content.decode()


def test_a_viewer_sees_it_and_changes_nothing(page, central):
    plan = make_maintenance(central, reason="Fans")

    shown = html(page, "/maintenance/")

    assert "Fans" in shown
    assert "/act/" not in shown
    assert "/maintenance/new/" not in shown
    assert page.post(f"/maintenance/{plan.pk}/act/", {"action": "end"}).status_code == 403


def test_a_form_reads_its_times_in_its_zone(admin_page, central):
    values = {"olt": central.pk, "starts_at": "2099-07-01T22:00", "ends_at": "2099-07-02T02:00"}

    answer = admin_page.post(
        "/maintenance/new/", {**values, "zone": "America/Lima", "recurrence": "weekly", "polling": "on"}
    )

    plan = Maintenance.objects.get()
    assert answer.status_code == 302
    assert (plan.starts_at, plan.ends_at) == (datetime(2099, 7, 2, 3, tzinfo=UTC), datetime(2099, 7, 2, 7, tzinfo=UTC))
    assert 'value="2099-07-01T22:00"' in html(admin_page, f"/maintenance/{plan.pk}/")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"ends_at": "2099-06-30T00:00"}, "The end must be after the start.", id="ends before it starts"),
        pytest.param({"zone": "Mars/Base"}, "Unknown time zone.", id="unknown zone"),
        pytest.param({"olt": ""}, "Choose either an OLT, a site or a tag.", id="of nothing"),
    ],
)
def test_a_form_says_what_is_wrong(admin_page, central, values, said):
    form = {"olt": central.pk, "starts_at": "2099-07-01T22:00", "ends_at": "2099-07-02T02:00", "zone": "UTC"}

    answer = admin_page.post("/maintenance/new/", {**form, "recurrence": "none", **values})

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not Maintenance.objects.exists()


def test_a_form_starts_with_what_the_page_before_it_was_about(admin_page, central):
    shown = html(admin_page, f"/maintenance/new/?olt={central.pk}&slot=0&port=1")

    assert f'<option value="{central.pk}" selected>' in shown
    assert 'name="port" value="1"' in shown


def test_what_is_in_maintenance_has_a_badge_everywhere(page, central):
    central.site = Site.objects.create(name="Lima")
    central.save()
    onu = make_onu(central, 7)
    make_port(central, 0, 1, online=1)
    problem = make_problem(central)
    make_maintenance(site=central.site)

    paths = ["/olts/", "/problems/", f"/problems/{problem.pk}/", f"/onus/{onu.pk}/", f"/olts/{central.pk}/ports/0/1/"]
    assert [path for path in paths if BADGE not in html(page, path)] == []
    assert "Maintenance of Lima" in html(page, "/")


def test_a_port_in_maintenance_is_marked_and_its_olt_is_not(page, central):
    make_port(central, 0, 1, online=1)
    make_maintenance(central, slot=0, port=1)

    assert BADGE in html(page, f"/olts/{central.pk}/ports/0/1/")
    assert BADGE not in html(page, "/olts/")


def test_the_ports_of_an_olt_in_maintenance_have_no_badge_of_their_own_on_its_page(page, central):
    make_port(central, 0, 1, online=1)
    make_port(central, 0, 2, online=1)
    make_maintenance(central)

    assert BADGE not in ports_of(page, central)
    make_maintenance(central, slot=0, port=2)
    assert ports_of(page, central).count(BADGE) == 1


def ports_of(page, olt):
    return html(page, f"/olts/{olt.pk}/").partition('class="table ports')[2]


@pytest.mark.parametrize("polling", [True, False])
def test_without_polling_a_node_runs_when_the_maintenance_is_over(page, central, node, polling):
    soon = timezone.now() + timedelta(minutes=4)
    type(node).objects.filter(pk=node.pk).update(next_run_at=soon)
    plan = make_maintenance(central, polling=polling)

    nodes = html(page, f"/olts/{central.pk}/").partition('class="table nodes')[2].partition("</table>")[0]

    expected = soon if polling else plan.ends_at
    # The chained node runs with it.
    assert re.findall('datetime="([^"]+)" data-due', nodes) == [expected.isoformat()] * 2


def test_the_figures_of_an_olt_have_marks(page, central, norte):
    plan = make_maintenance(central, reason="Fans")
    make_maintenance(norte)

    found = re.search('id="figure-marks" type="application/json">(.*?)</script>', html(page, f"/olts/{central.pk}/"))

    assert found
    [mark] = json.loads(found[1])
    assert mark["title"] == "Maintenance of OLT-CENTRAL-01: Fans"
    assert (mark["at"], mark["until"]) == tuple(round(at.timestamp() * 1000) for at in (plan.starts_at, plan.ends_at))


def test_charts_have_a_mark_for_the_time_of_a_maintenance(page, central):
    onu = make_onu(central, 7)
    make_port(central, 0, 1, online=1)
    plan = make_maintenance(central, reason="Fans")

    [of_onu] = page.get(f"/onus/{onu.pk}/history/").json()["marks"]
    [of_port] = page.get(f"/olts/{central.pk}/ports/0/1/history/").json()["marks"]

    start = round(plan.starts_at.timestamp() * 1000)
    assert (of_onu["kind"], of_onu["text"]) == ("maintenance", f"Maintenance of {central.name}: Fans")
    assert abs(of_onu["at"] - start) <= 1
    assert abs(of_port["at"] - start) <= 1
    assert of_onu["until"] > of_onu["at"]


def test_what_is_over_is_in_the_past(page, central):
    plan = make_maintenance(central, reason="Fans")
    plan.end_now()

    assert "Fans" not in html(page, "/maintenance/")
    assert "Fans" in html(page, "/maintenance/?tab=past")
