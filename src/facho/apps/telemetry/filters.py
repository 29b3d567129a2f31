"""Filters of ONUs and their events."""

import math
import re
from datetime import timedelta
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.filters import OltRowsFilter
from facho.apps.rest.filters import AnyOfFilter, IdFilter, IdsFilter, MomentFilter, YesNoFilter
from facho.apps.telemetry.models import Onu, OnuEvent
from facho.apps.telemetry.queries import IS_DARK, IS_MISSING, IS_WEAK
from facho.apps.telemetry.serializers import LONGEST_HISTORY, STEP, UNITS
from facho.engine.geography import Area, BadArea

# A port, or a slot and a port.
PORT = re.compile(r"(?:([0-9]{1,9})/)?([0-9]{1,9})")

# States of the list besides those of a device. The last values of a missing ONU do not count.
MISSING, PRESENT, DARK, WEAK = "missing", "present", "dark", "weak"
GROUPS = {
    MISSING: IS_MISSING,
    PRESENT: ~IS_MISSING,
    DARK: IS_DARK,
    WEAK: IS_WEAK,
}
GROUP_CHOICES = [
    (DARK, _("down")),
    (WEAK, _("weak power")),
    (MISSING, _("missing")),
    (PRESENT, _("not missing")),
]


class PortField(forms.CharField):
    """The number of a port, or slot/port."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if text and not PORT.fullmatch(text):
            raise ValidationError(_("Write the number of a port, or slot/port such as 1/9."))
        return text


class PortFilter(django_filters.CharFilter):
    field_class = PortField

    def filter(self, qs: QuerySet[Onu], value: str) -> QuerySet[Onu]:
        match = PORT.fullmatch(value or "")
        if match is None:
            return qs
        slot, port = match.groups()
        return qs.filter(port=int(port), **({"slot": int(slot)} if slot else {}))


class PowerFilter(django_filters.NumberFilter):
    """A bound of the received power. The rounded power has an index."""

    def filter(self, qs: QuerySet[Onu], value: Any) -> QuerySet[Onu]:
        if value is None:
            return qs
        side = "gte" if self.lookup_expr.startswith("gt") else "lte"
        found: QuerySet[Onu] = super().filter(qs.filter(**{f"rx_level__{side}": math.floor(value)}), value)
        return found


class SpanField(forms.CharField):
    """A span of time: seconds, or a number and m, h or d."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        match = STEP.fullmatch(text)
        seconds = int(match[1]) * UNITS[match[2]] if match else 0
        if not 1 <= seconds <= LONGEST_HISTORY * 3600:
            raise ValidationError(_("Write a span of time such as 30m, 24h or 7d."))
        return timedelta(seconds=seconds)


class WithinFilter(django_filters.Filter):
    """Times within the last hours or days."""

    field_class = SpanField

    def filter(self, qs: QuerySet[Onu], value: timedelta | None) -> QuerySet[Onu]:
        return qs if value is None else qs.filter(**{f"{self.field_name}__gte": timezone.now() - value})


class AreaFormField(forms.CharField):
    """A part of the map."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return Area.parse(text) if text else None
        except BadArea as error:
            said = _("Write west,south,east,north in degrees, such as -77.2,-12.3,-76.8,-11.9.")
            raise ValidationError(said) from error


class AreaFilter(django_filters.CharFilter):
    """Positions in a part of the map, its edges included."""

    field_class = AreaFormField

    def filter(self, qs: QuerySet[Onu], value: Area | None) -> QuerySet[Onu]:
        if value is None:
            return qs
        return qs.filter(
            position__latitude__range=(value.south, value.north), position__longitude__range=(value.west, value.east)
        )


class OnuFilter(OltRowsFilter):
    """Filters of ONUs, for the API, the pages and the files."""

    id = IdsFilter(label="ids, separated by commas")
    state = AnyOfFilter(
        method="by_state",
        choices=[*Onu.State.choices, *GROUP_CHOICES],
        label="state, may be repeated. A missing ONU has no other state. dark: offline, loss of signal or power lost; "
        "weak: with low power; present: not missing",
    )
    serial = django_filters.CharFilter(method="by_serial", label="the complete serial, in upper or lower case")
    model = django_filters.CharFilter(lookup_expr="istartswith", label="the start of the model, in any case")
    port = PortFilter(label="the number of a port, or slot/port")
    has_power = YesNoFilter(
        field_name="rx_dbm", lookup_expr="isnull", exclude=True, label="whether a received power is known"
    )
    rx_dbm__gt = PowerFilter(field_name="rx_dbm", lookup_expr="gt", label="received power, more than")
    rx_dbm__gte = PowerFilter(field_name="rx_dbm", lookup_expr="gte", label="received power, from")
    rx_dbm__lt = PowerFilter(field_name="rx_dbm", lookup_expr="lt", label="received power, less than")
    rx_dbm__lte = PowerFilter(field_name="rx_dbm", lookup_expr="lte", label="received power, up to")
    since_after = MomentFilter(field_name="state_since", lookup_expr="gte", label="start of the state, from")
    since_before = MomentFilter(field_name="state_since", lookup_expr="lt", label="start of the state, until before")
    since_within = WithinFilter(
        field_name="state_since", label="the state began within the last 30m, 24h or 7d: a number and m, h or d"
    )

    is_missing = YesNoFilter(
        field_name="missing_since",
        lookup_expr="isnull",
        exclude=True,
        label="whether it is missing: discoveries do not find it",
    )
    is_replaced = YesNoFilter(
        field_name="replaced_by", lookup_expr="isnull", exclude=True, label="whether another ONU was found at its place"
    )

    has_position = YesNoFilter(
        field_name="position", lookup_expr="isnull", exclude=True, label="whether its position on the map is known"
    )
    area = AreaFilter(label="part of the map: west,south,east,north in degrees")

    read_at__lt = django_filters.DateTimeFilter(field_name="read_at", lookup_expr="lt")
    read_at__gt = django_filters.DateTimeFilter(field_name="read_at", lookup_expr="gt")

    class Meta:
        model = Onu
        fields = {
            "slot": ["exact"],
            "onu": ["exact"],
            "olt_rx_dbm": ["lt", "gt", "lte", "gte"],
            "distance_m": ["lte", "gte"],
            "missing_since": ["lt", "gt"],
            "moved_at": ["lt", "gt"],
        }

    def by_serial(self, onus: QuerySet[Onu], name: str, value: str) -> QuerySet[Onu]:
        # Another comparison would not use the index.
        return onus.filter(serial__in=[value, value.upper(), value.lower()])

    def by_state(self, onus: QuerySet[Onu], name: str, values: list[str]) -> QuerySet[Onu]:
        states = [value for value in values if value not in GROUPS]
        wanted = Q(state__in=states) & ~IS_MISSING if states else Q()
        for group in {*values} & GROUPS.keys():
            wanted |= GROUPS[group]
        return onus.filter(wanted)


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
