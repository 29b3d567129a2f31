"""Jobs, their raw OIDs and their nodes in the API."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied

from facho.apps.accounts.permissions import missing
from facho.apps.inventory.bulk import Result
from facho.apps.inventory.models import Olt, Question
from facho.apps.inventory.remarks import HELP as REMARKS
from facho.apps.inventory.remarks import remarks_on
from facho.apps.inventory.scopes import OltChoice, visible_ids
from facho.apps.inventory.serializers import BrandField, CheckedSerializer, ChosenOltsSerializer, refusals
from facho.apps.jobs.bulk import JOB_ACTIONS, PERMISSIONS, JobAction, JobChange, NodeState, PlannedChange
from facho.apps.jobs.columns import reads_nothing, reads_nothing_refusal, validate_oid
from facho.apps.jobs.models import (
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    SnmpJob,
    SnmpJobOid,
    WorkflowNode,
    shared_refusal,
)
from facho.apps.rest.strict import StrictSerializer
from facho.brands.decode import RAW_DECODERS
from facho.engine.model import QuestionKind

WARNINGS = "Warnings, such as an interval that is too short for the OLT. The job is saved anyway."


class DecoderField(serializers.CharField):
    """The name of a decoder. `GET /api/v1/brands/decoders/` lists them."""

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in RAW_DECODERS:
            known = ", ".join(RAW_DECODERS)
            raise serializers.ValidationError(
                _("Unknown decoder “%(name)s”. Known decoders: %(known)s.") % {"name": name, "known": known}
            )
        return name


class OidSerializer(StrictSerializer, serializers.ModelSerializer[SnmpJobOid]):
    """A raw OID of a job."""

    oid = serializers.CharField(max_length=400, validators=[validate_oid])
    decode = DecoderField()

    class Meta:
        model = SnmpJobOid
        fields = ["id", "name", "oid", "decode", "unit", "scalar"]

    def present(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the raw OID of the job that has this name."""
        job = self.root.instance
        stored = job.oids.filter(name=data.get("name")).first() if isinstance(job, SnmpJob) else None
        return self.to_representation(stored) if stored else {}


class AppliedSerializer(serializers.Serializer[Any]):
    """An OLT that a job is applied to."""

    id = serializers.IntegerField(source="olt_id")
    name = serializers.CharField(source="olt.name")
    node = serializers.IntegerField(source="id")


