"""Filters of problems, of the API and the page."""

import django_filters
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import pgettext_lazy

from facho.apps.inventory.filters import PlaceFilter
from facho.apps.rest.filters import AnyOfFilter, IdFilter, MomentFilter, YesNoFilter
from facho.problems.models import Problem

STATES = [
    ("open", pgettext_lazy("problems", "open")),
    ("past", pgettext_lazy("problems", "past")),
    ("all", pgettext_lazy("problems", "all")),
]

# Columns of a search, besides the comments.
SEARCHED = ("olt__name", "olt__site__name", "onu__name", "onu__serial", "assignee__username")


class ProblemFilter(PlaceFilter):
    """Filters by kind, severity, place, time, and what people did."""

    state = django_filters.ChoiceFilter(method="by_state", choices=STATES, label="open, past or all (default)")
    kind = AnyOfFilter(choices=Problem.Kind.choices, label="type, may be repeated")
    severity = AnyOfFilter(choices=Problem.Severity.choices, label="severity, may be repeated")
    cause = AnyOfFilter(choices=Problem.Cause.choices, label="probable cause, may be repeated")
    olt = IdFilter(field_name="olt_id", label="the id of the OLT")
    slot = django_filters.NumberFilter(decimal_places=0, label="slot of the OLT")
    port = django_filters.NumberFilter(decimal_places=0, label="port in the slot")
    acknowledged = YesNoFilter(
        field_name="acknowledged_at", lookup_expr="isnull", exclude=True, label="whether it is acknowledged"
    )
    assigned = YesNoFilter(
        field_name="assignee", lookup_expr="isnull", exclude=True, label="whether it is assigned to a user"
    )
    assignee = django_filters.CharFilter(field_name="assignee__username", label="the name of the assigned user")
    snoozed = YesNoFilter(method="by_snoozed", label="whether it is snoozed now")
    since_after = MomentFilter(field_name="since", lookup_expr="gte", label="start, from")
    since_before = MomentFilter(field_name="since", lookup_expr="lt", label="start, until before")
    until_after = MomentFilter(field_name="until", lookup_expr="gte", label="end, from")
    until_before = MomentFilter(field_name="until", lookup_expr="lt", label="end, until before")

    class Meta:
        model = Problem
        fields: tuple[str, ...] = ()

    def by_state(self, problems: QuerySet[Problem], name: str, value: str) -> QuerySet[Problem]:
        return problems if value == "all" else problems.filter(until__isnull=value == "open")

    def by_snoozed(self, problems: QuerySet[Problem], name: str, value: bool) -> QuerySet[Problem]:
        now = {"snoozed_until__gt": timezone.now()}
        return problems.filter(**now) if value else problems.exclude(**now)
