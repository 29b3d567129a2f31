"""Operators run, enable and change intervals, and nothing else of an OLT, a job or a node."""

import pytest
from alert_cast import make_alert, make_channel, make_delivery, make_rule
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from facho.apps.accounts.roles import Role, set_role


def make_user(role):
    user = User.objects.create(username=str(role))
    set_role(user, role)
    return user


@pytest.fixture
def operator_api(db):
    client = APIClient()
    client.force_login(make_user(Role.OPERATOR))
    return client


@pytest.fixture
def operator_page(db):
    client = Client()
    client.force_login(make_user(Role.OPERATOR))
    return client


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("olts/{olt}/", {"enabled": False}, 200, id="disable an OLT"),
        pytest.param("olts/{olt}/", {"host": "192.0.2.1"}, 403, id="address of an OLT"),
        pytest.param("olts/{olt}/", {"enabled": False, "host": "192.0.2.1"}, 403, id="both"),
        pytest.param("jobs/{job}/", {"interval_seconds": 600, "enabled": False}, 200, id="interval of a job"),
        pytest.param("jobs/{job}/", {"columns": ["tx_dbm"]}, 403, id="columns of a job"),
        pytest.param("jobs/{job}/", {"interval_seconds": 600, "oids": []}, 403, id="interval and OIDs of a job"),
        pytest.param("nodes/{node}/", {"own_interval_seconds": 600}, 200, id="interval of a node"),
        pytest.param("nodes/{node}/", {"own_enabled": False}, 200, id="disable a node"),
        pytest.param("nodes/{node}/", {"own_priority": 90}, 403, id="priority of a node"),
        pytest.param("nodes/{node}/", {}, 403, id="nothing"),
        pytest.param("nodes/{node}/", ["own_enabled"], 403, id="no object"),
        pytest.param("nodes/{node}/", {"own_interval_seconds": 1}, 400, id="an invalid interval"),
    ],
)
def test_a_patch_of_operated_fields_only_is_for_operators(operator_api, node, path, body, status):
    url = "/api/v1/" + path.format(olt=node.olt_id, job=node.job_id, node=node.pk)

    answer = operator_api.patch(url, body, format="json")

    assert answer.status_code == status


def test_the_refusal_names_the_permission_and_the_lowest_role(operator_api, reader_api, node):
    url = f"/api/v1/nodes/{node.pk}/"

    told = [
        client.patch(url, body, format="json").json()["detail"]
        for client, body in ((operator_api, {"own_priority": 9}), (reader_api, {"own_enabled": False}))
    ]

    assert told == [
        "This needs the permission jobs.change_workflownode, which the role Engineer has. An admin can grant it.",
        "This needs the permission jobs.operate_workflownode, which the role Operator has. An admin can grant it.",
    ]


def test_a_put_is_not_for_operators(operator_api, node):
    assert operator_api.put(f"/api/v1/jobs/{node.job_id}/", {"enabled": False}, format="json").status_code == 403


def test_the_admin_changes_interval_and_state_of_a_job_and_nothing_else(operator_page, node):
    url = reverse("admin:jobs_snmpjob_change", args=[node.job_id])
    inline = {"oids-TOTAL_FORMS": 1, "oids-INITIAL_FORMS": 0, "oids-0-name": "x", "oids-0-oid": "1.3"}
    form = {"name": "x", "columns": ["tx_dbm"], "priority": 1, "interval_seconds": 900, "olts": [], **inline}

    shown = operator_page.get(url)
    operator_page.post(url, {**form, "confirm_removal": "on"})

    assert set(shown.context["adminform"].form.fields) == {"interval_seconds", "enabled"}
    job = node.job
    job.refresh_from_db()
    assert (job.interval_seconds, job.enabled) == (900, False)
    assert (job.name, job.columns, job.priority, job.oids.count(), job.nodes.count()) == (
        "Optical power",
        ["rx_dbm"],
        40,
        0,
        1,
    )


def test_the_admin_changes_interval_and_state_of_a_node_and_nothing_else(operator_page, node):
    url = reverse("admin:jobs_workflownode_change", args=[node.pk])

    shown = operator_page.get(url)
    operator_page.post(url, {"own_interval_seconds": 900, "own_priority": 1, "own_enabled": "false"})

    assert set(shown.context["adminform"].form.fields) == {"own_interval_seconds", "own_enabled"}
    node.refresh_from_db()
    assert (node.own_interval_seconds, node.own_enabled, node.own_priority) == (900, False, None)


def test_the_admin_changes_the_nodes_of_a_workflow_and_deletes_none(operator_page, node):
    url = reverse("admin:jobs_workflow_change", args=[node.olt_id])
    shown = operator_page.get(url)
    formset = shown.context["inline_admin_formsets"][0].formset
    form = {
        f"{formset.prefix}-TOTAL_FORMS": 1,
        f"{formset.prefix}-INITIAL_FORMS": 1,
        f"{formset.prefix}-0-id": node.pk,
        f"{formset.prefix}-0-olt": node.olt_id,
        f"{formset.prefix}-0-own_interval_seconds": 900,
        f"{formset.prefix}-0-own_priority": 1,
        f"{formset.prefix}-0-own_enabled": "unknown",
        f"{formset.prefix}-0-DELETE": "on",
        "name": "x",
        "host": "192.0.2.1",
    }

    operator_page.post(url, form)

    node.refresh_from_db()
    assert (node.own_interval_seconds, node.own_priority) == (900, None)
    assert (node.olt.name, node.olt.host) == ("OLT-CENTRAL-01", "127.0.0.1")


@pytest.mark.parametrize(
    ("model", "action", "is_offered"),
    [
        ("inventory_olt", "disable_chosen", True),
        ("inventory_olt", "close_breakers", True),
        ("inventory_olt", "delete_selected", False),
        ("jobs_snmpjob", "enable_chosen", True),
        ("jobs_snmpjob", "delete_selected", False),
        ("jobs_workflownode", "run_chosen", True),
        ("jobs_workflow", "apply_usual", False),
        ("alerts_alert", "acknowledge_chosen", True),
        ("alerts_delivery", "retry_chosen", False),
        ("alerts_rule", "disable_chosen", False),
        ("alerts_channel", "disable_chosen", False),
    ],
)
def test_list_actions_are_offered_by_permission(operator_page, node, model, action, is_offered):
    make_rule()
    make_delivery(make_channel(), make_alert(node.olt))

    text = operator_page.get(reverse(f"admin:{model}_changelist")).content.decode()

    assert (f'value="{action}"' in text) is is_offered


def test_a_disabled_olt_is_enabled_by_the_list_action(operator_page, central):
    central.disable()

    operator_page.post(
        reverse("admin:inventory_olt_changelist"), {"action": "enable_chosen", "_selected_action": [central.pk]}
    )

    central.refresh_from_db()
    assert central.enabled


def test_secrets_of_an_olt_are_not_shown_to_operators(operator_page, central):
    text = operator_page.get(reverse("admin:inventory_olt_change", args=[central.pk])).content.decode()

    assert "s3cret" not in text
    assert 'name="host"' not in text
