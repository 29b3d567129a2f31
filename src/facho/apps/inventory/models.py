"""OLTs: address, credentials, and observed state."""

import ipaddress
import logging
import re
from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from facho.adapters.resolver import RESOLVER
from facho.apps.changes.models import Change
from facho.apps.changes.record import record
from facho.apps.inventory import labels, paces
from facho.apps.inventory.bound_secrets import BoundSecrets
from facho.apps.inventory.spans import span
from facho.apps.rest.fields import SecretField
from facho.apps.rest.names import validate_name
from facho.brands import BRANDS
from facho.engine import questions
from facho.engine.brand import Brand
from facho.engine.device import HostAddress, device_at, host_name, ip_address
from facho.engine.events import Event, log_event
from facho.engine.model import QuestionKind
from facho.engine.presence import Suspicion
from facho.engine.snmp import Agent, Community, User
from facho.engine.snmp import Version as WireVersion

logger = logging.getLogger(__name__)


def brand_choices() -> list[tuple[str, str]]:
    """Return the brands. A callable, so that a new brand needs no migration."""
    return [(brand.id, brand_label(brand)) for brand in BRANDS.values()]


def brand_label(brand: Brand) -> str:
    """Return the name of a brand, marked if it is experimental."""
    return gettext("%(brand)s (experimental)") % {"brand": brand.label} if brand.experimental else brand.label


def olt_brand_choices() -> list[tuple[str, Any]]:
    """Return the brands, and "unknown": then the OLT is identified."""
    return [("", _("not identified yet")), *brand_choices()]


def keep_what_the_engine_wrote(row: models.Model, engine_owned: Collection[str], arguments: dict[str, Any]) -> None:
    """Remove the engine's columns from a save: an old row would overwrite newer values."""
    if not row._state.adding and arguments.get("update_fields") is None:
        left_out = {*engine_owned, *row.get_deferred_fields(), row._meta.pk.attname}
        columns = [field for field in row._meta.concrete_fields if field.attname not in left_out]
        arguments["update_fields"] = [field.name for field in columns]


# A community or password. An SNMP message has 1,472 bytes of room for everything.
MOST_SECRET_BYTES = 255

DEFAULT_PORT = 161

# An address or a host name with a port.
DEVICE_LENGTH = 260

# Seconds that a form waits for DNS. An unresolved name is accepted.
RESOLVE_TIMEOUT = 2.0

SECRETS = ("community", "v3_auth_key", "v3_priv_key")

# Why nothing is sent to an OLT.
NO_SECRET = gettext_noop(
    "%(olt)s has no community or SNMPv3 password, so nothing is sent to it. Write it in the settings of the OLT."
)
NOT_ALLOWED = gettext_noop(
    "%(olt)s has the address %(address)s, which is not in FACHO_OLT_NETWORKS, so nothing is sent to it. Correct the "
    "address, or add its network to the setting and start Facho again."
)

# Columns of a `HostAddress` in the table of OLTs.
HOST_ADDRESS = ("host", "port", "resolved_name", "addresses")


def resolve_hosts(hosts: Iterable[str]) -> None:
    """Resolve host names in parallel into the cache, for the checks of OLTs."""
    names = [host_name(host) for host in hosts if HOST_NAME.fullmatch(host) and not ip_address(host)]
    RESOLVER.resolve_all(names, timeout=RESOLVE_TIMEOUT)


def host_address(host: str, port: int, resolved_name: str, addresses: str) -> HostAddress:
    """Return the address of an OLT, from its columns."""
    return HostAddress(host, port, resolved_name, tuple(addresses.split()))


def is_olt_address(address: str) -> bool:
    """Return whether requests may be sent to an address: see FACHO_OLT_NETWORKS."""
    parsed = ipaddress.ip_address(address)
    if parsed.is_multicast or address == "255.255.255.255":
        return False
    networks = settings.FACHO_OLT_NETWORKS
    return not networks or any(parsed in network for network in networks)


# Labels of letters, digits, - and _, separated by dots.
HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


