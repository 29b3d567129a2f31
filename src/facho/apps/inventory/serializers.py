"""OLTs on the wire, and what the serializers of all apps share."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import ValidationError as ModelError
from django.db.models import Model
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.models import Olt
from facho.brands import BRANDS

Row = TypeVar("Row", bound=Model)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what a model refuses into an answer with status 400, by field."""
    try:
        yield
    except ModelError as error:
        detail = serializers.as_serializer_error(error)
        if NON_FIELD_ERRORS in detail:
            detail["non_field_errors"] = detail.pop(NON_FIELD_ERRORS)
        raise serializers.ValidationError(detail) from error


class CheckedSerializer(serializers.ModelSerializer[Row]):
    """Checks a row by the rules of its model, so that API and admin refuse the same in the same words."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        model: type[Any] = self.Meta.model
        row = copy.copy(self.instance) if isinstance(self.instance, model) else model()
        columns = {field.name for field in model._meta.concrete_fields}
        for name in columns & attrs.keys():
            setattr(row, name, attrs[name])
        with refusals():
            # Names that are taken were found by the fields already.
            row.full_clean(validate_unique=False)
        return attrs

    def update(self, instance: Row, validated_data: dict[str, Any]) -> Row:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        save_changes(instance, validated_data)
        return instance


class BrandField(serializers.CharField):
    """The id of a brand. Which there are is told by `GET /api/v1/brands/`, and by the refusal of another."""

    default_error_messages = {"unknown": _("There is no brand “{brand}”. There are: {known}.")}

    def to_internal_value(self, data: Any) -> str:
        brand = super().to_internal_value(data)
        if brand and brand not in BRANDS:
            self.fail("unknown", brand=brand, known=", ".join(sorted(BRANDS)))
        return brand


class SecretInput(serializers.CharField):
    """A secret goes in and never comes out. Left out, the stored one stays."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            write_only=True,
            required=False,
            allow_blank=True,
            trim_whitespace=False,
            style={"input_type": "password"},
            **kwargs,
        )


class BreakerSerializer(serializers.Serializer[Olt]):
    """The breaker of an OLT. While it is open the OLT is not polled, only probed."""

    is_open = serializers.SerializerMethodField()
    since = serializers.DateTimeField(source="breaker_opened_at", allow_null=True)
    failures = serializers.IntegerField(help_text="Executions in a row that ended in silence.")
    probed_at = serializers.DateTimeField(source="breaker_probed_at", allow_null=True, help_text="The last probe.")
    answered_at = serializers.DateTimeField(
        source="breaker_answered_at", allow_null=True, help_text="It answered a probe, and waits for a person."
    )

    def get_is_open(self, olt: Olt) -> bool:
        return olt.breaker_opened_at is not None


class OltSerializer(CheckedSerializer[Olt]):
    """An OLT. People set everything up to `max_pdus_per_second`; the rest is what was observed."""

    brand = BrandField(
        required=False,
        allow_blank=True,
        help_text="Left out or empty, the OLT is asked itself, and gets the usual jobs of its maker.",
    )
    brand_label = serializers.CharField(source="get_brand_display", read_only=True)
    brand_note = serializers.CharField(read_only=True, help_text="What to think of an experimental brand, or empty.")
    community = SecretInput()
    v3_auth_key = SecretInput()
    v3_priv_key = SecretInput()
    has_community = serializers.BooleanField(source="community", read_only=True)
    has_v3_auth_key = serializers.BooleanField(source="v3_auth_key", read_only=True)
    has_v3_priv_key = serializers.BooleanField(source="v3_priv_key", read_only=True)
    state = serializers.ChoiceField(
        choices=[*Olt.Reachability.choices, ("disabled", _("disabled"))],
        read_only=True,
        help_text="`disabled` if the admin said so, else the reachability.",
    )
    breaker = BreakerSerializer(source="*", read_only=True)
    onus_total = serializers.IntegerField(read_only=True)
    onus_online = serializers.IntegerField(read_only=True)
    onus_missing = serializers.IntegerField(read_only=True, help_text="Of the total: discoveries do not find them.")
    last_read_at = serializers.DateTimeField(read_only=True, allow_null=True, help_text="When any ONU was last read.")

    class Meta:
        model = Olt
        fields = [
            "id",
            "name",
            "brand",
            "brand_label",
            "brand_note",
            "host",
            "port",
            "location",
            "enabled",
            "version",
            "community",
            "v3_user",
            "v3_auth",
            "v3_auth_key",
            "v3_priv",
            "v3_priv_key",
            "max_in_flight",
            "max_pdus_per_second",
            "has_community",
            "has_v3_auth_key",
            "has_v3_priv_key",
            "state",
            "reachability",
            "last_answer_at",
            "last_error",
            "extra",
            "suspect_since",
            "breaker",
            "onus_total",
            "onus_online",
            "onus_missing",
            "last_read_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = ["reachability", "last_answer_at", "last_error", "extra", "suspect_since"]
        extra_kwargs = {
            "suspect_since": {
                "help_text": "Since when so many ONUs have vanished at once that the next discovery has to confirm it."
            }
        }


class ColumnSerializer(serializers.Serializer[Any]):
    """A column that a job of this brand can name."""

    field = serializers.CharField()
    optical = serializers.BooleanField(help_text="Read live from each ONU: dear for the OLT.")
    floor_seconds = serializers.IntegerField(
        allow_null=True, help_text="Asked for oftener than this, the OLT suffers. A job that does is warned about."
    )


class BrandSerializer(serializers.Serializer[Any]):
    """A maker, and what a job can ask its OLTs for."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field here, not the label of this one
    experimental = serializers.BooleanField(help_text="Not proved on real devices: look at what it reads with care.")
    columns = ColumnSerializer(many=True)
    discovery = serializers.ListField(
        child=serializers.CharField(), help_text="What a discovery reads when its job names no columns."
    )


class DecoderSerializer(serializers.Serializer[Any]):
    """A way to read the value of a raw OID."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field here, not the label of this one


class TokenAnswer(serializers.Serializer[Any]):
    """What a login gives: to be sent as `Authorization: Token …`."""

    token = serializers.CharField()
