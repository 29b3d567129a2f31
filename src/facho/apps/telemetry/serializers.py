"""ONUs and their history in the API. A value that the device does not have is null."""

import re
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.apps.inventory.models import Olt
from facho.apps.rest.filters import MOST_SEARCH_CHARACTERS, search_problem
from facho.apps.rest.spreadsheets import MOST_ROWS
from facho.apps.rest.strict import StrictSerializer, WholeNumber
from facho.apps.telemetry.models import Onu, OnuEvent, OnuNote, PonPort
from facho.apps.telemetry.search import MOST_FOUND
from facho.engine.brand import ONU_FIELDS
from facho.engine.chunks import FIELDS, RAW_OID

# Maximum time span in hours.
LONGEST_HISTORY = 366 * 24

# Bounds that make a number 64-bit in the schema.
INT64: dict[str, Any] = {"min_value": -(2**63), "max_value": 2**63 - 1}

STEP = re.compile(r"([0-9]{1,9})(s|m|h|d|)")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class OtherOnuSerializer(serializers.ModelSerializer[Onu]):
    """The previous or the next ONU at the same place."""

    class Meta:
        model = Onu
        fields = ["id", "serial", "mac", "name"]


class OnuSerializer(serializers.ModelSerializer[Onu]):
    """The latest values of an ONU. Values of a missing ONU are from before it disappeared."""

    olt_name = serializers.CharField(read_only=True)
    state = serializers.ChoiceField(choices=Onu.State.choices, read_only=True)
    is_missing = serializers.BooleanField(read_only=True)
    missing_cause = serializers.CharField(
        read_only=True,
        help_text="Reason why it is missing, such as `replaced by HWTC12345678`. Empty if it is not missing.",
    )
    replaced_by = OtherOnuSerializer(
        read_only=True, allow_null=True, help_text="The ONU that was found at its place. Null again when it is found."
    )
    replaces = OtherOnuSerializer(
        read_only=True, many=True, help_text="The missing ONUs at whose places this one was found."
    )

    read_at = serializers.DateTimeField(read_only=True)
    state_at = serializers.DateTimeField(read_only=True, allow_null=True)
    power_at = serializers.DateTimeField(read_only=True, allow_null=True)
    latitude = serializers.FloatField(read_only=True, allow_null=True, help_text="Of its position on the map.")
    longitude = serializers.FloatField(read_only=True, allow_null=True)

    class Meta:
        model = Onu
        fields = [
            "id",
            "olt",
            "olt_name",
            "index",
            "slot",
            "port",
            "onu",
            *ONU_FIELDS,
            "state_since",
            "extra",
            "misses",
            "is_missing",
            "missing_since",
            "missing_cause",
            "replaced_by",
            "replaces",
            "last_rx_dbm",
            "last_rx_at",
            "last_distance_m",
            "last_distance_at",
            "moved_at",
            "moved_from",
            "first_seen_at",
            "read_at",
            "state_at",
            "power_at",
            "latitude",
            "longitude",
        ]
        extra_kwargs = {
            "misses": {"help_text": "Discoveries in a row that read its port completely and did not find it."},
            "moved_from": {"help_text": "Its previous place; empty if it never moved."},
        }


class PositionSerializer(StrictSerializer):
    """The position of an ONU, which is named by id, by serial, or by OLT and place."""

    onu = serializers.IntegerField(required=False, min_value=0, max_value=2**63 - 1, help_text="Its id.")
    serial = serializers.CharField(required=False, max_length=64)
    olt = serializers.CharField(required=False, max_length=100, help_text="Name of its OLT.")
    place = serializers.CharField(required=False, max_length=40, help_text="slot/port/ONU, such as `1/9/23`.")
    latitude = serializers.FloatField(
        min_value=-90, max_value=90, allow_null=True, help_text="Degrees. Both null: the position is removed."
    )
    longitude = serializers.FloatField(min_value=-180, max_value=180, allow_null=True)


class PositionsSerializer(StrictSerializer):
    """Positions of ONUs."""

    positions: serializers.ListSerializer[Any] = serializers.ListSerializer(
        child=PositionSerializer(), min_length=1, max_length=MOST_ROWS
    )


class PositionsResultSerializer(serializers.Serializer[Any]):
    """Numbers of ONUs."""

    added = serializers.IntegerField(help_text="ONUs that had no position.")
    moved = serializers.IntegerField(help_text="ONUs that had another position.")
    removed = serializers.IntegerField()
    unchanged = serializers.IntegerField()


class EventSerializer(serializers.ModelSerializer[OnuEvent]):
    """One change of an ONU. An empty text stands for no value."""

    olt_name = serializers.CharField(source="olt.name", read_only=True)
    onu_name = serializers.CharField(source="onu.name", read_only=True, allow_null=True)
    onu_serial = serializers.CharField(source="onu.serial", read_only=True, allow_null=True)
    field = serializers.ChoiceField(choices=OnuEvent.Field.choices, read_only=True)

    class Meta:
        model = OnuEvent
        fields = ["id", "at", "olt", "olt_name", "onu", "onu_name", "onu_serial", "field", "old", "new", "cause"]
        extra_kwargs = {
            "old": {"help_text": "The previous value. For `presence`: `present`, `missing` or `replaced`."},
            "cause": {
                "help_text": "For a state: the down cause read with it. For other fields: `found`, `moved`, "
                "`replaced by HWTC12345678`, or `replaces HWTC87654321` for the other ONU."
            },
        }