class JobSerializer(CheckedSerializer[SnmpJob]):
    """A job. `oids` replaces the raw OIDs, matched by name. If omitted, they are kept."""

    # The identification job has none. The model refuses any other job without one.
    brand = BrandField(allow_blank=True)
    columns = serializers.ListField(child=serializers.CharField(), required=False)
    oids = OidSerializer(many=True, required=False)
    followers: serializers.PrimaryKeyRelatedField[SnmpJob] = serializers.PrimaryKeyRelatedField(
        many=True, read_only=True
    )
    olts = AppliedSerializer(source="nodes", many=True, read_only=True)
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True, help_text=WARNINGS)
    remarks = serializers.SerializerMethodField(help_text=REMARKS)

    class Meta:
        model = SnmpJob
        fields = [
            "id",
            "name",
            "brand",
            "kind",
            "columns",
            "oids",
            "follows",
            "followers",
            "interval_seconds",
            "priority",
            "timeout_seconds",
            "retries",
            "retry_delay_seconds",
            "enabled",
            "olts",
            "warnings",
            "remarks",
            "created_at",
            "updated_at",
        ]
        # The model has a better message.
        validators: list[Any] = []

    def get_remarks(self, job: SnmpJob) -> list[str]:
        return remarks_on(job.nodes.all())

    def validate_oids(self, oids: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = [oid["name"] for oid in oids]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise serializers.ValidationError(
                _("Each raw OID needs a unique name: %(names)s is repeated.") % {"names": ", ".join(twice)}
            )
        return oids

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        for shared in (self.instance, attrs.get("follows")):
            if isinstance(shared, SnmpJob):
                check_shared(shared, self.context["request"].user)
        job = self.instance if isinstance(self.instance, SnmpJob) else SnmpJob()
        if attrs.keys() & {"kind", "columns", "oids"}:
            oids = attrs.get("oids", () if job.pk is None else job.oids.all())
            if reads_nothing(attrs.get("kind", job.kind), attrs.get("columns", job.columns), oids):
                raise serializers.ValidationError({"columns": reads_nothing_refusal()})
        return attrs

    def create(self, validated_data: dict[str, Any]) -> SnmpJob:
        oids = validated_data.pop("oids", [])
        with transaction.atomic():
            job = super().create(validated_data)
            _replace_oids(job, oids)
        return job

    def update(self, instance: SnmpJob, validated_data: dict[str, Any]) -> SnmpJob:
        oids = validated_data.pop("oids", None)
        with transaction.atomic():
            job = super().update(instance, validated_data)
            if oids is not None:
                _replace_oids(job, oids)
        return job


def check_shared(job: SnmpJob, user: Any) -> None:
    """Refuse to change a job that is applied to OLTs outside the scope of the user."""
    if job.is_applied_beyond(visible_ids(user)):
        raise PermissionDenied(shared_refusal(job))


def _replace_oids(job: SnmpJob, oids: list[dict[str, Any]]) -> None:
    """Make these the raw OIDs of the job. One that keeps its name keeps its id."""
    for gone in job.oids.exclude(name__in=[oid["name"] for oid in oids]):
        gone.delete()
    for oid in oids:
        SnmpJobOid.objects.update_or_create(job=job, name=oid["name"], defaults={"scalar": False, "unit": "", **oid})


class TrySerializer(JobSerializer):
    """A job to try, with the fields of a new job, and the OLT. The name is optional and need not be unique."""

    name = serializers.CharField(max_length=100, required=False, default="Try")
    olt = OltChoice()

    class Meta(JobSerializer.Meta):
        fields = ["olt", *JobSerializer.Meta.fields]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        olt: Olt = attrs["olt"]
        # Nothing is saved, so a name that exists is not a conflict.
        super().validate({**attrs, "name": f"try {uuid4()}"})
        if not olt.enabled:
            raise serializers.ValidationError({"olt": _("%(olt)s is disabled. Enable it first.") % {"olt": olt}})
        if olt.brand != attrs["brand"]:
            said = _("%(olt)s has another brand. Choose an OLT with the brand of the job.") % {"olt": olt}
            raise serializers.ValidationError({"olt": said})
        return attrs

    def ask(self, by: Any) -> Question:
        """Store the question for the engine."""
        job = self.validated_data
        # The unit is only for people.
        names = ("name", "oid", "decode", "scalar")
        oids = [{name: oid[name] for name in names if name in oid} for oid in job.get("oids", [])]
        oids = [{"scalar": False, **oid} for oid in oids]
        body = {"name": job["name"], "kind": job["kind"], "columns": job.get("columns", []), "oids": oids}
        return Question.ask(job["olt"], QuestionKind.TRY_JOB, body, by)


class FollowersWish(serializers.Serializer[Any]):
    """Action for the followers of a deleted job."""

    followers = serializers.ChoiceField(
        choices=SnmpJob.Followers.choices,
        required=False,
        help_text="`delete`: they are deleted too. `detach`: each one keeps its interval and gets its own schedule.",
    )


class FollowerSerializer(serializers.ModelSerializer[SnmpJob]):
    """A follower of a deleted job."""

    class Meta:
        model = SnmpJob
        fields = ["id", "name", "interval_seconds"]
        read_only_fields = fields


class FollowersSerializer(serializers.Serializer[Any]):
    """Followers of a deleted job, and the action taken."""

    detail = serializers.CharField()
    followers = FollowerSerializer(many=True)


class ApplySerializer(StrictSerializer):
    """OLTs to apply a job to."""

    olts = OltChoice(many=True, allow_empty=False)


class NodeSerializer(CheckedSerializer[WorkflowNode]):
    """One job on one OLT. Its own settings are null where those of the job apply."""

    olt = OltChoice()
    olt_name = serializers.CharField(source="olt.name", read_only=True)
    job_name = serializers.CharField(source="job.name", read_only=True)
    kind = serializers.ChoiceField(source="job.kind", choices=SnmpJob.Kind.choices, read_only=True)
    is_chained = serializers.SerializerMethodField(help_text="Runs after its master and has no schedule of its own.")
    interval_seconds = serializers.IntegerField(read_only=True, help_text="Effective interval, in seconds.")
    priority = serializers.IntegerField(read_only=True, help_text="Effective priority.")
    enabled = serializers.BooleanField(read_only=True, help_text="Whether the node is enabled in effect.")
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True, help_text=WARNINGS)
    remarks = serializers.ListField(child=serializers.CharField(), read_only=True, help_text=REMARKS)

    class Meta:
        model = WorkflowNode
        fields = [
            "id",
            "olt",
            "olt_name",
            "job",
            "job_name",
            "kind",
            "master",
            "is_chained",
            "own_interval_seconds",
            "own_priority",
            "own_enabled",
            "interval_seconds",
            "priority",
            "enabled",
            "warnings",
            "remarks",
            "next_run_at",
            "last_run_at",
            "run_requested_at",
            "created_at",
        ]
        read_only_fields = ["master", "next_run_at", "last_run_at", "run_requested_at"]
        # The model has a better message.
        validators: list[Any] = []

    def get_is_chained(self, node: WorkflowNode) -> bool:
        return node.master_id is not None

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("olt", "job"):
            if self.instance is not None and attrs.get(name, getattr(self.instance, name)) != getattr(
                self.instance, name
            ):
                raise serializers.ValidationError(
                    {name: _("A node cannot be moved. Apply the job to the other OLT and delete this node.")}
                )
        return super().validate(attrs)

    def create(self, validated_data: dict[str, Any]) -> WorkflowNode:
        job, olt = validated_data.pop("job"), validated_data.pop("olt")
        with transaction.atomic(), refusals():
            [node] = job.apply_to([olt])
            return super().update(node, validated_data)


