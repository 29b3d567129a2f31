"""Executions on the wire, and the shape of the engine's news as `live.py` gives it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from facho.apps.polling.models import STATUS_CHOICES, TRIGGER_CHOICES, Execution, ExecutionAttempt
from facho.apps.polling.pool_history import LONGEST

DAY = timedelta(days=1)
EARLIEST = datetime.min.replace(tzinfo=UTC)


class AttemptSerializer(serializers.ModelSerializer[ExecutionAttempt]):
    """One try at an execution."""

    class Meta:
        model = ExecutionAttempt
        fields = ["number", "status", "error_class", "error", "started_at", "ended_at", "pdus"]


class ExecutionSerializer(serializers.ModelSerializer[Execution]):
    """One node, one slot."""

    olt_name = serializers.CharField(read_only=True)
    status = serializers.ChoiceField(choices=STATUS_CHOICES, read_only=True)
    trigger = serializers.ChoiceField(choices=TRIGGER_CHOICES, read_only=True)
    cause = serializers.CharField(read_only=True, help_text="Why it was skipped or interrupted; empty if it was not.")
    completeness = serializers.CharField(read_only=True, help_text="COMPLETE, PARTIAL or EMPTY; empty until it ended.")
    duration = serializers.FloatField(read_only=True, allow_null=True, help_text="Seconds it ran.")
    lateness = serializers.FloatField(read_only=True, allow_null=True, help_text="Seconds from its slot to its start.")
    sizes: serializers.DictField = serializers.DictField(
        child=serializers.IntegerField(), read_only=True, help_text="What requests ended up with, by table."
    )
    waits: serializers.DictField = serializers.DictField(
        child=serializers.FloatField(), read_only=True, help_text="Seconds it waited, by cause."
    )
    parts: serializers.DictField = serializers.DictField(
        child=serializers.FloatField(),
        read_only=True,
        help_text="Where its lateness went, in seconds: scheduler_late, breaker_open, olt_busy, no_free_poller, "
        "in_chain, starting. They add up to `lateness`; before the start, to what it has waited.",
    )
    attempts_made = serializers.IntegerField(read_only=True, help_text="How often it was tried.")
    retry_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="When it is tried again; null unless it waits for that."
    )

    class Meta:
        model = Execution
        fields = [
            "id",
            "olt",
            "olt_name",
            "node",
            "node_name",
            "master_execution",
            "poller_id",
            "trigger",
            "slot",
            "slots",
            "status",
            "cause",
            "error",
            "error_class",
            "claimed_at",
            "started_at",
            "ended_at",
            "duration",
            "lateness",
            "waits",
            "parts",
            "attempts_made",
            "retry_at",
            "readings",
            "completeness",
            "pdus",
            "retransmissions",
            "varbinds",
            "bytes_sent",
            "bytes_received",
            "rtt_p50",
            "rtt_p95",
            "rtt_p99",
            "peak_in_flight",
            "sizes",
        ]


class ColumnCoverageSerializer(serializers.Serializer[Any]):
    """On how many ports a column was read to its end, in part, or found empty, and how many rows it gave."""

    complete = serializers.IntegerField()
    partial = serializers.IntegerField()  # type: ignore[assignment]  # a field here, not the mode of this one
    empty = serializers.IntegerField()
    rows = serializers.IntegerField()


class FailedPortSerializer(serializers.Serializer[Any]):
    """A port that a column was not read to its end on. Without a slot and a port it is about the whole table."""

    field = serializers.CharField()
    slot = serializers.IntegerField(allow_null=True)
    port = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()


class CoverageSerializer(serializers.Serializer[Any]):
    """What a run covered: counts by column, the first ports that failed, and how many more did."""

    columns: serializers.DictField = serializers.DictField(child=ColumnCoverageSerializer(), required=False)
    failed = FailedPortSerializer(many=True, required=False)
    more = serializers.IntegerField(required=False)


class LinkSerializer(ExecutionSerializer):
    """An execution with what it covered and what failed."""

    coverage = CoverageSerializer(read_only=True)
    failed_onus = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="The first ONUs of which something could not be read."
    )

    class Meta(ExecutionSerializer.Meta):
        fields = [*ExecutionSerializer.Meta.fields, "coverage", "failed_onus"]


class ExecutionDetailSerializer(LinkSerializer):
    """An execution with its chain and its attempts."""

    links = LinkSerializer(many=True, read_only=True)
    attempts = AttemptSerializer(many=True, read_only=True)

    class Meta(LinkSerializer.Meta):
        fields = [*LinkSerializer.Meta.fields, "links", "attempts"]


class NewsSerializer(serializers.Serializer[Any]):
    """How old the engine's news is. `stale`: it says nothing about now."""

    at = serializers.DateTimeField(allow_null=True)
    age = serializers.FloatField(allow_null=True, help_text="Seconds since `at`.")
    stale = serializers.BooleanField()


