"""Executions in the API, and the format of snapshots from `live.py`."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.apps.polling import olt_stats
from facho.apps.polling.models import STATUS_CHOICES, TRIGGER_CHOICES, Execution, ExecutionAttempt
from facho.apps.polling.pool_history import LONGEST
from facho.apps.rest.strict import WholeNumber
from facho.engine.scheduling.snapshot import QUEUE_SHOWN

DAY = timedelta(days=1)
STEP_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": DAY}
EARLIEST = datetime.min.replace(tzinfo=UTC)


class AttemptSerializer(serializers.ModelSerializer[ExecutionAttempt]):
    """One attempt of an execution."""

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
    duration = serializers.FloatField(read_only=True, allow_null=True, help_text="Duration in seconds.")
    lateness = serializers.FloatField(
        read_only=True, allow_null=True, help_text="Delay: seconds from its slot to its start."
    )
    sizes: serializers.DictField = serializers.DictField(
        child=serializers.IntegerField(), read_only=True, help_text="Request sizes reached, by table."
    )
    waits: serializers.DictField = serializers.DictField(
        child=serializers.FloatField(), read_only=True, help_text="Waiting time in seconds, by cause."
    )
    parts: serializers.DictField = serializers.DictField(
        child=serializers.FloatField(),
        read_only=True,
        help_text="Delay by cause, in seconds: scheduler_late, breaker_open, olt_busy, no_free_poller, "
        "database_unavailable, broker_unavailable, maintenance, in_chain, starting. The sum is `lateness`; before the "
        "start, it is the waiting time so far.",
    )
    attempts_made = serializers.IntegerField(read_only=True, help_text="Number of attempts.")
    retry_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="Time of the next attempt; null if none is planned."
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
    """Number of ports on which a column is complete, partial or empty, and number of rows."""

    complete = serializers.IntegerField()
    partial = serializers.IntegerField()  # type: ignore[assignment]  # a field here, not the mode of this one
    empty = serializers.IntegerField()
    rows = serializers.IntegerField()


class FailedPortSerializer(serializers.Serializer[Any]):
    """A port on which a column was not read completely. Without slot and port: the whole table."""

    field = serializers.CharField()
    slot = serializers.IntegerField(allow_null=True)
    port = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()


class CoverageSerializer(serializers.Serializer[Any]):
    """Coverage of a run: counts by column, the first failed ports, and the number of further ones."""

    columns: serializers.DictField = serializers.DictField(child=ColumnCoverageSerializer(), required=False)
    failed = FailedPortSerializer(many=True, required=False)
    more = serializers.IntegerField(required=False)


class LinkSerializer(ExecutionSerializer):
    """An execution with its coverage and failures."""

    coverage = CoverageSerializer(read_only=True)
    failed_onus = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="The first ONUs that could not be read completely."
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
    """Age of the engine's last report. `stale`: it is too old to be current."""

    at = serializers.DateTimeField(allow_null=True)
    age = serializers.FloatField(allow_null=True, help_text="Seconds since `at`.")
    stale = serializers.BooleanField()


class ActiveExecutionSerializer(serializers.Serializer[Any]):
    """An execution of a poller's current composite."""

    id = serializers.IntegerField()
    node_id = serializers.IntegerField()
    node = serializers.CharField()
    status = serializers.CharField(help_text="PENDING or RUNNING.")


class PollerSerializer(serializers.Serializer[Any]):
    """A poller: FREE, or BUSY with link `link` of `links` of a composite."""

    id = serializers.IntegerField()
    poller_id = serializers.IntegerField(source="id", help_text="The same as `id`.")
    status = serializers.CharField(help_text="FREE or BUSY.")
    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(allow_null=True)
    node_id = serializers.IntegerField(allow_null=True)
    node = serializers.CharField(allow_null=True)
    link = serializers.IntegerField(allow_null=True)
    links = serializers.IntegerField(allow_null=True)
    current_node_id = serializers.IntegerField(source="node_id", allow_null=True, help_text="The same as `node_id`.")
    current_node_name = serializers.CharField(source="node", allow_null=True, help_text="The same as `node`.")
    current_execution_id = serializers.IntegerField(
        allow_null=True, help_text="The execution of the current node; null while its slot is being claimed."
    )
    active_executions = ActiveExecutionSerializer(
        many=True,
        default=list,
        help_text="The PENDING and RUNNING executions of the composite: master first, then the chain in order.",
    )
    busy_since = serializers.DateTimeField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    busy_time = serializers.FloatField()
    total_time = serializers.FloatField()
    tasks_completed = serializers.IntegerField()
    tasks_delayed = serializers.IntegerField()
    created_at = serializers.DateTimeField(allow_null=True, help_text="When the process of this poller started.")
    updated_at = serializers.DateTimeField(allow_null=True, help_text="When it last reported.")
    worker = serializers.CharField(
        allow_blank=True, help_text="Worker of this poller; empty if everything runs in one process."
    )
    host = serializers.CharField(allow_blank=True, help_text="Machine of the worker.")