class NodesSerializer(serializers.Serializer[Any]):
    """Nodes of a job on the OLTs it was applied to, with their followers."""

    nodes = NodeSerializer(many=True)


class NodeStateSerializer(StrictSerializer):
    """A job on one OLT: what is in effect. Of a follower, the interval is that of its master."""

    is_applied = serializers.BooleanField()
    interval_seconds = serializers.IntegerField(allow_null=True)
    enabled = serializers.BooleanField(allow_null=True)


class JobBulkSerializer(ChosenOltsSerializer):
    """A change of one job on many OLTs."""

    action = serializers.ChoiceField(choices=JOB_ACTIONS)
    job: serializers.PrimaryKeyRelatedField[SnmpJob] = serializers.PrimaryKeyRelatedField(
        queryset=SnmpJob.objects.select_related("follows")
    )
    interval_seconds = serializers.IntegerField(
        min_value=SHORTEST_INTERVAL,
        max_value=LONGEST_INTERVAL,
        required=False,
        allow_null=True,
        help_text="For the action `interval`; null: that of the job.",
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only report what would change, and for which OLT.")
    seen: serializers.DictField = serializers.DictField(
        child=NodeStateSerializer(),
        required=False,
        help_text="`before` of a dry run, by id of the OLT. An OLT that changed since then is left out.",
    )

    def validate(self, body: dict[str, Any]) -> dict[str, Any]:
        action, user = JobAction(body["action"]), self.context["request"].user
        if not user.has_perm(PERMISSIONS[action]):
            raise PermissionDenied(missing(PERMISSIONS[action]))
        if action == JobAction.INTERVAL and "interval_seconds" not in body:
            raise serializers.ValidationError({"interval_seconds": [_("This action needs it.")]})
        if action != JobAction.INTERVAL and "interval_seconds" in body:
            raise serializers.ValidationError({"interval_seconds": [_("This action does not need it.")]})
        if bad := [key for key in body.get("seen", ()) if not key.isdecimal()]:
            raise serializers.ValidationError({"seen": {key: [_("This is not the id of an OLT.")] for key in bad}})
        return {**body, "olts": self.chosen(body)}

    def run(self) -> tuple[JobChange, list[PlannedChange]]:
        """Make the change, or only plan it."""
        body = self.validated_data
        change = JobChange(body["job"], JobAction(body["action"]), body.get("interval_seconds"))
        seen = {int(pk): NodeState(**state) for pk, state in body["seen"].items()} if "seen" in body else None
        return change, (change.plan if body["dry_run"] else change.run)(body["olts"], seen)


class PlannedChangeSerializer(serializers.Serializer[Any]):
    """What one OLT had, what it has now or would have, and why it is left out."""

    id = serializers.IntegerField(source="olt.pk")
    name = serializers.CharField(source="olt.name", help_text="Empty if there is no such OLT.")
    result = serializers.ChoiceField(choices=[each.value for each in Result])
    detail = serializers.CharField(help_text="Why it is left out; otherwise empty.")
    before = NodeStateSerializer()
    after = NodeStateSerializer()
    warnings = serializers.ListField(child=serializers.CharField(), help_text=WARNINGS)


class JobBulkResultSerializer(serializers.Serializer[Any]):
    """The results of a change of one job on many OLTs."""

    action = serializers.ChoiceField(choices=JOB_ACTIONS)
    job = serializers.IntegerField()
    dry_run = serializers.BooleanField()
    detail = serializers.CharField(help_text="The result, as a sentence.")
    results = PlannedChangeSerializer(many=True)
