"""Filters of OLTs."""

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.models import Olt
from facho.apps.rest.filters import FilterSet, YesNoFilter


class OltFilter(FilterSet):
    """`state` is the displayed state: `disabled`, or else the reachability."""

    brand = django_filters.CharFilter()
    state = django_filters.ChoiceFilter(
        method="by_state", choices=[*Olt.Reachability.choices, ("disabled", _("disabled"))], label="state"
    )

    is_suspect = YesNoFilter(
        field_name="suspect_since",
        lookup_expr="isnull",
        exclude=True,
        label="whether too many ONUs disappeared at once",
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
