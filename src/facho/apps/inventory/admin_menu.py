"""Menu of the admin, filtered by permission."""

from collections.abc import Callable
from typing import Any

from django.db import models
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from facho.apps.changes.models import Change

COORDINATOR = _("Coordinator")
ACCESS = _("Access")

# Title, then each page: name, icon, model.
SECTIONS: list[tuple[Any, ...]] = [
    (
        _("Network"),
        (_("OLTs"), "dns", "inventory.olt"),
        (_("Sites"), "location_on", "inventory.site"),
        (_("Tags"), "sell", "inventory.tag"),
        (_("ONUs"), "router", "telemetry.onu"),
        (_("ONU events"), "swap_vert", "telemetry.onuevent"),
    ),
    (
        _("Collection"),
        (_("Jobs"), "assignment", "jobs.snmpjob"),
        (_("Workflows"), "account_tree", "jobs.workflow"),
        (_("Nodes"), "schema", "jobs.workflownode"),
    ),
    (
        _("Engine"),
        (_("Executions"), "history", "polling.execution"),
        (_("Pollers"), "memory", "polling.poller"),
        (_("Pool statistics"), "monitoring", "polling.pollerstats"),
    ),
    (
        COORDINATOR,
        (_("Quotas"), "speed", "coordinator.quotatracker"),
        (_("Violations"), "warning", "coordinator.quotaviolation"),
        (_("Plans"), "view_timeline", "coordinator.executionplan"),
        (_("Log"), "article", "coordinator.coordinatorlog"),
    ),
    (
        _("Alerts"),
        (_("Alerts"), "notifications", "alerts.alert"),
        (_("Rules"), "rule", "alerts.rule"),
        (_("Channels"), "campaign", "alerts.channel"),
        (_("Deliveries"), "outbox", "alerts.delivery"),
    ),
    (
        ACCESS,
        (_("Users"), "person", "auth.user"),
        (_("Groups"), "group", "auth.group"),
        (_("API tokens"), "key", "accounts.apitoken"),
        (_("Failed logins"), "lock_clock", "accounts.failedlogin"),
    ),
]


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the menu of this user, without empty sections."""
    around = {
        "items": [
            # Every URL starts with this one, so it would always look active.
            {"title": _("Overview"), "icon": "arrow_back", "link": "/", "active": False},
        ]
    }
    menu: list[dict[str, Any]] = [around]
    for title, *pages in SECTIONS:
        items = []
        for name, icon, label in pages:
            app, model = label.split(".")
            if any(request.user.has_perm(f"{app}.{right}_{model}") for right in ("view", "change")):
                items.append({"title": name, "icon": icon, "link": reverse(f"admin:{app}_{model}_changelist")})
        if title == COORDINATOR and request.user.has_perm("coordinator.view_forecast"):
            items.append({"title": _("Forecast"), "icon": "online_prediction", "link": reverse("dashboard:forecast")})
        if title == ACCESS and request.user.has_perm(Change.VIEW_PERMISSION):
            items.append({"title": _("Changes"), "icon": "history", "link": reverse("dashboard:changes")})
        if items:
            menu.append({"title": title, "separator": True, "items": items})
    return menu


def _own(name: str, **fields: str) -> Callable[[Any], str]:
    """Return the page of a row with an id of its own, or with the values of other attributes."""
    names = list(fields.values()) or ["pk"]
    return lambda row: reverse(f"dashboard:{name}", args=[getattr(row, each) for each in names])


def _of_olt(name: str = "olt") -> Callable[[Any], str]:
    """Return a page of the OLT of a row: its own, or a list with its rows."""

    def url(row: Any) -> str:
        if row.olt_id is None:
            return reverse("dashboard:overview" if name == "olt" else f"dashboard:{name}")
        if name == "olt":
            return reverse("dashboard:olt", args=[row.olt_id])
        return f"{reverse(f'dashboard:{name}')}?{urlencode({'olt': row.olt_id})}"

    return url


# Of each model in the admin: the permission for its pages in the dashboard, the page of its list, that of a row.
PAGES: dict[str, tuple[str, str, Callable[[Any], str] | None]] = {
    "inventory.olt": ("inventory.view_olt", "olts", _own("olt")),
    "inventory.site": (
        "inventory.view_olt",
        "olts",
        lambda site: f"{reverse('dashboard:olts')}?{urlencode({'site': site.name})}",
    ),
    "inventory.tag": (
        "inventory.view_olt",
        "olts",
        lambda tag: f"{reverse('dashboard:olts')}?{urlencode({'tag': tag.name})}",
    ),
    "telemetry.onu": ("telemetry.view_onu", "onus", _own("onu")),
    "telemetry.onuevent": ("telemetry.view_onu", "onus", _own("onu", onu="onu_id")),
    "jobs.snmpjob": ("jobs.view_snmpjob", "jobs", _own("job")),
    "jobs.workflow": ("inventory.view_olt", "olts", _own("olt")),
    "jobs.workflownode": ("jobs.view_workflownode", "jobs", _own("node")),
    "polling.execution": ("polling.view_execution", "executions", _of_olt("executions")),
    "polling.poller": ("polling.view_poller", "overview", None),
    "polling.pollerstats": ("polling.view_poller", "overview", None),
    "coordinator.quotatracker": ("inventory.view_olt", "overview", _of_olt()),
    "coordinator.quotaviolation": ("inventory.view_olt", "overview", _of_olt()),
    "coordinator.executionplan": ("inventory.view_olt", "overview", _of_olt()),
    "coordinator.coordinatorlog": ("coordinator.view_coordinatorlog", "log", _of_olt("log")),
    "alerts.alert": ("alerts.view_rule", "alerts", None),
    "alerts.rule": ("alerts.view_rule", "alerts", _own("alert-rule")),
    "alerts.channel": ("alerts.view_rule", "alerts", None),
    "alerts.delivery": ("alerts.view_rule", "alerts", None),
    "auth.user": ("auth.view_user", "users", _own("user")),
    "accounts.apitoken": ("auth.view_user", "users", _own("user", user="user_id")),
    "accounts.failedlogin": ("auth.view_user", "users", None),
}


def page_of_list(user: Any, model: type[models.Model]) -> str:
    """Return the page of the dashboard with the rows of a model; empty if there is none for this user."""
    permission, name, _row = PAGES.get(model._meta.label_lower, ("", "", None))
    return reverse(f"dashboard:{name}") if name and user.has_perm(permission) else ""


def page_of_row(user: Any, row: models.Model) -> str:
    """Return the page of the dashboard about a row, or that of its list."""
    permission, _list, page = PAGES.get(row._meta.label_lower, ("", "", None))
    return page(row) if page and user.has_perm(permission) else page_of_list(user, type(row))
