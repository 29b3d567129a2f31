"""API tokens."""

import hashlib
import secrets
import string
from datetime import datetime, timedelta
from typing import Any, NoReturn

from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from facho.apps.accounts.networks import Address, clean_networks, is_within

# 48 letters and digits are 285 random bits. No other characters, so that a double click selects the whole key.
ALPHABET = string.ascii_letters + string.digits
KEY_LENGTH = 48
KEY_START = "facho_"
VISIBLE_LENGTH = len(KEY_START) + 4

# Valid tokens of a user.
MOST_TOKENS = 50

# The time of the last use is written at most this often.
USE_INTERVAL = timedelta(minutes=1)

# Revoked and expired tokens are listed this long.
KEPT_AFTER_END = timedelta(days=90)


class TooManyTokens(ValidationError):
    """The user has `MOST_TOKENS` valid tokens."""

    def __init__(self) -> None:
        super().__init__(gettext("A user can have %(most)d tokens. Revoke one first.") % {"most": MOST_TOKENS})


def hash_key(key: str) -> str:
    """Return the stored form of a key. A key is random and long, so a fast hash is enough."""
    return hashlib.sha256(key.encode()).hexdigest()


def check_expiry(moment: datetime | None) -> datetime | None:
    """Return a new end of a token, if it is not over already."""
    if moment is not None and moment <= timezone.now():
        raise ValidationError(gettext("This time is in the past."))
    return moment


class TokenUser(User):
    """The user of a token with a role: has only the permissions that both have. Cannot be saved.

    It is no superuser and no staff, so that checks of these flags do not grant more than the role.
    """

    permissions: frozenset[str]

    class Meta:
        proxy = True
        default_permissions = ()

    @classmethod
    def limited(cls, user: User, role: Group) -> "TokenUser":
        names = [field.attname for field in user._meta.concrete_fields]
        limited = cls.from_db(user._state.db, names, [getattr(user, name) for name in names])
        allowed = Permission.objects.filter(group=role).values_list("content_type__app_label", "codename")
        limited.permissions = frozenset(f"{app}.{code}" for app, code in allowed) & user.get_all_permissions()
        limited.is_superuser = limited.is_staff = False
        return limited

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return self.is_active and perm in self.permissions

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_active and any(name.startswith(f"{app_label}.") for name in self.permissions)

    def get_all_permissions(self, obj: Any = None) -> set[str]:
        return set(self.permissions)

    def get_user_permissions(self, obj: Any = None) -> set[str]:
        return set(self.permissions)

    def get_group_permissions(self, obj: Any = None) -> set[str]:
        return set()

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a TokenUser has changed flags and must not be saved")


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def valid(self) -> "ApiTokenQuerySet":
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)

    def revoke(self) -> int:
        return self.filter(revoked_at=None).update(revoked_at=timezone.now())


