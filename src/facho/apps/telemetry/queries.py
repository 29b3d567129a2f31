"""Conditions of ONUs, and their counts by the counters of their ports."""

from collections import Counter
from typing import Any

from django.db.models import Q, Sum

from facho.apps.inventory.scopes import restrict
from facho.apps.telemetry.models import RX_WEAK, Onu, PonPort

IS_MISSING = Q(missing_since__isnull=False)
# The last values of a missing ONU do not count: it is neither online nor dark. So do the counters of ports.
IS_DARK = Q(state__in=Onu.DARK) & ~IS_MISSING
# A dark ONU may still have an old power value. The limit is a whole number, so the rounded power, which has an index,
# is below it for the same ONUs.
IS_WEAK = Q(rx_level__lt=RX_WEAK) & ~Q(state__in=Onu.DARK) & ~IS_MISSING


def summary(user: Any) -> dict[str, Any]:
    """Return the number of ONUs by state that a user sees, in total and per OLT, with one query."""
    columns = ("total", "missing", *Onu.State.values)
    ports = restrict(PonPort.objects.filter(total__gt=0), user).order_by("olt__name").values_list("olt_id", "olt__name")
    overall: Counter[str] = Counter()
    each = []
    for olt_id, olt_name, *numbers in ports.annotate(**{f"sum_of_{name}": Sum(name) for name in columns}):
        counts = Counter(dict(zip(columns, numbers, strict=True)))
        overall += counts
        each.append({"olt": olt_id, "olt_name": olt_name, **_counts(counts)})
    return {**_counts(overall), "olts": each}


def _counts(counts: Counter[str]) -> dict[str, Any]:
    by_state = {state: counts[state] for state in Onu.State.values if counts[state]}
    return {"total": counts["total"], "missing": counts["missing"], "by_state": by_state}
