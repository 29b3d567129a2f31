"""Readings into rows: what changed of each ONU, and its history, in columns.

Called by `store/runs.py`, in the transaction that ends the run.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from facho.apps.inventory.models import Olt
from facho.engine.census import Rules
from facho.engine.chunks import FIELDS
from facho.engine.model import Collected, JobKind, Node, Reading
from facho.store import bulk, history
from facho.store.census import Verdict, follow_moves, is_settled, take_discovery
from facho.store.compare import Columns, compare
from facho.store.inventory import Inventory
from facho.store.rows import plain


def write_collected(
    inventory: Inventory, node: Node, collected: Collected, rules: Rules, now: datetime
) -> Verdict | None:
    """Write what a run read, in the transaction that is open. A discovery also decides which ONUs are present."""
    verdict = None
    read = Columns.of(collected.readings)
    inventory.ensure(read.columns)
    if not is_settled(inventory, node.kind, read, collected.absent):
        if node.kind is JobKind.DISCOVERY:
            verdict = take_discovery(inventory, collected, rules, now)
        else:
            verdict = follow_moves(inventory, collected)
    if verdict is not None:
        write_readings(inventory, verdict.readings, now, verdict)
    elif collected.readings:
        write_columns(inventory, read, now)
    if collected.scalars:
        merge_scalars(node.olt_id, collected.scalars)
    changed: dict[str, Any] = {"learned": dict(collected.learned)} if collected.learned else {}
    inventory.version = (inventory.version or 0) + 1
    bulk.set_columns(Olt, [node.olt_id], inventory_version=inventory.version, **changed)
    return verdict


def merge_scalars(olt_id: int, scalars: Mapping[str, Any]) -> None:
    """Write values of the OLT itself over those that are there."""
    olt = Olt.objects.select_for_update().only("extra").get(pk=olt_id)
    Olt.objects.filter(pk=olt_id).update(extra={**olt.extra, **plain(scalars)})


def write_readings(
    inventory: Inventory, readings: Sequence[Reading], now: datetime, verdict: Verdict | None = None
) -> None:
    """Write readings in the transaction that is open, together with what they mean for the presence of ONUs."""
    read = Columns.of(readings)
    inventory.ensure(read.columns)
    write_columns(inventory, read, now, verdict)


def write_columns(inventory: Inventory, read: Columns, now: datetime, verdict: Verdict | None = None) -> None:
    """Write the cells that changed, and append the run to the history. The inventory has the columns of `read`."""
    decided = (verdict.census, verdict.known) if verdict else ()
    inventory.apply(compare(inventory, read, now, *decided))
    columns = {name: read.columns[name] for name in FIELDS if name in read.columns}
    if columns and read.indexes:
        ids = [inventory.ids[inventory.positions[index]] for index in read.indexes]
        history.append(inventory.olt_id, now, ids, columns)
