"""Queries over many ONUs."""

from collections import Counter
from typing import Any

from django.db.models import Case, Count, F, Q, Value, When

from facho.apps.inventory.scopes import restrict
from facho.apps.telemetry.models import RX_WEAK, Onu

IS_MISSING = Q(missing_since__isnull=False)
# The last values of a missing ONU do not count: it is neither online nor dark.
IS_ONLINE = Q(state=Onu.State.ONLINE) & ~IS_MISSING
IS_DARK = Q(state__in=Onu.DARK) & ~IS_MISSING
# Not found on its port, and not yet marked as missing.
IS_HELD = Q(misses__gt=0) & ~IS_MISSING
# A dark ONU may still have an old power value.
IS_WEAK = Q(rx_dbm__lt=RX_WEAK) & ~Q(state__in=Onu.DARK) & ~IS_MISSING

# Not a state of an ONU.
MISSING = "missing"


def summary(user: Any) -> dict[str, Any]:
    """Return the number of ONUs by state that a user sees, in total and per OLT, with one query."""
    rows = (
        restrict(Onu.objects.order_by("olt__name"), user)
        .annotate(counts_as=Case(When(missing_since__isnull=False, then=Value(MISSING)), default=F("state")))
        .values_list("olt_id", "olt__name", "counts_as")
        .annotate(Count("id"))
    )
    overall: Counter[str] = Counter()
    olts: dict[int, tuple[str, Counter[str]]] = {}
    for olt_id, olt_name, state, count in rows:
        overall[state] += count
        olts.setdefault(olt_id, (olt_name, Counter()))[1][state] += count
    each = [{"olt": olt_id, "olt_name": olt_name, **_counts(counts)} for olt_id, (olt_name, counts) in olts.items()]
    return {**_counts(overall), "olts": each}


def _counts(counts: Counter[str]) -> dict[str, Any]:
    by_state = {state: count for state, count in counts.items() if state != MISSING}
    return {"total": counts.total(), "missing": counts[MISSING], "by_state": by_state}
