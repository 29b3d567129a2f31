"""The OLTs: where they are, how to talk to them, and what was last seen of them."""

import ipaddress
import logging
import re
from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.fields import SecretField
from facho.brands import BRANDS
from facho.engine.brand import Brand
from facho.engine.events import Event, tell
from facho.engine.snmp import Agent, Community, User
from facho.engine.snmp import Version as WireVersion

logger = logging.getLogger(__name__)


def brand_choices() -> list[tuple[str, str]]:
    """Return the makers that can be chosen. A callable, so that a new maker needs no migration."""
    return [(brand.id, brand_label(brand)) for brand in BRANDS.values()]


def brand_label(brand: Brand) -> str:
    """Return what a maker is called, and whether that is to be taken with care."""
    return gettext("%(brand)s (experimental)") % {"brand": brand.label} if brand.experimental else brand.label


def olt_brand_choices() -> list[tuple[str, Any]]:
    """Return the makers, and that nobody knows yet: the OLT is asked then."""
    return [("", _("to be found out")), *brand_choices()]


def keep_what_the_engine_wrote(row: models.Model, engine_owned: Collection[str], arguments: dict[str, Any]) -> None:
    """Take the engine's columns out of a save: a row that was read long ago would put back what was there then."""
    if not row._state.adding and arguments.get("update_fields") is None:
        left_out = {*engine_owned, *row.get_deferred_fields(), row._meta.pk.attname}
        columns = [field for field in row._meta.concrete_fields if field.attname not in left_out]
        arguments["update_fields"] = [field.name for field in columns]


# Labels of letters, digits, - and _, with dots between them.
HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


def validate_host(text: str) -> None:
    """Refuse what can be neither an IP address nor a host name; a wrong address should not look like a mute OLT."""
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        looks_numeric = re.fullmatch(r"[\d.]+", text)
        if looks_numeric or not HOST_NAME.fullmatch(text):
            message = _("Write an IP address like 10.0.0.7 or a host name like olt-7.example.net, without a port.")
            raise ValidationError(message) from error


