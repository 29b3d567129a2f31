"""Sample of a job: the first rows of each column and OID, raw and decoded. Nothing is stored."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from facho.engine import oid as oids
from facho.engine.brand import Brand, Column, Decoder
from facho.engine.collect.get import oids_of
from facho.engine.collect.join import Harvest
from facho.engine.collect.learned import Learned
from facho.engine.collect.messages import describe_failure, describe_status
from facho.engine.collect.plan import DARK, Scalar, decode_value, make_plan
from facho.engine.collect.requester import Requester, RunOver
from facho.engine.errors import BadAnswer, NoAnswer, OltUnreachable, Refused
from facho.engine.events import gettext_noop
from facho.engine.model import JobKind, KnownOnu, Node, Olt
from facho.engine.oid import Oid, unpack
from facho.engine.ports import Clock, Snmp
from facho.engine.snmp import Answer, ErrorStatus, Missing, Tag, Value

# Rows per column: enough to recognize it.
ROWS = 5

# Longer octet strings are cut.
LONGEST_RAW = 200

NO_VALUE = gettext_noop("The OLT has no value for this OID.")
NO_ONU = gettext_noop("The OLT has values for this OID, but none of them belongs to an ONU.")
NOT_DECODED = gettext_noop("The OLT answered, but no answer could be decoded. Check how the value is read.")

# Types as manuals write them.
TYPES: dict[int, str] = {
    Tag.INTEGER: "INTEGER",
    Tag.OCTET_STRING: "OCTET STRING",
    Tag.NULL: "NULL",
    Tag.OBJECT_IDENTIFIER: "OBJECT IDENTIFIER",
    Tag.IP_ADDRESS: "IpAddress",
    Tag.COUNTER32: "Counter32",
    Tag.GAUGE32: "Gauge32",
    Tag.TIME_TICKS: "TimeTicks",
    Tag.OPAQUE: "Opaque",
    Tag.COUNTER64: "Counter64",
    Tag.NO_SUCH_OBJECT: "noSuchObject",
    Tag.NO_SUCH_INSTANCE: "noSuchInstance",
    Tag.END_OF_MIB_VIEW: "endOfMibView",
}


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One value: `onu` is empty for a value of the OLT itself, or of a row that is not an ONU."""

    onu: str
    index: str
    type: str
    raw: str
    value: Any