class PollerSerializer(serializers.Serializer[Any]):
    """A poller: FREE, or BUSY with link `link` of `links` of a composite."""

    id = serializers.IntegerField()
    status = serializers.CharField(help_text="FREE or BUSY.")
    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(allow_null=True)
    node_id = serializers.IntegerField(allow_null=True)
    node = serializers.CharField(allow_null=True)
    link = serializers.IntegerField(allow_null=True)
    links = serializers.IntegerField(allow_null=True)
    busy_since = serializers.DateTimeField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    busy_time = serializers.FloatField()
    total_time = serializers.FloatField()
    tasks_completed = serializers.IntegerField()
    tasks_delayed = serializers.IntegerField()
    worker = serializers.CharField(
        allow_blank=True, help_text="The worker that it belongs to; empty where everything is one process."
    )
    host = serializers.CharField(allow_blank=True, help_text="The machine of that worker.")


class PollersSerializer(NewsSerializer):
    """All pollers at one moment."""

    pollers = PollerSerializer(many=True)


class QueuedSerializer(serializers.Serializer[Any]):
    """A composite that waits for a poller or for its OLT."""

    node_id = serializers.IntegerField()
    node = serializers.CharField()
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    slot = serializers.DateTimeField()
    late = serializers.FloatField(help_text="Seconds past its slot.")
    priority = serializers.IntegerField()
    trigger = serializers.ChoiceField(choices=TRIGGER_CHOICES)
    links = serializers.IntegerField()
    attempt = serializers.IntegerField(help_text="1, unless it is tried again.")
    waiting_for = serializers.CharField(allow_null=True)


class QueueSerializer(NewsSerializer):
    """The queue at one moment, the most urgent first."""

    size = serializers.IntegerField()
    delayed = serializers.IntegerField()
    next = QueuedSerializer(many=True)


class StatsSerializer(NewsSerializer):
    """The pool at one moment."""

    total_pollers = serializers.IntegerField()
    free_pollers = serializers.IntegerField()
    busy_pollers = serializers.IntegerField()
    busy_percentage = serializers.FloatField(help_text="Mean of the last 60 samples.")
    samples = serializers.ListField(child=serializers.FloatField())
    is_saturated = serializers.BooleanField()
    queue_size = serializers.IntegerField()
    delayed = serializers.IntegerField()
    total_tasks_completed = serializers.IntegerField()
    total_tasks_delayed = serializers.IntegerField()


class PeriodSerializer(serializers.Serializer[Any]):
    """What part of a history is asked for: the last day, unless it is said otherwise."""

    since = serializers.DateTimeField(required=False, help_text="A day before `until`, if it is left out.")
    until = serializers.DateTimeField(required=False, help_text="Now, if it is left out.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.get("until") or timezone.now()
        since = attrs.get("since") or until - min(DAY, until - EARLIEST)
        if since >= until:
            raise serializers.ValidationError({"since": _("This must lie before the end.")})
        if until - since > LONGEST:
            raise serializers.ValidationError(
                {"since": _("No more than %(days)d days can be asked for at once.") % {"days": LONGEST.days}}
            )
        return {"since": since, "until": until}


class PoolPointSerializer(serializers.Serializer[Any]):
    """Some minutes of the pool in a row."""

    at = serializers.DateTimeField(help_text="When it begins.")
    minutes = serializers.IntegerField(help_text="Of how many minutes something is known.")
    total_pollers = serializers.IntegerField(help_text="The fewest that there were.")
    busy_percentage = serializers.FloatField(help_text="The mean.")
    busiest = serializers.FloatField(help_text="The busiest minute, in percent.")
    queue_size = serializers.IntegerField(help_text="The longest that the queue was.")
    delayed = serializers.IntegerField(help_text="The most that were delayed at once.")
    is_saturated = serializers.BooleanField(help_text="Whether it was in any of these minutes.")


class PoolHistorySerializer(serializers.Serializer[Any]):
    """The pool over time. Where a point is missing nothing is known, such as while the engine was down."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step = serializers.IntegerField(help_text="Seconds from one point to the next.")
    points = PoolPointSerializer(many=True)


class RunSerializer(serializers.Serializer[Any]):
    """A run that was asked for. `already_requested`: somebody else had, and it has not begun."""

    node = serializers.IntegerField()
    run_requested_at = serializers.DateTimeField()
    already_requested = serializers.BooleanField()