class Olt(models.Model):
    """An OLT. People own everything above `reachability`; the engine owns the rest."""

    class Version(models.TextChoices):
        V1 = "1", "v1"
        V2C = "2c", "v2c"
        V3 = "3", "v3"

    class Auth(models.TextChoices):
        NONE = "", _("none")
        SHA1 = "SHA1", "SHA-1"
        SHA224 = "SHA224", "SHA-224"
        SHA256 = "SHA256", "SHA-256"
        SHA384 = "SHA384", "SHA-384"
        SHA512 = "SHA512", "SHA-512"

    class Priv(models.TextChoices):
        NONE = "", _("none")
        AES128 = "AES128", "AES-128"
        AES192 = "AES192", "AES-192"
        AES256 = "AES256", "AES-256"

    class Reachability(models.TextChoices):
        UNKNOWN = "unknown", _("not asked yet")
        REACHABLE = "reachable", _("reachable")
        SLOW = "slow", _("slow")
        UNREACHABLE = "unreachable", _("unreachable")

    name = models.CharField(_("name"), max_length=100, unique=True)
    brand = models.CharField(
        _("brand"),
        max_length=40,
        choices=olt_brand_choices,
        blank=True,
        default="",
        help_text=_("Left open, Facho asks the OLT itself, and applies the usual jobs of its maker."),
    )
    host = models.CharField(
        _("address"), max_length=253, validators=[validate_host], help_text=_("IP address or host name.")
    )
    port = models.PositiveIntegerField(
        _("SNMP port"), default=161, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    location = models.CharField(_("location"), max_length=200, blank=True)
    enabled = models.BooleanField(
        _("enabled"), default=True, help_text=_("Polling starts one minute after an OLT is enabled.")
    )

    version = models.CharField(_("SNMP version"), max_length=2, choices=Version.choices, default=Version.V2C)
    community = SecretField(_("community"), blank=True, default="")
    v3_user = models.CharField(_("v3 user"), max_length=100, blank=True)
    v3_auth = models.CharField(_("v3 authentication"), max_length=10, choices=Auth.choices, blank=True)
    v3_auth_key = SecretField(_("v3 authentication password"), blank=True, default="")
    v3_priv = models.CharField(_("v3 privacy"), max_length=10, choices=Priv.choices, blank=True)
    v3_priv_key = SecretField(_("v3 privacy password"), blank=True, default="")

    max_in_flight = models.PositiveSmallIntegerField(
        _("requests in flight"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text=_("How many requests the OLT may have to answer at once. Most want one."),
    )
    max_pdus_per_second = models.FloatField(
        _("requests a second"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.1)],
        help_text=_("Empty: as fast as it answers."),
    )

    reachability = models.CharField(
        _("reachability"), max_length=12, choices=Reachability.choices, default=Reachability.UNKNOWN, editable=False
    )
    last_answer_at = models.DateTimeField(_("last answer"), null=True, editable=False)
    last_error = models.TextField(_("last error"), blank=True, editable=False)
    extra = models.JSONField(_("values of the OLT itself"), default=dict, editable=False)
    # Since when too many of its ONUs have vanished at once to be believed; the next discovery decides.
    suspect_since = models.DateTimeField(_("suspect since"), null=True, editable=False)
    # Executions in a row that ended in silence; after some of them the breaker opens.
    failures = models.PositiveIntegerField(_("silent executions in a row"), default=0, editable=False)
    # While open, the OLT is not polled, only probed. The admin's own `enabled` is another matter.
    breaker_opened_at = models.DateTimeField(_("breaker open since"), null=True, editable=False)
    breaker_probed_at = models.DateTimeField(_("last probe"), null=True, editable=False)
    # It answered a probe, and waits for a person: see FACHO_AUTO_RECOVER.
    breaker_answered_at = models.DateTimeField(_("answered a probe"), null=True, editable=False)
    # What runs found out about its agent. Only the engine understands it.
    learned = models.JSONField(default=dict, editable=False)

    # Grows with every change of what the engine should do with this OLT; see `touch`.
    revision = models.PositiveBigIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "olts"
        ordering = ["name"]
        verbose_name = _("OLT")
        verbose_name_plural = _("OLTs")
        constraints = [
            models.CheckConstraint(name="olt_port_range", condition=Q(port__gte=1, port__lte=65535)),
            models.CheckConstraint(name="olt_in_flight_positive", condition=Q(max_in_flight__gte=1)),
        ]

    ENGINE_OWNED = frozenset(
        {
            "reachability",
            "last_answer_at",
            "last_error",
            "extra",
            "suspect_since",
            "failures",
            "breaker_opened_at",
            "breaker_probed_at",
            "breaker_answered_at",
            "learned",
            "revision",
        }
    )

    # What the columns of the breaker say while it is closed, whoever closed it.
    CLOSED_BREAKER = MappingProxyType({"failures": 0, "breaker_opened_at": None, "breaker_answered_at": None})

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        keep_what_the_engine_wrote(self, self.ENGINE_OWNED, kwargs)
        super().save(*args, **kwargs)
        # By name: jobs know OLTs, and not the other way round.
        nodes = apps.get_model("jobs", "WorkflowNode")
        if "brand" in (kwargs.get("update_fields") or ("brand",)):
            nodes.settle_identification(self)
        if not self.enabled:
            nodes.objects.filter(olt=self.pk).forget_wishes()
        Olt.touch([self.pk])

    def clean(self) -> None:
        super().clean()
        # By the name of the relation: jobs know OLTs, and not the other way round.
        ours_or_nobodys = Q(job__brand="") | Q(job__brand=self.brand)
        if self.pk is not None and self.nodes.exclude(ours_or_nobodys).exists():
            raise ValidationError({"brand": _("Jobs of another brand are applied to this OLT. Take them off first.")})
        if self.version == self.Version.V3:
            self._clean_v3()
        elif not SecretField().to_python(self.community):
            raise ValidationError({"community": _("SNMP v1 and v2c need a community.")})

    def _clean_v3(self) -> None:
        if not self.v3_user:
            raise ValidationError({"v3_user": _("SNMPv3 needs a user.")})
        if self.v3_priv and not self.v3_auth:
            raise ValidationError({"v3_auth": _("SNMPv3 has no privacy without authentication.")})
        for chosen, name in ((self.v3_auth, "v3_auth_key"), (self.v3_priv, "v3_priv_key")):
            password = SecretField().to_python(getattr(self, name)).reveal()
            if chosen and len(password) < 8:
                raise ValidationError({name: _("SNMPv3 passwords have at least 8 characters.")})

    @staticmethod
    def touch(olt_ids: Iterable[int]) -> None:
        """Tell the engine to read these OLTs again at its next tick."""
        Olt.objects.filter(pk__in=list(olt_ids)).update(revision=F("revision") + 1)

    def enable(self) -> None:
        self.enabled = True
        self.save(update_fields=["enabled", "updated_at"])

    def disable(self) -> None:
        self.enabled = False
        self.save(update_fields=["enabled", "updated_at"])

    def close_breaker(self, by: object) -> bool:
        """Let the OLT be polled again although it has not answered; False if its breaker was not open."""
        closed = Olt.objects.filter(pk=self.pk, breaker_opened_at__isnull=False).update(**self.CLOSED_BREAKER)
        if closed:
            Olt.touch([self.pk])
            tell(logger, Event.BREAKER_CLOSED_BY_HAND, olt_id=self.pk, olt=self.name, by=str(by))
        self.refresh_from_db(fields=self.CLOSED_BREAKER)
        return bool(closed)

    @property
    def brand_note(self) -> str:
        """Return what to think of the OLT's profile, or nothing where it is proved."""
        brand = BRANDS.get(self.brand)
        if brand is None or not brand.experimental:
            return ""
        return gettext(
            "The profile of %(brand)s is experimental: no real device has proved it. "
            "Compare what it reads with the OLT."
        ) % {"brand": brand.label}

    @property
    def state(self) -> str:
        """Return what a NOC wants to see: the admin's word first, then what was observed."""
        return self.reachability if self.enabled else "disabled"

    def agent(self) -> Agent:
        """Return whom to ask, with the secrets in the clear. For the engine only."""
        if self.version == self.Version.V3:
            user = User(
                name=self.v3_user,
                auth=self.v3_auth,
                auth_key=self.v3_auth_key.reveal(),
                priv=self.v3_priv,
                priv_key=self.v3_priv_key.reveal(),
            )
            return Agent(self.host, self.port, WireVersion.V3, user)
        version = WireVersion.V1 if self.version == self.Version.V1 else WireVersion.V2C
        return Agent(self.host, self.port, version, Community(self.community.reveal()))
