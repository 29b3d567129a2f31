"""The record in the API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.apps.changes.models import Change


class ChangedFieldSerializer(serializers.Serializer[Any]):
    """A changed field. A new object has no value before, a deleted one none after."""

    field = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True, help_text="`changed` for a secret, whose values are not recorded.")


class ChangeSerializer(serializers.ModelSerializer[Change]):
    """A change by a person, a token or the engine."""

    user = serializers.IntegerField(source="user_id", allow_null=True, help_text="Null for commands and the engine.")
    actor = serializers.CharField(help_text="User name, name of the operating system's user, or Facho for the engine.")
    token = serializers.CharField(help_text="Name and prefix of the API token, or empty.")
    object_type = serializers.CharField(help_text="Such as `inventory.olt`; empty if there is no object.")
    olt = serializers.IntegerField(source="olt_id", allow_null=True, help_text="Id of the OLT, if there is one.")
    changes = serializers.SerializerMethodField(help_text="Changed fields.")

    class Meta:
        model = Change
        fields = [
            "id",
            "at",
            "actor",
            "user",
            "token",
            "address",
            "interface",
            "action",
            "object_type",
            "object_id",
            "object_name",
            "olt",
            "changes",
            "note",
            "request_id",
        ]
        read_only_fields = fields

    @extend_schema_field(ChangedFieldSerializer(many=True))
    def get_changes(self, change: Change) -> list[dict[str, Any]]:
        return [{"field": name, "before": before, "after": after} for name, before, after in change.values]
