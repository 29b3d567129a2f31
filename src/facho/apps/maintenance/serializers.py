"""Maintenance in the API."""

import copy
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.apps.inventory.models import Site, Tag
from facho.apps.inventory.scopes import OltChoice
from facho.apps.inventory.serializers import CheckedSerializer, LabelField
from facho.apps.maintenance.models import Maintenance
from facho.apps.maintenance.queries import may_plan
from facho.apps.rest.strict import StrictSerializer


class WindowSerializer(serializers.Serializer[Any]):
    """A time of maintenance."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class MaintenanceSerializer(CheckedSerializer[Maintenance]):
    """A maintenance of either an OLT, one of its ports, a site or a tag."""

    olt = OltChoice(required=False, allow_null=True)
    olt_name = serializers.SerializerMethodField()
    site = LabelField(queryset=Site.objects.all(), required=False, allow_null=True)
    tag = LabelField(queryset=Tag.objects.all(), required=False, allow_null=True)
    target = serializers.CharField(read_only=True, help_text="Name of what is maintained.")
    author = serializers.CharField(source="author_name", read_only=True)
    state = serializers.ChoiceField(choices=Maintenance.State.choices, read_only=True)
    window = serializers.SerializerMethodField(help_text="The running, next or last window.")

    class Meta:
        model = Maintenance
        fields = [
            "id", "target", "olt", "olt_name", "slot", "port", "site", "tag", "starts_at", "ends_at", "recurrence",
            "zone", "repeats_until", "polling", "reason", "state", "window", "author", "created_at", "cancelled_at",
        ]  # fmt: skip
        read_only_fields = ["created_at", "cancelled_at"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        plan = copy.copy(self.instance) if isinstance(self.instance, Maintenance) else Maintenance()
        for name, value in attrs.items():
            setattr(plan, name, value)
        if not may_plan(self.context["request"].user, plan):
            raise serializers.ValidationError(_("It covers OLTs outside your scope."))
        return attrs

    def create(self, validated_data: dict[str, Any]) -> Maintenance:
        plan = Maintenance(**validated_data)
        plan.plan(by=self.context["request"].user)
        return plan

    def update(self, instance: Maintenance, validated_data: dict[str, Any]) -> Maintenance:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        instance.replan()
        return instance

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_olt_name(self, plan: Maintenance) -> str | None:
        return plan.olt.name if plan.olt else None

    @extend_schema_field(WindowSerializer(allow_null=True))
    def get_window(self, plan: Maintenance) -> Any:
        start, end = plan.window
        return None if start is None else WindowSerializer({"starts_at": start, "ends_at": end}).data


class ExtendBody(StrictSerializer):
    """How much longer a maintenance lasts."""

    minutes = serializers.IntegerField(min_value=1, max_value=7 * 24 * 60)
