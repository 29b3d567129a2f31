"""Pages of jobs and of nodes: what they show, and who sets interval and on or off."""

import pytest
from cast import make_job, make_olt, make_user
from django.test import Client

from facho.apps.accounts.roles import Role
from facho.apps.changes.models import Change
from facho.apps.inventory.models import Scope, Site


@pytest.fixture
def page(reader):
    client = Client()
    client.force_login(reader)
    return client


@pytest.fixture
def operator(db):
    client = Client()
    client.force_login(make_user(Role.OPERATOR))
    return client


def html(page, path):
    return page.get(path).content.decode()


def test_the_list_says_what_a_job_reads_and_how_often(page, node):
    [power] = [row for row in page.get("/jobs/").context["jobs"] if row.job.name == "Optical power"]

    assert (power.job.interval_seconds, power.job.olt_count) == (300, 1)
    assert "received power (dBm)" in power.reads
    assert "received power (dBm)" in html(page, "/jobs/")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("?q=optical", ["Optical power"], id="name"),
        pytest.param("?brand=zte_c300", [], id="brand"),
        pytest.param("?is_master=false", ["Names"], id="chained"),
        pytest.param("?sort=-priority&q=Names", ["Names"], id="order"),
    ],
)
def test_filters_find_jobs(page, node, query, expected):
    assert [row.job.name for row in page.get(f"/jobs/{query}").context["jobs"]] == expected


def test_a_job_shows_its_olts_with_the_interval_in_effect(page, node, power):
    node.own_interval_seconds = 900
    node.save()

    shown = html(page, f"/jobs/{power.pk}/")

    assert "OLT-CENTRAL-01" in shown
    assert "15 min" in shown
    assert f'href="/nodes/{node.pk}/"' in shown
    # Viewers change nothing, and have no link to the admin.
    assert 'name="interval_seconds"' not in shown
    assert "/admin/jobs/" not in shown


def test_an_operator_sets_the_interval_of_a_job_and_it_is_recorded(operator, node, power):
    answer = operator.post(f"/jobs/{power.pk}/", {"interval_seconds": "1800", "enabled": "on"})

    power.refresh_from_db()
    assert (answer.status_code, answer.url) == (302, f"/jobs/{power.pk}/")
    assert power.interval_seconds == 1800
    change = Change.objects.get(object_type="jobs.snmpjob", object_id=power.pk, action="changed")
    assert change.fields == {"interval_seconds": [300, 1800]}
    assert "was saved" in html(operator, f"/jobs/{power.pk}/")


def test_other_settings_of_a_job_are_not_taken(operator, node, power):
    operator.post(f"/jobs/{power.pk}/", {"interval_seconds": "600", "enabled": "on", "priority": "99", "name": "x"})

    power.refresh_from_db()
    assert (power.name, power.priority) == ("Optical power", 40)


def test_an_invalid_interval_is_explained_and_the_page_shows_the_present_one(operator, node, power):
    answer = operator.post(f"/jobs/{power.pk}/", {"interval_seconds": "3", "enabled": "on"})

    power.refresh_from_db()
    assert answer.status_code == 200
    assert "greater than or equal to 10" in answer.content.decode()
    assert power.interval_seconds == 300
    assert answer.context["nodes"][0].scheduled.interval_seconds == 300


def test_a_viewer_is_told_what_is_missing(page, node, power):
    for path in (f"/jobs/{power.pk}/", f"/nodes/{node.pk}/"):
        answer = page.post(path, {"interval_seconds": "600"})
        assert answer.status_code == 403
        assert "Operator" in answer.content.decode()


def test_a_chained_job_has_no_interval_of_its_own(operator, chained, names):
    assert 'name="interval_seconds"' not in html(operator, f"/jobs/{names.pk}/")
    assert 'name="own_interval_seconds"' not in html(operator, f"/nodes/{chained.pk}/")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"own_interval_seconds": "120", "own_enabled": ""}, (120, None), id="own interval"),
        pytest.param({"own_interval_seconds": "", "own_enabled": "false"}, (None, False), id="off here"),
        pytest.param({"own_interval_seconds": "", "own_enabled": "true"}, (None, True), id="on here"),
    ],
)
def test_an_operator_sets_the_interval_on_one_olt(operator, node, body, expected):
    answer = operator.post(f"/nodes/{node.pk}/", body)

    node.refresh_from_db()
    assert answer.status_code == 302
    assert (node.own_interval_seconds, node.own_enabled) == expected


def test_a_job_on_olts_outside_the_scope_is_not_changed(node, power):
    user = make_user(Role.ENGINEER)
    scope = Scope.objects.create(user=user)
    lima = Site.objects.create(name="Lima")
    scope.sites.add(lima)
    power.apply_to([make_olt("OLT-LIMA", host="127.0.0.9", site=lima)])
    client = Client()
    client.force_login(user)

    shown = html(client, f"/jobs/{power.pk}/")
    answer = client.post(f"/jobs/{power.pk}/", {"interval_seconds": "600", "enabled": "on"})

    power.refresh_from_db()
    assert "OLT-LIMA" in shown
    assert "OLT-CENTRAL-01" not in shown
    assert "outside your scope" in shown
    assert (answer.status_code, power.interval_seconds) == (403, 300)
    assert client.get(f"/nodes/{node.pk}/").status_code == 404


@pytest.mark.parametrize("number", [1, 20])
def test_pages_cost_a_few_queries_whatever_they_show(page, node, power, django_assert_max_num_queries, number):
    power.apply_to([make_olt(f"OLT-{each}", host=f"127.0.1.{each + 1}") for each in range(number)])
    for each in range(number):
        make_job(f"Job {each}", follows=power)
    page.get("/account/sessions/")

    # Session, user, permissions and scope, open problems; views, ids, jobs, OIDs, remarks.
    with django_assert_max_num_queries(11):
        page.get("/jobs/")
    # Job, OIDs, followers, remarks; ids of nodes, nodes, OIDs, how they ended; changes.
    with django_assert_max_num_queries(15):
        page.get(f"/jobs/{power.pk}/")
