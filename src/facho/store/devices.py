"""Devices of OLTs: resolves host names regularly and reports shared devices.

A run uses the address in the row and the lease of that address, so a DNS change takes effect between two runs. A name
that cannot be resolved keeps its last address.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from facho.adapters.resolver import Addresses, Resolver
from facho.apps.inventory.models import HOST_ADDRESS, Olt, host_address
from facho.engine.device import HostAddress, olts_by_device, sort_addresses
from facho.engine.events import Event, log_event
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Intervals between lookups of a name: resolved, and not resolved.
REFRESH_EVERY = timedelta(seconds=60)
RETRY_EVERY = timedelta(seconds=15)

# Time limit of a lookup in seconds, and maximum number of lookups at once.
TIMEOUT = 5.0
AT_ONCE = 8

# Rows per transaction.
BATCH = 100


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """An OLT and the device in its row."""

    id: int
    name: str
    device: str
    where: HostAddress


class DeviceWatch:
    """Writes the device of each OLT to its row, and reports shared devices once."""

    def __init__(self, thread: DbThread, resolver: Resolver) -> None:
        self._thread = thread
        self._resolver = resolver
        # Next lookup of each name, and names whose last lookup failed.
        self._due: dict[str, datetime] = {}
        self._failing: set[str] = set()
        # OLTs of each reported shared device.
        self._reported: dict[str, list[int]] = {}

    async def step(self, now: datetime) -> None:
        columns = (
            Olt.objects.filter(deleting_since=None).order_by("pk").values_list("pk", "name", "device", *HOST_ADDRESS)
        )
        rows = await self._thread.run(
            lambda: [DeviceRow(id_, name, device, host_address(*where)) for id_, name, device, *where in columns]
        )
        found = await self._resolve(rows, now)
        hosts = {row.id: _resolved(row.where, found.get(row.where.name)) for row in rows}
        order = sort_addresses(hosts)
        placed = [(row, _resolved(hosts[row.id], order[row.id])) for row in rows]
        changed = [(row, where) for row, where in placed if where != row.where or where.device != row.device]
        for start in range(0, len(changed), BATCH):
            await self._thread.run(lambda part=changed[start : start + BATCH]: _write(part))  # type: ignore[misc]
        for row, where in changed:
            before, after = row.where.address, where.address
            if where.name and before and after != before:
                host = row.where.host
                log_event(
                    logger, Event.DEVICE_MOVED, olt_id=row.id, olt=row.name, host=host, before=before, after=after
                )
        self._report_shared({row.id: where.device for row, where in placed}, {row.id: row.name for row in rows})

    async def _resolve(self, rows: Sequence[DeviceRow], now: datetime) -> Mapping[str, Addresses]:
        """Return the addresses of due names. Names without an address go first."""
        new = {row.where.name for row in rows if not row.where.candidates}
        names = {row.where.name for row in rows} - {""}
        self._due = {name: self._due.get(name, now) for name in names}
        due = sorted((name for name in names if self._due[name] <= now), key=lambda name: (name not in new, name))
        slots, found = asyncio.Semaphore(AT_ONCE), dict[str, Addresses]()

        async def find(name: str) -> None:
            async with slots:
                try:
                    found[name] = await self._resolver.find(name, timeout=TIMEOUT)
                except OSError as error:
                    self._due[name] = now + RETRY_EVERY
                    if name not in self._failing:
                        logger.warning("%s cannot be resolved, its last address is kept: %s", name, error)
                else:
                    self._due[name] = now + REFRESH_EVERY

        await asyncio.gather(*(find(name) for name in due))
        self._failing = (self._failing & names - found.keys()) | (set(due) - found.keys())
        return found

    def _report_shared(self, devices: Mapping[int, str], names: Mapping[int, str]) -> None:
        shared = {device: olt_ids for device, olt_ids in olts_by_device(devices).items() if len(olt_ids) > 1}
        for device, olt_ids in shared.items():
            if olt_ids != self._reported.get(device):
                first, *others = (names[olt_id] for olt_id in olt_ids)
                log_event(
                    logger, Event.DEVICE_SHARED, olt_id=olt_ids[0], olt=first, others=", ".join(others), device=device
                )
        for device in self._reported.keys() - shared.keys():
            log_event(logger, Event.DEVICE_NOT_SHARED, device=device)
        self._reported = shared


def _resolved(where: HostAddress, addresses: Addresses | None) -> HostAddress:
    """Return a host with the addresses of its name; None: the current ones. An IP address needs none."""
    found = where.candidates if addresses is None else addresses
    if not where.name or not found:
        return replace(where, resolved_name="", addresses=())
    return replace(where, resolved_name=where.name, addresses=found)


@transaction.atomic
def _write(changed: Collection[tuple[DeviceRow, HostAddress]]) -> None:
    for row, where in changed:
        # Unless it was edited in the meantime; then the next step handles it.
        rows = Olt.objects.filter(pk=row.id, host=row.where.host, port=row.where.port)
        rows.update(device=where.device, resolved_name=where.resolved_name, addresses=" ".join(where.addresses))
