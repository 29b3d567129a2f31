"""Roles: five groups whose permissions are declared here. Each role includes the one before it.

The groups are made equal to this table after every `migrate`, so a new version can add permissions to them.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import pgettext


class Role(StrEnum):
    """The name of a group, from the fewest to the most permissions."""

    VIEWER = "Viewer"
    SUPPORT = "Support"
    OPERATOR = "Operator"
    ENGINEER = "Engineer"
    ADMIN = "Admin"

    @property
    def label(self) -> str:
        return {
            Role.VIEWER: pgettext("role", "Viewer"),
            Role.SUPPORT: pgettext("role", "Support"),
            Role.OPERATOR: pgettext("role", "Operator"),
            Role.ENGINEER: pgettext("role", "Engineer"),
            Role.ADMIN: pgettext("role", "Admin"),
        }[self]


def _each(verbs: str, *models: str) -> list[str]:
    parts = [model.split(".") for model in models]
    return [f"{app}.{verb}_{name}" for app, name in parts for verb in verbs.split()]


# Permissions that a role has in addition to those of the role before it.
ADDED: dict[Role, list[str]] = {
    Role.VIEWER: [
        *_each("view", "inventory.olt", "inventory.site", "inventory.tag", "telemetry.onu", "telemetry.onuevent"),
        *_each("view", "telemetry.ponport"),
        *_each("view", "telemetry.onunote"),
        *_each("view", "jobs.snmpjob", "jobs.snmpjoboid", "jobs.workflow", "jobs.workflownode"),
        *_each("view", "polling.execution", "polling.executionattempt", "polling.poller", "polling.pollerstats"),
        *_each("view", "coordinator.quotatracker", "coordinator.quotaviolation", "coordinator.executionplan"),
        *_each("view", "coordinator.forecast", "coordinator.coordinatorlog"),
        *_each("view", "maintenance.maintenance"),
        *_each("view", "alerts.alert", "alerts.rule", "alerts.channel", "alerts.delivery", "problems.problem"),
    ],
    # The only change of an alert is its acknowledgement. Problems are also assigned, snoozed and commented on. Notes of
    # others cannot be changed.
    Role.SUPPORT: [
        *_each("change", "alerts.alert", "problems.problem"),
        "telemetry.read_onu",
        *_each("add change delete", "telemetry.onunote"),
    ],
    Role.OPERATOR: [
        "jobs.run_workflownode",
        *_each("operate", "inventory.olt", "jobs.snmpjob", "jobs.workflownode"),
        # The only change of a port is its capacity.
        *_each("change", "telemetry.ponport", "telemetry.onuposition"),
        *_each("add change delete", "maintenance.maintenance"),
        "dashboard.share_savedview",
    ],
    Role.ENGINEER: [
        *_each("add change delete", "inventory.olt", "inventory.site", "inventory.tag"),
        *_each("add change delete", "jobs.snmpjob", "jobs.snmpjoboid", "jobs.workflownode"),
        *_each("change", "jobs.workflow", "alerts.delivery"),
        *_each("add change delete", "alerts.rule", "alerts.channel"),
        "coordinator.add_forecast",
        "changes.view_change",
    ],
    Role.ADMIN: [
        *_each("view add change delete", "auth.user"),
        *_each("view", "auth.group", "accounts.apitoken"),
        # Revokes the tokens of other users.
        "accounts.delete_apitoken",
        # Unlocks users.
        *_each("view delete", "accounts.failedlogin"),
    ],
}

# These use the admin, where alerts are acknowledged and OLTs and jobs are operated.
STAFF = frozenset(Role) - {Role.VIEWER}


def permissions_of(role: Role) -> frozenset[str]:
    """Return the permissions of a role, with those of the roles before it."""
    roles = list(Role)
    return frozenset(name for each in roles[: roles.index(role) + 1] for name in ADDED[each])


def lowest_role_with(permission: str) -> Role | None:
    return next((role for role in Role if permission in ADDED[role]), None)


def role_of(user: Any) -> Role | None:
    """Return the role of a user, the highest one if the user is in several of the groups."""
    names = {group.name for group in user.groups.all()} if user.pk else set()
    return next((role for role in reversed(Role) if role in names), None)


@transaction.atomic
def set_role(user: User, role: Role | None) -> None:
    """Put a user in the group of this role and in no other of the five. Only its staff may use the admin."""
    present = Group.objects.filter(user=user, name__in=Role)
    user.groups.remove(*(group for group in present if group.name != role))
    if role is not None and role not in {group.name for group in present}:
        user.groups.add(Group.objects.get(name=role))
    user.is_staff = user.is_superuser or role in STAFF
    user.save(update_fields=["is_staff"])


def roles_within(user: Any) -> list[Role]:
    """Return the roles that have no permission beyond those of this user."""
    own = user.get_all_permissions()
    return [role for role in Role if user.is_superuser or permissions_of(role) <= own]


def groups_within(user: Any) -> QuerySet[Group]:
    """Return the groups that can limit a token of this user: not the roles with more permissions."""
    return Group.objects.exclude(name__in=set(Role) - set(roles_within(user)))


def label_of(group: Group) -> str:
    """Return the name of a group, in the user's language if it is that of a role."""
    return Role(group.name).label if group.name in set(Role) else group.name


def users_within(user: Any) -> QuerySet[User]:
    """Return the users whose permissions are all among those of this user. Superusers are within superusers only."""
    users = User.objects.all()
    if user.is_superuser:
        return users
    own = user.get_all_permissions()
    known = Permission.objects.values_list("pk", "content_type__app_label", "codename")
    beyond = [pk for pk, app, codename in known if f"{app}.{codename}" not in own]
    return (
        users.filter(is_superuser=False)
        .exclude(user_permissions__in=beyond)
        .exclude(groups__in=Group.objects.filter(permissions__in=beyond))
    )


def sync_groups(sender: AppConfig, using: str, apps: Any = installed, **_signal: Any) -> None:
    """Make the groups equal to the table, for the permissions of one app. Called after `migrate` has created them."""
    try:
        groups, permissions = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    except LookupError:
        return
    found = permissions.objects.using(using).filter(content_type__app_label=sender.label)
    granted = groups.permissions.through.objects.using(using).filter(group__name__in=Role, permission__in=found)
    current = set(granted.values_list("group__name", "permission__codename"))
    wanted = {(role, code) for role in Role for code in _codenames(permissions_of(role), sender.label)}
    if wanted == current:
        return
    ids = dict(found.values_list("codename", "pk"))
    ours = groups.objects.using(using).filter(name__in=Role)
    there = set(ours.values_list("name", flat=True))
    groups.objects.using(using).bulk_create([groups(name=role) for role in Role if role not in there])
    for group in ours.all():
        has, wants = ({code for name, code in pairs if name == group.name} for pairs in (current, wanted))
        if has - wants:
            group.permissions.remove(*(ids[code] for code in has - wants))
        if wants - has:
            group.permissions.add(*(ids[code] for code in wants - has if code in ids))


def _codenames(permissions: Iterable[str], app: str) -> list[str]:
    return [name.partition(".")[2] for name in permissions if name.startswith(f"{app}.")]
