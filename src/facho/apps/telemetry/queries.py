"""Questions about many ONUs at once."""

from collections import Counter
from typing import Any

from django.db.models import Count

from facho.apps.telemetry.models import Onu


def summary() -> dict[str, Any]:
    """Return how many ONUs there are by state, in all and for each OLT that has any, by one query."""
    rows = Onu.objects.order_by("olt__name").values_list("olt_id", "olt__name", "state").annotate(Count("id"))
    overall: Counter[str] = Counter()
    olts: dict[int, dict[str, Any]] = {}
    for olt_id, olt_name, state, count in rows:
        overall[state] += count
        olt = olts.setdefault(olt_id, {"olt": olt_id, "olt_name": olt_name, "by_state": Counter()})
        olt["by_state"][state] += count
    return {
        "total": overall.total(),
        "by_state": overall,
        "olts": [{**olt, "total": olt["by_state"].total()} for olt in olts.values()],
    }
