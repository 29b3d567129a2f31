"""ONUs to read optical columns from, and columns that had values."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from facho.engine.batch import UNREAD, Batch, BatchLayout
from facho.engine.collect.plan import Plan
from facho.engine.model import JobKind, KnownOnu

# States without light to measure: the OLT would wait for each of these ONUs without success.
DARK = frozenset({"offline", "los", "dying_gasp", "disabled"})


def lit_rows(
    plan: Plan, kind: JobKind, layout: BatchLayout, read: Sequence[Sequence[Any]], known: Sequence[KnownOnu]
) -> tuple[bool, ...]:
    """Return the ONUs to read expensive columns from, as `Run` does; empty if their state does not matter."""
    if kind is JobKind.WALK or not any(column.optical for column in plan.columns):
        return ()
    place = next((place for place, column in enumerate(plan.columns) if column.field == "state"), None)
    if place is not None and kind is JobKind.GET and not plan.columns[place].space.by_index:
        # A GET walks such a table last, so only the earlier state is known.
        place = None
    states = [None] * len(layout) if place is None else read[place]
    if None not in states and UNREAD not in states:
        return tuple([state not in DARK for state in states])
    known_states = {onu.index: onu.state for onu in known}
    return tuple(
        [
            (known_states.get(index) if state is None or state is UNREAD else state) not in DARK
            for index, state in zip(layout.indexes, states, strict=True)
        ]
    )


def had_values(
    plan: Plan,
    kind: JobKind,
    batch: Batch,
    known: Sequence[KnownOnu],
    *,
    answered: Collection[str],
    scalars: Mapping[str, bool | None],
    is_cut: bool = False,
) -> dict[str, bool | None]:
    """Return for each column and OID of the job whether it had a value; None if the run cannot tell.

    Absence counts only in a complete run with an ONU that has light.
    """
    may_judge = not is_cut and _has_light(kind, batch, known)
    found: dict[str, bool | None] = {}
    for column in plan.columns:
        had: bool | None = column.field in answered
        if had and column.optical:
            # An agent without optics returns a placeholder for each ONU.
            had = batch.has_value(column.field)
        found[column.field] = had or (False if may_judge else None)
    return {name: had for name, had in {**found, **scalars}.items() if name in plan.named}


def _has_light(kind: JobKind, batch: Batch, known: Sequence[KnownOnu]) -> bool:
    """Return whether the run covered an ONU that is not dark."""
    if not batch:
        # An OLT without a row of any known ONU has lost them; that proves nothing about the columns.
        return kind is not JobKind.GET and any(not onu.is_missing and onu.state not in DARK for onu in known)
    states = batch.columns.get("state", ())
    if any(state and state is not UNREAD and state not in DARK for state in states):
        return True
    known_states = {onu.index: onu.state for onu in known}
    return any(
        (known_states.get(index) if not state or state is UNREAD else state) not in DARK
        for index, state in zip(batch.layout.indexes, states or [None] * len(batch), strict=True)
    )
