"""Readings into rows: the latest state of each ONU by upsert, and its history. The only place of bulk writes.

What a run of one OLT brings, a thousand rows at a time, is one transaction of the one who holds the OLT.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from facho.apps.inventory.models import Olt
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.engine.census import USUAL_RULES, Rules
from facho.engine.errors import LeaseLost
from facho.engine.model import Collected, JobKind, KnownOnu, Lease, Node, Reading, Status
from facho.store import bulk, leases, once
from facho.store.census import PARKED, Verdict, apply_census, apply_moves, known_onus, tell_census
from facho.store.identification import put_to_work, tell_identified
from facho.store.rows import FILLED, history_rows, merge_twins, plain, state_rows, tells_history
from facho.store.threads import DbThread


class DbReadingSink:
    """Keeps harvests, one transaction each, and only those of the present holder of the OLT."""

    def __init__(self, reader: DbThread, writer: DbThread, rules: Rules = USUAL_RULES) -> None:
        self._reader = reader
        self._writer = writer
        self._rules = rules

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return await self._reader.run(lambda: _known(olt_id))

    async def write(self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime) -> None:
        await self._write(lambda: _write(node, execution_id, collected, self._rules, lease, now), node)

    async def write_again(
        self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime
    ) -> None:
        """Keep a harvest unless it has been kept before."""
        await self._write(lambda: _write_again(node, execution_id, collected, self._rules, lease, now), node)

    async def _write(self, work: Callable[[], Verdict | None], node: Node) -> None:
        verdict = await self._writer.run(work)
        if verdict is not None:
            tell_census(node, verdict)

    async def identified(
        self, node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], *, lease: Lease
    ) -> None:
        jobs = await self._writer.run(lambda: _identified(node, execution_id, brand, seen, lease))
        if jobs is not None:
            tell_identified(node, brand, jobs)


def _known(olt_id: int) -> list[KnownOnu]:
    # An ONU whose index is another's now cannot be asked for; a discovery that finds it again will say so.
    onus = Onu.objects.filter(olt_id=olt_id).exclude(index__startswith=PARKED)
    return [onu for _, onu, _ in known_onus(onus)]


def _check_fence(execution_id: int, lease: Lease) -> None:
    """Pass only for the present holder. The next one cannot begin before what is written now is there."""
    fence = Execution.objects.filter(pk=execution_id, status=Status.RUNNING, lease_token=lease.token)
    if leases.is_superseded(lease) or not list(fence.select_for_update().values_list("pk")):
        raise LeaseLost(f"execution {execution_id} is no longer ours; its readings were not kept")


@transaction.atomic
def _write(
    node: Node, execution_id: int, collected: Collected, rules: Rules, lease: Lease, now: datetime
) -> Verdict | None:
    _check_fence(execution_id, lease)
    if node.kind is JobKind.DISCOVERY:
        verdict: Verdict | None = apply_census(node, collected, rules, now)
    else:
        verdict = apply_moves(node, collected, now)
    if collected.readings:
        write_readings(node.olt_id, collected.readings, now)
    if collected.scalars:
        _merge_scalars(node.olt_id, collected.scalars)
    if collected.learned:
        Olt.objects.filter(pk=node.olt_id).update(learned=dict(collected.learned))
    return verdict


@transaction.atomic
def _write_again(
    node: Node, execution_id: int, collected: Collected, rules: Rules, lease: Lease, now: datetime
) -> Verdict | None:
    if once.is_kept(execution_id, node.olt_id, collected, now):
        return None
    return _write(node, execution_id, collected, rules, lease, now)


@transaction.atomic
def _identified(node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], lease: Lease) -> list[str] | None:
    _check_fence(execution_id, lease)
    _merge_scalars(node.olt_id, seen)
    return put_to_work(node.olt_id, brand) if brand else None


def _merge_scalars(olt_id: int, scalars: Mapping[str, Any]) -> None:
    olt = Olt.objects.select_for_update().only("extra").get(pk=olt_id)
    Olt.objects.filter(pk=olt_id).update(extra={**olt.extra, **plain(scalars)})


def write_readings(olt_id: int, readings: Sequence[Reading], now: datetime) -> None:
    """Write what was read of ONUs, in the transaction that is open."""
    readings = merge_twins(readings)
    for rows in state_rows(olt_id, readings, _merged_extras(olt_id, readings), now):
        bulk.write(rows)
    telling = [reading for reading in readings if tells_history(reading)]
    if telling:
        ids = dict(Onu.objects.filter(olt_id=olt_id).values_list("index", "id"))
        bulk.write(history_rows(ids, telling, now))


def _merged_extras(olt_id: int, readings: Sequence[Reading]) -> dict[str, dict[str, Any]]:
    """Return the `extra` of each ONU, old values under new ones, or nothing if no reading has anything for it."""
    new = {
        reading.index: plain({key: value for key, value in reading.values.items() if key not in FILLED})
        for reading in readings
    }
    if not any(new.values()):
        return {}
    old = dict(Onu.objects.filter(olt_id=olt_id).values_list("index", "extra"))
    return {index: {**old.get(index, {}), **values} for index, values in new.items()}
