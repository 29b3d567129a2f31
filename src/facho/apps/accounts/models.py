"""API tokens, sessions, two-factor authentication, and accounts of other login servers."""

import base64
import hashlib
import secrets
import string
from datetime import datetime, timedelta
from typing import Any, NoReturn
from urllib.parse import urlsplit

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pyotp import random_base32
from pyotp.totp import TOTP

from facho.apps.accounts.networks import clean_networks, is_within
from facho.apps.accounts.roles import label_of
from facho.apps.changes.models import Change
from facho.apps.changes.record import record, recorded
from facho.apps.rest.addresses import Address
from facho.apps.rest.fields import SecretField
from facho.apps.rest.names import validate_name

# 48 letters and digits are 285 random bits. No other characters, so that a double click selects the whole key.
ALPHABET = string.ascii_letters + string.digits
KEY_LENGTH = 48
KEY_START = "facho_"
VISIBLE_LENGTH = len(KEY_START) + 4

# Valid tokens of a user.
MOST_TOKENS = 50

# The time of the last use is written at most this often.
USE_INTERVAL = timedelta(minutes=1)

# A session without a user only carries a login from one step to the next. Anybody can start as many as they like.
LOGIN_WITHIN = timedelta(minutes=30)

# A code of an authenticator app is valid for 30 seconds. Clocks may differ by one such step.
CODE_STEPS = (-1, 0, 1)

RECOVERY_CODES = 10
# 16 letters and digits of base32 are 80 random bits, so a fast hash is enough.
RECOVERY_CODE_BYTES = 10

# Parts of the text with which a browser introduces itself. Some contain the names of others, so the order matters.
BROWSERS = {"Edg": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "Linux": "Linux",
}

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
        valid = self.filter(revoked_at=None)
        with recorded(valid, "revoked_at", action=Change.Action.REVOKED):
            return valid.update(revoked_at=timezone.now())


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
        _("name"),
        max_length=100,
        validators=[validate_name],
        help_text=_("The program or person that uses the token, such as “Grafana”."),
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
        return cls.objects.select_related("user__scope", "role").filter(key_hash=hash_key(key)).first()

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def state(self) -> str:
        if self.revoked_at is not None:
            return self.State.REVOKED
        return self.State.EXPIRED if self.is_expired else self.State.VALID

    @property
    def role_label(self) -> str:
        return "" if self.role is None else label_of(self.role)

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


class UserSession(AbstractBaseSession):
    """A session of a browser. It ends without activity, and at the latest some days after the login.

    Both limits are in `expire_date`, which each activity moves.
    """

    # No name on the other side: the admin accepts a filter by the primary key of another table, and this key opens the
    # session.
    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    last_activity_at = models.DateTimeField(default=timezone.now)
    last_address = models.CharField(max_length=45, null=True)
    user_agent = models.CharField(max_length=255, default="")

    class Meta:
        db_table = "user_sessions"
        default_permissions = ()

    def __str__(self) -> str:
        # Not the key, which opens the session.
        return f"session {self.reference}"

    @classmethod
    def get_session_store_class(cls) -> Any:
        from facho.apps.accounts.sessions import SessionStore

        return SessionStore

    def save(self, *args: Any, force_update: bool = False, **kwargs: Any) -> None:
        """Store the content of a session. An existing one keeps its times and address, unless its user logs in now."""
        if force_update:
            is_login = self.user_id is not None and UserSession.objects.filter(pk=self.pk, user=None).exists()
            kwargs["update_fields"] = ["session_data", "user", *(["expire_date"] if is_login else [])]
        super().save(*args, force_update=force_update, **kwargs)

    @property
    def reference(self) -> str:
        """Return a name of this session that does not open it."""
        return hashlib.sha256(self.session_key.encode()).hexdigest()[:32]

    @property
    def device(self) -> str:
        """Return browser and system in words."""
        browser = next((name for part, name in BROWSERS.items() if part in self.user_agent), "")
        system = next((name for part, name in SYSTEMS.items() if part in self.user_agent), "")
        if browser and system:
            return gettext("%(browser)s on %(system)s") % {"browser": browser, "system": system}
        return browser or system or gettext("unknown browser")

    def set_expiry(self) -> None:
        lifetime = timedelta(seconds=settings.SESSION_COOKIE_AGE) if self.user_id else LOGIN_WITHIN
        self.expire_date = self.created_at + lifetime
        if settings.FACHO_SESSION_IDLE:
            # The last activity may be younger than stored: see `record_activity`.
            idle = settings.FACHO_SESSION_IDLE + USE_INTERVAL
            self.expire_date = min(self.expire_date, self.last_activity_at + idle)

    def record_activity(self, address: Address | None, user_agent: str) -> None:
        """Store time, address and browser, unless that was done within the last minute."""
        now = timezone.now()
        if self.user_agent and self.last_activity_at > now - USE_INTERVAL:
            return
        self.last_activity_at = now
        self.set_expiry()
        self.record_client(address, user_agent, "last_activity_at", "expire_date")

    def record_client(self, address: Address | None, user_agent: str, *more: str) -> None:
        """Store address and browser, and more columns that were set."""
        self.last_address = None if address is None else str(address)
        self.user_agent = user_agent[:255].replace("\0", "") or "-"
        names = ("last_address", "user_agent", *more)
        UserSession.objects.filter(pk=self.pk).update(**{name: getattr(self, name) for name in names})

    @classmethod
    def of(cls, user: Any) -> "models.QuerySet[UserSession]":
        """Return the open sessions of a user, the latest first."""
        return cls.objects.filter(user=user.pk, expire_date__gt=timezone.now()).order_by("-last_activity_at")


