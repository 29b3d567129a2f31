"""ONUs and their history on the wire. A value that the device does not have is null."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from facho.apps.telemetry.models import Onu, OnuHistory
from facho.engine.brand import ONU_FIELDS

# History is asked for by the day, or by the year at most.
LONGEST_HISTORY = 366 * 24


class OnuSerializer(serializers.ModelSerializer[Onu]):
    """The latest known state of one ONU. Of one that is missing it is what was read before it went."""

    olt_name = serializers.CharField(read_only=True)
    state = serializers.ChoiceField(choices=Onu.State.choices, read_only=True)
    is_missing = serializers.BooleanField(read_only=True)

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
            "extra",
            "misses",
            "is_missing",
            "missing_since",
            "moved_at",
            "moved_from",
            "first_seen_at",
            "read_at",
            "state_at",
            "power_at",
        ]
        extra_kwargs = {
            "misses": {"help_text": "Discoveries in a row that did not find it though they read its port to the end."},
            "moved_from": {"help_text": "The place that it had before; empty if it never moved."},
        }


class HistorySerializer(serializers.ModelSerializer[OnuHistory]):
    """What one run read of one ONU."""

    class Meta:
        model = OnuHistory
        fields = ["at", "state", "rx_dbm", "tx_dbm", "olt_rx_dbm", "temperature_c", "in_octets", "out_octets"]


class HistoryWish(serializers.Serializer[Any]):
    """How far back."""

    hours = serializers.FloatField(
        default=24,
        min_value=0,
        max_value=LONGEST_HISTORY,
        error_messages={"invalid": _("Write a number of hours, such as 24.")},
    )


class StateCountsSerializer(serializers.Serializer[Any]):
    """How many ONUs there are, in all, missing, and by state. A state that no ONU has is left out.

    One that is missing counts for no state: nobody knows it.
    """

    total = serializers.IntegerField()
    missing = serializers.IntegerField()
    by_state: serializers.DictField = serializers.DictField(child=serializers.IntegerField())


class OltCountsSerializer(StateCountsSerializer):
    """The same for one OLT."""

    olt = serializers.IntegerField()
    olt_name = serializers.CharField()


class SummarySerializer(StateCountsSerializer):
    """All ONUs by state, then each OLT's."""

    olts = OltCountsSerializer(many=True)
