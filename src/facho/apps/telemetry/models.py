"""ONUs: latest state, events and history. Written only by `store/`."""

import math
from datetime import UTC, datetime
from typing import Any, Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Cast, Coalesce, NullIf
from django.db.models.lookups import GreaterThan
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.formats import decimal
from facho.apps.inventory.models import LATITUDE, LONGITUDE, Olt, keep_what_the_engine_wrote
from facho.apps.telemetry import words
from facho.apps.telemetry.port_levels import DARK, FAULTY, NEARLY_FULL_PERCENT, Level, level_of
from facho.brands import BRANDS
from facho.engine.brand import FIRST_ONU, ONUS_PER_PORT
from facho.engine.geography import project

# Own time of an ONU that was never read, although its port was.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

# Received power of an ONU in dBm below which it is weak: the limit of GPON class B+ optics.
RX_WEAK = -27.0

# Maximum capacity of a port: no ONU id of a known brand needs more than 11 bits.
MOST_CAPACITY = 2047


class PonPort(models.Model):
    """A PON port of an OLT, with the times of the last readings, states and powers."""

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="pon_ports", verbose_name=_("OLT"), db_index=False)
    # NULL if the device does not report it: all ONUs without a place share one row.
    slot = models.IntegerField(_("slot"), null=True)
    port = models.IntegerField(_("port"), null=True)
    read_at = models.DateTimeField(_("last read"), null=True)
    state_at = models.DateTimeField(_("state read"), null=True)
    power_at = models.DateTimeField(_("power read"), null=True)

    # Counters of its ONUs. A run that changes them writes them in its transaction: see `store/inventory.py`.
    total = models.PositiveIntegerField(_("ONUs"), default=0, db_default=0)
    missing = models.PositiveIntegerField(_("missing"), default=0, db_default=0)
    # Not found by the last discovery of the port, and not yet missing.
    held = models.PositiveIntegerField(_("not found"), default=0, db_default=0)
    # With light, and less than `RX_WEAK`.
    weak = models.PositiveIntegerField(_("low power"), default=0, db_default=0)
    # ONUs that are not missing, by state.
    online = models.PositiveIntegerField(_("online"), default=0, db_default=0)
    offline = models.PositiveIntegerField(_("offline"), default=0, db_default=0)
    los = models.PositiveIntegerField(_("loss of signal"), default=0, db_default=0)
    dying_gasp = models.PositiveIntegerField(_("power lost"), default=0, db_default=0)
    auth_failed = models.PositiveIntegerField(_("not authorised"), default=0, db_default=0)
    logging = models.PositiveIntegerField(_("logging in"), default=0, db_default=0)
    syncing = models.PositiveIntegerField(_("synchronising"), default=0, db_default=0)
    degraded = models.PositiveIntegerField(_("degraded"), default=0, db_default=0)
    disabled = models.PositiveIntegerField(_("disabled"), default=0, db_default=0)
    unknown = models.PositiveIntegerField(_("unknown"), default=0, db_default=0)

    # Set by a person. NULL: as the brand says.
    capacity = models.PositiveIntegerField(
        _("capacity"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_CAPACITY)],
        help_text=_("Number of ONUs that the port can have. Empty: the capacity of the brand."),
    )

    class Meta:
        db_table = "pon_ports"
        verbose_name = _("PON port")
        verbose_name_plural = _("PON ports")
        constraints = [
            # Two NULLs are equal here: NULLS NOT DISTINCT does not exist in SQLite.
            models.UniqueConstraint(
                "olt", Coalesce("slot", Value(-1)), Coalesce("port", Value(-1)), name="pon_port_once_per_olt"
            )
        ]

    # Everything but its capacity.
    ENGINE_OWNED = frozenset(
        {
            *("olt", "olt_id", "slot", "port", "read_at", "state_at", "power_at"),
            *("total", "missing", "held", "weak", "online", *FAULTY, "disabled", "unknown"),
        }
    )

    def __str__(self) -> str:
        return f"{self.olt} {self.name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        keep_what_the_engine_wrote(self, self.ENGINE_OWNED, kwargs)
        super().save(*args, **kwargs)

    @property
    def place(self) -> str:
        """Return slot and port as on the OLT: a device without slots has the port only. Empty: without a place."""
        return "/".join(str(part) for part in (self.slot, self.port) if part is not None)

    @property
    def name(self) -> str:
        return self.place or gettext("without a place")

    @property
    def level(self) -> Level:
        return level_of(self)

    @property
    def present(self) -> int:
        return max(self.total - self.missing, 0)

    @property
    def dark(self) -> int:
        return sum(getattr(self, name) for name in DARK)

    @property
    def effective_capacity(self) -> int:
        return self.capacity or self._brand_values()[0]

    @property
    def first_onu(self) -> int:
        """Return its first ONU id."""
        return self._brand_values()[1]

    @property
    def free(self) -> int:
        return max(self.effective_capacity - self.present, 0)

    @property
    def used_percent(self) -> float:
        return round(100 * self.present / self.effective_capacity, 1)

    @property
    def is_nearly_full(self) -> bool:
        return self.used_percent >= NEARLY_FULL_PERCENT

    def _brand_values(self) -> tuple[int, int]:
        brand = BRANDS.get(self.olt.brand)
        return (brand.onus_per_port, brand.first_onu) if brand else (ONUS_PER_PORT, FIRST_ONU)


