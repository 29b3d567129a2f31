"""Filters of jobs and nodes."""

import django_filters
from django.db.models import QuerySet

from facho.apps.jobs import in_effect
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.rest.filters import FilterSet, IdFilter, YesNoFilter


class JobFilter(FilterSet):
    """`olt` finds the jobs that are applied to it."""

    brand = django_filters.CharFilter()
    olt = IdFilter(field_name="nodes__olt_id", label="olt")
    is_master = YesNoFilter(field_name="follows", lookup_expr="isnull", label="is_master")

    class Meta:
        model = SnmpJob
        fields = ["kind", "enabled", "follows"]


class NodeFilter(FilterSet):
    """`enabled` is the effective value: the node's own setting, otherwise that of its job."""

    enabled = YesNoFilter(method="by_enabled", label="enabled")
    is_chained = YesNoFilter(field_name="master", lookup_expr="isnull", exclude=True, label="is_chained")

    class Meta:
        model = WorkflowNode
        fields = ["olt", "job", "master"]

    def by_enabled(self, nodes: QuerySet[WorkflowNode], name: str, value: bool) -> QuerySet[WorkflowNode]:
        return nodes.alias(counts_as_enabled=in_effect.enabled()).filter(counts_as_enabled=value)
