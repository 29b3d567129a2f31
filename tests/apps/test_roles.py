"""Roles: five groups with the permissions of one table."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from facho.apps.accounts.roles import (
    ADDED,
    STAFF,
    Role,
    permissions_of,
    role_of,
    roles_within,
    set_role,
    sync_groups,
    users_within,
)

pytestmark = pytest.mark.django_db


def make_user(role=None, *permissions, **more):
    user = User.objects.create(username=f"user {User.objects.count()}", **more)
    if role is not None:
        set_role(user, role)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=user.pk)


def sync(label):
    sync_groups(apps.get_app_config(label), "default")


@pytest.mark.parametrize("role", Role)
def test_the_group_of_a_role_has_the_permissions_of_the_table(role):
    granted = Permission.objects.filter(group__name=role).values_list("content_type__app_label", "codename")

    assert {f"{app}.{codename}" for app, codename in granted} == permissions_of(role)


def test_each_role_includes_the_one_before_it():
    sets = [permissions_of(role) for role in Role]

    assert all(lower < higher for lower, higher in pairwise(sets))


def test_a_permission_is_added_by_one_role_only():
    named = [name for names in ADDED.values() for name in names]

    assert len(named) == len(set(named))


@pytest.mark.parametrize("label", ["inventory", "jobs", "auth"])
def test_the_groups_are_made_equal_to_the_table_after_each_migrate(label):
    groups = Group.objects.filter(name__in=Role)
    Group.objects.get(name="Engineer").permissions.clear()
    Group.objects.get(name="Viewer").permissions.add(*Permission.objects.filter(content_type__app_label=label))
    Group.objects.get(name="Operator").delete()

    for config in apps.get_app_configs():
        sync(config.label)

    assert {group.name: group.permissions.count() for group in groups} == {
        role: len(permissions_of(role)) for role in Role
    }


def test_groups_that_are_already_equal_cost_one_query_per_app():
    with CaptureQueriesContext(
        connection,
    ) as queries:
        sync("inventory")

    assert len(queries) == 1


def test_other_groups_are_left_alone():
    own = Group.objects.create(name="Night shift")
    own.permissions.set(Permission.objects.filter(codename="delete_olt"))

    sync("inventory")

    assert own.permissions.get().codename == "delete_olt"


@pytest.mark.parametrize("role", [None, *Role])
def test_a_user_has_one_role_and_keeps_other_groups(role):
    own = Group.objects.create(name="Night shift")
    user = make_user()
    user.groups.set([own, *Group.objects.filter(name__in=["Viewer", "Admin"])])

    set_role(user, role)

    assert set(user.groups.values_list("name", flat=True)) == {"Night shift", *([role] if role else [])}
    assert role_of(user) == role
    assert User.objects.get(pk=user.pk).is_staff == (role in STAFF)


def test_a_superuser_keeps_the_admin_without_a_role():
    boss = make_user(is_superuser=True, is_staff=True)

    set_role(boss, None)

    assert User.objects.get(pk=boss.pk).is_staff


@pytest.mark.parametrize(
    ("role", "permissions", "expected"),
    [
        pytest.param(None, [], [], id="no role"),
        pytest.param(Role.OPERATOR, [], ["Viewer", "Support", "Operator"], id="up to the own role"),
        pytest.param(
            Role.VIEWER,
            ["change_alert", "change_problem", "read_onu", "add_onunote", "change_onunote", "delete_onunote"],
            ["Viewer", "Support"],
            id="with the permissions of the next role",
        ),
        pytest.param(Role.ADMIN, [], list(Role), id="all"),
    ],
)
def test_roles_without_a_permission_beyond_those_of_a_user(role, permissions, expected):
    assert roles_within(make_user(role, *permissions)) == expected


@pytest.mark.parametrize(
    ("other", "is_within"),
    [
        pytest.param({}, True, id="no role"),
        pytest.param({"role": Role.OPERATOR}, True, id="the same role"),
        pytest.param({"role": Role.ENGINEER}, False, id="a higher role"),
        pytest.param({"role": Role.VIEWER, "permission": "delete_olt"}, False, id="one more permission"),
        pytest.param({"group": "delete_olt"}, False, id="one more permission through a group"),
        pytest.param({"is_superuser": True}, False, id="superuser"),
        pytest.param({"role": Role.ENGINEER, "is_active": False}, False, id="a higher role, disabled"),
    ],
)
def test_users_without_a_permission_beyond_those_of_another(other, is_within):
    group, permission = other.pop("group", None), other.pop("permission", "")
    user, operator = make_user(other.pop("role", None), permission, **other), make_user(Role.OPERATOR)
    if group:
        own = Group.objects.create(name="Night shift")
        own.permissions.set(Permission.objects.filter(codename=group))
        user.groups.add(own)

    assert users_within(operator).filter(pk=user.pk).exists() is is_within
    assert users_within(make_user(is_superuser=True)).filter(pk=user.pk).exists()


@pytest.mark.parametrize("page", ["accounts.md", "accounts.es.md"])
def test_the_documented_table_names_the_permissions_of_each_role(page):
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    lines = re.findall(r"^\| [^|]+ \| [^|]+ \| ((?:`\w+\.\w+`(?:, )?)+) \|$", text, re.M)

    documented = [re.findall(r"`(.*?)`", line) for line in lines]

    assert documented == [ADDED[role] for role in Role], f"Correct the table of roles in docs/{page}."