def _effective(name: str) -> NullIf:
    """Return the last reading time of an ONU: its own, or that of its port."""
    return NullIf(Coalesce(f"own_{name}", f"pon_port__{name}"), Value(NEVER))


def _floor(name: str) -> Case:
    """Return a power, rounded down; NULL if no real power has that value.

    PostgreSQL rounds a number to an integer, SQLite cuts it, and not every SQLite has FLOOR.
    """
    cut = Cast(name, models.IntegerField())
    return Case(
        When(~Q(**{f"{name}__range": (-1000, 1000)}), then=None),
        When(GreaterThan(cut, F(name)), then=cut - 1),
        default=cut,
    )


class OnuQuerySet(models.QuerySet["Onu"]):
    """ONUs with their reading times."""

    def with_freshness(self) -> Self:
        """Add `read_at`, `state_at` and `power_at`, to filter and order by them."""
        return self.annotate(
            read_at=_effective("read_at"), state_at=_effective("state_at"), power_at=_effective("power_at")
        )

    def below(self, dbm: float) -> Self:
        """Return the ONUs that receive less than `dbm`."""
        return self.filter(rx_level__lte=math.floor(dbm), rx_dbm__lt=dbm)


class Onu(models.Model):
    """The latest known state of one ONU. A value that the device does not have is NULL, never 0."""

    class State(models.TextChoices):
        ONLINE = "online", _("online")
        OFFLINE = "offline", _("offline")
        LOS = "los", _("loss of signal")
        DYING_GASP = "dying_gasp", _("power lost")
        AUTH_FAILED = "auth_failed", _("not authorised")
        LOGGING = "logging", _("logging in")
        SYNCING = "syncing", _("synchronising")
        DEGRADED = "degraded", _("degraded")
        DISABLED = "disabled", _("disabled")
        UNKNOWN = "unknown", _("unknown")

    # States without light.
    DARK = (State.OFFLINE, State.LOS, State.DYING_GASP)

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="onus", verbose_name=_("OLT"))
    index = models.CharField(_("index"), max_length=120, help_text=_("The OID suffix that names it on its OLT."))
    # Another ONU has this index now, and this one is missing. If it is not missing, the device of the OLT was
    # replaced, and no run found it on the new one yet. Either way it is not polled until a run finds its serial.
    place_taken = models.BooleanField(_("place taken"), default=False, db_default=False)
    slot = models.IntegerField(_("slot"), null=True)
    port = models.IntegerField(_("port"), null=True)
    onu = models.IntegerField(_("ONU"), null=True)
    serial = models.CharField(_("serial"), max_length=64, null=True)
    mac = models.CharField(_("MAC"), max_length=17, null=True)
    name = models.CharField(_("name"), max_length=255, null=True)
    description = models.CharField(_("description"), max_length=255, null=True)
    admin_state = models.CharField(_("administrative state"), max_length=12, null=True)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.UNKNOWN)
    # Start of the state: the time that the device reports, or that of the run that noticed it. A change from one dark
    # state to another keeps it.
    state_since = models.DateTimeField(_("state since"), null=True)
    rx_dbm = models.FloatField(_("received power (dBm)"), null=True)
    # `rx_dbm`, rounded down, for the index. On PostgreSQL, a row whose indexed columns keep their values costs a
    # quarter to update; powers change often, but mostly by less than 1 dB. See `below`.
    rx_level = models.GeneratedField(
        expression=_floor("rx_dbm"), output_field=models.IntegerField(null=True), db_persist=True
    )
    tx_dbm = models.FloatField(_("sent power (dBm)"), null=True)
    olt_rx_dbm = models.FloatField(_("received by the OLT (dBm)"), null=True)
    distance_m = models.FloatField(_("distance (m)"), null=True)
    # The last values before an ONU without light had none any more, and when they were read.
    last_rx_dbm = models.FloatField(_("last received power (dBm)"), null=True)
    last_rx_at = models.DateTimeField(_("last received power read"), null=True)
    last_distance_m = models.FloatField(_("last distance (m)"), null=True)
    last_distance_at = models.DateTimeField(_("last distance read"), null=True)
    down_cause = models.CharField(_("down cause"), max_length=40, null=True)
    last_up = models.DateTimeField(_("last up"), null=True)
    last_down = models.DateTimeField(_("last down"), null=True)
    model = models.CharField(_("model"), max_length=100, null=True)
    software = models.CharField(_("software"), max_length=100, null=True)
    line_profile = models.CharField(_("line profile"), max_length=100, null=True)
    service_profile = models.CharField(_("service profile"), max_length=100, null=True)
    temperature_c = models.FloatField(_("temperature (°C)"), null=True)
    voltage_v = models.FloatField(_("voltage (V)"), null=True)
    in_octets = models.BigIntegerField(_("octets from the ONU"), null=True)
    out_octets = models.BigIntegerField(_("octets to the ONU"), null=True)
    extra = models.JSONField(_("more"), default=dict)

    # Consecutive discoveries that read its port to the end without it; it is missing after some of them.
    misses = models.PositiveIntegerField(_("misses"), default=0)
    missing_since = models.DateTimeField(_("missing since"), null=True)
    # ONU that was found at its place; empty again when this one is found elsewhere.
    replaced_by = models.ForeignKey(
        "self", models.SET_NULL, null=True, related_name="replaces", verbose_name=_("replaced by")
    )
    # Time and origin of its last move.
    moved_at = models.DateTimeField(_("moved"), null=True)
    moved_from = models.CharField(_("moved from"), max_length=120, blank=True, default="")

    first_seen_at = models.DateTimeField(_("first seen"))
    # A run updates the times of a port. An ONU has its own times only if they differ, because it failed or was left
    # out. NULL: as its port. `NEVER`: not read at all.
    pon_port = models.ForeignKey(
        # No index: no query needs it, and every index slows updates on PostgreSQL.
        PonPort, models.DO_NOTHING, null=True, related_name="onus", verbose_name=_("PON port"), db_index=False
    )  # fmt: skip
    own_read_at = models.DateTimeField(null=True)
    own_state_at = models.DateTimeField(null=True)
    own_power_at = models.DateTimeField(null=True)

    objects = OnuQuerySet.as_manager()

    class Meta:
        db_table = "onu_data"
        ordering = ["olt", "slot", "port", "onu"]
        verbose_name = _("ONU")
        verbose_name_plural = _("ONUs")
        permissions = [("read_onu", "Can read the values of an ONU from its OLT now")]
        constraints = [
            models.UniqueConstraint(
                name="onu_holds_index_alone", fields=["olt", "index"], condition=Q(place_taken=False)
            ),
            models.CheckConstraint(
                name="onu_was_read", condition=Q(pon_port__isnull=False) | Q(own_read_at__isnull=False)
            ),
        ]
        indexes = [
            models.Index(name="onu_place", fields=["olt", "slot", "port", "onu"]),
            models.Index(name="onu_serial", fields=["serial"]),
            # The start of a state changes only with the state, so it costs no update of its own.
            models.Index(name="onu_state", fields=["state", "state_since"]),
            models.Index(name="onu_rx_level", fields=["rx_level"]),
            models.Index(name="onu_missing", fields=["missing_since"], condition=Q(missing_since__isnull=False)),
        ]

    READ_PERMISSION = "telemetry.read_onu"

    def __str__(self) -> str:
        return self.name or self.serial or self.index

    # Set by `with_freshness`; otherwise computed from the row of the port.
    @cached_property
    def read_at(self) -> datetime | None:
        """When a run last read anything of it."""
        return self._effective("read_at")

    @cached_property
    def state_at(self) -> datetime | None:
        """When a run last read its state."""
        return self._effective("state_at")

    @cached_property
    def power_at(self) -> datetime | None:
        """When a run last read its power."""
        return self._effective("power_at")

    def _effective(self, name: str) -> datetime | None:
        own: datetime | None = getattr(self, f"own_{name}")
        if own is None and self.pon_port is not None:
            own = getattr(self.pon_port, name)
        return None if own == NEVER else own

    @property
    def called(self) -> str:
        """Return its name in error messages of the engine."""
        if self.onu is None:
            return f"ONU {self.index}"
        return "ONU " + "/".join("-" if part is None else str(part) for part in (self.slot, self.port, self.onu))

    @property
    def admin_state_text(self) -> str:
        return str(words.ADMIN_STATES.get(self.admin_state or "", self.admin_state or ""))

    @property
    def down_cause_text(self) -> str:
        return words.down_cause(self.down_cause or "")

    @property
    def is_missing(self) -> bool:
        return self.missing_since is not None

    @property
    def is_unplaced(self) -> bool:
        """Return whether the hardware of its OLT was replaced, and it was not found on the new one yet."""
        return self.place_taken and self.missing_since is None

    @property
    def missing_cause(self) -> str:
        """Return the reason why it is missing; empty if it is not."""
        if self.missing_since is None:
            return ""
        if self.replaced_by is None:
            return gettext("not found by discoveries")
        return gettext("replaced by %(onu)s") % {"onu": self.replaced_by.identity}

    @property
    def identity(self) -> str:
        return self.serial or self.mac or self.called


