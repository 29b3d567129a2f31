"""Problems in the API."""

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.apps.rest.strict import StrictSerializer
from facho.problems.models import MOST_COMMENT_CHARACTERS, Problem, ProblemEntry


class EntrySerializer(serializers.ModelSerializer[ProblemEntry]):
    """An entry of the history of a problem. `said` is in the language of the request."""

    user = serializers.CharField(source="user_name", read_only=True, help_text="Empty: the engine.")
    said = serializers.CharField(read_only=True)

    class Meta:
        model = ProblemEntry
        fields = ["id", "at", "kind", "user", "text", "values", "said"]
        read_only_fields = fields


class ProblemSerializer(serializers.ModelSerializer[Problem]):
    """A problem. `title`, `summary` and `cause_text` are in the language of the request."""

    olt_name = serializers.SerializerMethodField()
    title = serializers.CharField(read_only=True)
    summary = serializers.CharField(read_only=True)
    cause_text = serializers.CharField(read_only=True)
    is_open = serializers.BooleanField(read_only=True)
    seconds = serializers.FloatField(read_only=True, help_text="Duration, until now if it is open.")
    evidence = serializers.DictField(read_only=True, help_text="The values of `summary`; they depend on `kind`.")
    onus = serializers.ListField(
        child=serializers.IntegerField(), read_only=True, help_text="Ids of the ONUs at the peak, 500 at most."
    )
    acknowledged_by = serializers.SerializerMethodField(help_text="Name of the user.")
    assignee = serializers.SerializerMethodField(help_text="Name of the user.")

    class Meta:
        model = Problem
        fields = [
            "id",
            "kind",
            "severity",
            "title",
            "summary",
            "olt",
            "olt_name",
            "slot",
            "port",
            "onu",
            "is_open",
            "since",
            "found_at",
            "until",
            "seconds",
            "unknown_since",
            "cause",
            "confidence",
            "cause_text",
            "affected",
            "peak",
            "evidence",
            "onus",
            "part_of",
            "acknowledged_at",
            "acknowledged_by",
            "assignee",
            "snoozed_until",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_olt_name(self, problem: Problem) -> str | None:
        return problem.olt.name if problem.olt else None

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_acknowledged_by(self, problem: Problem) -> str | None:
        return problem.acknowledged_by.get_username() if problem.acknowledged_by else None

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_assignee(self, problem: Problem) -> str | None:
        return problem.assignee.get_username() if problem.assignee else None


class ProblemDetailSerializer(ProblemSerializer):
    """A problem with its history."""

    entries = EntrySerializer(many=True, read_only=True)

    class Meta(ProblemSerializer.Meta):
        fields = [*ProblemSerializer.Meta.fields, "entries"]
        read_only_fields = fields


class AcknowledgeBody(StrictSerializer):
    """An acknowledgement."""

    comment = serializers.CharField(required=False, allow_blank=True, max_length=MOST_COMMENT_CHARACTERS)


class CommentBody(StrictSerializer):
    """A comment."""

    comment = serializers.CharField(max_length=MOST_COMMENT_CHARACTERS)


class AssignBody(StrictSerializer):
    """An assignment."""

    user = serializers.SlugRelatedField(
        slug_field="username",
        queryset=User.objects.filter(is_active=True),
        allow_null=True,
        help_text="Name of a user who may act on the problem; null takes the assignment back.",
    )


class SnoozeBody(StrictSerializer):
    """The end of a snooze."""

    until = serializers.DateTimeField(allow_null=True, help_text="A time in the future; null ends the snooze.")
