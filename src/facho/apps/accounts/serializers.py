"""Tokens and the login in the API."""

from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError as InvalidValue
from django.utils.translation import gettext as _
from rest_framework import serializers

from facho.apps.accounts.models import ApiToken, check_expiry
from facho.apps.accounts.networks import clean_networks
from facho.apps.rest.strict import StrictSerializer


class LoginSerializer(StrictSerializer):
    """Name and password of a user."""

    username = serializers.CharField(max_length=150, write_only=True)
    password = serializers.CharField(
        max_length=4096, trim_whitespace=False, style={"input_type": "password"}, write_only=True
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        user = authenticate(self.context["request"], **attrs)
        if user is None:
            raise serializers.ValidationError(_("Unable to log in with provided credentials."), code="authorization")
        return {"user": user}


class TokenAnswer(serializers.Serializer[Any]):
    """The key of a token, to be sent as `Authorization: Token …`."""

    token = serializers.CharField()


class ApiTokenSerializer(StrictSerializer, serializers.ModelSerializer[ApiToken]):
    """An API token. Its key is returned once, when it is created."""

    username = serializers.CharField(source="user.username", read_only=True)
    role: Any = serializers.SlugRelatedField(
        slug_field="name",
        queryset=Group.objects.all(),
        allow_null=True,
        required=False,
        help_text="Name of a group. The token has only those permissions that both the user and the group have. "
        "null: no limit.",
    )
    state = serializers.ChoiceField(choices=ApiToken.State.choices, read_only=True)
    networks: Any = serializers.ListField(
        child=serializers.CharField(max_length=50),
        required=False,
        help_text="Networks of clients, such as 192.0.2.0/24 or 2001:db8::/32. Empty: from everywhere.",
    )

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "user",
            "username",
            "name",
            "prefix",
            "origin",
            "state",
            "is_read_only",
            "role",
            "networks",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
            "last_address",
        ]
        read_only_fields = [
            "user",
            "prefix",
            "origin",
            "created_at",
            "revoked_at",
            "last_used_at",
            "last_address",
        ]

    def validate_expires_at(self, value: Any) -> Any:
        is_new = self.instance is None or self.instance.expires_at != value
        return _checked(check_expiry, value) if is_new else value

    def update(self, instance: ApiToken, validated_data: dict[str, Any]) -> ApiToken:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        instance.save(update_fields=list(validated_data))
        return instance

    def validate_networks(self, value: list[str]) -> list[str]:
        return list(_checked(clean_networks, value))


class NewTokenSerializer(ApiTokenSerializer):
    """A new API token with its key, which is not returned again."""

    token = serializers.CharField(read_only=True, help_text="The key. It is not returned again.")

    class Meta(ApiTokenSerializer.Meta):
        fields = [*ApiTokenSerializer.Meta.fields, "token"]


def _checked(check: Any, value: Any) -> Any:
    try:
        return check(value)
    except InvalidValue as error:
        raise serializers.ValidationError(error.messages) from error
