"""Menu of the admin, filtered by permission."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from facho.apps.changes.models import Change

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
        _("Coordinator"),
        (_("Quotas"), "speed", "coordinator.quotatracker"),
        (_("Violations"), "warning", "coordinator.quotaviolation"),
        (_("Plans"), "view_timeline", "coordinator.executionplan"),
        (_("Forecasts"), "online_prediction", "coordinator.forecast"),
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
            {"title": _("Dashboard"), "icon": "speed", "link": "/", "active": False},
            {"title": _("API"), "icon": "api", "link": reverse("api-docs")},
        ]
    }
    menu: list[dict[str, Any]] = [around]
    for title, *pages in SECTIONS:
        items = []
        for name, icon, label in pages:
            app, model = label.split(".")
            if any(request.user.has_perm(f"{app}.{right}_{model}") for right in ("view", "change")):
                items.append({"title": name, "icon": icon, "link": reverse(f"admin:{app}_{model}_changelist")})
        if title == ACCESS and request.user.has_perm(Change.VIEW_PERMISSION):
            items.append({"title": _("Changes"), "icon": "history", "link": reverse("dashboard:changes")})
        if items:
            menu.append({"title": title, "separator": True, "items": items})
    return menu


def time_zone(request: HttpRequest) -> list[str]:
    """Return the name of the time zone of the admin, shown in its header."""
    return [timezone.get_current_timezone_name(), "info"]
