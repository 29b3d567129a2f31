"""Quotas, violations, plans, the log and explanations in the API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.apps.coordinator.advice import plan_advice, violation_advice
from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.coordinator.progress import RISKS, QuotaProgress, risk_of
from facho.apps.coordinator.text import sentence
from facho.apps.polling.models import STATUS_CHOICES


class QuotaSerializer(serializers.ModelSerializer[QuotaTracker]):
    """Quota of a job on an OLT in an hour. Always required = completed + failed + skipped + pending."""

    olt_name = serializers.CharField(read_only=True)
    percent = serializers.SerializerMethodField(
        help_text="Percentage completed of the slots that were not disabled; null if there are none."
    )
    risk = serializers.SerializerMethodField(help_text="For the current hour: the expected result.")
    avg_duration_ms = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="Mean duration of completed and failed runs; null if there are none."
    )
    causes: serializers.DictField = serializers.DictField(
        child=serializers.IntegerField(), read_only=True, help_text="Number of skipped and failed slots, by cause."
    )

    class Meta:
        model = QuotaTracker
        fields = [
            "id",
            "olt",
            "olt_name",
            "node",
            "task_type",
            "period_start",
            "period_end",
            "quota_required",
            "quota_completed",
            "quota_failed",
            "quota_skipped",
            "quota_pending",
            "percent",
            "risk",
            "causes",
            "total_duration_ms",
            "avg_duration_ms",
            "status",
            "created_at",
            "updated_at",
        ]

    def get_percent(self, quota: QuotaTracker) -> float | None:
        return QuotaProgress.of(quota).percent

    @extend_schema_field(serializers.ChoiceField(choices=list(RISKS), allow_null=True))
    def get_risk(self, quota: QuotaTracker) -> str | None:
        return risk_of(quota, self.context["now"])


class ViolationSerializer(serializers.ModelSerializer[QuotaViolation]):
    """An hour in which a job ran too rarely. `report` has the numbers, `advice` the recommended actions."""

    olt_name = serializers.CharField(read_only=True)
    report: serializers.DictField = serializers.DictField(
        read_only=True, help_text="Counts, causes, slowest nodes and worst delay of the hour."
    )
    advice = serializers.SerializerMethodField(help_text="Advice, in the language of the request.")

    class Meta:
        model = QuotaViolation
        fields = [
            "id",
            "olt",
            "olt_name",
            "node",
            "task_type",
            "period_start",
            "period_end",
            "severity",
            "report",
            "advice",
            "notified",
            "notified_at",
            "created_at",
        ]

    def get_advice(self, violation: QuotaViolation) -> list[str]:
        return violation_advice(violation.report)


class PlannedLinkSerializer(serializers.Serializer[Any]):
    """A link of a chain: planned and actual times."""

    node_id = serializers.IntegerField()
    task = serializers.CharField()
    start = serializers.DateTimeField(required=False, allow_null=True)
    end = serializers.DateTimeField(required=False, allow_null=True)
    actual_start = serializers.DateTimeField(required=False, allow_null=True)
    actual_end = serializers.DateTimeField(required=False, allow_null=True)
    status = serializers.CharField(required=False, allow_null=True)
    cause = serializers.CharField(required=False, allow_null=True)


class PlannedSlotSerializer(PlannedLinkSerializer):
    """A slot of a plan. Without a start it is expected to be lost. The actual times are added after the run."""

    slot = serializers.DateTimeField()
    p95_end = serializers.DateTimeField(required=False, allow_null=True)
    chain = PlannedLinkSerializer(many=True, required=False)


class PlanSummarySerializer(serializers.ModelSerializer[ExecutionPlan]):
    """Plan of an OLT's hour in numbers. Its slots, often hundreds, are only in the plan itself."""

    olt_name = serializers.CharField(read_only=True)
    advice = serializers.SerializerMethodField(
        help_text="Changes that would make the plan feasible, in the language of the request."
    )

    class Meta:
        model = ExecutionPlan
        fields = [
            "id",
            "olt",
            "olt_name",
            "period_start",
            "period_end",
            "status",
            "reason",
            "needed_seconds",
            "utilisation",
            "is_feasible",
            "advice",
            "total_tasks",
            "completed_tasks",
            "failed_tasks",
            "failures_in_row",
            "created_at",
            "updated_at",
        ]

    def get_advice(self, plan: ExecutionPlan) -> list[str]:
        return plan_advice(plan.advice)