def validate_host(text: str) -> None:
    """Refuse an invalid IP address or host name: it would look like an unreachable OLT."""
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        looks_numeric = re.fullmatch(r"[\d.]+", text)
        if looks_numeric or not HOST_NAME.fullmatch(text):
            message = _("Write an IP address like 10.0.0.7 or a host name like olt-7.example.net, without a port.")
            raise ValidationError(message) from error


# Degrees.
LATITUDE = [MinValueValidator(-90), MaxValueValidator(90)]
LONGITUDE = [MinValueValidator(-180), MaxValueValidator(180)]


class Site(models.Model):
    """A place with OLTs."""

    name = models.CharField(_("name"), max_length=100, validators=[validate_name])
    description = models.TextField(_("description"), blank=True, max_length=2000)
    latitude = models.FloatField(
        _("latitude"),
        null=True,
        blank=True,
        validators=LATITUDE,
        help_text=_("Degrees, such as -12.0464. South of the equator it is negative."),
    )
    longitude = models.FloatField(
        _("longitude"),
        null=True,
        blank=True,
        validators=LONGITUDE,
        help_text=_("Degrees, such as -77.0428. West of Greenwich it is negative."),
    )

    class Meta:
        db_table = "sites"
        ordering = ["name"]
        verbose_name = _("site")
        verbose_name_plural = _("sites")
        constraints = [
            models.UniqueConstraint(
                Lower("name"), name="site_name_once", violation_error_message=_("A site with this name exists already.")
            ),
            models.CheckConstraint(
                name="site_position_complete",
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                | Q(latitude__isnull=False, latitude__range=(-90, 90))
                & Q(longitude__isnull=False, longitude__range=(-180, 180)),
                violation_error_message=_("Write latitude and longitude, or leave both empty."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Tag(models.Model):
    """A label of OLTs, in lower case."""

    name = models.CharField(
        _("name"),
        max_length=50,
        unique=True,
        validators=[
            RegexValidator(
                r"^[^\W_][\w.-]*\Z",
                _("Write letters, digits, - . or _ without spaces, beginning with a letter or digit."),
            )
        ],
        error_messages={"unique": _("A tag with this name exists already.")},
    )

    class Meta:
        db_table = "tags"
        ordering = ["name"]
        verbose_name = _("tag")
        verbose_name_plural = _("tags")

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.name = self.name.lower()
        super().save(*args, **kwargs)

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        self.name = self.name.lower()
        super().clean_fields(exclude)


class Olt(BoundSecrets):
    """An OLT. Users edit everything above `reachability`; the engine writes the rest."""

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
        UNKNOWN = "unknown", _("not polled yet")
        REACHABLE = "reachable", _("reachable")
        SLOW = "slow", _("slow")
        UNREACHABLE = "unreachable", _("unreachable")

    class Suspect(models.TextChoices):
        VANISHING = Suspicion.VANISHING.value, _("many ONUs disappeared at once")
        TOO_MANY = Suspicion.TOO_MANY.value, _("more ONUs than the limit")

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[validate_name])
    brand = models.CharField(
        _("brand"),
        max_length=40,
        choices=olt_brand_choices,
        blank=True,
        default="",
        help_text=_("If empty, Facho identifies the OLT and applies the default jobs of its brand."),
    )
    host = models.CharField(
        _("address"), max_length=253, validators=[validate_host], help_text=_("IP address or host name.")
    )
    port = models.PositiveIntegerField(
        _("SNMP port"), default=DEFAULT_PORT, validators=[MinValueValidator(1), MaxValueValidator(65535)]
    )
    location = models.CharField(_("location"), max_length=200, blank=True, validators=[validate_name])
    site = models.ForeignKey(Site, models.PROTECT, null=True, blank=True, related_name="olts", verbose_name=_("site"))
    tags = models.ManyToManyField(Tag, blank=True, related_name="olts", verbose_name=_("tags"))
    enabled = models.BooleanField(
        _("enabled"), default=True, help_text=_("Polling starts one minute after an OLT is enabled.")
    )

    version = models.CharField(_("SNMP version"), max_length=2, choices=Version.choices, default=Version.V2C)
    community = SecretField(_("community"), blank=True, default="")
    v3_user = models.CharField(_("v3 user"), max_length=100, blank=True, validators=[validate_name])
    v3_auth = models.CharField(_("v3 authentication"), max_length=10, choices=Auth.choices, blank=True)
    v3_auth_key = SecretField(_("v3 authentication password"), blank=True, default="")
    v3_priv = models.CharField(_("v3 privacy"), max_length=10, choices=Priv.choices, blank=True)
    v3_priv_key = SecretField(_("v3 privacy password"), blank=True, default="")

    max_in_flight = models.PositiveSmallIntegerField(
        _("requests in flight"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text=_(
            "Maximum number of requests in flight to the OLT. Empty: adjusted automatically, up to the limit "
            "of the brand."
        ),
    )
    max_pdus_per_second = models.FloatField(
        _("requests per second"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.1)],
        help_text=_("Maximum number of requests per second. Empty: no limit."),
    )

    reachability = models.CharField(
        _("reachability"), max_length=12, choices=Reachability.choices, default=Reachability.UNKNOWN, editable=False
    )
    last_answer_at = models.DateTimeField(_("last answer"), null=True, editable=False)
    last_error = models.TextField(_("last error"), blank=True, editable=False)
    extra = models.JSONField(_("values of the OLT itself"), default=dict, editable=False)
    # Since when, and why, its ONUs are in doubt. The next discovery decides.
    suspect_since = models.DateTimeField(_("suspect since"), null=True, editable=False)
    suspect_reason = models.CharField(
        _("suspect because of"),
        max_length=10,
        choices=Suspect.choices,
        blank=True,
        default="",
        db_default="",
        editable=False,
    )
    # The breaker opens at FACHO_BREAKER_AFTER of them.
    failures = models.PositiveIntegerField(_("attempts in a row without an answer"), default=0, editable=False)
    # While open, the OLT is only probed. Independent of the admin's `enabled`.
    breaker_opened_at = models.DateTimeField(_("breaker open since"), null=True, editable=False)
    breaker_probed_at = models.DateTimeField(_("last probe"), null=True, editable=False)
    # It answered a probe, and the breaker must be closed manually: see FACHO_AUTO_RECOVER.
    breaker_answered_at = models.DateTimeField(_("answered a probe"), null=True, editable=False)
    # Polled address and port, or the host name and port while it has no address: see `engine/device.py`. Two OLTs with
    # the same device are one machine.
    device = models.CharField(
        _("device"), max_length=DEVICE_LENGTH, default="", db_default="", editable=False, db_index=True
    )
    # Last resolved addresses of a host name, separated by spaces, the polled one first. Both are empty if `host` is an
    # address.
    resolved_name = models.CharField(max_length=253, default="", db_default="", editable=False)
    addresses = models.TextField(_("addresses of the host name"), default="", db_default="", editable=False)
    # Learned facts about its agent, used only by the engine.
    learned = models.JSONField(default=dict, editable=False)
    # Raised by each result with readings: tells a process whether its inventory is still valid.
    inventory_version = models.BigIntegerField(default=0, db_default=0, editable=False)

    # A user deleted it: its rows are deleted in portions, and it is the last one. See `removal.py`.
    deleting_since = models.DateTimeField(_("being deleted since"), null=True, editable=False)

    # Grows with every configuration change of this OLT; see `touch`.
    revision = models.PositiveBigIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "olts"
        ordering = ["name"]
        verbose_name = _("OLT")
        verbose_name_plural = _("OLTs")
        permissions = [("operate_olt", "Can enable and disable OLT and close its breaker")]
        constraints = [
            models.CheckConstraint(name="olt_port_range", condition=Q(port__gte=1, port__lte=65535)),
            models.CheckConstraint(name="olt_in_flight_positive", condition=Q(max_in_flight__gte=1)),
        ]
        indexes = [
            models.Index(name="olt_by_resolved_name", fields=["resolved_name"], condition=~Q(resolved_name="")),
        ]

    # Permission to enable and disable an OLT and to close its breaker, without permission to change its settings.
    OPERATE_PERMISSION = "inventory.operate_olt"

    ENGINE_OWNED = frozenset(
        {
            "reachability",
            "last_answer_at",
            "last_error",
            "extra",
            "suspect_since",
            "suspect_reason",
            "failures",
            "breaker_opened_at",
            "breaker_probed_at",
            "breaker_answered_at",
            "device",
            "resolved_name",
            "addresses",
            "learned",
            "inventory_version",
            "deleting_since",
            "revision",
        }
    )

    DESTINATION = frozenset({"host", "port"})

    # Values of the breaker columns when it is closed.
    CLOSED_BREAKER = MappingProxyType({"failures": 0, "breaker_opened_at": None, "breaker_answered_at": None})

    # Its device is being replaced, and the jobs of another brand are removed with it: see `store/replacement.py`.
    is_being_replaced: bool = False

    # Ids of the OLTs that the reader of its messages sees; None for all. See `scopes.py`.
    readers_olts: frozenset[int] | None = None

    def __str__(self) -> str:
        return self.name

    @transaction.atomic
    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the OLT and its identification node together, or neither."""
        keep_what_the_engine_wrote(self, self.ENGINE_OWNED, kwargs)
        columns = kwargs.get("update_fields")
        if (columns is None or {"host", "port"} & set(columns)) and self.host_address.device != self.device:
            self.locate()
            if columns is not None:
                kwargs["update_fields"] = {*columns, "device", "resolved_name", "addresses"}
        super().save(*args, **kwargs)
        # By name, because jobs depend on OLTs.
        nodes = apps.get_model("jobs", "WorkflowNode")
        if "brand" in (kwargs.get("update_fields") or ("brand",)):
            nodes.settle_identification([self])
        if not self.enabled:
            nodes.objects.filter(olt=self.pk).forget_wishes()
        Olt.touch([self.pk])

    def clean(self) -> None:
        super().clean()
        self.refuse_while_deleting()
        # By relation name, because jobs depend on OLTs.
        ours_or_nobodys = Q(job__brand="") | Q(job__brand=self.brand)
        if self.pk is not None and not self.is_being_replaced and self.nodes.exclude(ours_or_nobodys).exists():
            raise ValidationError(
                {
                    "brand": _(
                        "Jobs of another brand are applied to this OLT. Remove them first, or use Replace OLT if the "
                        "device was changed."
                    )
                }
            )
        self._clean_device()
        self._clean_lengths()
        self.ask_for_secrets()
        if self.version != self.Version.V3:
            if not self.community:
                raise ValidationError({"community": _("SNMP v1 and v2c need a community.")})
            return
        if not self.v3_user:
            raise ValidationError({"v3_user": _("SNMPv3 needs a user.")})
        if self.v3_priv and not self.v3_auth:
            raise ValidationError({"v3_auth": _("SNMPv3 privacy requires authentication.")})
        for chosen, name in ((self.v3_auth, "v3_auth_key"), (self.v3_priv, "v3_priv_key")):
            if chosen and len(getattr(self, name).reveal()) < 8:
                raise ValidationError({name: _("SNMPv3 passwords must have at least 8 characters.")})

    def _clean_lengths(self) -> None:
        """Refuse a secret that no agent has. One that is stored already is kept."""
        for name in SECRETS:
            secret = getattr(self, name)
            if len(secret.reveal().encode()) <= MOST_SECRET_BYTES:
                continue
            stored = Olt.objects.filter(pk=self.pk).only(name).first()
            if stored is None or getattr(stored, name) != secret:
                said = _("Write at most %(most)d bytes.") % {"most": MOST_SECRET_BYTES}
                raise ValidationError({name: said})

    def destinations(self) -> dict[str, tuple[str, int]]:
        return dict.fromkeys(SECRETS, (self.host, self.port))

    def used_secrets(self) -> list[str]:
        if self.version != self.Version.V3:
            return ["community"]
        return [name for name, chosen in (("v3_auth_key", self.v3_auth), ("v3_priv_key", self.v3_priv)) if chosen]

    def _clean_device(self) -> None:
        """Refuse a forbidden address and the device of another OLT, unless the OLT has it already."""
        try:
            validate_host(self.host)
            port = int(self.port)
        except (ValidationError, TypeError, ValueError):
            # The fields themselves are refused.
            return
        if self.pk is not None and Olt.objects.filter(pk=self.pk, host=self.host, port=port).exists():
            return
        name = "" if ip_address(self.host) else host_name(self.host)
        addresses = RESOLVER.resolve(name, timeout=RESOLVE_TIMEOUT) if name else (ip_address(self.host),)
        if outside := [address for address in addresses if not is_olt_address(address)]:
            message = _("%(address)s may not be polled. Allowed networks (FACHO_OLT_NETWORKS): %(networks)s.")
            networks = ", ".join(map(str, settings.FACHO_OLT_NETWORKS)) or _("all, except multicast addresses")
            raise ValidationError({"host": message % {"address": outside[0], "networks": networks}})
        other = self._same_device(name, addresses, port)
        if other is not None:
            if self.readers_olts is not None and other.pk not in self.readers_olts:
                raise ValidationError({"host": _("An OLT outside your scope already has this device.")})
            message = _(
                "%(olt)s already has this device, at %(host)s port %(port)d. Change that OLT, or correct the "
                "address and port of this one."
            )
            raise ValidationError({"host": message % {"olt": other.name, "host": other.host, "port": other.port}})

    def _same_device(self, name: str, addresses: Collection[str], port: int) -> "Olt | None":
        """Return another OLT with this port and one of these addresses, or with the same name."""
        devices = [device_at(each, port) for each in (*addresses, name) if each]
        # The same name, or an address of a name that is not the polled one.
        alike = Q(resolved_name=name)
        for address in addresses:
            alike |= Q(addresses__contains=address)
        others = Olt.objects.filter(deleting_since=None).exclude(pk=self.pk).order_by()
        others = others.only("name", "device", *HOST_ADDRESS)
        # Two indexed queries cost the same in a large fleet; one query with OR would use no index.
        found = others.filter(device__in=devices).union(others.exclude(resolved_name="").filter(alike, port=port))
        for each in sorted(found, key=lambda olt: olt.pk):
            if (
                each.device in devices
                or each.resolved_name == name
                or not {*addresses}.isdisjoint(each.addresses.split())
            ):
                return each
        return None

    @property
    def learned_pace(self) -> list[str]:
        """Return the learned windows as text."""
        return [paces.describe_pace(entry) for entry in paces.learned_pace(self)]

    @property
    def same_device(self) -> "models.QuerySet[Olt]":
        """Return the other OLTs with this device."""
        others = Olt.objects.exclude(pk=self.pk).order_by("name")
        return others.filter(device=self.device) if self.device else others.none()

    @property
    def device_note(self) -> str:
        """Return a remark on other OLTs with this device, or nothing."""
        others = self.same_device.values_list("pk", "name")
        names = [name for pk, name in others if self.readers_olts is None or pk in self.readers_olts]
        if not others:
            return ""
        if len(names) < len(others):
            names.append(gettext("an OLT outside your scope"))
        return gettext(
            "This is the same device as %(olts)s: %(device)s. Only one of them is polled at a time. Delete one "
            "of them or correct its address."
        ) % {"olts": ", ".join(names), "device": self.device}

    def locate(self) -> None:
        """Set the device from host and port. A name has the addresses that `clean` found, or its last ones."""
        name = "" if ip_address(self.host) else host_name(self.host)
        found = RESOLVER.remembered(name) if name else ()
        if found or self.resolved_name != name:
            self.resolved_name, self.addresses = name if found else "", " ".join(found)
        self.device = self.host_address.device

    @staticmethod
    def touch(olt_ids: Iterable[int]) -> None:
        """Raise the revision of these OLTs, so that the engine reads them at its next tick."""
        Olt.objects.filter(pk__in=list(olt_ids)).update(revision=F("revision") + 1)

    def refuse_while_deleting(self) -> None:
        if self.deleting_since is not None:
            raise ValidationError(_("%(olt)s is being deleted.") % {"olt": self.name})

    def enable(self) -> None:
        self.refuse_while_deleting()
        self.enabled = True
        self.save(update_fields=["enabled", "updated_at"])

    def disable(self) -> None:
        self.enabled = False
        self.save(update_fields=["enabled", "updated_at"])

    def close_breaker(self, by: object) -> bool:
        """Close the breaker, so that the OLT is polled again; False if it was not open."""
        with transaction.atomic():
            closed = Olt.objects.filter(pk=self.pk, breaker_opened_at__isnull=False).update(**self.CLOSED_BREAKER)
            Olt.touch([self.pk] if closed else [])
            if closed:
                record(Change.Action.BREAKER_CLOSED, self)
        if closed:
            log_event(logger, Event.BREAKER_CLOSED_BY_HAND, olt_id=self.pk, olt=self.name, by=str(by))
        self.refresh_from_db(fields=self.CLOSED_BREAKER)
        return bool(closed)

    @property
    def brand_note(self) -> str:
        """Return a remark on an unproven profile, or nothing."""
        brand = BRANDS.get(self.brand)
        if brand is None or not brand.experimental:
            return ""
        return gettext(
            "The profile of %(brand)s is experimental: it was not tested on a real device. Compare the values "
            "with the OLT."
        ) % {"brand": brand.label}

    @property
    def state(self) -> str:
        """Return the displayed state: disabled by the admin, or the observed state."""
        return self.reachability if self.enabled else "disabled"

    @property
    def host_address(self) -> HostAddress:
        return host_address(self.host, self.port, self.resolved_name, self.addresses)

    @property
    def written_address(self) -> str:
        """Return address and port as a user writes them."""
        if self.port == DEFAULT_PORT:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def barred(self) -> tuple[str, dict[str, str]] | None:
        """Return why nothing is sent to the OLT, as a sentence and its values; None if it is polled."""
        if not all(getattr(self, name) for name in self.used_secrets()):
            return NO_SECRET, {"olt": self.name}
        address = self.host_address.address
        if address and not is_olt_address(address):
            return NOT_ALLOWED, {"olt": self.name, "address": address}
        return None

    @property
    def barred_note(self) -> str:
        """Return why nothing is sent to the OLT, in the user's language, or nothing."""
        sentence, values = self.barred or ("", {})
        return gettext(sentence) % values if sentence else ""

    def agent(self) -> Agent:
        """Return the agent with its secrets in the clear. For the engine only."""
        sentence, values = self.barred or ("", {})
        where, barred = self.host_address.address, sentence % values
        if self.version == self.Version.V3:
            user = User(
                name=self.v3_user,
                auth=self.v3_auth,
                auth_key=self.v3_auth_key.reveal(),
                priv=self.v3_priv,
                priv_key=self.v3_priv_key.reveal(),
            )
            return Agent(self.host, self.port, WireVersion.V3, user, where, barred)
        version = WireVersion.V1 if self.version == self.Version.V1 else WireVersion.V2C
        return Agent(self.host, self.port, version, Community(self.community.reveal()), where, barred)


class Replacement(models.Model):
    """Another device took the place of an OLT, which kept its ONUs and their history.

    It is a mark on charts, and the time from which all counters start again.
    """

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="replacements", db_index=False, verbose_name=_("OLT"))
    at = models.DateTimeField(_("time"), default=timezone.now)
    # Brand and address before and after, as texts.
    before = models.CharField(_("before"), max_length=DEVICE_LENGTH + 100)
    after = models.CharField(_("after"), max_length=DEVICE_LENGTH + 100)

    class Meta:
        db_table = "olt_replacements"
        ordering = ["-at", "-id"]
        default_permissions = ()
        verbose_name = _("replacement of the device")
        verbose_name_plural = _("replacements of the device")
        indexes = [models.Index(name="replacement_by_olt", fields=["olt", "at"])]

    def __str__(self) -> str:
        return str(self.olt)

    @property
    def headline(self) -> str:
        return gettext("Device replaced: %(before)s → %(after)s") % {"before": self.before, "after": self.after}


class Scope(models.Model):
    """OLTs that a user sees: those at one of the sites or with one of the tags. Users without a scope see all.

    A scope that lost its last site or tag shows nothing, rather than everything.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="scope", verbose_name=_("user"))
    sites = models.ManyToManyField(
        Site,
        blank=True,
        related_name="scopes",
        verbose_name=_("sites"),
        help_text=_(
            "The user sees only OLTs at these sites or with these tags. Without sites and tags, the user sees all OLTs."
        ),
    )
    tags = models.ManyToManyField(Tag, blank=True, related_name="scopes", verbose_name=_("tags"))

    class Meta:
        db_table = "scopes"
        verbose_name = _("scope")
        verbose_name_plural = _("scopes")

    def __str__(self) -> str:
        return gettext("scope of %(user)s") % {"user": self.user}

    @cached_property
    def olt_ids(self) -> frozenset[int]:
        """Return the ids of its OLTs. Read once; an instance lives for one request, with its user."""
        found = Olt.objects.filter(Q(site__scopes=self) | Q(tags__scopes=self)).order_by()
        return frozenset(found.values_list("pk", flat=True))


class Question(models.Model):
    """A user's question to an OLT. The engine takes it within a second, and stores the answer here.

    Neither body nor answer holds a secret. Rows are deleted after a day.
    """

    class Kind(models.TextChoices):
        TRY_JOB = QuestionKind.TRY_JOB.value, _("try a job")
        READ_ONU = QuestionKind.READ_ONU.value, _("read an ONU")

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        ANSWERED = "answered", _("answered")
        FAILED = "failed", _("failed")
        EXPIRED = "expired", _("expired")

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="+", verbose_name=_("OLT"))
    kind = models.CharField(_("type"), max_length=20, choices=Kind.choices)
    body = models.JSONField(_("question"), default=dict)
    # Name and usual seconds of the run for whose end it waits; empty: it does not wait.
    waits_for = models.JSONField(default=dict)
    # EXPIRED is never stored: it follows from the time.
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.PENDING)
    answer = models.JSONField(_("answer"), default=dict)
    error = models.TextField(_("error"), blank=True, default="")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField(_("requested values"))
    answered_at = models.DateTimeField(_("answered"), null=True)
    expires_at = models.DateTimeField(_("expires"))

    OPEN = (State.PENDING, State.RUNNING)
    RECORDED_AS = MappingProxyType(
        {QuestionKind.TRY_JOB: Change.Action.TRIED, QuestionKind.READ_ONU: Change.Action.READ}
    )

    class Meta:
        db_table = "questions"
        ordering = ["-asked_at", "-id"]
        verbose_name = _("question")
        verbose_name_plural = _("questions")
        indexes = [
            models.Index(name="question_pending", fields=["id"], condition=Q(state="pending")),
            models.Index(name="question_asked", fields=["asked_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} @ {self.olt_id}"

    @classmethod
    def ask(
        cls, olt: Olt, kind: QuestionKind, body: dict[str, Any], by: Any, about: models.Model | None = None
    ) -> "Question":
        """Store a question for the engine. The change record has it as an action on the OLT, or on `about`."""
        now = timezone.now()
        with transaction.atomic():
            record(cls.RECORDED_AS[kind], about or olt)
            return cls.objects.create(
                olt=olt, kind=kind, body=body, asked_by=by, asked_at=now, expires_at=questions.expiry(kind, now)
            )

    @property
    def current_state(self) -> str:
        is_late = self.state in self.OPEN and self.expires_at <= timezone.now()
        return self.State.EXPIRED if is_late else self.state

    @property
    def is_open(self) -> bool:
        return self.current_state in self.OPEN

    @property
    def progress(self) -> str:
        """Return what an open question is waiting for, in the user's language; empty if it has an answer."""
        if not self.is_open:
            return ""
        if self.waits_for:
            values = {"job": labels.job(self.waits_for["job"])}
            if (seconds := self.waits_for["seconds"]) is None:
                return gettext("Waiting for the run of %(job)s on this OLT.") % values
            values["span"] = span(max(1, round(seconds)))
            return gettext("Waiting for the run of %(job)s on this OLT, usually %(span)s.") % values
        if self.state == self.State.PENDING:
            return gettext("Waiting for the engine.")
        return gettext("Asking the OLT.")

    @property
    def reason(self) -> str:
        """Return the reason for no answer, in the user's language; empty if there is one."""
        if self.current_state == self.State.EXPIRED:
            return gettext("The engine did not answer in time. Check that it is running.")
        return gettext(self.error) if self.error else ""
