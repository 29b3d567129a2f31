"""Filters of ONUs and their events."""

import django_filters

from facho.apps.inventory.filters import OltRowsFilter
from facho.apps.rest.filters import AnyOfFilter, IdFilter, MomentFilter, YesNoFilter
from facho.apps.telemetry.models import Onu, OnuEvent


class OnuFilter(OltRowsFilter):
    """Filters by place, state, serial and received power."""

    state = AnyOfFilter(choices=Onu.State.choices, label="state, may be repeated")
    serial = django_filters.CharFilter(lookup_expr="iexact", label="the complete serial, in upper or lower case")
    has_power = YesNoFilter(
        field_name="rx_dbm", lookup_expr="isnull", exclude=True, label="whether a received power is known"
    )

    is_missing = YesNoFilter(
        field_name="missing_since",
        lookup_expr="isnull",
        exclude=True,
        label="whether it is missing: discoveries do not find it",
    )
    is_replaced = django_filters.BooleanFilter(
        field_name="replaced_by", lookup_expr="isnull", exclude=True, label="whether another ONU was found at its place"
    )

    read_at__lt = django_filters.DateTimeFilter(field_name="read_at", lookup_expr="lt")
    read_at__gt = django_filters.DateTimeFilter(field_name="read_at", lookup_expr="gt")

    class Meta:
        model = Onu
        fields = {
            "slot": ["exact"],
            "port": ["exact"],
            "onu": ["exact"],
            "rx_dbm": ["lt", "gt"],
            "olt_rx_dbm": ["lt", "gt"],
            "missing_since": ["lt", "gt"],
            "moved_at": ["lt", "gt"],
        }


class OnuEventFilter(OltRowsFilter):
    """Filters by OLT, ONU, current port of the ONU, changed field and time."""

    onu = IdFilter(label="the id of the ONU")
    slot = django_filters.NumberFilter(field_name="onu__slot", decimal_places=0, label="slot of the ONU now")
    port = django_filters.NumberFilter(field_name="onu__port", decimal_places=0, label="port of the ONU now")
    field = AnyOfFilter(choices=OnuEvent.Field.choices, label="what changed, may be repeated")
    after = MomentFilter(field_name="at", lookup_expr="gte", label="time, from")
    before = MomentFilter(field_name="at", lookup_expr="lt", label="time, until before")

    class Meta:
        model = OnuEvent
        fields: tuple[str, ...] = ()