@dataclass(frozen=True, slots=True)
class SampleColumn:
    """The first rows of a column or OID. `decode` is empty if the brand decides the decoding."""

    name: str
    oid: str
    decode: str
    rows: tuple[SampleRow, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """Sample of a job. `problems` are messages about names that the brand does not know."""

    columns: tuple[SampleColumn, ...]
    problems: tuple[str, ...]
    requests: int
    seconds: float


class _Stopped(Exception):
    """Ends one column; `str()` of it is the remark."""


async def take_sample(
    node: Node,
    olt: Olt,
    brand: Brand,
    *,
    snmp: Snmp,
    clock: Clock,
    deadline: datetime,
    known: Sequence[KnownOnu],
    raw_decoders: Mapping[str, Decoder],
) -> Sample:
    """Read the first rows of each column of a node, within the limits of the OLT.

    Raises `OltUnreachable` without any answer and `Refused` if access is denied.
    """
    plan = make_plan(node, brand, raw_decoders)
    learned = Learned(olt.learned)
    requester = Requester(snmp, olt, brand.manners, learned=learned, clock=clock, deadline=deadline)
    sampler = _Sampler(node.kind, brand, known, requester)
    decoders = {raw.name: raw.decode for raw in node.oids}
    columns: list[SampleColumn] = []
    stopped = ""
    parts: list[Scalar | Column] = [*plan.scalars, *plan.columns]
    for part in parts:
        rows: tuple[SampleRow, ...] = ()
        remark = ""
        if not stopped:
            try:
                rows, remark = await sampler.read(part)
            except RunOver as over:
                stopped = str(over)
            except Refused:
                if not requester.answers:
                    raise
                stopped = "the OLT started to refuse access"
        if stopped:
            remark = f"Not read: {stopped}."
        name = part.name if isinstance(part, Scalar) else part.field
        columns.append(SampleColumn(name, oids.text(part.oid), decoders.get(name, ""), rows, remark))
    if requester.pdus and not requester.answers:
        raise OltUnreachable(
            f"{olt.name} did not answer within {requester.seconds:.0f} s. "
            "Check the address, the community and the OLT's SNMP access list."
        )
    return Sample(tuple(columns), plan.problems, requester.pdus, round(requester.seconds, 3))


class _Sampler:
    """Reads single columns of one job on one OLT."""

    def __init__(self, kind: JobKind, brand: Brand, known: Sequence[KnownOnu], requester: Requester) -> None:
        self._harvest = Harvest(brand, known)
        self._requester = requester
        # A GET job reads known ONUs. If none is known yet, the first rows of the table are used.
        lit = [onu for onu in known if not onu.is_missing and onu.state not in DARK]
        named = (self._harvest.row_named(onu.index) for onu in lit[:ROWS])
        self._onus = [row for row in named if row is not None] if kind is JobKind.GET else []

    async def read(self, part: Scalar | Column) -> tuple[tuple[SampleRow, ...], str]:
        """Return the first rows of a column, or a scalar, and a remark about a problem."""
        try:
            if isinstance(part, Scalar):
                found = await self._get([part.oid])
            elif self._onus and part.space.by_index:
                wanted = [oid for row in oids_of([part], self._onus) for oid in row if oid is not None]
                found = await self._get(wanted, optical=part.optical)
            else:
                found = await self._walk(part)
        except _Stopped as stop:
            return (), str(stop)
        except (NoAnswer, BadAnswer) as error:
            return (), f"The OLT gave {describe_failure(error)} to this OID."
        rows = tuple(self._row(part, *variable) for variable in found)
        if all(value is None or isinstance(value, Missing) for _oid, value, _tag in found):
            return rows, NO_VALUE
        if isinstance(part, Column) and not any(row.onu for row in rows):
            return rows, NO_ONU
        return rows, NOT_DECODED if all(row.value is None for row in rows) else ""

    async def _get(self, wanted: Sequence[Oid], *, optical: bool = False) -> list[tuple[Oid, Value, int]]:
        answer = await self._requester.get(wanted, optical=optical)
        if answer.error_status == ErrorStatus.NO_SUCH_NAME:
            # SNMPv1 reports a missing value this way.
            return []
        return list(_variables(answer))

    async def _walk(self, column: Column) -> list[tuple[Oid, Value, int]]:
        """Return the first rows of a column. SNMPv1 returns one row per request."""
        rows: list[tuple[Oid, Value, int]] = []
        last = column.oid
        while len(rows) < ROWS:
            answer = await self._requester.rows_after([last], ROWS - len(rows), optical=column.optical)
            if answer.error_status == ErrorStatus.NO_SUCH_NAME:
                return rows
            new: list[tuple[Oid, Value, int]] = []
            for variable in _variables(answer):
                is_row = variable[0].startswith(column.oid) and not isinstance(variable[1], Missing)
                if not is_row or unpack(variable[0]) <= unpack(last):
                    return rows + new
                new.append(variable)
                last = variable[0]
            if not new:
                return rows
            rows += new
        return rows

    def _row(self, part: Scalar | Column, oid: Oid, value: Value, tag: int) -> SampleRow:
        onu = index = ""
        if isinstance(part, Column) and oid.startswith(part.oid):
            suffix = oid[len(part.oid) :]
            index = ".".join(map(str, unpack(suffix)))
            row = self._harvest.peek(part.space, suffix)
            onu = "" if row is None else str(row)
        return SampleRow(onu, index, TYPES.get(tag, f"type {tag}"), _raw(value), _decoded(part, value))


def _variables(answer: Answer) -> Iterator[tuple[Oid, Value, int]]:
    if answer.error_status:
        sentence = describe_status(answer.error_status)
        raise _Stopped(f"{sentence[0].upper()}{sentence[1:]}.")
    return zip(answer.oids, answer.values, answer.tags, strict=True)


def _decoded(part: Scalar | Column, value: Value) -> Any:
    try:
        decoded = decode_value(part.decode, value)
    # An unexpected type is shown as no value.
    except Exception:
        return None
    if isinstance(decoded, datetime):
        return decoded.isoformat()
    if isinstance(decoded, float) and not math.isfinite(decoded):
        return None
    return decoded if decoded is None or isinstance(decoded, bool | int | float) else str(decoded)[:LONGEST_RAW]


def _raw(value: Value) -> str:
    """Return a value as the agent sent it: text where it is printable, hexadecimal where it is not."""
    if value is None or isinstance(value, Missing):
        return ""
    if isinstance(value, int):
        return str(value)
    text = value.decode(errors="replace")
    return text[:LONGEST_RAW] if text.isprintable() and "\ufffd" not in text else value[: LONGEST_RAW // 3].hex(" ")
