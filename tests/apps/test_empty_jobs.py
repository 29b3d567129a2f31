"""A job that reads nothing is refused. One that an earlier version saved is not scheduled, and says why."""

import pytest
from cast import make_job
from django.urls import reverse
from test_admin_jobs import ADD, FORM

from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.engine.model import JobKind

pytestmark = pytest.mark.django_db

JOBS = "/api/v1/jobs/"
OID = {"name": "uptime", "oid": "1.3.6.1.2.1.1.3", "decode": "integer"}
REFUSAL = "Choose at least one column or add a raw OID. A job of this type reads only what it names."
REMARK = "Reads nothing, so it is not scheduled. Add a column or a raw OID to the job."

kinds = pytest.mark.parametrize("kind", ["get", "walk", "table"])


@kinds
def test_the_api_refuses_a_job_that_reads_nothing(api, kind):
    answer = api.post(JOBS, {"name": "Mine", "brand": "huawei", "kind": kind}, format="json")

    assert (answer.status_code, answer.json()) == (400, {"columns": [REFUSAL]})
    assert not SnmpJob.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"kind": "table", "columns": ["name"]}, id="a column"),
        pytest.param({"kind": "table", "oids": [OID]}, id="a raw OID"),
        pytest.param({"kind": "discovery"}, id="a discovery reads what its brand says"),
    ],
)
def test_the_api_takes_a_job_that_reads_something(api, body):
    answer = api.post(JOBS, {"name": "Mine", "brand": "huawei", **body}, format="json")

    assert answer.status_code == 201, answer.json()
    assert answer.json()["warnings"] == []


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param({"columns": ["rx_dbm"]}, {"columns": []}, id="the columns go"),
        pytest.param({"columns": [], "oids": [OID]}, {"oids": []}, id="the OIDs go"),
        pytest.param({"kind": "discovery", "columns": []}, {"kind": "table"}, id="it is no discovery any more"),
    ],
)
def test_the_api_refuses_a_change_after_which_a_job_reads_nothing(api, before, change):
    job = make_job("Mine", **{name: value for name, value in before.items() if name != "oids"})
    for oid in before.get("oids", ()):
        SnmpJobOid.objects.create(job=job, **oid)

    answer = api.patch(f"{JOBS}{job.pk}/", change, format="json")

    assert (answer.status_code, answer.json()) == (400, {"columns": [REFUSAL]})


def raw_oid(number=0, **more):
    return {"oids-TOTAL_FORMS": "1", **{f"oids-{number}-{name}": value for name, value in {**OID, **more}.items()}}


def test_the_admin_refuses_a_job_that_reads_nothing(admin_page):
    answer = admin_page.post(ADD, FORM | {"brand": "huawei", "columns": []})

    assert answer.status_code == 200
    # Also above the tabs: the one with the raw OIDs may be closed.
    assert REFUSAL in [str(message) for message in answer.context["messages"]]
    assert answer.content.decode().count(REFUSAL) == 2
    assert not SnmpJob.objects.exists()


def test_the_admin_takes_a_job_with_a_raw_oid_alone(admin_page):
    answer = admin_page.post(ADD, FORM | {"brand": "huawei", "columns": []} | raw_oid())

    assert answer.status_code == 302
    assert SnmpJob.objects.get().oids.get().name == "uptime"


def test_the_admin_refuses_to_delete_the_last_raw_oid(admin_page):
    job = make_job("Mine", columns=[])
    oid = SnmpJobOid.objects.create(job=job, **OID)
    form = raw_oid(id=oid.pk, job=job.pk, DELETE="on") | {"oids-INITIAL_FORMS": "1"}

    answer = admin_page.post(reverse("admin:jobs_snmpjob_change", args=[job.pk]), FORM | {"columns": []} | form)

    assert REFUSAL in answer.content.decode()
    assert job.oids.exists()


# What earlier versions saved


@pytest.fixture
def empty(node):
    """Optical power on OLT-CENTRAL-01, whose job has lost its columns."""
    SnmpJob.objects.filter(pk=node.job_id).update(columns=[])
    return WorkflowNode.objects.get(pk=node.pk)


