"""Filters of jobs and nodes."""

import django_filters
from django.db.models import QuerySet

from facho.apps.inventory.filters import OltRowsFilter
from facho.apps.inventory.scopes import restrict
from facho.apps.jobs import in_effect
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.rest.filters import FilterSet, IdFilter, YesNoFilter


class JobFilter(FilterSet):
    """`olt` finds the jobs that are applied to it."""

    brand = django_filters.CharFilter()
    olt = IdFilter(method="by_olt", label="olt")
    is_master = YesNoFilter(field_name="follows", lookup_expr="isnull", label="is_master")

    class Meta:
        model = SnmpJob
        fields = ["kind", "enabled", "follows"]

    def by_olt(self, jobs: QuerySet[SnmpJob], name: str, value: int) -> QuerySet[SnmpJob]:
        nodes = restrict(WorkflowNode.objects.filter(olt_id=value), self.request.user).order_by()
        return jobs.filter(pk__in=nodes.values("job"))


class NodeFilter(OltRowsFilter):
    """`enabled` is the effective value: the node's own setting, otherwise that of its job."""

    enabled = YesNoFilter(method="by_enabled", label="enabled")
    is_chained = YesNoFilter(field_name="master", lookup_expr="isnull", exclude=True, label="is_chained")

    class Meta:
        model = WorkflowNode
        fields = ["job", "master"]

    def by_enabled(self, nodes: QuerySet[WorkflowNode], name: str, value: bool) -> QuerySet[WorkflowNode]:
        return nodes.alias(counts_as_enabled=in_effect.enabled()).filter(counts_as_enabled=value)
