"""Plan of one node on one OLT: columns, their groups, and scalars. Names and OIDs only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from facho.engine.brand import Brand, Column, Decoder, IndexSpace
from facho.engine.model import JobKind, Node
from facho.engine.oid import Oid


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of the OLT itself."""

    name: str
    oid: Oid
    decode: Decoder


@dataclass(frozen=True, slots=True)
class Plan:
    """Columns and scalars to read. `problems` are messages about unknown names."""

    columns: tuple[Column, ...]
    scalars: tuple[Scalar, ...]
    problems: tuple[str, ...]
    # Column that decides which ONUs exist; None if the run does not decide that.
    anchor: Column | None = None
    # Columns and OIDs named by the job. The others are read because these need them.
    named: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not (self.columns or self.scalars)


def make_plan(node: Node, brand: Brand, raw_decoders: Mapping[str, Decoder]) -> Plan:
    """Return the plan of a node on a device of this brand."""
    problems: list[str] = []
    columns = _brand_columns(node, brand, problems)
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
    return Plan(tuple(columns), tuple(scalars), tuple(problems), anchor, frozenset(named))


def _brand_columns(node: Node, brand: Brand, problems: list[str]) -> list[Column]:
    names = node.columns
    if node.kind is JobKind.DISCOVERY:
        # The absence of an ONU counts only in the column that lists all of them.
        names = (*brand.discovery[:1], *(node.columns or brand.discovery))
    columns = []
    for name in brand.with_needed(names):
        column = brand.columns.get(name)
        if column is None:
            problems.append(f"{name}: {brand.label} has no column of that name")
        else:
            columns.append(column)
    return columns


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
