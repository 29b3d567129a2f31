"""Filters of maintenance, of the API and the page."""

import django_filters
from django.utils import timezone

from facho.apps.maintenance.models import Maintenance, MaintenanceQuerySet
from facho.apps.rest.filters import AnyOfFilter, FilterSet, IdFilter, MomentFilter


class MaintenanceFilter(FilterSet):
    """Filters by what is maintained, by state and by time."""

    state = django_filters.ChoiceFilter(method="by_state", choices=Maintenance.State.choices, label="state")
    olt = IdFilter(field_name="olt_id", label="the id of the OLT")
    site = django_filters.CharFilter(field_name="site__name", lookup_expr="iexact", label="name of the site")
    tag = django_filters.CharFilter(field_name="tag__name", lookup_expr="iexact", label="a tag")
    recurrence = AnyOfFilter(choices=Maintenance.Recurrence.choices, label="repetition, may be repeated")
    starts_after = MomentFilter(field_name="starts_at", lookup_expr="gte", label="start, from")
    starts_before = MomentFilter(field_name="starts_at", lookup_expr="lt", label="start, until before")

    class Meta:
        model = Maintenance
        fields: tuple[str, ...] = ()

    def by_state(self, rows: MaintenanceQuerySet, name: str, value: str) -> MaintenanceQuerySet:
        return rows.in_state(value, timezone.now())
