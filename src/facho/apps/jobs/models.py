"""Jobs (`SnmpJob`) and their nodes on OLTs (`WorkflowNode`).

A job is a template. Applied to OLTs it becomes one node on each, and its followers become that node's chain. Each
change raises the revision of the affected OLTs; the engine reads them at its next tick.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.apps.changes.models import Change
from facho.apps.changes.record import record, record_created, recorded
from facho.apps.inventory import labels
from facho.apps.inventory.models import Olt, brand_choices, keep_what_the_engine_wrote
from facho.apps.inventory.remarks import remarks_on
from facho.apps.jobs.columns import floor_warnings, raw_decoder_choices, reads_nothing, validate_oid
from facho.apps.jobs.querysets import NodeQuerySet, TouchingQuerySet
from facho.apps.rest.names import validate_name
from facho.brands import BRANDS
from facho.engine.model import JobKind, default_priority

# Limits in seconds: below, an OLT would be polled without a pause; above, an hourly quota has no meaning.
SHORTEST_INTERVAL = 10
LONGEST_INTERVAL = 7 * 24 * 3600

# The one job without a brand. An unidentified OLT is tried again every hour.
IDENTIFICATION = {"name": "Identification", "interval_seconds": 3600, "priority": 95, "timeout_seconds": 60}


class SnmpJob(models.Model):
    """A template: columns to read, and the default interval."""

    class Kind(models.TextChoices):
        DISCOVERY = JobKind.DISCOVERY.value, _("discovery")
        GET = JobKind.GET.value, _("get")
        WALK = JobKind.WALK.value, _("walk")
        TABLE = JobKind.TABLE.value, _("table")
        IDENTIFY = JobKind.IDENTIFY.value, _("identification")

    class Followers(models.TextChoices):
        """Action for the followers of a deleted job."""

        DELETE = "delete", _("delete them too")
        DETACH = "detach", _("keep them, each with its own schedule")

    name = models.CharField(_("name"), max_length=100, validators=[validate_name])
    # Empty for the identification job.
    brand = models.CharField(_("brand"), max_length=40, choices=brand_choices)
    kind = models.CharField(_("type"), max_length=12, choices=Kind.choices)
    columns = models.JSONField(
        _("columns"), default=list, blank=True, help_text=_("Names of columns of the brand, such as rx_dbm.")
    )
    follows = models.ForeignKey(
        "self",
        # Deleting a master must not delete its followers by accident: see `remove`.
        models.RESTRICT,
        null=True,
        blank=True,
        related_name="followers",
        verbose_name=_("follows"),
        help_text=_("Runs right after this job, in the same poller, without its own schedule."),
    )
    interval_seconds = models.PositiveIntegerField(
        _("interval (s)"),
        default=300,
        validators=[MinValueValidator(SHORTEST_INTERVAL), MaxValueValidator(LONGEST_INTERVAL)],
    )
    priority = models.PositiveSmallIntegerField(
        _("priority"),
        # Empty until it is saved: see `_set_priority`.
        default=None,
        blank=True,
        validators=[MaxValueValidator(100)],
        help_text=_("Higher is more urgent. Empty: 90 for a discovery, 40 for other jobs."),
    )
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (s)"),
        default=300,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("A run stops after this time, in seconds, and keeps the values read until then."),
    )
    retries = models.PositiveSmallIntegerField(
        _("retries"),
        default=2,
        validators=[MaxValueValidator(10)],
        help_text=_("Additional attempts after a failed run, before the next slot."),
    )
    retry_delay_seconds = models.PositiveIntegerField(
        _("delay between retries (s)"),
        default=120,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("The poller and the OLT are free during this time."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    objects = TouchingQuerySet.as_manager()

    class Meta:
        db_table = "snmp_jobs"
        ordering = ["brand", "-priority", "name"]
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        permissions = [("operate_snmpjob", "Can enable and disable job and change its interval")]
        constraints = [
            models.UniqueConstraint(name="job_name_once_per_brand", fields=["brand", "name"]),
            models.CheckConstraint(name="job_interval_positive", condition=Q(interval_seconds__gte=SHORTEST_INTERVAL)),
            models.CheckConstraint(name="job_not_its_own_chain", condition=~Q(follows=F("id"))),
        ]

    # Permission to change these fields and no others.
    OPERATE_PERMISSION = "jobs.operate_snmpjob"
    OPERATED_FIELDS = ("interval_seconds", "enabled")

    def __str__(self) -> str:
        return labels.job(self.name)

    @transaction.atomic
    def save(self, *args: Any, **kwargs: Any) -> None:
        self._set_priority()
        read_before = SnmpJob.objects.filter(pk=self.pk).values_list("columns", flat=True).first()
        super().save(*args, **kwargs)
        self.forget_blank_runs({*(read_before or ())} - {*self.columns})
        if self.follows_id is None:
            self.nodes.filter(master__isnull=False).update(master=None)
        else:
            # Its nodes match those of its master: the same OLTs, chained, without a schedule.
            masters = WorkflowNode.objects.filter(job_id=self.follows_id).order_by()
            self.nodes.exclude(olt__in=masters.values("olt")).delete()
            self._chain_behind(dict(masters.values_list("olt_id", "pk")))
        if not self.enabled:
            self.nodes.all().forget_wishes()
        Olt.touch(self.olt_ids())

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        super().clean_fields({*(exclude or ()), *(["brand"] if self._is_identification else [])})

    def _set_priority(self) -> None:
        if cast(int | None, self.priority) is None:
            self.priority = default_priority(JobKind(self.kind))

    def clean(self) -> None:
        super().clean()
        if self.kind in self.Kind:
            self._set_priority()
        if self.kind == self.Kind.IDENTIFY and not self._is_identification:
            raise ValidationError({"kind": _("The identification job already exists, and there can be only one.")})
        self._clean_brand()
        self._clean_columns()
        self._clean_chain()

    @property
    def _is_identification(self) -> bool:
        return self.kind == self.Kind.IDENTIFY and self.brand == "" and not self._state.adding

    def _clean_brand(self) -> None:
        if self._state.adding:
            return
        if self.nodes.exclude(olt__brand=self.brand).exists():
            raise ValidationError(
                {"brand": _("This job is applied to OLTs of another brand. Remove it from them first.")}
            )
        if self.followers.exclude(brand=self.brand).exists():
            raise ValidationError(
                {"brand": _("Jobs of another brand follow this one. Change them to follow another job first.")}
            )

    def _clean_columns(self) -> None:
        if not isinstance(self.columns, list) or not all(isinstance(name, str) for name in self.columns):
            raise ValidationError({"columns": _('Columns are a list of names, such as ["rx_dbm", "tx_dbm"].')})
        brand = BRANDS.get(self.brand)
        unknown = [name for name in self.columns if brand and name not in brand.columns]
        if brand and unknown:
            raise ValidationError(
                {
                    "columns": _("%(brand)s has no column %(unknown)s. It has: %(known)s.")
                    % {"brand": brand.label, "unknown": ", ".join(unknown), "known": ", ".join(brand.columns)}
                }
            )

    def _clean_chain(self) -> None:
        if self.follows is None:
            return
        if self.follows.pk == self.pk and self.pk is not None:
            raise ValidationError({"follows": _("A job cannot follow itself.")})
        if self.follows.follows_id is not None:
            raise ValidationError(
                {
                    "follows": _(
                        "%(job)s already follows %(master)s. Follow %(master)s instead: a chain has only one master."
                    )
                    % {"job": self.follows, "master": self.follows.follows}
                }
            )
        if self.pk is not None and self.followers.exists():
            raise ValidationError({"follows": _("Other jobs follow this one, so it cannot follow another.")})
        if self.follows.brand != self.brand:
            raise ValidationError({"follows": _("A job can only follow one of the same brand.")})

    @transaction.atomic
    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        olt_ids = self.olt_ids()
        result = super().delete(*args, **kwargs)
        Olt.touch(olt_ids)
        return result

    @classmethod
    def followers_left_by(cls, jobs: Iterable["SnmpJob"]) -> QuerySet["SnmpJob"]:
        """Return the followers of these jobs that are not among them."""
        ids = [job.pk for job in jobs]
        return cls.objects.filter(follows__in=ids).exclude(pk__in=ids).select_related("follows").order_by("name")

    @classmethod
    @transaction.atomic
    def remove(cls, jobs: Iterable["SnmpJob"], followers: str) -> list["SnmpJob"]:
        """Delete jobs. Their followers are deleted too, or detached. Returns the detached ones."""
        ids = [job.pk for job in jobs]
        left = list(cls.followers_left_by(cls(pk=id_) for id_ in ids))
        detached = left if followers == cls.Followers.DETACH else []
        for follower in detached:
            follower.detach()
        cls.objects.filter(pk__in=[*ids, *(job.pk for job in left if job not in detached)]).delete()
        return detached

    @transaction.atomic
    def detach(self) -> None:
        """Make a follower a master with its current interval. The first run is about a minute from now."""
        if self.follows is None:
            return
        masters = WorkflowNode.objects.filter(pk=OuterRef("master_id")).order_by()
        nodes = self.nodes.all()
        with recorded(nodes, "own_interval_seconds"):
            nodes.update(own_interval_seconds=Subquery(masters.values("own_interval_seconds")))
        self.interval_seconds, self.follows = self.follows.interval_seconds, None
        self.save(update_fields=["interval_seconds", "follows", "updated_at"])

    def forget_blank_runs(self, names: Collection[str]) -> None:
        """Drop the remarks on these columns and OIDs, because they changed or are no longer read."""
        nodes = list(self.nodes.exclude(blank_runs={})) if names else []
        for node in nodes:
            node.blank_runs = {name: runs for name, runs in node.blank_runs.items() if name not in names}
        WorkflowNode.objects.bulk_update(nodes, ["blank_runs"])

    def olt_ids(self) -> list[int]:
        return list(self.nodes.values_list("olt_id", flat=True))

    def is_applied_beyond(self, olt_ids: Collection[int] | None) -> bool:
        """Return whether it has nodes on other OLTs than these. None stands for all OLTs."""
        # Not `self.nodes`, which may hold those of a user's scope only.
        nodes = WorkflowNode.objects.filter(job=self)
        return olt_ids is not None and nodes.exclude(olt__in=olt_ids).exists()

    @property
    def reads_nothing(self) -> bool:
        """Return whether it has neither columns nor raw OIDs. Such jobs are refused; earlier versions saved them."""
        oids = () if self.columns or self.pk is None else self.oids.all()
        return self.pk is not None and reads_nothing(self.kind, self.columns, oids)

    @property
    def warnings(self) -> list[str]:
        """Return warnings for the user."""
        if self.reads_nothing:
            return [gettext("Reads nothing, so it is not scheduled. Add a column or a raw OID to the job.")]
        scheduled = self if self.follows is None else self.follows
        return floor_warnings(self.brand, self.kind, self.columns, scheduled.interval_seconds)

    def apply_to(self, olts: Iterable[Olt]) -> list["WorkflowNode"]:
        """Create a node of this job, and of its followers, on each of these OLTs; existing nodes are not changed."""
        if self.follows is not None:
            raise ValidationError(
                _("%(job)s follows %(master)s: apply %(master)s, and %(job)s is included.")
                % {"job": self, "master": self.follows}
            )
        olts = list(olts)
        strangers = [olt.name for olt in olts if olt.brand != self.brand]
        if strangers:
            raise ValidationError(
                _("%(job)s is for %(brand)s; %(olts)s has another brand.")
                % {"job": self, "brand": self.get_brand_display(), "olts": ", ".join(strangers)}
            )
        olt_ids = [olt.pk for olt in olts]
        with transaction.atomic():
            nodes = self._add_nodes(dict.fromkeys(olt_ids))
            for follower in self.followers.all():
                follower._chain_behind({olt_id: node.pk for olt_id, node in nodes.items()})
            Olt.touch(olt_ids)
        return [nodes[olt_id] for olt_id in olt_ids]

    def _add_nodes(self, masters: Mapping[int, int | None]) -> dict[int, "WorkflowNode"]:
        """Create missing nodes of this job on these OLTs, each after its master, and return all of them by OLT."""
        found = {node.olt_id: node for node in WorkflowNode.objects.filter(job=self, olt__in=masters).order_by()}
        missing = [
            WorkflowNode(olt_id=olt_id, job=self, master_id=master)
            for olt_id, master in masters.items()
            if olt_id not in found
        ]
        # Another request may create the same node at the same time: then its row is used.
        created = WorkflowNode.objects.bulk_create(
            missing, update_conflicts=True, unique_fields=["olt", "job"], update_fields=["job"]
        )
        record_created(created)
        return found | {node.olt_id: node for node in created}

    def _chain_behind(self, masters: Mapping[int, int]) -> None:
        """Chain this job after its master on these OLTs, given as master node ids by OLT."""
        links = self._add_nodes(masters)
        moved = [link for olt_id, link in links.items() if link.master_id != masters[olt_id]]
        for link in moved:
            link.master_id, link.next_run_at = masters[link.olt_id], None
        WorkflowNode.objects.bulk_update(moved, ["master", "next_run_at"])


def shared_refusal(job: SnmpJob) -> str:
    """Return why a user with a scope cannot change a job."""
    return gettext("%(job)s is applied to OLTs outside your scope, so you cannot change it.") % {"job": job}


class SnmpJobOid(models.Model):
    """An OID outside the brand's profile, with a name and a decoder."""

    job = models.ForeignKey(SnmpJob, models.CASCADE, related_name="oids")
    name = models.CharField(
        _("name"),
        max_length=60,
        validators=[
            RegexValidator(r"^[a-z][a-z0-9_]*$", _("Lowercase letters, digits and _, beginning with a letter."))
        ],
    )
    oid = models.CharField(_("OID"), max_length=400, validators=[validate_oid])
    decode = models.CharField(_("read as"), max_length=20, choices=raw_decoder_choices)
    scalar = models.BooleanField(
        _("scalar"), default=False, help_text=_("One value of the OLT itself, not a column with one value per ONU.")
    )
    unit = models.CharField(
        _("unit"),
        max_length=20,
        blank=True,
        default="",
        db_default="",
        validators=[validate_name],
        help_text=_("Shown with its values, such as °C or V."),
    )

    objects = TouchingQuerySet.as_manager()

    class Meta:
        db_table = "snmp_job_oids"
        ordering = ["job", "id"]
        verbose_name = _("raw OID")
        verbose_name_plural = _("raw OIDs")
        constraints = [models.UniqueConstraint(name="job_oid_name_once", fields=["job", "name"])]

    def __str__(self) -> str:
        return f"{self.name} = {self.oid}"

    @transaction.atomic
    def save(self, *args: Any, **kwargs: Any) -> None:
        same = SnmpJobOid.objects.filter(pk=self.pk, name=self.name, oid=self.oid, decode=self.decode)
        if not same.filter(scalar=self.scalar).exists():
            self.job.forget_blank_runs([self.name])
        super().save(*args, **kwargs)
        Olt.touch(self.olt_ids())

    @transaction.atomic
    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        olt_ids = self.olt_ids()
        self.job.forget_blank_runs([self.name])
        result = super().delete(*args, **kwargs)
        Olt.touch(olt_ids)
        return result

    def olt_ids(self) -> list[int]:
        return self.job.olt_ids()


