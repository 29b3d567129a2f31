"""Plan of one node on one OLT: columns and scalars to read, and the ONUs to read expensive columns from."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from facho.engine.batch import UNREAD, Batch, BatchLayout
from facho.engine.brand import Brand, Column, Decoder, IndexSpace
from facho.engine.model import JobKind, KnownOnu, Node
from facho.engine.oid import Oid
from facho.engine.snmp import Missing, Value


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of the OLT itself."""

    name: str
    oid: Oid
    decode: Decoder


@dataclass(frozen=True, slots=True)
class Plan:
    """Columns and scalars to read. `problems` are messages about unknown names."""

    kind: JobKind
    columns: tuple[Column, ...]
    scalars: tuple[Scalar, ...]
    problems: tuple[str, ...]
    # Column that decides which ONUs exist; None if the run does not decide that.
    anchor: Column | None = None
    # Columns and OIDs named by the job. The others are read because these need them.
    named: frozenset[str] = frozenset()


def make_plan(node: Node, brand: Brand, raw_decoders: Mapping[str, Decoder]) -> Plan:
    """Return the plan of a node on a device of this brand."""
    names = node.columns
    if node.kind is JobKind.DISCOVERY:
        # The absence of an ONU counts only in the column that lists all of them.
        names = (*brand.discovery[:1], *(node.columns or brand.discovery))
    problems: list[str] = []
    columns = []
    for name in brand.with_needed(names):
        column = brand.columns.get(name)
        if column is None:
            problems.append(f"{name}: {brand.label} has no column of that name")
        else:
            columns.append(column)
    scalars = []
    for raw in node.oids:
        decode = raw_decoders.get(raw.decode)
        if decode is None:
            problems.append(f"{raw.name}: unknown decoder {raw.decode!r}")
        elif raw.scalar:
            scalars.append(Scalar(raw.name, raw.oid, decode))
        else:
            columns.append(Column(raw.name, raw.oid, decode, brand.space))
    if not (columns or scalars or problems):
        problems.append(f"{node.name}: the job has no columns and no OIDs, so there is nothing to read")
    anchor = columns[0] if node.kind is JobKind.DISCOVERY and columns else None
    named = {*(node.columns or brand.discovery), *(raw.name for raw in node.oids)}
    return Plan(node.kind, tuple(columns), tuple(scalars), tuple(problems), anchor, frozenset(named))


def groups(columns: Sequence[Column], kind: JobKind) -> list[tuple[Column, ...]]:
    """Return the columns that are walked side by side, in order.

    Columns of one space have the same rows, so one GETBULK can carry all of them. Expensive columns come last: the
    cheap ones need not wait for an OLT that queries each ONU, and are complete if time runs out.
    """
    if kind is JobKind.WALK:
        return [(column,) for column in columns]
    together: dict[tuple[bool, IndexSpace], list[Column]] = {}
    for column in columns:
        together.setdefault((column.optical, column.space), []).append(column)
    ordered = sorted(together.items(), key=lambda item: item[0][0])
    return [tuple(group) for _, group in ordered]


# States without light to measure: the OLT would wait for each of these ONUs without success.
DARK = frozenset({"offline", "los", "dying_gasp", "disabled"})


def lit_rows(
    plan: Plan, layout: BatchLayout, read: Sequence[Sequence[Any]], known: Sequence[KnownOnu]
) -> tuple[bool, ...]:
    """Return the ONUs to read expensive columns from, as `Run` does; empty if their state does not matter."""
    if plan.kind is JobKind.WALK or not any(column.optical for column in plan.columns):
        return ()
    place = next((place for place, column in enumerate(plan.columns) if column.field == "state"), None)
    if place is not None and plan.kind is JobKind.GET and not plan.columns[place].space.by_index:
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
    may_judge = not is_cut and _has_light(plan.kind, batch, known)
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


def decode_value(decode: Decoder, value: Value) -> Any:
    """Return the decoded value; None if the device has no value."""
    if value is None or value.__class__ is Missing:
        return None
    return decode(value)
