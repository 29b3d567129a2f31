"""Which ONUs have light, and so are asked for what an OLT reads from them one by one."""

from collections.abc import Sequence
from typing import Any

from facho.engine.batch import UNREAD, BatchLayout
from facho.engine.collect.plan import Plan
from facho.engine.model import JobKind, KnownOnu

# States in which an ONU has no light to measure: an OLT would wait for each of them without success.
DARK = frozenset({"offline", "los", "dying_gasp", "disabled"})


def lit_rows(
    plan: Plan, kind: JobKind, layout: BatchLayout, read: Sequence[Sequence[Any]], known: Sequence[KnownOnu]
) -> tuple[bool, ...]:
    """Return which ONUs are asked for expensive columns, as `Run` does; nothing where their state does not matter."""
    if kind is JobKind.WALK or not any(column.optical for column in plan.columns):
        return ()
    place = next((place for place, column in enumerate(plan.columns) if column.field == "state"), None)
    if place is not None and kind is JobKind.GET and not plan.columns[place].space.by_index:
        # A GET walks such a table last: until then only the state from earlier is known.
        place = None
    known_states = {onu.index: onu.state for onu in known}
    states = [None] * len(layout) if place is None else read[place]
    return tuple(
        [
            (known_states.get(index) if state is None or state is UNREAD else state) not in DARK
            for index, state in zip(layout.indexes, states, strict=True)
        ]
    )
