"""Columns that never have a value: a remark on node, job and OLT, in API, admin and pages."""

import pytest
from cast import make_olt
from django.urls import reverse

from facho.apps.inventory import labels
from facho.apps.jobs.models import WorkflowNode

REMARK = "received power (dBm) had no value in the last 12 runs on OLT-CENTRAL-01. Check the OID or remove the column."


@pytest.fixture
def blank(node):
    WorkflowNode.objects.filter(pk=node.pk).update(blank_runs={"rx_dbm": 12, "tx_dbm": 2})
    return node


def test_the_api_remarks_on_node_job_and_olt(api, blank):
    for path in ("nodes", "jobs", "olts"):
        pk = {"nodes": blank.pk, "jobs": blank.job_id, "olts": blank.olt_id}[path]
        assert api.get(f"/api/v1/{path}/{pk}/").json()["remarks"] == [REMARK]


def test_without_blanks_there_is_no_remark(api, node):
    for path, pk in (("nodes", node.pk), ("jobs", node.job_id), ("olts", node.olt_id)):
        assert api.get(f"/api/v1/{path}/{pk}/").json()["remarks"] == []


def test_a_job_names_some_of_its_olts(api, power):
    olts = [make_olt(f"OLT-{number}", host=f"127.0.1.{number}") for number in range(1, 6)]
    power.apply_to(olts)
    WorkflowNode.objects.update(blank_runs={"rx_dbm": 4})

    [remark] = api.get(f"/api/v1/jobs/{power.pk}/").json()["remarks"]

    assert remark == (
        "received power (dBm) had no value in the last 4 runs on OLT-1, OLT-2, OLT-3 and 2 more. "
        "Check the OID or remove the column."
    )


def test_pages_and_admin_show_it(admin_page, blank):
    paths = [
        f"/olts/{blank.olt_id}/",
        f"/nodes/{blank.pk}/",
        reverse("admin:jobs_snmpjob_change", args=[blank.job_id]),
        reverse("admin:jobs_workflow_change", args=[blank.olt_id]),
        reverse("admin:inventory_olt_change", args=[blank.olt_id]),
    ]

    for path in paths:
        assert REMARK in admin_page.get(path).content.decode(), path
    assert "column without values" in admin_page.get(reverse("admin:jobs_snmpjob_changelist")).content.decode()


OIDS = [
    {"name": "uptime", "oid": "1.3.6.1.2.1.1.3.0", "decode": "number", "scalar": True},
    {"name": "fan", "oid": "1.3.6.1.4.1.2011.9.9.9", "decode": "number", "scalar": False},
]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param({"columns": ["rx_dbm"]}, {"rx_dbm", "uptime", "fan"}, id="a column is removed"),
        pytest.param({"oids": OIDS[:1]}, {"rx_dbm", "tx_dbm", "uptime"}, id="an OID is removed"),
        pytest.param(
            {"oids": [OIDS[0], OIDS[1] | {"oid": "1.3.6.1.4.1.2011.9.9.8"}]},
            {"rx_dbm", "tx_dbm", "uptime"},
            id="an OID is corrected",
        ),
        pytest.param(
            {"oids": [OIDS[0], OIDS[1] | {"decode": "text"}]}, {"rx_dbm", "tx_dbm", "uptime"}, id="it is read otherwise"
        ),
        pytest.param(
            {"name": "Power", "interval_seconds": 900, "columns": ["tx_dbm", "rx_dbm"], "oids": OIDS},
            {"rx_dbm", "tx_dbm", "uptime", "fan"},
            id="it reads the same",
        ),
    ],
)
def test_a_change_of_what_a_column_reads_takes_its_remark_back(api, node, change, left):
    path = f"/api/v1/jobs/{node.job_id}/"
    api.patch(path, {"columns": ["rx_dbm", "tx_dbm"], "oids": OIDS}, format="json")
    WorkflowNode.objects.filter(pk=node.pk).update(blank_runs=dict.fromkeys(["rx_dbm", "tx_dbm", "uptime", "fan"], 5))

    answer = api.patch(path, change, format="json")

    assert answer.status_code == 200, answer.data
    assert {remark.partition(" had no")[0] for remark in answer.data["remarks"]} == {
        labels.column(name) for name in left
    }


def test_the_admin_of_a_node_shows_it(admin_page, blank):
    assert REMARK in admin_page.get(reverse("admin:jobs_workflownode_change", args=[blank.pk])).content.decode()
    assert "column without values" in admin_page.get(reverse("admin:jobs_workflownode_changelist")).content.decode()


def test_the_admin_of_an_olt_shows_it_above_the_form(admin_page, blank):
    page = admin_page.get(reverse("admin:inventory_olt_change", args=[blank.olt_id]))

    assert [str(message) for message in page.context["messages"]] == [REMARK]
