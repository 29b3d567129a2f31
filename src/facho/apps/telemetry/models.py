"""What is known of the ONUs: their latest state, and how it went over time. Written by `store/writer.py` only."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.apps.inventory.models import Olt


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

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="onus", verbose_name=_("OLT"))
    index = models.CharField(_("index"), max_length=120, help_text=_("The OID suffix that names it on its OLT."))
    slot = models.IntegerField(_("slot"), null=True)
    port = models.IntegerField(_("port"), null=True)
    onu = models.IntegerField(_("ONU"), null=True)
    serial = models.CharField(_("serial"), max_length=64, null=True)
    mac = models.CharField(_("MAC"), max_length=17, null=True)
    name = models.CharField(_("name"), max_length=255, null=True)
    description = models.CharField(_("description"), max_length=255, null=True)
    admin_state = models.CharField(_("set by the admin"), max_length=12, null=True)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.UNKNOWN)
    rx_dbm = models.FloatField(_("received power (dBm)"), null=True)
    tx_dbm = models.FloatField(_("sent power (dBm)"), null=True)
    olt_rx_dbm = models.FloatField(_("received by the OLT (dBm)"), null=True)
    distance_m = models.FloatField(_("distance (m)"), null=True)
    down_cause = models.CharField(_("why it went down"), max_length=40, null=True)
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

    # Discoveries in a row that read its port to the end without it; after some of them it is missing.
    misses = models.PositiveIntegerField(_("misses"), default=0)
    missing_since = models.DateTimeField(_("missing since"), null=True)
    # Where it last came from, and when it was found elsewhere.
    moved_at = models.DateTimeField(_("moved"), null=True)
    moved_from = models.CharField(_("moved from"), max_length=120, blank=True, default="")

    first_seen_at = models.DateTimeField(_("first seen"))
    # When a run last brought anything of it, its state, its power.
    read_at = models.DateTimeField(_("last read"))
    state_at = models.DateTimeField(_("state read"), null=True)
    power_at = models.DateTimeField(_("power read"), null=True)

    class Meta:
        db_table = "onu_data"
        ordering = ["olt", "slot", "port", "onu"]
        verbose_name = _("ONU")
        verbose_name_plural = _("ONUs")
        constraints = [models.UniqueConstraint(name="onu_once_per_olt", fields=["olt", "index"])]
        indexes = [
            models.Index(name="onu_place", fields=["olt", "slot", "port", "onu"]),
            models.Index(name="onu_serial", fields=["serial"]),
            models.Index(name="onu_state", fields=["state"]),
            models.Index(name="onu_rx", fields=["rx_dbm"]),
            models.Index(name="onu_missing", fields=["missing_since"], condition=Q(missing_since__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name or self.serial or self.index

    @property
    def called(self) -> str:
        """Return what the engine calls it where it says what failed."""
        if self.onu is None:
            return f"ONU {self.index}"
        return "ONU " + "/".join("-" if part is None else str(part) for part in (self.slot, self.port, self.onu))

    @property
    def is_missing(self) -> bool:
        return self.missing_since is not None


class OnuHistory(models.Model):
    """What one run read of one ONU, of the values that change.

    On PostgreSQL its table has a partition for each day, and so `at` in its primary key: see `store/partitions.py`.
    """

    # No index of its own: the one below begins with it.
    onu = models.ForeignKey(Onu, models.CASCADE, related_name="history", db_index=False)
    at = models.DateTimeField(_("read"))
    state = models.CharField(_("state"), max_length=12, null=True)
    rx_dbm = models.FloatField(_("received power (dBm)"), null=True)
    tx_dbm = models.FloatField(_("sent power (dBm)"), null=True)
    olt_rx_dbm = models.FloatField(_("received by the OLT (dBm)"), null=True)
    temperature_c = models.FloatField(_("temperature (°C)"), null=True)
    in_octets = models.BigIntegerField(_("octets from the ONU"), null=True)
    out_octets = models.BigIntegerField(_("octets to the ONU"), null=True)

    class Meta:
        db_table = "onu_history"
        ordering = ["-at"]
        verbose_name = _("reading")
        verbose_name_plural = _("readings")
        indexes = [
            models.Index(name="history_by_onu", fields=["onu", "at"]),
            models.Index(name="history_by_time", fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.onu_id} @ {self.at:%Y-%m-%d %H:%M}"
