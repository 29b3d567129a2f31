"""Columns that never have a value: a remark on node, job and OLT, in API, admin and pages."""

import pytest
from cast import make_olt
from django.urls import reverse

from facho.apps.jobs.models import WorkflowNode

REMARK = "rx_dbm had no value in the last 12 runs on OLT-CENTRAL-01. Check the OID or remove the column."


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
        "rx_dbm had no value in the last 4 runs on OLT-1, OLT-2, OLT-3 and 2 more. Check the OID or remove the column."
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
