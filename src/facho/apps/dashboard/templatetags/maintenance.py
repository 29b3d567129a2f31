"""Badges of maintenance. What is in maintenance is read once for each request."""

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from facho.apps.dashboard.history import milliseconds
from facho.apps.dashboard.maintenance import quick_choices
from facho.apps.inventory.scopes import visible_ids
from facho.apps.maintenance.models import Maintenance, MaintenanceWindow
from facho.apps.maintenance.queries import Maintained, maintained_at, may_plan, restrict_maintenance, windows_between

register = template.Library()

# Of the figures of an OLT.
LONGEST_CHART = timedelta(days=30)


def maintained(request: HttpRequest) -> Maintained:
    """Return what is in maintenance now, as far as the user may know."""
    known: Maintained | None = getattr(request, "maintained", None)
    if known is None:
        may_view = request.user.has_perm(Maintenance.VIEW_PERMISSION)
        known = maintained_at(timezone.now()) if may_view else Maintained()
        request.maintained = known  # type: ignore[attr-defined]  # kept for the request
    return known


@register.simple_tag(takes_context=True)
def maintenance_badge(
    context: dict[str, Any],
    olt_id: int | None,
    slot: int | None = None,
    port: int | None = None,
    *,
    is_own: bool = False,
) -> SafeString | str:
    """Show that an OLT or a port is in maintenance; otherwise nothing. `is_own`: not with all ports of its OLT."""
    windows = maintained(context["request"]).of(olt_id, slot, port)
    if is_own:
        windows = [window for window in windows if window.maintenance.is_of_port]
    if not windows:
        return ""
    return format_html(
        '<span class="badge maintenance" title="{}">{}</span>', windows[-1].maintenance.headline, _("maintenance")
    )


@register.simple_tag(takes_context=True)
def maintenance_marks(context: dict[str, Any], olt_id: int) -> list[dict[str, Any]]:
    """Return the maintenance of an OLT in the time of its longest chart, as marks."""
    now = timezone.now()
    if not context["request"].user.has_perm(Maintenance.VIEW_PERMISSION):
        return []
    return [
        {
            "at": milliseconds(window.starts_at),
            "until": milliseconds(window.ends_at),
            "title": window.maintenance.headline,
        }
        for window in Maintained(windows_between(now - LONGEST_CHART, now)).of(olt_id)
    ]


@register.simple_tag(takes_context=True)
def polls_again_at(context: dict[str, Any], olt_id: int) -> datetime | None:
    """Return when the maintenance ends for which an OLT is not polled; None if it is polled."""
    windows = maintained(context["request"]).of(olt_id)
    return max((window.ends_at for window in windows if not window.maintenance.polls), default=None)


@register.simple_tag(takes_context=True)
def maintenance_of(
    context: dict[str, Any], olt_id: int | None, slot: int | None = None, port: int | None = None
) -> list[MaintenanceWindow]:
    """Return the windows that an OLT or a port is in."""
    return maintained(context["request"]).of(olt_id, slot, port)


@register.simple_tag(takes_context=True)
def running_maintenance(context: dict[str, Any]) -> list[MaintenanceWindow]:
    """Return the windows of all that the user sees, for the strip of the overview."""
    request = context["request"]
    windows = maintained(request).windows
    if not windows or visible_ids(request.user) is None:
        return windows
    plans = Maintenance.objects.filter(pk__in=[window.maintenance_id for window in windows])
    seen = set(restrict_maintenance(plans, request.user).values_list("pk", flat=True))
    return [window for window in windows if window.maintenance_id in seen]


@register.simple_tag(takes_context=True)
def may_change_maintenance(context: dict[str, Any], plan: Maintenance) -> bool:
    """Return whether the user may end, extend or cancel a maintenance."""
    user = context["request"].user
    return user.has_perm(Maintenance.CHANGE_PERMISSION) and may_plan(user, plan)


@register.simple_tag
def maintenance_choices() -> list[tuple[int, str]]:
    """Return how long a maintenance may last that is started with one click."""
    return quick_choices()
