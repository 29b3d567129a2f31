"""PON ports of API v1."""

from collections.abc import Iterable
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import cached_property
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request

from facho.apps.inventory.filters import OltRowsFilter
from facho.apps.inventory.scopes import ScopedView
from facho.apps.rest.filters import AnyOfFilter, LimitedSearch, NullsLastOrdering
from facho.apps.rest.strict import StrictSerializer
from facho.apps.telemetry.models import Onu, PonPort
from facho.apps.telemetry.pon_ports import Power, Span, matching, onu_ids, onus_at, power_of, with_numbers
from facho.apps.telemetry.port_history import traffic
from facho.apps.telemetry.port_levels import DARK, Level

# Counters of ONUs by state.
STATES = [state.value for state in Onu.State]


def _range(name: str, lookup: str) -> django_filters.NumberFilter:
    return django_filters.NumberFilter(field_name=name, lookup_expr=lookup)


class PonPortFilter(OltRowsFilter):
    """Filters by OLT, place, level and numbers of ONUs."""

    level = AnyOfFilter(choices=Level.choices, label="level, may be repeated")
    dark__lt, dark__gt = _range("dark", "lt"), _range("dark", "gt")
    used_percent__lt, used_percent__gt = _range("used_percent", "lt"), _range("used_percent", "gt")
    online_percent__lt, online_percent__gt = _range("online_percent", "lt"), _range("online_percent", "gt")
    dark_percent__lt, dark_percent__gt = _range("dark_percent", "lt"), _range("dark_percent", "gt")
    weak_percent__lt, weak_percent__gt = _range("weak_percent", "lt"), _range("weak_percent", "gt")

    class Meta:
        model = PonPort
        fields = {
            "slot": ["exact"],
            "port": ["exact"],
            **{name: ["lt", "gt"] for name in ("online", "weak", "missing")},
        }


class PonPortSearch(LimitedSearch):
    """Search by the name of the OLT and by place, such as 1/9."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        return matching(queryset, self.get_search_terms(request))


class PonPortSerializer(StrictSerializer, serializers.ModelSerializer[PonPort]):
    """A PON port with the number of its ONUs. Only `own_capacity` can be changed."""

    olt_name = serializers.CharField(source="olt.name", read_only=True)
    level = serializers.ChoiceField(
        choices=Level.choices,
        read_only=True,
        help_text="`dark`: half of its ONUs or more are down. `degraded`: more of them than usual do not work "
        "or have low power. `empty`: it has no ONUs.",
    )
    own_capacity = serializers.IntegerField(
        source="capacity",
        allow_null=True,
        validators=PonPort._meta.get_field("capacity").validators,
        help_text="Number of ONUs that the port can have. null: the capacity of the brand.",
    )
    capacity = serializers.IntegerField(
        source="effective_capacity", read_only=True, help_text="The capacity in effect."
    )
    mean_rx_dbm = serializers.SerializerMethodField(
        help_text="Mean received power of its ONUs with light; null if no power is known."
    )
    worst_rx_dbm = serializers.SerializerMethodField(help_text="The lowest received power of its ONUs with light.")

    class Meta:
        model = PonPort
        fields = [
            "id", "olt", "olt_name", "slot", "port", "place", "level", "total", "present", "missing", "held", "weak",
            "dark", *STATES, "own_capacity", "capacity", "free", "used_percent", "mean_rx_dbm", "worst_rx_dbm",
            "read_at", "state_at", "power_at",
        ]  # fmt: skip
        read_only_fields = [name for name in fields if name != "own_capacity"]
        extra_kwargs = {
            "place": {
                "help_text": "Slot and port, such as `1/9`; only the port on an OLT without slots; empty: ONUs without "
                "a place."
            },
            "present": {"help_text": "ONUs that are not missing."},
            "dark": {"help_text": f"The sum of {', '.join(DARK)}."},
        }

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_mean_rx_dbm(self, port: PonPort) -> float | None:
        power = self._powers.get(port.pk)
        return None if power is None else round(power.mean, 2)

    @extend_schema_field(serializers.FloatField(allow_null=True))
    def get_worst_rx_dbm(self, port: PonPort) -> float | None:
        power = self._powers.get(port.pk)
        return None if power is None else power.worst

    @cached_property
    def _powers(self) -> dict[int, Power]:
        """Read the power of all ports of a page together."""
        shown: Any = self.root.instance
        return power_of([shown] if isinstance(shown, PonPort) else shown)


class SpanSerializer(serializers.Serializer[Any]):
    """ONU ids without a gap."""

    first = serializers.IntegerField()
    last = serializers.IntegerField()


class OnuIdsSerializer(serializers.Serializer[Any]):
    """ONU ids of a port."""

    free = SpanSerializer(many=True)
    reserved = SpanSerializer(many=True, help_text="Ids of ONUs that are missing.")


class TrafficSerializer(serializers.Serializer[Any]):
    """Traffic of a port in bit/s between its last two readings of the counters."""

    in_bps = serializers.FloatField(help_text="From the ONUs.")
    out_bps = serializers.FloatField(help_text="To the ONUs.")
    onus = serializers.IntegerField(source="count", help_text="ONUs with two readings.")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()


def _spans(spans: Iterable[Span]) -> list[dict[str, int]]:
    return [{"first": first, "last": last} for first, last in spans]


class OnePonPortSerializer(PonPortSerializer):
    """A PON port with its ONU ids and traffic."""

    onu_ids = serializers.SerializerMethodField(help_text="null: its ONUs have no ids.")
    traffic = serializers.SerializerMethodField(help_text="null: the counters were not read twice in the last 3 hours.")

    class Meta(PonPortSerializer.Meta):
        fields = [*PonPortSerializer.Meta.fields, "onu_ids", "traffic"]
        read_only_fields = [*PonPortSerializer.Meta.read_only_fields, "onu_ids", "traffic"]

    @extend_schema_field(OnuIdsSerializer(allow_null=True))
    def get_onu_ids(self, port: PonPort) -> Any:
        ids = onu_ids(port, Onu.objects.filter(onus_at([port])).only("onu", "missing_since"))
        return ids and {"free": _spans(ids.free), "reserved": _spans(ids.reserved)}

    @extend_schema_field(TrafficSerializer(allow_null=True))
    def get_traffic(self, port: PonPort) -> Any:
        onus = set(Onu.objects.filter(onus_at([port])).values_list("pk", flat=True))
        found = traffic(port.olt_id, onus, timezone.now())
        return found and TrafficSerializer(found).data


class PonPortViewSet(ScopedView, mixins.UpdateModelMixin, viewsets.ReadOnlyModelViewSet[PonPort]):
    """PON ports, by OLT and place. ONUs without a place share a port without slot and port."""

    queryset = PonPort.objects.order_by("olt__name", "slot", "port", "id")
    filter_backends = (DjangoFilterBackend, PonPortSearch, NullsLastOrdering)
    filterset_class = PonPortFilter
    search_fields = ["olt__name"]
    ordering_fields = [
        "id", "olt__name", "slot", "port", "level_rank", "total", "present", "online", "online_percent", "dark",
        "dark_percent", "weak", "weak_percent", "missing", "effective_capacity", "free", "used_percent", "read_at",
    ]  # fmt: skip
    # No PUT: there is one field to change.
    http_method_names = ["get", "patch", "head", "options"]
    serializer_class = PonPortSerializer

    def get_queryset(self) -> QuerySet[PonPort]:
        return with_numbers(super().get_queryset())

    def get_serializer_class(self) -> type[PonPortSerializer]:
        return PonPortSerializer if self.action == "list" else OnePonPortSerializer
