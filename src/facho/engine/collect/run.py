"""One node on one OLT, from plan to harvest."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from facho.engine.brand import Brand, Decoder
from facho.engine.collect.batches import BatchReader
from facho.engine.collect.harvest import Harvest, decode_value
from facho.engine.collect.plan import Plan, make_plan
from facho.engine.collect.requester import Requester, RunOver
from facho.engine.collect.rows import KnownRows
from facho.engine.collect.sentences import limited
from facho.engine.collect.tables import Tables
from facho.engine.errors import FachoError, OltUnreachable, Refused
from facho.engine.model import Collected, Completeness, JobKind, KnownOnu, Node, Olt
from facho.engine.ports import Clock, Snmp

logger = logging.getLogger(__name__)

NOBODY_KNOWN = "no ONU of this OLT is known yet: a discovery has to find them first"


async def collect(
    node: Node,
    olt: Olt,
    brand: Brand,
    *,
    snmp: Snmp,
    clock: Clock,
    deadline: datetime,
    known: Sequence[KnownOnu],
    raw_decoders: Mapping[str, Decoder],
) -> Collected:
    """Read what the node asks for, and return what there is of it by the deadline.

    `OltUnreachable` if the OLT answered nothing at all, `Refused` if it does
    not accept us. Anything less leaves a harvest that says what is missing.
    """
    plan = make_plan(node, brand, raw_decoders)
    if plan.is_empty:
        return Collected(Completeness.PARTIAL, errors=tuple(limited(plan.problems)))
    requester = Requester(snmp, olt, brand.manners, clock=clock, deadline=deadline)
    run = Run(plan, node.kind, brand, known, requester)
    try:
        await run.read()
        if requester.pdus and not requester.answers:
            raise _unreachable(olt, requester)
    except FachoError as error:
        error.traffic = requester.traffic()
        raise
    return run.collected()


def _unreachable(olt: Olt, requester: Requester) -> OltUnreachable:
    requests = "1 request" if requester.pdus == 1 else f"{requester.pdus} requests"
    return OltUnreachable(
        f"{olt.name} gave no answer to {requests} in {requester.seconds:.1f} s. "
        "Check its address and its community, and that it lets this machine ask."
    )


class Run:
    """A plan being carried out. However it ends, `collected` has every row that was read."""

    def __init__(
        self, plan: Plan, kind: JobKind, brand: Brand, known: Sequence[KnownOnu], requester: Requester
    ) -> None:
        self._plan = plan
        self._requester = requester
        self._harvest = Harvest(brand)
        self._scalars = BatchReader(requester)
        self._rows_per_get = brand.manners.rows_per_get
        by_index = [column for column in plan.columns if kind is JobKind.GET and column.space.by_index]
        walked = [column for column in plan.columns if column not in by_index]
        self._known: KnownRows | None = None
        if kind is JobKind.GET:
            self._known = KnownRows(by_index, known, brand, harvest=self._harvest, requester=requester)
        self._tables = Tables(walked, kind, brand.manners, harvest=self._harvest, requester=requester)
        self._cut = ""

    async def read(self) -> None:
        """Ask until everything is read or the run is over."""
        try:
            await self._scalars.read([(scalar.oid,) for scalar in self._plan.scalars], self._rows_per_get)
            if self._known is not None:
                await self._known.read()
            await self._tables.read()
        except RunOver as over:
            self._cut = str(over)
        except Refused:
            if not self._requester.answers:
                raise
            self._cut = "the OLT no longer accepts us"

    def collected(self) -> Collected:
        """Return the harvest."""
        cuts = list(self._plan.problems)
        remarks: list[str] = []
        scalars = self._decode_scalars(cuts, remarks)
        if self._known is not None:
            cuts += self._known.store(self._cut)
            if not self._known.onus:
                remarks.append(NOBODY_KNOWN)
        cuts += self._tables.store(self._cut)
        # A GET is about known ONUs, even where a column of it had to be walked.
        only = self._known.onus if self._known is not None else self._tables.rows_of(self._plan.anchor)
        readings = self._harvest.readings(only)
        return Collected(
            completeness=self._completeness(is_cut=bool(cuts), has_rows=bool(readings)),
            readings=readings,
            scalars=scalars,
            traffic=self._requester.traffic(),
            errors=(*limited(cuts), *remarks, *self._harvest.remarks()),
        )

    def _completeness(self, *, is_cut: bool, has_rows: bool) -> Completeness:
        if is_cut:
            return Completeness.PARTIAL
        return Completeness.COMPLETE if has_rows or not self._plan.columns else Completeness.EMPTY

    def _decode_scalars(self, cuts: list[str], remarks: list[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for scalar in self._plan.scalars:
            if scalar.oid not in self._scalars.values:
                cuts.append(f"{scalar.name}: {self._scalars.failed.get(scalar.oid, self._cut)}")
                continue
            try:
                values[scalar.name] = decode_value(scalar.decode, self._scalars.values[scalar.oid])
            # An admin's OID may have a type that its decoder does not expect; that costs this value, not the run.
            except Exception as error:
                logger.warning("%s could not be decoded", scalar.name, exc_info=error)
                remarks.append(f"{scalar.name}: could not be decoded")
        return values
