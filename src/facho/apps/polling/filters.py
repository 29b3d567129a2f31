"""Filters of executions."""

from facho.apps.inventory.filters import OltRowsFilter
from facho.apps.polling.models import STATUS_CHOICES, Execution
from facho.apps.rest.filters import AnyOfFilter, IdFilter, MomentFilter, YesNoFilter


class ExecutionFilter(OltRowsFilter):
    """Filters by OLT, node, time, result and position in a chain."""

    node = IdFilter(field_name="node_id", label="node")
    poller = IdFilter(field_name="poller_id", label="poller")
    status = AnyOfFilter(choices=STATUS_CHOICES, label="status, may be repeated")
    master = IdFilter(field_name="master_execution_id", label="the execution of the master")
    is_master = YesNoFilter(field_name="master_execution", lookup_expr="isnull", label="is_master")
    is_retrying = YesNoFilter(
        field_name="retry_at", lookup_expr="isnull", exclude=True, label="whether it is waiting for another attempt"
    )
    slot_after = MomentFilter(field_name="slot", lookup_expr="gte", label="slot, from")
    slot_before = MomentFilter(field_name="slot", lookup_expr="lt", label="slot, until before")

    class Meta:
        model = Execution
        fields = ["trigger"]