class NoteSerializer(StrictSerializer, serializers.ModelSerializer[OnuNote]):
    """A note of a user about an ONU."""

    author = serializers.CharField(source="author_name", read_only=True)
    text = serializers.CharField(max_length=OnuNote.LONGEST)

    class Meta:
        model = OnuNote
        fields = ["id", "text", "author", "created_at", "edited_at"]
        read_only_fields = ["created_at", "edited_at"]


class ReadWish(serializers.Serializer[Any]):
    """How long a request waits for an answer."""

    wait = serializers.IntegerField(
        default=20, min_value=0, max_value=20, help_text="Seconds to wait for the answer before responding with 202."
    )


class HistorySerializer(serializers.Serializer[Any]):
    """Values of one ONU from one run. A requested field that the run did not read is null."""

    at = serializers.DateTimeField()
    state = serializers.CharField(allow_null=True, required=False)
    rx_dbm = serializers.FloatField(allow_null=True, required=False)
    tx_dbm = serializers.FloatField(allow_null=True, required=False)
    olt_rx_dbm = serializers.FloatField(allow_null=True, required=False)
    temperature_c = serializers.FloatField(allow_null=True, required=False)
    in_octets = serializers.IntegerField(allow_null=True, required=False, **INT64)
    out_octets = serializers.IntegerField(allow_null=True, required=False, **INT64)

    def to_representation(self, row: Any) -> dict[str, Any]:
        """Omit the fields that were not requested."""
        known = {
            name: None if row[name] is None else field.to_representation(row[name])
            for name, field in self.fields.items()
            if name in row
        }
        return known | {name: value for name, value in row.items() if name.startswith(RAW_OID)}


class GaugeBucketSerializer(serializers.Serializer[Any]):
    """Values of a field in one bucket."""

    min = serializers.FloatField()
    mean = serializers.FloatField()
    max = serializers.FloatField()


class CounterBucketSerializer(serializers.Serializer[Any]):
    """Growth of a counter in one bucket. A counter that is lower than before was reset to 0."""

    sum = serializers.IntegerField(**INT64)


class HistoryBucketSerializer(HistorySerializer):
    """Readings of one ONU from `at`, for one `step`. The state is the last one."""

    rx_dbm = GaugeBucketSerializer(allow_null=True, required=False)  # type: ignore[assignment]
    tx_dbm = GaugeBucketSerializer(allow_null=True, required=False)  # type: ignore[assignment]
    olt_rx_dbm = GaugeBucketSerializer(allow_null=True, required=False)  # type: ignore[assignment]
    temperature_c = GaugeBucketSerializer(allow_null=True, required=False)  # type: ignore[assignment]
    in_octets = CounterBucketSerializer(allow_null=True, required=False)  # type: ignore[assignment]
    out_octets = CounterBucketSerializer(allow_null=True, required=False)  # type: ignore[assignment]


# The name of a raw OID in the history.
RAW_NAME = re.compile(rf"{re.escape(RAW_OID)}[a-z][a-z0-9_]{{0,59}}")


class FieldNames(serializers.ListField):
    """Fields with a history: the parameter repeated, or names with commas between them."""

    child = serializers.ChoiceField(choices=list(FIELDS))

    def to_internal_value(self, data: Any) -> list[str]:
        names = [name.strip() for text in data for name in str(text).split(",")]
        raw = [name for name in dict.fromkeys(names) if RAW_NAME.fullmatch(name)]
        if unknown := [name for name in names if name not in FIELDS and name not in raw]:
            said = _("The field %(name)s has no history. Valid fields: %(fields)s.")
            known = ", ".join([*FIELDS, f"{RAW_OID}name"])
            raise serializers.ValidationError(said % {"name": unknown[0], "fields": known})
        return [*(name for name in FIELDS if name in names), *raw]


@extend_schema_field(OpenApiTypes.STR)
class HistoryStepField(serializers.Field[Any, Any, Any, Any]):
    """A span of time: seconds, or a number and s, m, h or d."""

    default_error_messages = {"invalid": _("Write seconds, or a number and s, m, h or d, such as 5m, 1h or 1d.")}

    def to_internal_value(self, data: Any) -> timedelta:
        match = STEP.fullmatch(str(data))
        seconds = int(match[1]) * UNITS[match[2]] if match else 0
        if not 1 <= seconds <= LONGEST_HISTORY * 3600:
            self.fail("invalid")
        return timedelta(seconds=seconds)


