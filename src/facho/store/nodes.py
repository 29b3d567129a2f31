"""What an operator wants polled, from rows to engine values."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from facho.apps.inventory import models as inventory
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.engine import oid
from facho.engine.errors import OltGone
from facho.engine.model import JobKind, Node, Olt, RawOid
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)


class DbNodeSource:
    """Reads nodes and OLTs. One query says what changed, three read the nodes of the OLTs that did."""

    def __init__(self, thread: DbThread) -> None:
        self._thread = thread

    async def revisions(self) -> Mapping[int, int]:
        return await self._thread.run(_revisions)

    async def nodes(self, olt_ids: Collection[int]) -> Sequence[Node]:
        return await self._thread.run(lambda: _nodes(olt_ids))

    async def olt(self, olt_id: int) -> Olt:
        return await self._thread.run(lambda: _olt(olt_id))


def _revisions() -> Mapping[int, int]:
    return dict(inventory.Olt.objects.filter(enabled=True).values_list("id", "revision"))


def _nodes(olt_ids: Collection[int]) -> list[Node]:
    rows = WorkflowNode.objects.filter(olt_id__in=olt_ids, olt__enabled=True).select_related("job", "olt")
    raw_oids = _raw_oids(olt_ids)
    return [_node(row, row.job, tuple(raw_oids.get(row.job_id, ()))) for row in rows if row.enabled]


def _raw_oids(olt_ids: Collection[int]) -> dict[int, list[RawOid]]:
    """Return the raw OIDs of the jobs on these OLTs, by job."""
    raw_oids: dict[int, list[RawOid]] = {}
    for row in SnmpJobOid.objects.filter(job__nodes__olt_id__in=olt_ids).distinct():
        try:
            parsed = oid.parse(row.oid)
        except ValueError as error:
            # Forms and API refuse it, so somebody went past them; the rest of the fleet must not stand still for it.
            logger.error("%s of job %d is left out: %s", row.name, row.job_id, error)
            continue
        raw_oids.setdefault(row.job_id, []).append(RawOid(row.name, parsed, row.decode, row.scalar))
    return raw_oids


def _node(row: WorkflowNode, job: SnmpJob, raw_oids: tuple[RawOid, ...]) -> Node:
    return Node(
        id=row.pk,
        olt_id=row.olt_id,
        olt_name=row.olt.name,
        name=job.name,
        kind=JobKind(job.kind),
        interval=timedelta(seconds=row.interval_seconds),
        priority=row.priority,
        master_id=row.master_id,
        next_check=row.next_run_at,
        run_requested_at=row.run_requested_at,
        columns=tuple(job.columns),
        oids=raw_oids,
        timeout=timedelta(seconds=job.timeout_seconds),
        retries=job.retries,
        retry_delay=timedelta(seconds=job.retry_delay_seconds),
    )


def _olt(olt_id: int) -> Olt:
    row = inventory.Olt.objects.filter(pk=olt_id).first()
    if row is None or not row.enabled:
        raise OltGone(f"OLT {row.name if row else olt_id} was {'disabled' if row else 'deleted'} before its turn came")
    return Olt(
        id=row.pk,
        name=row.name,
        brand=row.brand,
        agent=row.agent(),
        max_in_flight=row.max_in_flight,
        max_pdus_per_second=row.max_pdus_per_second,
        learned=row.learned,
    )
