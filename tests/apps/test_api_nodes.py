"""Nodes through the API: their own settings, and what they may not be without their chain."""

from datetime import timedelta

import pytest
from cast import T0, make_job, make_olt

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode


def test_a_node_shows_what_counts_and_what_is_its_own(api, node):
    WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=T0, own_priority=77)

    shown = api.get(f"/api/v1/nodes/{node.pk}/").data

    assert (shown["olt_name"], shown["job_name"], shown["kind"]) == ("OLT-CENTRAL-01", "Optical power", "table")
    assert (shown["interval_seconds"], shown["priority"], shown["enabled"]) == (300, 77, True)
    assert (shown["own_interval_seconds"], shown["own_priority"], shown["own_enabled"]) == (None, 77, None)
    assert (shown["next_run_at"], shown["last_run_at"], shown["run_requested_at"]) == (
        "2025-06-01T10:00:00Z",
        None,
        None,
    )
    assert (shown["master"], shown["is_chained"]) == (None, False)


def test_a_chained_node_names_its_master(api, node, chained):
    shown = api.get(f"/api/v1/nodes/{chained.pk}/").data

    assert (shown["master"], shown["is_chained"], shown["next_run_at"]) == (node.pk, True, None)


def test_a_node_is_created_with_settings_of_its_own_and_its_chain(api, power, names, central):
    body = {"olt": central.pk, "job": power.pk, "own_interval_seconds": 60, "own_enabled": False}

    answer = api.post("/api/v1/nodes/", body, format="json")

    assert answer.status_code == 201
    assert (answer.data["interval_seconds"], answer.data["enabled"]) == (60, False)
    assert WorkflowNode.objects.get(job=names).master_id == answer.data["id"]


def test_a_node_of_a_chained_job_is_not_created_alone(api, names, central):
    answer = api.post("/api/v1/nodes/", {"olt": central.pk, "job": names.pk}, format="json")

    assert answer.status_code == 400
    assert answer.data == {
        "non_field_errors": ["Names follows Optical power: apply Optical power, and Names is included."]
    }


def test_a_job_is_on_an_olt_once(api, node):
    answer = api.post("/api/v1/nodes/", {"olt": node.olt_id, "job": node.job_id}, format="json")

    assert answer.status_code == 400
    assert answer.data == {"non_field_errors": ["Node with this OLT and Job already exists."]}


def test_a_node_is_not_created_on_an_olt_of_another_brand(api, power, norte):
    answer = api.post("/api/v1/nodes/", {"olt": norte.pk, "job": power.pk}, format="json")

    assert answer.data == {
        "non_field_errors": ["Optical power is for Huawei MA5600T / MA5800; OLT-NORTE-02 has another brand."]
    }


def test_overrides_are_set_and_taken_back(api, node):
    url = f"/api/v1/nodes/{node.pk}/"
    own = {"own_interval_seconds": 60, "own_priority": 0, "own_enabled": False}

    changed = api.patch(url, own, format="json").data
    restored = api.patch(url, dict.fromkeys(own), format="json").data

    assert (changed["interval_seconds"], changed["priority"], changed["enabled"]) == (60, 0, False)
    assert (restored["interval_seconds"], restored["priority"], restored["enabled"]) == (300, 40, True)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        pytest.param(
            {"own_interval_seconds": 0}, "Ensure this value is greater than or equal to 10.", id="an interval of 0"
        ),
        pytest.param({"own_priority": 101}, "Ensure this value is less than or equal to 100.", id="priority over 100"),
    ],
)
def test_overrides_are_checked_like_the_jobs_settings(api, node, wrong, sentence):
    answer = api.patch(f"/api/v1/nodes/{node.pk}/", wrong, format="json")

    assert answer.status_code == 400
    assert list(answer.data.values()) == [[sentence]]


def test_a_chained_node_has_no_interval_of_its_own(api, chained):
    answer = api.patch(f"/api/v1/nodes/{chained.pk}/", {"own_interval_seconds": 60}, format="json")

    assert answer.data == {
        "own_interval_seconds": ["This node runs whenever Optical power @ OLT-CENTRAL-01 does. Set the interval there."]
    }


