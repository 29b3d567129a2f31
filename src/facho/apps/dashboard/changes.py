"""The page of the change record."""

from datetime import datetime, time, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date

from facho.apps.accounts.permissions import missing
from facho.apps.changes.actor import Interface
from facho.apps.changes.capture import RECORDED
from facho.apps.changes.filters import ChangeFilter
from facho.apps.changes.models import Change
from facho.apps.dashboard import queries
from facho.apps.dashboard.shown_changes import shown_changes, type_name
from facho.apps.dashboard.views import page_for_all, show
from facho.apps.inventory.scopes import restrict, visible_ids
from facho.apps.rest.filters import FIRST_YEAR, LAST_YEAR

CHANGES_PER_PAGE = 50

# Filters of links to this page, which the form has no field for.
KEPT = ("object", "olt", "user", "token", "field", "request_id")

# Filters by columns that only those who see the whole record are shown.
HIDDEN = ("address", "token")

# Object types with actions of people besides those that people edit.
OBJECT_TYPES = (*RECORDED, "alerts.Alert", "alerts.Delivery", "dashboard.SavedView", "problems.Problem")


@page_for_all
def changes(request: HttpRequest) -> HttpResponse:
    """Show the record, the newest first. The CSV has the same rows."""
    wanted = _filters(request)
    if not _may_see(request.user, wanted):
        said = missing(Change.VIEW_PERMISSION)
        return render(request, "403.html", {"exception": said}, status=403)
    sees_all = request.user.has_perm(Change.VIEW_PERMISSION)
    for name in () if sees_all else HIDDEN:
        wanted.pop(name, None)
    found = ChangeFilter(wanted, restrict(Change.objects.all(), request.user, "olt_id"))
    rows = found.qs if found.is_valid() else Change.objects.none()
    older_than = queries.number(request.GET.get("older_than"))
    if older_than is not None:
        rows = rows.filter(id__lt=older_than)
    listed = list(rows[: CHANGES_PER_PAGE + 1])
    context = {
        "active": "changes",
        "changes": shown_changes(listed[:CHANGES_PER_PAGE], request.user),
        "older": listed[CHANGES_PER_PAGE - 1].pk if len(listed) > CHANGES_PER_PAGE else None,
        "older_than": older_than,
        "errors": [] if found.is_valid() else [error for errors in found.errors.values() for error in errors],
        "wanted": wanted,
        "full": sees_all,
        "object_name": (object_name := _object_name(wanted, request.user)),
        "kept": [(name, wanted[name]) for name in (*KEPT, *(["object_type"] if object_name else [])) if name in wanted],
        "csv": f"{reverse('api-change-list')}?{_with_csv(wanted)}" if sees_all else "",
        "names": _names(request.user),
        "types": sorted((label.lower(), type_name(label.lower())) for label in OBJECT_TYPES),
        "actions": Change.Action.choices,
        "interfaces": Interface.choices,
        "day_from": request.GET.get("day_from", ""),
        "day_to": request.GET.get("day_to", ""),
    }
    return show(request, "changes.html", context)


def _filters(request: HttpRequest) -> QueryDict:
    """Return the filters of the API that the form means. Its days are days of the installation's zone."""
    wanted = request.GET.copy()
    for name in ("older_than", "day_from", "day_to"):
        wanted.pop(name, None)
    for name in [name for name, value in wanted.items() if not value]:
        del wanted[name]
    for name, bound, days in (("day_from", "after", 0), ("day_to", "before", 1)):
        day = _day(request.GET.get(name, ""))
        if day is not None:
            wanted[bound] = (day + timedelta(days=days)).isoformat()
    return wanted


def _day(text: str) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # At the ends of the calendar a conversion to another time zone would overflow.
    is_usable = day is not None and FIRST_YEAR <= day.year <= LAST_YEAR
    return timezone.make_aware(datetime.combine(day, time())) if day and is_usable else None


def _with_csv(wanted: QueryDict) -> str:
    query = wanted.copy()
    query["format"] = "csv"
    return query.urlencode()


def _may_see(user: Any, wanted: QueryDict) -> bool:
    """Return whether a user may see this part of the record: all of it, or the changes of an object they may see."""
    if user.has_perm(Change.VIEW_PERMISSION):
        return True
    app, _dot, model = wanted.get("object_type", "").partition(".")
    return bool(wanted.get("object") and any(user.has_perm(f"{app}.{verb}_{model}") for verb in ("view", "change")))


def _names(user: Any) -> list[str]:
    """Return the user names to choose from, for those who see the changes of all users."""
    sees_all = user.has_perm(Change.VIEW_PERMISSION) and visible_ids(user) is None
    return list(User.objects.order_by("username").values_list("username", flat=True)) if sees_all else []


def _object_name(wanted: QueryDict, user: Any) -> str:
    """Return the name of the object that the list is about, from its last change; empty: of several objects."""
    object_id, object_type = queries.number(wanted.get("object")), wanted.get("object_type")
    if object_id is None or not object_type:
        return ""
    rows = restrict(Change.objects.filter(object_type=object_type, object_id=object_id), user, "olt_id")
    return rows.values_list("object_name", flat=True).first() or f"#{object_id}"
