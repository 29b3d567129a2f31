"""Asking an OLT more often than it can bear is allowed, and warned about wherever somebody could change it."""

import pytest
from cast import make_job
from django.contrib.messages import get_messages
from django.urls import reverse
from test_admin_jobs import ADD, FORM, change

from facho.apps.jobs.columns import floor_warnings
from facho.apps.jobs.models import SnmpJob
from facho.brands import BRANDS

FLOOR = round(BRANDS["huawei"].columns["rx_dbm"].floor.total_seconds())


def said(every="5 minutes", columns="received power (dBm)"):
    return (
        f"An interval of {every} is too short for these columns of Huawei MA5600T / MA5800: {columns}. "
        f"Use at least {FLOOR // 60} minutes."
    )


@pytest.mark.parametrize(
    ("columns", "interval", "warned"),
    [
        pytest.param(["rx_dbm"], FLOOR, [], id="as often as it can bear"),
        pytest.param(["rx_dbm"], FLOOR - 1, [said(f"{FLOOR - 1} seconds")], id="a second too often"),
        pytest.param(
            ["rx_dbm", "tx_dbm"],
            300,
            [said(columns="received power (dBm), sent power (dBm)")],
            id="two columns, one sentence",
        ),
        pytest.param(["name"], 10, [], id="a column that costs nothing"),
        pytest.param(["no_such_column"], 10, [], id="a column that is none"),
    ],
)
def test_a_pace_beyond_the_floor_of_a_column_is_warned_about(columns, interval, warned):
    assert floor_warnings("huawei", "table", columns, interval) == warned


def test_a_brand_that_is_gone_warns_of_nothing():
    assert floor_warnings("acme", "table", ["rx_dbm"], 10) == []


def test_what_a_brand_proposes_is_never_too_fast():
    for brand in BRANDS.values():
        for template in brand.templates:
            masters = {each.name: each for each in brand.templates}
            every = masters[template.follows or template.name].interval.total_seconds()
            assert floor_warnings(brand.id, template.kind, template.columns, round(every)) == []


def test_a_job_warns_and_a_chained_one_by_the_interval_of_its_master(db):
    master = make_job("Names", columns=["name"], interval_seconds=FLOOR)
    chained = make_job("Power behind it", follows=master, interval_seconds=60)

    assert make_job("Optical power").warnings == [said()]
    assert chained.warnings == []


def test_a_node_warns_by_what_it_has_of_its_own(node, chained):
    SnmpJob.objects.filter(pk=node.job_id).update(interval_seconds=FLOOR)
    node.refresh_from_db()
    before = node.warnings
    node.own_interval_seconds = 300

    assert (before, node.warnings) == ([], [said()])
    assert chained.warnings == []


def test_a_chained_node_warns_by_what_its_master_has_of_its_own(central):
    master = make_job("Names", columns=["name"], interval_seconds=FLOOR)
    make_job("Power behind it", follows=master)
    [node] = master.apply_to([central])
    node.own_interval_seconds = 60
    node.save()

    assert node.chain.get().warnings == [said("1 minute")]


def test_the_api_tells_of_jobs_and_nodes(api, power, node):
    assert api.get(f"/api/v1/jobs/{power.pk}/").json()["warnings"] == [said()]
    assert api.get(f"/api/v1/nodes/{node.pk}/").json()["warnings"] == [said()]


def test_a_warning_refuses_nothing_and_follows_the_saving(admin_page, power):
    answer = admin_page.post(change(power), FORM)

    assert answer.status_code == 302
    assert said() in [str(message) for message in get_messages(answer.wsgi_request)]


def test_a_slow_job_is_saved_without_a_word(admin_page, db):
    answer = admin_page.post(ADD, FORM | {"brand": "huawei", "interval_seconds": str(FLOOR)})

    assert not [str(message) for message in get_messages(answer.wsgi_request) if "too short" in str(message)]


def test_form_and_list_of_jobs_show_it(admin_page, power):
    form = admin_page.get(change(power)).context["adminform"].form
    jobs = admin_page.get(reverse("admin:jobs_snmpjob_changelist")).content.decode()

    assert form.fields["interval_seconds"].help_text == said()
    assert "interval too short" in jobs


def test_the_form_of_a_node_shows_it_and_saving_says_it(admin_page, node):
    page = reverse("admin:jobs_workflownode_change", args=[node.pk])

    shown = admin_page.get(page).context["adminform"].form.fields["own_interval_seconds"].help_text
    answer = admin_page.post(page, {"own_interval_seconds": "60", "own_priority": "", "own_enabled": "unknown"})

    assert shown == said()
    assert f"{node}: {said('1 minute')}" in [str(message) for message in get_messages(answer.wsgi_request)]


def test_the_page_of_an_olt_shows_it_beside_the_node(admin_page, node):
    assert said() in admin_page.get(f"/olts/{node.olt_id}/").content.decode()


@pytest.mark.parametrize("many", [1, 12])
def test_warnings_cost_no_query_a_row(api, central, django_assert_num_queries, many):
    master = make_job("Names", columns=["name"])
    for number in range(many):
        make_job(f"Power {number}", follows=master)
    master.apply_to([central])

    with django_assert_num_queries(5):
        api.get("/api/v1/jobs/")
    with django_assert_num_queries(3):
        api.get("/api/v1/nodes/")
