"""Filters of alerts and deliveries."""

from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.apps.inventory.filters import PlaceFilter
from facho.apps.rest.filters import FilterSet, IdFilter, MomentFilter, YesNoFilter


class ChannelFilter(FilterSet):
    """Filters by kind and use."""

    class Meta:
        model = Channel
        fields = ["kind", "enabled"]


class RuleFilter(FilterSet):
    """Filters by kind, severity and channel."""

    channel = IdFilter(field_name="channels", label="a channel of the rule")

    class Meta:
        model = Rule
        fields = ["kind", "severity", "enabled"]


class AlertFilter(PlaceFilter):
    """Filters by rule, place, time and state."""

    rule = IdFilter(field_name="rule_id", label="rule")
    olt = IdFilter(field_name="olt_id", label="OLT")
    is_open = YesNoFilter(field_name="recovered_at", lookup_expr="isnull", label="whether it is still open")
    is_acknowledged = YesNoFilter(
        field_name="acknowledged_at", lookup_expr="isnull", exclude=True, label="whether it is acknowledged"
    )
    opened_after = MomentFilter(field_name="opened_at", lookup_expr="gte", label="opened, from")
    opened_before = MomentFilter(field_name="opened_at", lookup_expr="lt", label="opened, until before")

    class Meta:
        model = Alert
        fields = ["kind", "severity"]


class DeliveryFilter(FilterSet):
    """Filters by alert, channel and result."""

    alert = IdFilter(field_name="alert_id", label="alert")
    channel = IdFilter(field_name="channel_id", label="channel")

    class Meta:
        model = Delivery
        fields = ["status", "news", "reason"]
