"""The map in API v1: ONUs in cells, sites, and open problems, as far as the user sees their OLTs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.db.models import Avg, Count, F, Max, Min, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from facho.apps.accounts.permissions import needs
from facho.apps.dashboard.templatetags.facho import place
from facho.apps.inventory.models import Olt, Site
from facho.apps.inventory.scopes import ScopedView, restrict, visible_olts
from facho.apps.rest.filters import LARGEST_ID, LimitedSearch
from facho.apps.rest.strict import StrictView
from facho.apps.telemetry.filters import OnuFilter
from facho.apps.telemetry.models import RX_WEAK, Onu
from facho.apps.telemetry.queries import IS_DARK, IS_MISSING, IS_WEAK
from facho.apps.telemetry.search import matching
from facho.engine.geography import MOST_ZOOM, Area, cell_bits
from facho.problems.affected import affected
from facho.problems.models import Problem
from facho.problems.queries import problems_of

# Also without a known power.
HAS_POWER = Q(rx_level__isnull=True) | Q(rx_level__gte=RX_WEAK)
IS_GOOD = Q(state=Onu.State.ONLINE) & ~IS_MISSING & HAS_POWER


class AreaField(serializers.CharField):
    """A part of the map."""

    default_error_messages = {
        "invalid": gettext_lazy("Write west,south,east,north in degrees: -77.2,-12.3,-76.8,-11.9.")
    }

    def to_internal_value(self, data: Any) -> Any:
        try:
            return Area.parse(str(data))
        except ValueError:
            self.fail("invalid")


class MapWish(serializers.Serializer[Any]):
    """The shown part of the map."""

    bbox = AreaField(help_text="West, south, east and north in degrees, separated by commas.")
    zoom = serializers.IntegerField(
        min_value=0,
        max_value=MOST_ZOOM,
        help_text="The world is 256 pixels wide at zoom 0, and doubles with each step.",
    )
    problem = serializers.IntegerField(
        required=False, min_value=0, max_value=LARGEST_ID, help_text="Count only ONUs of this problem as affected."
    )


class AreaSerializer(serializers.Serializer[Any]):
    """The smallest area with all ONUs of something."""

    west = serializers.FloatField()
    south = serializers.FloatField()
    east = serializers.FloatField()
    north = serializers.FloatField()


class MapOnuSerializer(serializers.Serializer[Any]):
    """An ONU that is alone in its cell. `state` and `place` are texts for people."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    olt_name = serializers.CharField()
    place = serializers.CharField()
    state = serializers.CharField()
    problems = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of its open problems.")
    url = serializers.CharField(help_text="Its page.")
    port_url = serializers.CharField(help_text="The page of its port; empty if the port is not known.")


class CellSerializer(AreaSerializer):
    """ONUs that are close to each other."""

    latitude = serializers.FloatField(help_text="Of the middle of its ONUs.")
    longitude = serializers.FloatField()
    count = serializers.IntegerField()
    good = serializers.IntegerField(help_text="Online, without low power.")
    weak = serializers.IntegerField(help_text="With low power.")
    down = serializers.IntegerField()
    affected = serializers.IntegerField(help_text="In an open problem.")
    onu = MapOnuSerializer(allow_null=True, help_text="null: there are several.")


class CellsSerializer(serializers.Serializer[Any]):
    """Cells with ONUs."""

    cells = CellSerializer(many=True)


class MapOnuView(ScopedView, GenericAPIView[Onu]):
    """ONUs with a position, in cells of 64 pixels."""

    queryset = Onu.objects.filter(position__isnull=False).order_by()
    query_serializer = MapWish
    serializer_class = CellsSerializer
    filter_backends = (DjangoFilterBackend, LimitedSearch)
    filterset_class = OnuFilter
    matching = staticmethod(matching)
    pagination_class = None

    def get_queryset(self) -> QuerySet[Onu]:
        onus: Any = super().get_queryset()
        found: QuerySet[Onu] = onus.with_freshness()
        return found

    @extend_schema(operation_id="map_onus", parameters=[MapWish], responses=CellsSerializer)
    def get(self, request: Request) -> Response:
        """Return the ONUs of an area in cells, with all filters of the list of ONUs. Snoozed problems do not count."""
        wish = self.validated_query()
        area: Area = wish["bbox"]
        inside = self.filter_queryset(self.get_queryset()).filter(
            position__latitude__range=(area.south, area.north), position__longitude__range=(area.west, area.east)
        )
        bits = cell_bits(area, wish["zoom"])
        problems = _problems_of_cells(inside, bits, _open_problems(request.user, wish.get("problem")))
        return Response(CellsSerializer({"cells": _cells(inside, bits, problems)}).data)


def _open_problems(user: Any, chosen: int | None = None) -> list[Problem]:
    """Return the open problems that a user sees, without snoozed ones; or one of them alone."""
    if not user.has_perm("problems.view_problem"):
        return []
    problems = problems_of(user).shown(timezone.now()).worst_first()
    return list(problems if chosen is None else problems.filter(pk=chosen))


Cell = tuple[int, int]