class HistoryWish(serializers.Serializer[Any]):
    """Fields, period and step of a history."""

    hours = serializers.FloatField(
        default=24,
        min_value=0,
        max_value=LONGEST_HISTORY,
        error_messages={"invalid": _("Write a number of hours, such as 24.")},
        help_text="Number of hours before `to`. Cannot be combined with `from`.",
    )
    field = FieldNames(
        required=False,
        help_text="Fields to return: repeat the parameter, or separate them by commas. All if omitted. A raw OID is "
        "`oid.` and its name.",
    )
    to = serializers.DateTimeField(required=False, help_text="End of the period. Now if omitted.")
    step = HistoryStepField(
        required=False,
        help_text="Length of a bucket: seconds, or a form like `5m`, `1h`, `1d`. Each result is then a bucket that "
        "starts at `at`, with the minimum, mean and maximum of a field, the growth of a counter, or the "
        "last state. Buckets are counted from 1970-01-01T00:00:00Z. Steps of whole days use daily values, "
        "which are kept longer than readings.",
    )

    def get_fields(self) -> dict[str, Any]:
        # `from` is a keyword.
        since = serializers.DateTimeField(required=False, help_text="Start of the period.")
        return {**super().get_fields(), "from": since}

    def validate(self, wish: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters as `since`, `until`, `fields` and `step`."""
        if "from" in wish and "hours" in self.initial_data:
            raise serializers.ValidationError({"hours": [_("Use hours or from, not both.")]})
        until = wish.get("to") or timezone.now()
        try:
            since = wish.get("from") or until - timedelta(hours=wish["hours"])
        except OverflowError:
            raise serializers.ValidationError({"to": [_("This date is too far in the past.")]}) from None
        if since > until:
            raise serializers.ValidationError({"from": [_("This must be before the end.")]})
        return {"since": since, "until": until, "fields": wish.get("field") or list(FIELDS), "step": wish.get("step")}


class StateCountsSerializer(serializers.Serializer[Any]):
    """Number of ONUs: total, missing, and by state. States without ONUs are omitted.

    The state of a missing ONU is unknown, so it is not counted in any state.
    """

    total = serializers.IntegerField()
    missing = serializers.IntegerField()
    by_state: serializers.DictField = serializers.DictField(child=serializers.IntegerField())


class OltCountsSerializer(StateCountsSerializer):
    """The same for one OLT."""

    olt = serializers.IntegerField()
    olt_name = serializers.CharField()


class SummarySerializer(StateCountsSerializer):
    """Number of ONUs by state: in total, and for each OLT."""

    olts = OltCountsSerializer(many=True)


class SearchWish(serializers.Serializer[Any]):
    """What to search for."""

    q = serializers.CharField(
        max_length=MOST_SEARCH_CHARACTERS,
        help_text="Words in any order: name, description, serial, MAC or place of an ONU, name or address of an OLT.",
    )
    limit = WholeNumber(default=10, min_value=1, max_value=100, help_text="Maximum number of results of each kind.")

    def validate_q(self, text: str) -> str:
        if problem := search_problem(text):
            raise serializers.ValidationError(problem)
        return text


class FoundOnuSerializer(serializers.ModelSerializer[Onu]):
    """An ONU that a search found."""

    olt_name = serializers.CharField(source="olt.name", read_only=True)
    state = serializers.ChoiceField(choices=Onu.State.choices, read_only=True)
    is_missing = serializers.BooleanField(read_only=True)

    class Meta:
        model = Onu
        fields = ["id", "olt", "olt_name", "slot", "port", "onu", "serial", "mac", "name", "description", "state"]
        fields += ["is_missing"]


class FoundPortSerializer(serializers.ModelSerializer[PonPort]):
    """A PON port that a search found."""

    olt_name = serializers.CharField(source="olt.name", read_only=True)

    class Meta:
        model = PonPort
        fields = ["id", "olt", "olt_name", "slot", "port"]


class FoundOltSerializer(serializers.ModelSerializer[Olt]):
    """An OLT that a search found. Its state is `disabled`, or else its reachability."""

    state = serializers.CharField(read_only=True)

    class Meta:
        model = Olt
        fields = ["id", "name", "host", "location", "state"]


class FoundSerializer(serializers.Serializer[Any]):
    """What a search found of one kind."""

    count = serializers.IntegerField()
    is_counted = serializers.BooleanField(
        help_text=f"false: there are more than `count`, which stops at {MOST_FOUND:,} for ONUs."
    )


class FoundOnusSerializer(FoundSerializer):
    """ONUs that a search found, those with whole words first."""

    results = FoundOnuSerializer(source="rows", many=True)


class FoundPortsSerializer(FoundSerializer):
    """PON ports that a search found, by OLT."""

    results = FoundPortSerializer(source="rows", many=True)


class FoundOltsSerializer(FoundSerializer):
    """OLTs that a search found, by name."""

    results = FoundOltSerializer(source="rows", many=True)


class SearchSerializer(serializers.Serializer[Any]):
    """What a search found."""

    onus = FoundOnusSerializer()
    ports = FoundPortsSerializer()
    olts = FoundOltsSerializer()