class PlanSerializer(PlanSummarySerializer):
    """Plan of an OLT's hour, and the actual result."""

    plan_data = serializers.SerializerMethodField()

    class Meta(PlanSummarySerializer.Meta):
        fields = [*PlanSummarySerializer.Meta.fields, "plan_data"]

    @extend_schema_field(PlannedSlotSerializer(many=True))
    def get_plan_data(self, plan: ExecutionPlan) -> Any:
        # As stored: a plan of an older version may lack some fields.
        return plan.plan_data


class LogSerializer(serializers.ModelSerializer[CoordinatorLog]):
    """An entry of the engine's log. `message` is in English, as in the log file."""

    olt_name = serializers.CharField(read_only=True, allow_null=True)
    sentence = serializers.SerializerMethodField(help_text="The message in the language of the request.")
    details: serializers.DictField = serializers.DictField(read_only=True)

    class Meta:
        model = CoordinatorLog
        fields = ["id", "timestamp", "level", "event_type", "olt", "olt_name", "sentence", "message", "details"]

    def get_sentence(self, entry: CoordinatorLog) -> str:
        return sentence(entry)


class SlotSerializer(serializers.Serializer[Any]):
    """A past slot: its result, and the parts of its delay."""

    execution = serializers.IntegerField(source="execution.pk")
    slot = serializers.DateTimeField(source="execution.slot")
    slots = serializers.IntegerField(
        source="execution.slots", help_text="Number of slots; a skipped row can represent several."
    )
    trigger = serializers.CharField(source="execution.trigger")
    status = serializers.ChoiceField(source="execution.status", choices=STATUS_CHOICES)
    cause = serializers.CharField(source="execution.cause")
    sentence = serializers.CharField()
    attempts = serializers.IntegerField(source="execution.attempts_made")
    retry_at = serializers.DateTimeField(source="execution.retry_at", allow_null=True)
    started_at = serializers.DateTimeField(source="execution.started_at", allow_null=True)
    ended_at = serializers.DateTimeField(source="execution.ended_at", allow_null=True)
    duration = serializers.FloatField(source="execution.duration", allow_null=True)
    lateness = serializers.FloatField(allow_null=True, help_text="Seconds from the slot to the start.")
    parts: serializers.DictField = serializers.DictField(
        child=serializers.FloatField(), help_text="Parts of the delay by cause, in seconds; their sum is the delay."
    )
    waited_for = serializers.CharField(help_text="Cause of a skipped slot; otherwise empty.")


class NextSlotSerializer(serializers.Serializer[Any]):
    """A future slot. `source`: the plan of the hour, or the schedule alone."""

    slot = serializers.DateTimeField()
    start = serializers.DateTimeField(allow_null=True, help_text="Predicted start; null if the slot will be lost.")
    end = serializers.DateTimeField(allow_null=True, help_text="Predicted end; null if unknown.")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # a field here, not where this one comes from
        choices=["plan", "grid"]
    )
    cause = serializers.CharField(help_text="Why the plan expects the slot to be lost; otherwise empty.")


class ObstacleSerializer(serializers.Serializer[Any]):
    """A current obstacle."""

    code = serializers.ChoiceField(
        choices=[
            "olt_disabled",
            "node_disabled",
            "job_disabled",
            "job_reads_nothing",
            "olt_barred",
            "breaker_open",
            "breaker_waits",
            "engine_silent",
            "olt_busy",
            "queued",
            "pool_saturated",
        ]
    )
    sentence = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)
    poller = serializers.IntegerField(allow_null=True)
    node = serializers.IntegerField(
        allow_null=True, help_text="Node that causes the obstacle: it uses the OLT, or it is disabled."
    )
    position = serializers.IntegerField(allow_null=True, help_text="Position in the queue.")


class ExplanationSerializer(serializers.Serializer[Any]):
    """Explanation of a node's delay, or its last run. A chained node is explained through its master."""

    node = serializers.IntegerField(source="node.pk")
    olt = serializers.IntegerField(source="node.olt_id")
    olt_name = serializers.CharField(source="node.olt.name")
    job_name = serializers.CharField(source="node.job.name")
    master = serializers.IntegerField(source="node.master_id", allow_null=True)
    answer = serializers.CharField(help_text="One sentence or two, in the language of the request.")
    level = serializers.ChoiceField(choices=["ok", "late", "bad"])
    in_the_way = ObstacleSerializer(many=True)
    last_slots = SlotSerializer(many=True)
    next_slots = NextSlotSerializer(many=True)
    at = serializers.DateTimeField(help_text="Time of this answer.")
    stale = serializers.BooleanField(help_text="The engine does not report: busy pollers and the queue are unknown.")
