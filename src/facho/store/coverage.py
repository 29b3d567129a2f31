"""What a run covered, small enough to be kept with every execution; its shape stands in `apps/polling/coverage.py`."""

from collections.abc import Iterable, Sequence
from typing import Any

from facho.engine.model import Completeness, Coverage

# A run in which everything failed has thousands of these; a person reads the first ones.
MOST_FAILED = 100
LONGEST_REASON = 300


def summary(coverage: Sequence[Coverage]) -> dict[str, Any]:
    """Return the coverage of a run as `Execution.coverage` keeps it; nothing for a run that covers nothing."""
    if not coverage:
        return {}
    columns: dict[str, dict[str, int]] = {}
    for each in coverage:
        counts = columns.setdefault(each.field, {"complete": 0, "partial": 0, "empty": 0, "rows": 0})
        counts[each.completeness.value.lower()] += 1
        counts["rows"] += each.rows
    failed = [each for each in coverage if each.completeness is Completeness.PARTIAL]
    return {
        "columns": columns,
        "failed": [_failed(each) for each in failed[:MOST_FAILED]],
        "more": max(len(failed) - MOST_FAILED, 0),
    }


def _failed(each: Coverage) -> dict[str, Any]:
    reason = each.reason.replace("\0", "")[:LONGEST_REASON]
    return {"field": each.field, "slot": each.slot, "port": each.port, "reason": reason}


def first(names: Iterable[str]) -> list[str]:
    """Return the first names of what may be thousands, as the database can hold them."""
    return [name.replace("\0", "")[:LONGEST_REASON] for name in list(names)[:MOST_FAILED]]