@transaction.atomic
def end_access(user: User) -> None:
    """End the sessions of a user and revoke the tokens. The user can log in again."""
    UserSession.of(user).delete()
    ApiToken.objects.filter(user=user).revoke()
    record(Change.Action.SESSIONS_ENDED, user)


class TwoFactor(models.Model):
    """The authenticator app of a user. It counts from the moment when its first code was entered."""

    user = models.OneToOneField(User, models.CASCADE, related_name="two_factor", primary_key=True)
    secret = SecretField()
    confirmed_at = models.DateTimeField(null=True)
    # Step of the last accepted code. A code is accepted once.
    last_step = models.BigIntegerField(default=0)

    class Meta:
        db_table = "two_factor"
        default_permissions = ()

    def __str__(self) -> str:
        return f"two-factor authentication of {self.user_id}"

    @classmethod
    def of(cls, user: Any) -> "TwoFactor | None":
        """Return the second factor of a user, if it was confirmed."""
        return cls.objects.filter(user=user.pk, confirmed_at__isnull=False).first()

    @classmethod
    def begin(cls, user: User) -> "TwoFactor":
        """Return a second factor to be confirmed, with a new secret."""
        factor, _is_new = cls.objects.get_or_create(user=user, defaults={"secret": random_base32()})
        return factor

    @property
    def uri(self) -> str:
        """Return the text of the QR code."""
        return TOTP(self.secret.reveal()).provisioning_uri(name=self.user.get_username(), issuer_name="Facho")

    def confirm(self, code: str) -> list[str] | None:
        """Turn this on with a first code, and return recovery codes; None if the code is wrong."""
        if not self._accept_app_code(code):
            return None
        with transaction.atomic():
            TwoFactor.objects.filter(pk=self.pk).update(confirmed_at=timezone.now())
            record(Change.Action.TWO_FACTOR_ON, self.user)
            return self.renew_recovery_codes()

    @transaction.atomic
    def renew_recovery_codes(self) -> list[str]:
        """Replace all recovery codes. Only hashes are stored."""
        record(Change.Action.RECOVERY_CODES_NEW, self.user)
        codes = [_recovery_code() for _number in range(RECOVERY_CODES)]
        RecoveryCode.objects.filter(user=self.user_id).delete()
        RecoveryCode.objects.bulk_create(
            RecoveryCode(user_id=self.user_id, code_hash=hash_code(code)) for code in codes
        )
        return codes

    @transaction.atomic
    def accept(self, code: str) -> bool:
        """Return whether this is a code of the app or a recovery code, neither of them used before."""
        if self._accept_app_code(code):
            return True
        deleted, _by_model = RecoveryCode.objects.filter(user=self.user_id, code_hash=hash_code(code)).delete()
        if deleted:
            record(Change.Action.RECOVERY_CODE_USED, self.user)
        return bool(deleted)

    def _accept_app_code(self, code: str) -> bool:
        app = TOTP(self.secret.reveal())
        step, written = app.timecode(timezone.now()), plain_code(code)
        for each in (step + difference for difference in CODE_STEPS):
            if secrets.compare_digest(app.generate_otp(each), written):
                # Conditional: of two requests with the same code one is refused.
                return bool(TwoFactor.objects.filter(pk=self.pk, last_step__lt=each).update(last_step=each))
        return False

    @property
    def remaining_codes(self) -> int:
        return RecoveryCode.objects.filter(user=self.user_id).count()

    @transaction.atomic
    def turn_off(self) -> None:
        RecoveryCode.objects.filter(user=self.user_id).delete()
        if self.confirmed_at is not None:
            record(Change.Action.TWO_FACTOR_OFF, self.user)
        self.delete()


