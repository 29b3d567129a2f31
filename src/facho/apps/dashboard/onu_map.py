"""The map: ONUs with a position, and sites, with the open problems."""

from typing import Any

from django.conf import settings
from django.db.models import Max, Min, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from facho.apps.dashboard.views import page, show
from facho.apps.inventory.models import Site, Tag
from facho.apps.inventory.scopes import restrict, restrict_labels, visible_olts
from facho.apps.telemetry.filters import GROUP_CHOICES
from facho.apps.telemetry.models import Onu, OnuPosition
from facho.apps.telemetry.queries import summary


@page("telemetry.view_onu")
def onu_map(request: HttpRequest) -> HttpResponse:
    user = request.user
    positions = restrict(OnuPosition.objects.order_by(), user)
    bounds = _bounds(positions, restrict_labels(Site.objects.filter(latitude__isnull=False), user).order_by())
    olts = visible_olts(user).select_related("site").only("name", "site__name")
    may_see_problems = user.has_perm("problems.view_problem")
    context = {
        "active": "map",
        "bounds": bounds,
        "q": request.GET.get("q", ""),
        "wanted": request.GET,
        "olts": olts,
        "sites": sorted({each.site.name for each in olts if each.site}),
        "tags": Tag.objects.filter(olts__in=[each.pk for each in olts]).distinct().values_list("name", flat=True),
        "states": [*GROUP_CHOICES, *Onu.State.choices],
        "may_import": user.has_perm(OnuPosition.CHANGE_PERMISSION),
        "may_place_sites": user.is_staff and user.has_perm("inventory.change_site"),
        "attribution": settings.FACHO_MAP_ATTRIBUTION if settings.FACHO_MAP_TILES else "",
        "without_position": max(summary(user)["total"] - positions.count(), 0),
        "boot": {
            "map": {
                "bounds": bounds,
                "tiles": settings.FACHO_MAP_TILES and {"url": settings.FACHO_MAP_TILES},
                "words": _words(),
                "urls": {
                    "onus": reverse("api-map-onus"),
                    "sites": reverse("api-map-sites") if user.has_perm("inventory.view_site") else "",
                    "problems": reverse("api-map-problems") if may_see_problems else "",
                    "list": reverse("dashboard:onus"),
                },
            }
        },
    }
    return show(request, "map.html", context)


def _bounds(*rows: QuerySet[Any]) -> dict[str, float] | None:
    """Return the smallest area with these rows; None without any."""
    found = [
        each.aggregate(west=Min("longitude"), south=Min("latitude"), east=Max("longitude"), north=Max("latitude"))
        for each in rows
    ]
    found = [each for each in found if each["west"] is not None]
    if not found:
        return None
    least = {name: min(each[name] for each in found) for name in ("west", "south")}
    return least | {name: max(each[name] for each in found) for name in ("east", "north")}


def _words() -> dict[str, str]:
    """Return the texts of the script."""
    return {
        "north": pgettext("direction", "N"),
        "south": pgettext("direction", "S"),
        "east": pgettext("direction", "E"),
        "west": pgettext("direction", "W"),
        "onu": _("1 ONU"),
        "onus": _("{n} ONUs"),
        "olts": _("OLTs: {n}"),
        "down": _("{n} down"),
        "weak": _("{n} with weak power"),
        "affected": _("{n} in a problem"),
        "unreachable": _("unreachable: {n}"),
        "problems": _("open problems: {n}"),
        "nothing": _("No ONU is in this area."),
        "details": _("details"),
        "close": _("Close"),
    }