def test_a_node_stays_on_its_olt(api, node, sur):
    answer = api.patch(f"/api/v1/nodes/{node.pk}/", {"olt": sur.pk}, format="json")

    assert answer.data == {"olt": ["A node cannot be moved. Apply the job to the other OLT and delete this node."]}


def test_a_change_leaves_the_schedule_to_the_engine_and_tells_it(api, node, monkeypatch):
    before = Olt.objects.get().revision
    original = WorkflowNode.full_clean

    def engine_writes_meanwhile(row, *args, **kwargs):
        WorkflowNode.objects.filter(pk=row.pk).update(next_run_at=T0 + timedelta(minutes=5))
        return original(row, *args, **kwargs)

    monkeypatch.setattr(WorkflowNode, "full_clean", engine_writes_meanwhile)

    api.patch(f"/api/v1/nodes/{node.pk}/", {"own_priority": 50, "next_run_at": None}, format="json")

    node.refresh_from_db()
    assert (node.own_priority, node.next_run_at) == (50, T0 + timedelta(minutes=5))
    assert Olt.objects.get().revision == before + 1


def test_a_node_is_deleted_with_its_chain_and_what_ran_stays(api, execution, node):
    answer = api.delete(f"/api/v1/nodes/{node.pk}/")

    execution.refresh_from_db()
    assert answer.status_code == 204
    assert not WorkflowNode.objects.exists()
    assert (execution.node_id, execution.node_name) == (None, "Optical power")


def test_a_chained_node_is_not_deleted_alone(api, chained):
    answer = api.delete(f"/api/v1/nodes/{chained.pk}/")

    assert answer.status_code == 409
    assert answer.data["detail"] == (
        "Names @ OLT-CENTRAL-01 runs after another node. Delete that node, or set own_enabled to false here."
    )
    assert WorkflowNode.objects.filter(pk=chained.pk).exists()


def test_nodes_have_no_put(api, node):
    assert api.put(f"/api/v1/nodes/{node.pk}/", {}, format="json").status_code == 405


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("olt={olt}", {"Optical power", "Names"}, id="by OLT"),
        pytest.param("job={job}", {"Optical power"}, id="by job"),
        pytest.param("master={node}", {"Names"}, id="by master"),
        pytest.param("is_chained=true", {"Names"}, id="chained ones"),
        pytest.param("is_chained=false", {"Optical power", "Off", "On here"}, id="masters"),
        pytest.param("enabled=false", {"Off"}, id="disabled: by the job"),
        pytest.param("enabled=true", {"Optical power", "Names", "On here"}, id="enabled: by the job or here"),
        pytest.param("search=sur", {"Off", "On here"}, id="by the name of the OLT"),
    ],
)
def test_nodes_are_found(api, node, sur, query, expected):
    make_job("Off", enabled=False).apply_to([sur])
    make_job("On here", enabled=False).apply_to([sur])
    WorkflowNode.objects.filter(job__name="On here").update(own_enabled=True)

    answer = api.get(f"/api/v1/nodes/?{query.format(olt=node.olt_id, job=node.job_id, node=node.pk)}")

    assert {each["job_name"] for each in answer.data["results"]} == expected


def test_order_by_the_next_run_has_those_without_a_schedule_last(api, node, chained, sur):
    [later] = make_job("Later").apply_to([sur])
    WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=T0)
    WorkflowNode.objects.filter(pk=later.pk).update(next_run_at=T0 + timedelta(minutes=5))

    falling = api.get("/api/v1/nodes/?ordering=-next_run_at").data["results"]

    assert [each["job_name"] for each in falling] == ["Later", "Optical power", "Names"]


@pytest.mark.parametrize("many", [1, 20])
def test_a_page_of_nodes_costs_the_same_however_many_there_are(api, power, names, django_assert_num_queries, many):
    power.apply_to([make_olt(f"OLT-{number}") for number in range(many)])

    with django_assert_num_queries(3):
        api.get("/api/v1/nodes/")
