"""Permission to run a node, the same on the page, in the admin and in the API."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

RUN, CHANGE = "run_workflownode", "change_workflownode"
SAID = "This needs the permission jobs.run_workflownode, which the role Operator has. An admin can grant it."


def person(*permissions, group=False, **more):
    """Make a user with these permissions, of their own or through a group."""
    user = User.objects.create(username="operator", **more)
    given = Permission.objects.filter(codename__in=permissions)
    if group:
        operators = Group.objects.create(name="Operators")
        operators.permissions.set(given)
        user.groups.add(operators)
    else:
        user.user_permissions.set(given)
    return user


def logged_in(user):
    client = Client()
    client.force_login(user)
    return client


def ask(user, node):
    api = APIClient()
    api.force_authenticate(user)
    return api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")


def is_asked_for(node):
    node.refresh_from_db()
    return node.run_requested_at is not None


@pytest.mark.parametrize("group", [False, True], ids=["own right", "right of a group"])
def test_the_permission_is_enough_to_run_a_node(node, group):
    assert ask(person(RUN, group=group), node).status_code == 202
    assert is_asked_for(node)


@pytest.mark.parametrize("permissions", [(), (CHANGE, "view_workflownode", "change_olt")], ids=["none", "others"])
def test_without_it_the_refusal_names_it(node, permissions):
    answer = ask(person(*permissions), node)

    assert (answer.status_code, answer.json()) == (403, {"detail": SAID})
    assert not is_asked_for(node)


def test_it_gives_no_right_to_change_the_node(node):
    api = APIClient()
    api.force_authenticate(person(RUN))

    assert api.patch(f"/api/v1/nodes/{node.pk}/", {"own_enabled": False}, format="json").status_code == 403


@pytest.mark.parametrize(("permission", "is_offered"), [(RUN, True), (CHANGE, False)])
@pytest.mark.parametrize("path", ["/olts/{olt}/", "/nodes/{node}/"])
def test_a_page_offers_a_run_to_users_with_permission(node, path, permission, is_offered):
    viewing = ("view_olt", "view_workflownode")
    page = logged_in(person(permission, *viewing)).get(path.format(olt=node.olt_id, node=node.pk)).content.decode()

    assert (f'data-run="/api/v1/pollers/nodes/{node.pk}/run/"' in page) is is_offered


@pytest.mark.parametrize(("permission", "is_offered"), [(RUN, True), (CHANGE, False)])
def test_the_admin_offers_a_run_to_users_with_permission(node, permission, is_offered):
    viewing = ("view_workflow", "view_workflownode")
    client = logged_in(person(permission, *viewing, is_staff=True))
    button = reverse("admin:jobs_workflow_run", args=[node.olt_id, node.pk])

    workflow = client.get(reverse("admin:jobs_workflow_change", args=[node.olt_id])).content.decode()
    nodes = client.get(reverse("admin:jobs_workflownode_changelist")).content.decode()

    assert (button in workflow, 'value="run_chosen"' in nodes) == (is_offered, is_offered)


def test_the_button_of_the_admin_takes_the_permission(node):
    button = reverse("admin:jobs_workflow_run", args=[node.olt_id, node.pk])
    refused = logged_in(person("view_workflow", CHANGE, "change_workflow", is_staff=True)).post(button)
    was_asked_for = is_asked_for(node)
    User.objects.all().delete()
    allowed = logged_in(person("view_workflow", RUN, is_staff=True)).post(button)

    assert (refused.status_code, refused.content.decode(), was_asked_for) == (403, SAID, False)
    assert (allowed.status_code, is_asked_for(node)) == (302, True)


@pytest.mark.parametrize(("permission", "runs"), [(RUN, True), (CHANGE, False)])
def test_the_action_of_the_admin_takes_the_permission(node, permission, runs):
    client = logged_in(person("view_workflownode", permission, is_staff=True))

    client.post(reverse("admin:jobs_workflownode_changelist"), {"action": "run_chosen", "_selected_action": [node.pk]})

    assert is_asked_for(node) is runs


def test_a_superuser_may_always(boss, node):
    assert ask(boss, node).status_code == 202