class TotalsSerializer(NewsSerializer):
    """The pool in numbers at one moment."""

    timestamp = serializers.DateTimeField(source="at", allow_null=True, help_text="The same as `at`.")
    total_pollers = serializers.IntegerField()
    free_pollers = serializers.IntegerField()
    busy_pollers = serializers.IntegerField()
    busy_percentage = serializers.FloatField(help_text="Mean of the last 60 samples.")
    is_saturated = serializers.BooleanField()
    queue_size = serializers.IntegerField()
    delayed = serializers.IntegerField()
    total_tasks_completed = serializers.IntegerField()
    total_tasks_delayed = serializers.IntegerField()


class PollersSerializer(TotalsSerializer):
    """All pollers at one moment, and their totals."""

    pollers = PollerSerializer(many=True)


class QueuedSerializer(serializers.Serializer[Any]):
    """A queued composite."""

    node_id = serializers.IntegerField(allow_null=True, help_text="Null for an OLT outside your scope.")
    node = serializers.CharField()
    olt_id = serializers.IntegerField(allow_null=True, help_text="Null for an OLT outside your scope.")
    olt = serializers.CharField()
    slot = serializers.DateTimeField()
    late = serializers.FloatField(help_text="Delay after its slot, in seconds.")
    priority = serializers.IntegerField()
    trigger = serializers.ChoiceField(choices=TRIGGER_CHOICES)
    links = serializers.IntegerField()
    attempt = serializers.IntegerField(help_text="Number of the attempt; 1 for the first one.")
    waiting_for = serializers.CharField(allow_null=True)


class QueueQuerySerializer(serializers.Serializer[Any]):
    """Parameters of the queue."""

    limit = WholeNumber(default=10, min_value=1, max_value=QUEUE_SHOWN, help_text="Number of entries in `next_nodes`.")


class QueueSerializer(NewsSerializer):
    """The queue at one moment, the most urgent first."""

    size = serializers.IntegerField()
    delayed = serializers.IntegerField(help_text="Nodes that are more than 5 s late.")
    is_overload = serializers.BooleanField(default=False, help_text="More nodes are delayed than there are pollers.")
    next = QueuedSerializer(many=True, help_text=f"The first {QUEUE_SHOWN}.")
    next_nodes = QueuedSerializer(many=True, help_text="The first `limit`.")


class StatsSerializer(TotalsSerializer):
    """The pool in numbers, with the last minute of its load."""

    samples = serializers.ListField(
        child=serializers.FloatField(), help_text="Busy pollers in percent, one value a second, the latest last."
    )