# Columns of a port that count its ONUs.
COUNTERS = ("total", "missing", "held", "weak", *Onu.State.values)

# Number of ONUs without light on a port.
DARK_ONUS = F("offline") + F("los") + F("dying_gasp")


class OnuSearch(models.Model):
    """Text by which an ONU is found: see `search.py`. It has an index of its sequences of three characters.

    Not a column of `onu_data`, because on PostgreSQL each index slows the updates of all columns.
    """

    onu = models.OneToOneField(Onu, models.CASCADE, primary_key=True, related_name="+", verbose_name=_("ONU"))
    # That of the ONU, which never changes.
    olt = models.ForeignKey(Olt, models.CASCADE, related_name="+", verbose_name=_("OLT"))
    text = models.TextField()

    class Meta:
        db_table = "onu_search"
        default_permissions = ()

    def __str__(self) -> str:
        return self.text


class OnuPosition(models.Model):
    """The position of an ONU on the map. It stays with the ONU when that moves.

    Not columns of `onu_data`: see `OnuSearch`.
    """

    onu = models.OneToOneField(
        Onu, models.CASCADE, primary_key=True, related_name="position", verbose_name=_("ONU")
    )  # fmt: skip
    # That of the ONU, which never changes.
    olt = models.ForeignKey(Olt, models.CASCADE, related_name="+", verbose_name=_("OLT"))
    latitude = models.FloatField(_("latitude"), validators=LATITUDE)
    longitude = models.FloatField(_("longitude"), validators=LONGITUDE)
    # On the projected map, so that the database can group ONUs: see `engine/geography.py`.
    x = models.IntegerField()
    y = models.IntegerField()

    CHANGE_PERMISSION = "telemetry.change_onuposition"

    class Meta:
        db_table = "onu_positions"
        verbose_name = _("position of an ONU")
        verbose_name_plural = _("positions of ONUs")
        default_permissions = ("change",)
        constraints = [
            models.CheckConstraint(
                name="onu_position_range", condition=Q(latitude__range=(-90, 90), longitude__range=(-180, 180))
            )
        ]
        indexes = [models.Index(name="onu_position_area", fields=["latitude", "longitude"])]

    def __str__(self) -> str:
        return f"{self.latitude}, {self.longitude}"

    @classmethod
    def at(cls, onu_id: int, olt_id: int, latitude: float, longitude: float) -> "OnuPosition":
        x, y = project(latitude, longitude)
        return cls(onu_id=onu_id, olt_id=olt_id, latitude=latitude, longitude=longitude, x=x, y=y)


