"""Filters of OLTs, and of rows by the site and tags of their OLT."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.models import Olt
from facho.apps.inventory.scopes import visible_olts
from facho.apps.rest.filters import FilterSet, YesNoFilter


class PlaceFilter(FilterSet):
    """Filters by the site and the tags of an OLT."""

    # Lookup from a row to its OLT.
    olt_path = "olt"

    site = django_filters.CharFilter(method="by_label", label="name of the site of the OLT")
    tag = django_filters.CharFilter(method="by_label", label="a tag of the OLT")

    def by_label(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        lookup = {"site": "site__name__iexact", "tag": "tags__name__iexact"}[name]
        olts = Olt.objects.filter(**{lookup: value}).order_by().values("pk")
        return rows.filter(**{f"{self.olt_path}__in": olts})


def olts_of(request: Any) -> QuerySet[Olt]:
    """Return the choices of a filter by OLT."""
    return visible_olts(request.user) if request is not None else Olt.objects.all()


class OltRowsFilter(PlaceFilter):
    """Filters by OLT, and by its site and tags."""

    olt = django_filters.ModelChoiceFilter(queryset=olts_of, label="the id of the OLT")


class LabelFilter(FilterSet):
    """Filters of sites and tags."""

    name = django_filters.CharFilter(lookup_expr="iexact", label="the complete name, in upper or lower case")


class OltFilter(PlaceFilter):
    """`state` is the displayed state: `disabled`, or else the reachability."""

    olt_path = "pk"

    brand = django_filters.CharFilter()
    state = django_filters.ChoiceFilter(
        method="by_state", choices=[*Olt.Reachability.choices, ("disabled", _("disabled"))], label="state"
    )

    is_suspect = YesNoFilter(
        field_name="suspect_since",
        lookup_expr="isnull",
        exclude=True,
        label="whether the reported ONUs are in doubt",
    )

    breaker_open = YesNoFilter(
        field_name="breaker_opened_at", lookup_expr="isnull", exclude=True, label="whether its breaker is open"
    )

    class Meta:
        model = Olt
        fields = ["enabled", "reachability"]

    def by_state(self, olts: QuerySet[Olt], name: str, value: str) -> QuerySet[Olt]:
        if value == "disabled":
            return olts.filter(enabled=False)
        return olts.filter(enabled=True, reachability=value)