class PeriodSerializer(serializers.Serializer[Any]):
    """Period of a history; by default the last day."""

    since = serializers.DateTimeField(required=False, help_text="If omitted: one day before `until`.")
    until = serializers.DateTimeField(required=False, help_text="If omitted: now.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        since, until = checked_period(attrs, "since", LONGEST)
        return {"since": since, "until": until}


def checked_period(attrs: Mapping[str, Any], name: str, longest: timedelta) -> tuple[datetime, datetime]:
    """Return start and end of a period, the last day by default. `name` is the parameter of the start."""
    until = attrs.get("until") or timezone.now()
    since = attrs.get("since") or until - min(DAY, until - EARLIEST)
    if since >= until:
        raise serializers.ValidationError({name: _("This must be before the end.")})
    if until - since > longest:
        raise serializers.ValidationError({name: _("The maximum period is %(days)d days.") % {"days": longest.days}})
    return since, until


@extend_schema_field({"type": "string", "example": "1h"})
class StepField(serializers.Field[timedelta, str, str, Any]):
    """A duration of whole minutes, hours or days: 5m, 1h, 1d."""

    default_error_messages = {"step": _("Write a number of minutes, hours or days, such as 5m, 1h or 1d.")}

    def to_internal_value(self, data: str) -> timedelta:
        written = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", data)
        if not written:
            self.fail("step")
        return int(written[1]) * STEP_UNITS[written[2]]

    def to_representation(self, value: timedelta) -> str:
        unit = next(name for name in ("d", "h", "m") if not value % STEP_UNITS[name])
        return f"{value // STEP_UNITS[unit]}{unit}"


class OltStatsQuerySerializer(serializers.Serializer[Any]):
    """Period and step of the statistics of an OLT; by default the last day."""

    step = StepField(required=False, help_text="Such as 5m, 1h or 1d. If omitted, it depends on the period.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # Not attributes: `from` is a keyword.
        return {
            "from": serializers.DateTimeField(
                source="since", required=False, help_text="If omitted: one day before `to`."
            ),
            "to": serializers.DateTimeField(source="until", required=False, help_text="If omitted: now."),
            **super().get_fields(),
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        since, until = checked_period(attrs, "from", olt_stats.LONGEST)
        step = attrs.get("step") or olt_stats.step_for(until - since)
        points = ceil((until - since) / step)
        if points > olt_stats.MOST_POINTS:
            said = _("The result would have %(points)d points; the maximum is %(most)d. Use a longer step.")
            raise serializers.ValidationError({"step": said % {"points": points, "most": olt_stats.MOST_POINTS}})
        return {"since": olt_stats.first_bucket(since, step), "until": until, "step": step}


class OltPointSerializer(serializers.Serializer[Any]):
    """Executions of one step, by their slot. All values are null if no execution ended in the step."""

    at = serializers.DateTimeField(help_text="Start of the step.")
    completed = serializers.IntegerField(allow_null=True, help_text="Runs that ended in SUCCESS or PARTIAL.")
    failed = serializers.IntegerField(allow_null=True)
    interrupted = serializers.IntegerField(allow_null=True)
    success_rate = serializers.FloatField(
        allow_null=True,
        help_text="Percentage of completed runs among completed, failed and interrupted ones. Null without runs.",
    )
    duration_mean = serializers.FloatField(allow_null=True, help_text="Seconds, for the completed runs.")
    duration_p95 = serializers.FloatField(allow_null=True, help_text="Seconds, for the completed runs.")
    round_trip_p50 = serializers.FloatField(
        allow_null=True, help_text="Seconds: mean of the medians of the runs, weighted by their requests."
    )
    round_trip_p95 = serializers.FloatField(allow_null=True, help_text="Seconds, computed in the same way.")
    pdus = serializers.IntegerField(allow_null=True, help_text="Requests sent.")
    retransmissions = serializers.IntegerField(
        allow_null=True, help_text="Requests retransmitted because there was no answer."
    )
    retries = serializers.IntegerField(allow_null=True, help_text="Attempts after the first one of each execution.")
    retry_gap_mean = serializers.FloatField(
        allow_null=True, help_text="Seconds from the end of an attempt to the start of the next."
    )
    lost_slots: serializers.DictField = serializers.DictField(
        child=serializers.IntegerField(), allow_null=True, help_text="Slots that did not run, by cause."
    )


class OltStatsSerializer(serializers.Serializer[Any]):
    """Statistics of an OLT over time."""

    olt = serializers.IntegerField()
    olt_name = serializers.CharField()
    step = StepField()
    points = OltPointSerializer(many=True)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        own = super().get_fields()
        period = {
            "from": serializers.DateTimeField(source="since", help_text="The start of the first step."),
            "to": serializers.DateTimeField(source="until"),
        }
        return {"olt": own.pop("olt"), "olt_name": own.pop("olt_name"), **period, **own}


class PoolPointSerializer(serializers.Serializer[Any]):
    """Some consecutive minutes of the pool."""

    at = serializers.DateTimeField(help_text="Start of the point.")
    minutes = serializers.IntegerField(help_text="Number of minutes with data.")
    total_pollers = serializers.IntegerField(help_text="Minimum number of pollers.")
    free_pollers = serializers.IntegerField(help_text="Minimum number of free pollers.")
    busy_percentage = serializers.FloatField(help_text="The mean.")
    busiest = serializers.FloatField(help_text="Load of the busiest minute, in percent.")
    queue_size = serializers.IntegerField(help_text="Maximum length of the queue.")
    delayed = serializers.IntegerField(help_text="Maximum number of delayed nodes.")
    is_saturated = serializers.BooleanField(help_text="Whether the pool was saturated in any of these minutes.")


class PoolHistorySerializer(serializers.Serializer[Any]):
    """The pool over time. A missing point means no data, for example while the engine was down."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step = serializers.IntegerField(help_text="Seconds from one point to the next.")
    points = PoolPointSerializer(many=True)


class RunSerializer(serializers.Serializer[Any]):
    """A requested run. `already_requested`: a run was already requested and has not started."""

    node = serializers.IntegerField()
    run_requested_at = serializers.DateTimeField()
    already_requested = serializers.BooleanField()