class OnuNote(models.Model):
    """A note of a user about an ONU. It stays with the ONU when that moves."""

    LONGEST = 2000

    onu = models.ForeignKey(Onu, models.CASCADE, related_name="notes", db_index=False, verbose_name=_("ONU"))
    text = models.TextField(_("text"), max_length=LONGEST)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("author"), db_index=False
    )
    # Stays when the user is deleted.
    author_name = models.CharField(_("author"), max_length=150)
    created_at = models.DateTimeField(_("written"), default=timezone.now)
    edited_at = models.DateTimeField(_("edited"), null=True)

    ENGINE_OWNED = frozenset({"author", "author_name", "created_at", "edited_at"})

    class Meta:
        db_table = "onu_notes"
        ordering = ["-created_at", "-id"]
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        indexes = [models.Index(name="note_by_onu", fields=["onu", "created_at"])]

    def __str__(self) -> str:
        return Truncator(self.text).chars(60)

    @property
    def olt_id(self) -> int:
        """Return the OLT of the ONU, for the scope of the change record."""
        return self.onu.olt_id

    def is_of(self, user: Any) -> bool:
        return user.pk is not None and self.author_id == user.pk


class OnuEvent(models.Model):
    """One change of an ONU: old value, new value and cause. Values are short texts; "" stands for no value."""

    class Field(models.TextChoices):
        PRESENCE = "presence", _("presence")
        PLACE = "place", _("place")
        SERIAL = "serial", _("serial")
        MAC = "mac", _("MAC")
        STATE = "state", _("state")
        DOWN_CAUSE = "down_cause", _("down cause")
        # Only steps of some dB: see `store/inventory.py`.
        RX_DBM = "rx_dbm", _("received power")

    class Presence(models.TextChoices):
        PRESENT = "present", _("present")
        MISSING = "missing", _("missing")
        REPLACED = "replaced", _("replaced")

    # No separate index: the ones below start with these columns.
    onu = models.ForeignKey(Onu, models.CASCADE, related_name="events", db_index=False, verbose_name=_("ONU"))
    olt = models.ForeignKey(Olt, models.CASCADE, related_name="onu_events", db_index=False, verbose_name=_("OLT"))
    at = models.DateTimeField(_("time"))
    field = models.CharField(_("field"), max_length=12, choices=Field.choices)
    old = models.CharField(_("before"), max_length=120)
    new = models.CharField(_("after"), max_length=120)
    # In English, or the down cause as reported by the device.
    cause = models.CharField(_("cause"), max_length=160)

    class Meta:
        db_table = "onu_events"
        ordering = ["-at", "-id"]
        verbose_name = _("ONU event")
        verbose_name_plural = _("ONU events")
        indexes = [
            models.Index(name="event_by_onu", fields=["onu", "at"]),
            models.Index(name="event_by_olt", fields=["olt", "at"]),
            models.Index(name="event_by_field", fields=["field", "at"]),
            models.Index(name="event_by_time", fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.get_field_display()}: {self.old_text or '–'} → {self.new_text or '–'}"

    @property
    def old_text(self) -> str:
        return self._text(self.old)

    @property
    def new_text(self) -> str:
        return self._text(self.new)

    @property
    def cause_text(self) -> str:
        """Return the cause in the user's language."""
        if self.cause.startswith(REPLACED_BY):
            return gettext("replaced by %(onu)s") % {"onu": self.cause.removeprefix(REPLACED_BY)}
        if self.cause.startswith(REPLACES):
            return gettext("replaces %(onu)s") % {"onu": self.cause.removeprefix(REPLACES)}
        return str(CAUSES[self.cause]) if self.cause in CAUSES else words.down_cause(self.cause)

    def _text(self, value: str) -> str:
        if self.field == self.Field.DOWN_CAUSE:
            return words.down_cause(value)
        if self.field == self.Field.RX_DBM:
            return f"{decimal(float(value), 2)} dBm"
        labels = {"state": Onu.State.choices, "presence": self.Presence.choices}.get(self.field, [])
        return str(dict(labels).get(value, value))


# Causes found by Facho; the last two are followed by the serial, MAC or index of the other ONU.
FOUND, FOUND_AGAIN, NOT_FOUND, MOVED, REPLACED_BY, REPLACES = (
    "found",
    "found again",
    "not found by discoveries",
    "moved",
    "replaced by ",
    "replaces ",
)
CAUSES = {
    FOUND: _("found"),
    FOUND_AGAIN: _("found again"),
    NOT_FOUND: _("not found by discoveries"),
    MOVED: _("moved"),
}


class PackedRun(models.Model):
    """Values of an OLT's ONUs at one time, packed by `engine/chunks.py`."""

    # No separate index: the one below starts with it.
    olt = models.ForeignKey(Olt, models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        abstract = True
        indexes = [
            models.Index(name="%(class)s_by_olt", fields=["olt", "at"]),
            models.Index(name="%(class)s_by_time", fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.olt_id} @ {self.at:%Y-%m-%d %H:%M}"


class PackedChunk(models.Model):
    """One field of some ONUs over a period, packed by `engine/chunks.py`. Never changed, only replaced."""

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="+", db_index=False)
    field = models.CharField(max_length=80)
    # Start of the period. Retention uses the time of the last value.
    start = models.DateTimeField()
    last_at = models.DateTimeField()
    # Range of the ids in the chunk.
    first_onu = models.BigIntegerField()
    last_onu = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        abstract = True
        indexes = [
            models.Index(name="%(class)s_by_onu", fields=["olt", "field", "start", "first_onu", "last_onu"]),
            models.Index(name="%(class)s_by_time", fields=["last_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.olt_id} {self.field} @ {self.start:%Y-%m-%d}"


class HistoryRun(PackedRun):
    """Readings of one run, until its day is closed."""

    class Meta(PackedRun.Meta):
        db_table = "onu_history_runs"
        verbose_name = _("history of a run")
        verbose_name_plural = _("history of runs")


class HistoryChunk(PackedChunk):
    """A field of some ONUs over one UTC day."""

    class Meta(PackedChunk.Meta):
        db_table = "onu_history_chunks"
        verbose_name = _("history of a day")
        verbose_name_plural = _("history of days")


class HistoryDay(PackedRun):
    """Minimum, mean and maximum of one UTC day, until its month is closed."""

    class Meta(PackedRun.Meta):
        db_table = "onu_history_days"
        verbose_name = _("daily summary")
        verbose_name_plural = _("daily summaries")


class HistoryMonth(PackedChunk):
    """Daily values of some ONUs over one month."""

    class Meta(PackedChunk.Meta):
        db_table = "onu_history_months"
        verbose_name = _("daily summaries of a month")
        verbose_name_plural = _("daily summaries of months")


class OutboxRun(models.Model):
    """A run that a time series store has not confirmed yet: see `store/outbox.py`.

    It has all that is sent, so that the history can be closed and deleted independently.
    """

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    # The run as in the history, and the fields that have none; empty if nothing of the kind was read.
    data = models.BinaryField()
    more = models.BinaryField()
    # Ports that were read, with the names of the counters first.
    ports = models.JSONField(default=list)

    class Meta:
        db_table = "tsdb_outbox"
        default_permissions = ()
        indexes = [models.Index(name="outbox_by_time", fields=["at"])]

    def __str__(self) -> str:
        return f"{self.olt_id} @ {self.at:%Y-%m-%d %H:%M}"
