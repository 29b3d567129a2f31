"""Filters of the record, for the API and the page."""

import django_filters
from django.db.models import QuerySet

from facho.apps.changes.actor import Interface
from facho.apps.changes.models import Change
from facho.apps.rest.filters import AnyOfFilter, FilterSet, IdFilter, MomentFilter

PEOPLE, ENGINE = "people", "engine"


class ChangeFilter(FilterSet):
    """Filters by actor, place, time, object and field."""

    by = django_filters.ChoiceFilter(
        method="by_kind",
        choices=[(PEOPLE, PEOPLE), (ENGINE, ENGINE)],
        label="changes by people and tokens, or by the engine",
    )
    actor = django_filters.CharFilter(label="user name, as it was at the time of the change")
    user = IdFilter(field_name="user_id", label="id of the user")
    token = django_filters.CharFilter(lookup_expr="icontains", label="part of the name or prefix of the API token")
    address = django_filters.CharFilter(label="address of the client")
    interface = AnyOfFilter(choices=Interface.choices, label="part of Facho that was used, may be repeated")
    action = AnyOfFilter(choices=Change.Action.choices, label="action, may be repeated")
    object_type = django_filters.CharFilter(label="such as inventory.olt")
    object = IdFilter(field_name="object_id", label="id of the object; needs object_type")
    object_name = django_filters.CharFilter(lookup_expr="icontains", label="part of the name of the object")
    olt = IdFilter(field_name="olt_id", label="id of the OLT: changes of it, its nodes and its alerts")
    field = django_filters.CharFilter(field_name="fields", lookup_expr="has_key", label="name of a changed field")
    request_id = django_filters.CharFilter(label="id of the request")
    after = MomentFilter(field_name="at", lookup_expr="gte", label="time, from")
    before = MomentFilter(field_name="at", lookup_expr="lt", label="time, until before")

    class Meta:
        model = Change
        fields: list[str] = []

    def by_kind(self, rows: QuerySet[Change], name: str, value: str) -> QuerySet[Change]:
        if value == ENGINE:
            return rows.filter(interface=Interface.ENGINE)
        return rows.exclude(interface=Interface.ENGINE)
