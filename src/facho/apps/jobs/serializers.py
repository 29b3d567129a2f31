"""Jobs, their raw OIDs and their nodes on the wire."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from rest_framework import serializers

from facho.apps.inventory.models import Olt
from facho.apps.inventory.serializers import BrandField, CheckedSerializer, refusals
from facho.apps.jobs.columns import validate_oid
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.brands.decode import RAW_DECODERS

WARNINGS = "What to think twice about, such as asking an OLT oftener than it can bear. Nothing of it is refused."


class DecoderField(serializers.CharField):
    """The name of a decoder. Which there are is told by `GET /api/v1/brands/decoders/`."""

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in RAW_DECODERS:
            known = ", ".join(RAW_DECODERS)
            raise serializers.ValidationError(
                _("“%(name)s” is no way to read a value. There are: %(known)s.") % {"name": name, "known": known}
            )
        return name


class OidSerializer(serializers.ModelSerializer[SnmpJobOid]):
    """A raw OID of a job."""

    oid = serializers.CharField(max_length=400, validators=[validate_oid])
    decode = DecoderField()

    class Meta:
        model = SnmpJobOid
        fields = ["id", "name", "oid", "decode", "scalar"]


class AppliedSerializer(serializers.Serializer[Any]):
    """An OLT that a job is applied to."""

    id = serializers.IntegerField(source="olt_id")
    name = serializers.CharField(source="olt.name")
    node = serializers.IntegerField(source="id")


class JobSerializer(CheckedSerializer[SnmpJob]):
    """A job. `oids` replaces the raw OIDs by those given, matched by name; left out, they stay."""

    brand = BrandField()
    columns = serializers.ListField(child=serializers.CharField(), required=False)
    oids = OidSerializer(many=True, required=False)
    followers: serializers.PrimaryKeyRelatedField[SnmpJob] = serializers.PrimaryKeyRelatedField(
        many=True, read_only=True
    )
    olts = AppliedSerializer(source="nodes", many=True, read_only=True)
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True, help_text=WARNINGS)

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
            "created_at",
            "updated_at",
        ]
        # The model says the same in better words.
        validators: list[Any] = []

    def validate_oids(self, oids: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = [oid["name"] for oid in oids]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise serializers.ValidationError(
                _("Each raw OID needs a name of its own: %(names)s is there twice.") % {"names": ", ".join(twice)}
            )
        return oids

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


def _replace_oids(job: SnmpJob, oids: list[dict[str, Any]]) -> None:
    """Make these the raw OIDs of the job. One that keeps its name keeps its id."""
    job.oids.exclude(name__in=[oid["name"] for oid in oids]).delete()
    for oid in oids:
        SnmpJobOid.objects.update_or_create(job=job, name=oid["name"], defaults={"scalar": False, **oid})


class ApplySerializer(serializers.Serializer[Any]):
    """Which OLTs a job is to be applied to."""

    olts: serializers.PrimaryKeyRelatedField[Olt] = serializers.PrimaryKeyRelatedField(
        many=True, queryset=Olt.objects.all(), allow_empty=False
    )


class NodeSerializer(CheckedSerializer[WorkflowNode]):
    """One job on one OLT. What it has of its own is null unless it differs from the job's."""

    olt_name = serializers.CharField(source="olt.name", read_only=True)
    job_name = serializers.CharField(source="job.name", read_only=True)
    kind = serializers.ChoiceField(source="job.kind", choices=SnmpJob.Kind.choices, read_only=True)
    is_chained = serializers.SerializerMethodField(help_text="Runs behind its master, and has no schedule of its own.")
    interval_seconds = serializers.IntegerField(read_only=True, help_text="The interval that counts.")
    priority = serializers.IntegerField(read_only=True, help_text="The priority that counts.")
    enabled = serializers.BooleanField(read_only=True, help_text="Whether it counts as enabled.")
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True, help_text=WARNINGS)

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
            "next_run_at",
            "last_run_at",
            "run_requested_at",
            "created_at",
        ]
        read_only_fields = ["master", "next_run_at", "last_run_at", "run_requested_at"]
        # The model says the same in better words.
        validators: list[Any] = []

    def get_is_chained(self, node: WorkflowNode) -> bool:
        return node.master_id is not None

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("olt", "job"):
            if self.instance is not None and attrs.get(name, getattr(self.instance, name)) != getattr(
                self.instance, name
            ):
                raise serializers.ValidationError(
                    {name: _("A node stays where it is. Apply the job to the other OLT, and delete this node.")}
                )
        return super().validate(attrs)

    def create(self, validated_data: dict[str, Any]) -> WorkflowNode:
        job, olt = validated_data.pop("job"), validated_data.pop("olt")
        with transaction.atomic(), refusals():
            [node] = job.apply_to([olt])
            return super().update(node, validated_data)


class NodesSerializer(serializers.Serializer[Any]):
    """The nodes that a job now is on the OLTs it was applied to, its chain included."""

    nodes = NodeSerializer(many=True)
