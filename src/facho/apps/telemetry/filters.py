"""How ONUs are narrowed."""

import django_filters

from facho.apps.inventory.filters import AnyOfFilter
from facho.apps.telemetry.models import Onu


class OnuFilter(django_filters.FilterSet):
    """By place, state, serial and received power."""

    state = AnyOfFilter(choices=Onu.State.choices, label="state, may be repeated")
    serial = django_filters.CharFilter(lookup_expr="iexact", label="the whole serial, in small or capital letters")
    has_power = django_filters.BooleanFilter(
        field_name="rx_dbm", lookup_expr="isnull", exclude=True, label="whether a received power is known"
    )

    is_missing = django_filters.BooleanFilter(
        field_name="missing_since", lookup_expr="isnull", exclude=True, label="whether discoveries do not find it"
    )

    class Meta:
        model = Onu
        fields = {
            "olt": ["exact"],
            "slot": ["exact"],
            "port": ["exact"],
            "onu": ["exact"],
            "rx_dbm": ["lt", "gt"],
            "olt_rx_dbm": ["lt", "gt"],
            "read_at": ["lt", "gt"],
            "missing_since": ["lt", "gt"],
            "moved_at": ["lt", "gt"],
        }