def _problems_of_cells(onus: Any, bits: int, problems: list[Problem]) -> dict[Cell, dict[int, list[int]]]:
    """Return the affected ONUs of each cell, with the ids of their problems."""
    found: dict[Cell, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for ids, (pk, x, y) in affected(onus, problems, "pk", "position__x", "position__y"):
        found[x >> bits, y >> bits][pk] += ids
    return found


def _cells(onus: Any, bits: int, problems: dict[Cell, dict[int, list[int]]]) -> list[dict[str, Any]]:
    """Return the ONUs in cells. The database groups them."""
    latitude, longitude = "position__latitude", "position__longitude"
    keys = {"cell_x": F("position__x").bitrightshift(bits), "cell_y": F("position__y").bitrightshift(bits)}
    cells = list(
        onus.annotate(**keys)
        .values("cell_x", "cell_y")
        .annotate(
            count=Count("pk"),
            good=Count("pk", filter=IS_GOOD),
            weak=Count("pk", filter=IS_WEAK),
            down=Count("pk", filter=IS_DARK),
            latitude=Avg(latitude),
            longitude=Avg(longitude),
            west=Min(longitude),
            south=Min(latitude),
            east=Max(longitude),
            north=Max(latitude),
            first=Min("pk"),
        )
    )
    alone = _alone([cell["first"] for cell in cells if cell["count"] == 1])
    for cell in cells:
        ids = problems.get((cell["cell_x"], cell["cell_y"]), {})
        cell["affected"] = len(ids)
        onu = alone.get(cell["first"]) if cell["count"] == 1 else None
        cell["onu"] = onu and _described(onu, ids.get(onu.pk, []))
    return cells


def _alone(ids: list[int]) -> dict[int, Onu]:
    shown = ("olt__name", "index", "slot", "port", "onu", "serial", "name", "state", "missing_since")
    return Onu.objects.select_related("olt").only(*shown).in_bulk(ids)


def _described(onu: Onu, problems: list[int]) -> dict[str, Any]:
    has_port = onu.port is not None
    return {
        "id": onu.pk,
        "name": str(onu),
        "olt_name": onu.olt.name,
        "place": f"{onu.olt.name} · {place(onu)}",
        "state": str(_("missing") if onu.is_missing else onu.get_state_display()),
        "problems": problems,
        "url": reverse("dashboard:onu", args=[onu.pk]),
        "port_url": reverse("dashboard:port", args=[onu.olt_id, onu.slot, onu.port]) if has_port else "",
    }


class MapSiteSerializer(serializers.Serializer[Any]):
    """A site with coordinates."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    latitude = serializers.FloatField()
    longitude = serializers.FloatField()
    olts = serializers.IntegerField(help_text="Number of its OLTs that you see.")
    unreachable = serializers.IntegerField(help_text="Enabled OLTs that do not answer.")
    problems = serializers.IntegerField(help_text="Open problems of its OLTs.")
    url = serializers.CharField(help_text="The list of its OLTs.")
    problems_url = serializers.CharField(help_text="The list of its problems.")


class MapSitesSerializer(serializers.Serializer[Any]):
    """Sites of the map."""

    results = MapSiteSerializer(many=True)


class MapSiteView(StrictView):
    """Sites with coordinates."""

    permission_classes = (needs("inventory.view_site"),)

    @extend_schema(operation_id="map_sites", responses=MapSitesSerializer)
    def get(self, request: Request) -> Response:
        """Return the sites with coordinates that have OLTs which you see."""
        problems = Counter(problem.olt_id for problem in _open_problems(request.user))
        return Response(MapSitesSerializer({"results": _sites(request.user, problems)}).data)


def _sites(user: Any, problems: Mapping[int | None, int]) -> list[dict[str, Any]]:
    olts: dict[int, list[Olt]] = defaultdict(list)
    placed = visible_olts(user).filter(site__latitude__isnull=False).order_by()
    for olt in placed.only("site", "enabled", "reachability"):
        olts[olt.site_id or 0].append(olt)
    return [_site(site, olts[site.pk], problems) for site in Site.objects.filter(pk__in=olts)]


def _site(site: Site, olts: list[Olt], problems: Mapping[int | None, int]) -> dict[str, Any]:
    query = urlencode({"site": site.name})
    return {
        "id": site.pk,
        "name": site.name,
        "latitude": site.latitude,
        "longitude": site.longitude,
        "olts": len(olts),
        "unreachable": sum(olt.state == Olt.Reachability.UNREACHABLE for olt in olts),
        "problems": sum(problems.get(olt.pk, 0) for olt in olts),
        "url": f"{reverse('dashboard:olts')}?{query}",
        "problems_url": f"{reverse('dashboard:problems')}?{query}",
    }


class MapProblemSerializer(AreaSerializer):
    """An open problem, and the smallest area with its ONUs."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    severity = serializers.ChoiceField(choices=Problem.Severity.choices)
    onus = serializers.IntegerField(help_text="ONUs with a position that it affects.")
    url = serializers.CharField(help_text="Its page.")


class MapProblemsSerializer(serializers.Serializer[Any]):
    """Problems of the map."""

    results = MapProblemSerializer(many=True)


class MapProblemView(StrictView):
    """Open problems of ONUs with a position."""

    permission_classes = (needs("problems.view_problem"),)

    @extend_schema(operation_id="map_problems", responses=MapProblemsSerializer)
    def get(self, request: Request) -> Response:
        """Return the open problems of ONUs with a position, the worst first. Snoozed ones are left out."""
        problems = _open_problems(request.user)
        onus = restrict(Onu.objects.filter(position__isnull=False), request.user)
        places: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for ids, (latitude, longitude) in affected(onus, problems, "position__latitude", "position__longitude"):
            for pk in ids:
                places[pk].append((latitude, longitude))
        shown = [_located(problem, places[problem.pk]) for problem in problems if problem.pk in places]
        return Response(MapProblemsSerializer({"results": shown}).data)


def _located(problem: Problem, places: list[tuple[float, float]]) -> dict[str, Any]:
    latitudes, longitudes = zip(*places, strict=True)
    return {
        "id": problem.pk,
        "title": problem.title,
        "severity": problem.severity,
        "onus": len(places),
        "url": problem.get_absolute_url(),
        "west": min(longitudes),
        "south": min(latitudes),
        "east": max(longitudes),
        "north": max(latitudes),
    }
