"""A database of a version without roles: everybody can still do what they could."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from rest_framework.test import APIClient

from facho.apps.accounts.models import ApiToken
from facho.apps.accounts.roles import Role, permissions_of, role_of
from facho.runtime.upgrade import without_idle_limit

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("accounts", "0002_move_tokens"), ("inventory", "0001_version_0_5"), ("jobs", "0001_version_0_5")]


def permissions(*codenames):
    return Permission.objects.filter(codename__in=codenames)


@pytest.fixture
def old_database():
    with without_idle_limit():
        MigrationExecutor(connection).migrate(BEFORE)
    Group.objects.all().delete()
    Permission.objects.filter(codename__startswith="operate_").delete()
    yield
    call_command("migrate", verbosity=0)


def upgraded(user):
    return User.objects.get(pk=user.pk)


def test_users_keep_their_rights(old_database):
    reader, off = User.objects.create(username="reader"), User.objects.create(username="off", is_active=False)
    boss = User.objects.create(username="boss", is_superuser=True)
    chief, planner = User.objects.create(username="chief", is_staff=True), User.objects.create(username="planner")
    operators = Group.objects.create(name="Operator")
    operators.permissions.set(permissions("change_olt"))
    operators.user_set.add(chief)
    Group.objects.create(name="Operator (earlier)")
    planner.user_permissions.set(permissions("change_workflownode", "change_snmpjob"))
    scripts = Group.objects.create(name="Scripts")
    scripts.permissions.set(permissions("run_workflownode"))
    key = ApiToken(user=planner, name="x", role=scripts).issue()

    call_command("migrate", verbosity=0)

    roles = {user.username: role_of(upgraded(user)) for user in (reader, off, boss, chief, planner)}
    assert roles == {"reader": "Viewer", "off": None, "boss": None, "chief": "Viewer", "planner": "Viewer"}
    assert upgraded(reader).get_all_permissions() == permissions_of(Role.VIEWER)
    assert set(upgraded(chief).groups.values_list("name", flat=True)) == {"Operator (earlier 2)", "Viewer"}
    assert upgraded(chief).is_staff
    assert upgraded(chief).has_perms(["inventory.change_olt", "inventory.operate_olt"])
    assert not upgraded(chief).has_perm("jobs.run_workflownode")
    assert upgraded(planner).has_perms(["jobs.operate_workflownode", "jobs.operate_snmpjob", "jobs.change_snmpjob"])
    assert APIClient().get("/api/v1/olts/", headers={"authorization": f"Token {key}"}).status_code == 200


def test_the_groups_of_the_roles_are_complete_after_the_migration(old_database):
    call_command("migrate", verbosity=0)

    granted = Permission.objects.values_list("group__name", "content_type__app_label", "codename")
    for role in Role:
        assert {f"{app}.{code}" for name, app, code in granted if name == role} == permissions_of(role)