def test_it_is_not_scheduled_and_says_why(api, empty):
    answer = api.get(f"/api/v1/nodes/{empty.pk}/").json()

    assert (answer["enabled"], answer["warnings"]) == (False, [REMARK])
    assert api.get(f"{JOBS}{empty.job_id}/").json()["warnings"] == [REMARK]
    assert not WorkflowNode.objects.filter(pk=empty.pk).polled().exists()
    assert [each["id"] for each in api.get("/api/v1/nodes/?enabled=false").json()["results"]] == [empty.pk]


def test_it_is_not_run_by_hand_either(api, empty):
    answer = api.post(f"/api/v1/pollers/nodes/{empty.pk}/run/")

    assert answer.status_code == 409
    assert answer.json()["detail"] == "Optical power reads nothing. Add a column or a raw OID to the job first."
    assert empty.request_run() is False


def test_pages_show_a_job_that_reads_nothing(admin_page, api, empty):
    workflow = admin_page.get(reverse("admin:jobs_workflow_change", args=[empty.olt_id])).content.decode()
    jobs = admin_page.get(reverse("admin:jobs_snmpjob_changelist")).content.decode()
    why = api.get(f"/api/v1/nodes/{empty.pk}/explain/").json()

    assert "reads nothing, not scheduled" in workflow
    assert "reads nothing" in jobs
    assert REMARK in admin_page.get(f"/olts/{empty.olt_id}/").content.decode()
    assert why["in_the_way"][0]["code"] == "job_reads_nothing"
    assert why["next_slots"] == []


def test_it_can_be_renamed_and_disabled_and_is_scheduled_once_it_reads_something(api, empty):
    assert api.patch(f"{JOBS}{empty.job_id}/", {"enabled": False}, format="json").status_code == 200

    answer = api.patch(f"{JOBS}{empty.job_id}/", {"enabled": True, "columns": ["name"]}, format="json")

    assert (answer.status_code, answer.json()["warnings"]) == (200, [])
    assert WorkflowNode.objects.filter(pk=empty.pk).polled().exists()


def test_a_raw_oid_is_enough(empty):
    SnmpJobOid.objects.create(job=empty.job, **OID)

    assert WorkflowNode.objects.filter(pk=empty.pk).polled().exists()
    assert WorkflowNode.objects.get(pk=empty.pk).enabled


# Priorities


@pytest.mark.parametrize(
    ("kind", "priority"), [("discovery", 90), ("get", 40), ("walk", 40), ("table", 40)], ids=lambda each: str(each)
)
class TestDefaultPriority:
    def test_by_the_api(self, api, kind, priority):
        body = {"name": "Mine", "brand": "huawei", "kind": kind, "columns": ["serial"]}

        assert api.post(JOBS, body, format="json").json()["priority"] == priority

    def test_in_the_admin(self, admin_page, kind, priority):
        form = FORM | {"brand": "huawei", "kind": kind, "priority": ""}

        assert admin_page.post(ADD, form).status_code == 302
        assert SnmpJob.objects.get().priority == priority

    def test_in_a_row(self, kind, priority):
        assert make_job("Mine", kind=kind).priority == priority

    def test_one_that_is_given_stands(self, api, kind, priority):
        body = {"name": "Mine", "brand": "huawei", "kind": kind, "columns": ["serial"], "priority": 0}

        assert api.post(JOBS, body, format="json").json()["priority"] == 0


def test_the_form_of_a_job_knows_the_priority_of_each_kind(admin_page):
    form = admin_page.get(ADD).context["adminform"].form

    attrs = form.fields["priority"].widget.attrs
    assert form["priority"].value() is None
    assert f'"{JobKind.DISCOVERY.value}": 90' in attrs["data-defaults"]
    assert "jobs/priority.js" in str(admin_page.get(ADD).content)


def test_a_change_of_the_kind_keeps_the_priority(api):
    job = make_job("Mine", priority=40)

    answer = api.patch(f"{JOBS}{job.pk}/", {"kind": "discovery"}, format="json")

    assert answer.json()["priority"] == 40
