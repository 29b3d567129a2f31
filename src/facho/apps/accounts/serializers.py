"""Tokens and the login in the API."""

from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import ValidationError as InvalidValue
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import Throttled

from facho.apps.accounts import two_factor
from facho.apps.accounts.logins import lock_of, turn_of
from facho.apps.accounts.models import ApiToken, TwoFactor, check_expiry
from facho.apps.accounts.networks import clean_networks
from facho.apps.accounts.roles import groups_within
from facho.apps.rest.strict import StrictSerializer


class LoginSerializer(StrictSerializer):
    """Name and password of a user, and the second factor if the user has one."""

    username = serializers.CharField(max_length=150, write_only=True)
    password = serializers.CharField(
        max_length=4096, trim_whitespace=False, style={"input_type": "password"}, write_only=True
    )
    code = serializers.CharField(
        max_length=50,
        required=False,
        write_only=True,
        help_text="Two-factor authentication: the current code of the authenticator app, or a recovery code.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        request, code = self.context["request"], attrs.pop("code", "")
        with turn_of(request):
            user = authenticate(request, **attrs)
        self._refuse_locked(attrs["username"])
        if user is None:
            refusal = _("Unable to log in with provided credentials.")
            if settings.CONFIG.oidc_issuer:
                # The same for all names, so that it does not reveal who has which account.
                hint = _("If you log in with %(label)s, create a token on the page API tokens (/account/tokens/).")
                refusal = f"{refusal} {hint % {'label': settings.CONFIG.oidc_label}}"
            raise serializers.ValidationError(refusal, code="authorization")
        if factor := TwoFactor.of(user):
            self._check_code(factor, code)
        elif two_factor.is_required(user):
            raise serializers.ValidationError(
                _("This user needs two-factor authentication. Log in to the pages and set it up first.")
            )
        user_logged_in.send(sender=type(user), request=request, user=user)
        return {"user": user}

    def _check_code(self, factor: TwoFactor, code: str) -> None:
        if not code:
            sentence = _("This user has two-factor authentication. Send the code of the app, or a recovery code.")
            raise serializers.ValidationError({"code": [sentence]})
        refusal = two_factor.refusal(self.context["request"], factor, code)
        self._refuse_locked(factor.user.get_username())
        if refusal:
            raise serializers.ValidationError({"code": refusal.messages})

    def _refuse_locked(self, username: str) -> None:
        if lock := lock_of(self.context["request"], username):
            refused: Any = Throttled(detail=lock.sentence)
            # Sent as Retry-After. As an argument it would add a sentence of its own.
            refused.wait = lock.seconds
            raise refused


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

    def validate_role(self, value: Group | None) -> Group | None:
        user = self.context["request"].user if self.instance is None else self.instance.user
        if value is not None and not groups_within(user).filter(pk=value.pk).exists():
            raise serializers.ValidationError(_("This role has more permissions than the user. Choose a lower one."))
        return value

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