class RecoveryCode(models.Model):
    """A code that replaces the authenticator app once. It is deleted when it is used."""

    user = models.ForeignKey(User, models.CASCADE, related_name="recovery_codes")
    code_hash = models.CharField(max_length=64)

    class Meta:
        db_table = "recovery_codes"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "code_hash"], name="one_recovery_code")]

    def __str__(self) -> str:
        return f"recovery code {self.pk}"


def plain_code(code: str) -> str:
    """Return a code as it is compared: without spaces and dashes, in ASCII."""
    return "".join(each for each in code.lower() if each.isascii() and each.isalnum())


def hash_code(code: str) -> str:
    return hash_key(plain_code(code))


def _recovery_code() -> str:
    text = base64.b32encode(secrets.token_bytes(RECOVERY_CODE_BYTES)).decode().lower()
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


class FailedLogin(AccessAttempt):
    """Recent failed logins of a user name from an address. Deleting the row ends a lock."""

    class Meta:
        proxy = True
        default_permissions = ("view", "delete")
        verbose_name = _("failed login")
        verbose_name_plural = _("failed logins")


class ExternalIdentity(models.Model):
    """The person at an OIDC provider or in the LDAP directory who a user is. That server keeps the password."""

    # Value of `provider`; that of OIDC is the URL of the issuer.
    LDAP = "ldap"

    user = models.OneToOneField(User, models.CASCADE, related_name="external_identity", verbose_name=_("user"))
    provider = models.TextField(_("login server"))
    subject = models.TextField(_("subject"), help_text=_("The permanent id of the person at the login server."))
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        db_table = "external_identities"
        constraints = [models.UniqueConstraint(fields=["provider", "subject"], name="external_identity_once")]
        verbose_name = _("external login")
        verbose_name_plural = _("external logins")

    def __str__(self) -> str:
        return f"{self.subject} ({self.server})"

    @property
    def server(self) -> str:
        """Return the name of the login server for texts."""
        return gettext("the LDAP directory") if self.provider == self.LDAP else str(urlsplit(self.provider).hostname)

    @classmethod
    def second_factor_refusal(cls, user: User) -> str | None:
        """Return why a user cannot have a second factor in Facho: without a password it could not be turned off."""
        identity = cls.objects.filter(user=user).exclude(provider=cls.LDAP).first()
        if identity is None:
            return None
        return gettext("You log in at %(server)s. Set up two-factor authentication there.") % {
            "server": identity.server
        }

    @classmethod
    def password_refusal(cls, user: User) -> str | None:
        """Return why a user's password cannot be changed in Facho."""
        identity = cls.objects.filter(user=user).first()
        if identity is None:
            return None
        return gettext("The password of this account is kept by %(server)s. Change it there.") % {
            "server": identity.server
        }