class Workflow(Olt):
    """An OLT with its nodes."""

    class Meta:
        proxy = True
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")


class WorkflowNode(models.Model):
    """One job on one OLT. Its own settings are empty unless they differ, so changes of the job apply to it."""

    olt = models.ForeignKey(Olt, models.CASCADE, related_name="nodes", verbose_name=_("OLT"))
    job = models.ForeignKey(SnmpJob, models.CASCADE, related_name="nodes", verbose_name=_("job"))
    master = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, editable=False, related_name="chain", verbose_name=_("master")
    )
    own_interval_seconds = models.PositiveIntegerField(
        _("own interval (s)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(SHORTEST_INTERVAL), MaxValueValidator(LONGEST_INTERVAL)],
        help_text=_("Empty: same as the job."),
    )
    own_priority = models.PositiveSmallIntegerField(
        _("own priority"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(100)],
        help_text=_("Empty: same as the job."),
    )
    own_enabled = models.BooleanField(_("enabled here"), null=True, blank=True, help_text=_("Empty: same as the job."))

    # Written only by the engine; `run_requested_at` by `request_run`.
    next_run_at = models.DateTimeField(_("next run"), null=True, editable=False)
    last_run_at = models.DateTimeField(_("last run"), null=True, editable=False)
    run_requested_at = models.DateTimeField(_("run requested"), null=True, editable=False)
    # Measured durations, used only by `engine/quota/durations.py`.
    durations = models.JSONField(default=dict, editable=False)
    # Consecutive runs without a value, by column or OID. Columns with a value are left out.
    blank_runs = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = NodeQuerySet.as_manager()

    class Meta:
        db_table = "snmp_job_hosts"
        ordering = ["olt", "job"]
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        permissions = [
            ("run_workflownode", "Can run node now"),
            ("operate_workflownode", "Can enable and disable node and change its interval"),
        ]
        indexes = [models.Index(name="node_next_run", fields=["next_run_at"])]
        constraints = [
            models.UniqueConstraint(name="job_once_per_olt", fields=["olt", "job"]),
            models.CheckConstraint(
                name="chained_node_has_no_schedule", condition=Q(master__isnull=True) | Q(next_run_at__isnull=True)
            ),
            models.CheckConstraint(
                name="node_interval_positive",
                condition=Q(own_interval_seconds__isnull=True) | Q(own_interval_seconds__gte=SHORTEST_INTERVAL),
            ),
            models.CheckConstraint(
                name="node_not_its_own_master", condition=Q(master__isnull=True) | ~Q(master=F("id"))
            ),
        ]

    # Permission to request a run, and to change these fields and no others.
    RUN_PERMISSION = "jobs.run_workflownode"
    OPERATE_PERMISSION = "jobs.operate_workflownode"
    OPERATED_FIELDS = ("own_interval_seconds", "own_enabled")

    ENGINE_OWNED = frozenset({"next_run_at", "last_run_at", "run_requested_at", "durations", "blank_runs"})

    def __str__(self) -> str:
        return f"{self.job} @ {self.olt}"

    @transaction.atomic
    def save(self, *args: Any, **kwargs: Any) -> None:
        keep_what_the_engine_wrote(self, self.ENGINE_OWNED, kwargs)
        super().save(*args, **kwargs)
        if not self.enabled:
            WorkflowNode.objects.filter(pk=self.pk).forget_wishes()
        Olt.touch([self.olt_id])

    def clean(self) -> None:
        super().clean()
        if self.master is not None and self.own_interval_seconds is not None:
            raise ValidationError(
                {
                    "own_interval_seconds": _("This node runs whenever %(master)s does. Set the interval there.")
                    % {"master": self.master}
                }
            )

    @property
    def interval_seconds(self) -> int:
        return self.own_interval_seconds or self.job.interval_seconds

    @property
    def priority(self) -> int:
        return self.job.priority if self.own_priority is None else self.own_priority

    @property
    def enabled(self) -> bool:
        """Return whether it is scheduled. The same rule as `in_effect.enabled`."""
        if self.job.reads_nothing:
            return False
        return self.job.enabled if self.own_enabled is None else self.own_enabled

    @property
    def warnings(self) -> list[str]:
        """Return warnings for the user."""
        if self.job.reads_nothing:
            return self.job.warnings
        every = self.interval_seconds if self.master is None else self.master.interval_seconds
        return floor_warnings(self.job.brand, self.job.kind, self.job.columns, every)

    def set_interval(self, seconds: int | None) -> None:
        """Set its interval. That of the job, or None, is not its own: later changes of the job apply to it."""
        self.own_interval_seconds = None if seconds == self.job.interval_seconds else seconds
        self.clean_fields(exclude=["olt", "job", "master", "own_priority", "own_enabled"])
        self.clean()
        self.save(update_fields=["own_interval_seconds"])

    def set_enabled(self, enabled: bool) -> None:
        """Enable or disable it. Like its job means that it follows the job."""
        self.own_enabled = None if enabled == self.job.enabled else enabled
        self.save(update_fields=["own_enabled"])

    @property
    def remarks(self) -> list[str]:
        """Return remarks on columns and OIDs of this node that never have a value."""
        return remarks_on([self])

    @classmethod
    @transaction.atomic
    def settle_identification(cls, olts: Iterable[Olt]) -> None:
        """Create and request an identification node for each OLT without a brand; delete those of other OLTs."""
        olts = list(olts)
        found = cls.objects.filter(olt__in=olts, job__kind=SnmpJob.Kind.IDENTIFY).order_by()
        node_ids = dict(found.values_list("olt_id", "pk"))
        answered = [node_ids[olt.pk] for olt in olts if olt.brand and olt.pk in node_ids]
        if answered:
            cls.objects.filter(pk__in=answered).delete()
        unknown = [olt for olt in olts if not olt.brand and olt.pk not in node_ids]
        if unknown:
            job, _created = SnmpJob.objects.get_or_create(brand="", kind=SnmpJob.Kind.IDENTIFY, defaults=IDENTIFICATION)
            now = timezone.now()
            nodes = [
                cls(olt=olt, job=job, run_requested_at=now if olt.enabled and job.enabled else None) for olt in unknown
            ]
            cls.objects.bulk_create(nodes, ignore_conflicts=True)
            record_created(cls.objects.filter(olt__in=unknown, job=job))
            Olt.touch([olt.pk for olt in unknown])

    @classmethod
    def unsettled(cls) -> QuerySet[Olt]:
        """Return OLTs without a needed identification node, or with one that is not needed."""
        asked = Exists(cls.objects.filter(olt=OuterRef("pk"), job__kind=SnmpJob.Kind.IDENTIFY))
        return Olt.objects.filter(Q(brand="") & ~asked | ~Q(brand="") & asked)

    @transaction.atomic
    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        olt_id = self.olt_id
        result = super().delete(*args, **kwargs)
        Olt.touch([olt_id])
        return result

    def olt_ids(self) -> list[int]:
        return [self.olt_id]

    def why_not_runnable(self) -> str | None:
        """Return the reason why a run cannot be requested, or None."""
        if not self.olt.enabled:
            return _("%(olt)s is disabled. Enable it first.") % {"olt": self.olt}
        if self.job.reads_nothing:
            return _("%(job)s reads nothing. Add a column or a raw OID to the job first.") % {"job": self.job}
        if not self.enabled:
            return _("%(node)s is disabled. Enable it first.") % {"node": self}
        return None

    def request_run(self, now: datetime | None = None) -> bool:
        """Request a run of this node. False if one is already requested and has not started.

        Also False if the node was disabled or deleted since it was read. `run_requested_at` is then empty.
        """
        at = now
        if at is None:
            # Slots are whole seconds. A request at exactly that time would take the place of the slot.
            at = timezone.now()
            at = at.replace(microsecond=at.microsecond or 1)
        row = WorkflowNode.objects.filter(pk=self.pk).order_by()
        with transaction.atomic():
            asked = bool(row.filter(run_requested_at__isnull=True).polled().update(run_requested_at=at))
            if asked:
                Olt.touch([self.olt_id])
                record(Change.Action.RUN_REQUESTED, self)
        self.run_requested_at = at if asked else row.values_list("run_requested_at", flat=True).first()
        return asked