class ApiToken(models.Model):
    """A key for programs, with the rights of its user or fewer. Only a hash of the key is stored."""

    class Origin(models.TextChoices):
        MANUAL = "manual", _("created manually")
        LOGIN = "login", _("login with name and password")
        MIGRATED = "migrated", _("migrated from an earlier version")

    class State(models.TextChoices):
        VALID = "valid", _("valid")
        EXPIRED = "expired", pgettext_lazy("token", "expired")
        REVOKED = "revoked", _("revoked")

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens", verbose_name=_("user"))
    name = models.CharField(
        _("name"), max_length=100, help_text=_("The program or person that uses the token, such as “Grafana”.")
    )
    key_hash = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(_("key"), max_length=20, editable=False)
    origin = models.CharField(_("origin"), max_length=10, choices=Origin.choices, default=Origin.MANUAL, editable=False)
    is_read_only = models.BooleanField(
        _("read-only"), default=False, help_text=_("The token can read, and cannot change or start anything.")
    )
    # Without its role a token would have all rights of its user. So it is deleted with the role.
    role = models.ForeignKey(
        Group,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        verbose_name=_("role"),
        help_text=_("The token has only those permissions that both the user and this role have. Empty: no limit."),
    )
    networks = models.JSONField(
        _("allowed networks"),
        default=list,
        blank=True,
        help_text=_("Networks of clients, such as 192.0.2.0/24 or 2001:db8::/32. Empty: from everywhere."),
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True, help_text=_("Empty: never."))
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)
    last_used_at = models.DateTimeField(_("last use"), null=True, editable=False)
    last_address = models.CharField(_("last address"), max_length=45, null=True, editable=False)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        db_table = "api_tokens"
        ordering = ["-created_at", "-id"]
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def clean(self) -> None:
        self.networks = clean_networks(self.networks)
        if self._state.adding:
            self._check_number()

    def issue(self) -> str:
        """Store this new token, and return its key. The key cannot be read again."""
        now = timezone.now()
        own = ApiToken.objects.filter(user=self.user)
        own.filter(Q(revoked_at__lt=now - KEPT_AFTER_END) | Q(expires_at__lt=now - KEPT_AFTER_END)).delete()
        self._check_number()
        key = KEY_START + "".join(secrets.choice(ALPHABET) for _position in range(KEY_LENGTH))
        self.key_hash, self.prefix = hash_key(key), key[:VISIBLE_LENGTH]
        self.save(force_insert=True)
        return key

    def _check_number(self) -> None:
        if ApiToken.objects.filter(user=self.user_id).valid().count() >= MOST_TOKENS:
            raise TooManyTokens

    @classmethod
    def issue_for_login(cls, user: User) -> str:
        """Return a new key for a user who gave name and password.

        Some programs log in at each start. The login token that was not used for the longest time makes room.
        """
        own = cls.objects.filter(user=user).valid()
        excess = own.count() - MOST_TOKENS + 1
        if excess > 0:
            oldest = own.filter(origin=cls.Origin.LOGIN).order_by(
                F("last_used_at").asc(nulls_first=True), "created_at", "id"
            )
            cls.objects.filter(pk__in=list(oldest.values_list("pk", flat=True)[:excess])).delete()
        return cls(user=user, name=gettext("Login"), origin=cls.Origin.LOGIN).issue()

    @classmethod
    def find(cls, key: str) -> "ApiToken | None":
        # By hash: the time of the lookup reveals nothing about a key.
        return cls.objects.select_related("user", "role").filter(key_hash=hash_key(key)).first()

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def state(self) -> str:
        if self.revoked_at is not None:
            return self.State.REVOKED
        return self.State.EXPIRED if self.is_expired else self.State.VALID

    def get_state_display(self) -> str:
        return str(self.State(self.state).label)

    @property
    def is_unlimited(self) -> bool:
        return not (self.is_read_only or self.role_id or self.networks or self.expires_at)

    def refusal(self, address: Address | None) -> str | None:
        """Return the reason why this token cannot be used from an address now."""
        if self.revoked_at is not None:
            return gettext("This token was revoked.")
        if self.is_expired:
            return gettext("This token has expired.")
        if not self.user.is_active:
            return gettext("The user of this token is disabled.")
        if self.networks and not is_within(address, self.networks):
            return gettext("This token is not valid from this address.")
        return None

    def effective_user(self) -> User:
        return self.user if self.role is None else TokenUser.limited(self.user, self.role)

    def record_use(self, address: Address | None) -> None:
        """Store time and address, unless that was done within the last minute."""
        now = timezone.now()
        if self.last_used_at is not None and self.last_used_at > now - USE_INTERVAL:
            return
        due = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_INTERVAL)
        self.last_used_at, self.last_address = now, None if address is None else str(address)
        ApiToken.objects.filter(due, pk=self.pk).update(last_used_at=now, last_address=self.last_address)

    def revoke(self) -> bool:
        """Revoke this token; return whether it was not revoked before."""
        return bool(ApiToken.objects.filter(pk=self.pk).revoke())
