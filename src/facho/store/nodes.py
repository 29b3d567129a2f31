"""Nodes and OLTs to poll, from rows to engine values."""

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import timedelta

from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils import timezone

from facho.apps.inventory import models as inventory
from facho.apps.inventory.models import SECRETS
from facho.apps.jobs.models import SnmpJob, SnmpJobOid, WorkflowNode
from facho.apps.maintenance.queries import Maintained, windows_between
from facho.apps.rest.fields import WrongKeyError
from facho.engine import oid
from facho.engine.errors import OltGone
from facho.engine.model import JobKind, Node, Olt, RawOid, Standing
from facho.engine.quota.durations import expected
from facho.engine.scheduling.changes import OltState, fingerprint
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Settings of an OLT. Columns that the engine writes must not be included: they are not changes.
OLT_SETTINGS = (
    "name",
    "brand",
    "host",
    "port",
    "version",
    "v3_user",
    "v3_auth",
    "v3_priv",
    "max_in_flight",
    "max_pdus_per_second",
)
# A clock that differs from the database's, and slots that were missed without an engine.
AHEAD = timedelta(minutes=1)
BACK = timedelta(days=1)

NODE_SETTINGS = ("id", "master_id", "own_interval_seconds", "own_priority", "own_enabled")
JOB_SETTINGS = (
    "name",
    "kind",
    "columns",
    "interval_seconds",
    "priority",
    "timeout_seconds",
    "retries",
    "retry_delay_seconds",
    "enabled",
)
OID_SETTINGS = ("id", "name", "oid", "decode", "scalar")


class DbNodeSource:
    """Reads nodes and OLTs. Two queries per tick find the changed OLTs and the maintenance, three read them.

    Direct changes to the rows are found by fingerprints: four queries for any fleet size.
    """

    def __init__(self, thread: DbThread) -> None:
        self._thread = thread

    async def standings(self) -> Mapping[int, Standing]:
        return await self._thread.run(_standings)

    async def fingerprints(self) -> Mapping[int, str]:
        return await self._thread.run(_fingerprints)

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        return await self._thread.run(lambda: _states(olt_ids))

    async def olt(self, olt_id: int) -> Olt:
        return await self._thread.run(lambda: _olt(olt_id))


def _standings() -> Mapping[int, Standing]:
    columns = ("id", "revision", "breaker_opened_at", "failures", "last_answer_at", *inventory.HOST_ADDRESS)
    rows = inventory.Olt.objects.filter(enabled=True).order_by().values_list(*columns)
    now = timezone.now()
    windows = Maintained(windows_between(now - BACK, now + AHEAD)).spans
    return {
        id_: Standing(
            revision,
            breaker_since,
            inventory.host_address(*where).device,
            None if failures else answered_at,
            windows.get(id_, ()),
        )
        for id_, revision, breaker_since, failures, answered_at, *where in rows
    }


def _fingerprints() -> Mapping[int, str]:
    """Return a digest of all settings of each enabled OLT, with four queries for the whole fleet."""
    oids: defaultdict[int, list[object]] = defaultdict(list)
    for job_id, *settings in SnmpJobOid.objects.order_by("id").values_list("job_id", *OID_SETTINGS):
        oids[job_id].append(settings)
    job_rows = SnmpJob.objects.order_by().values_list("id", *JOB_SETTINGS)
    jobs = {id_: fingerprint([settings, *oids[id_]]) for id_, *settings in job_rows}
    nodes: defaultdict[int, list[object]] = defaultdict(list)
    for olt_id, job_id, *settings in (
        WorkflowNode.objects.filter(olt__enabled=True).order_by("id").values_list("olt_id", "job_id", *NODE_SETTINGS)
    ):
        nodes[olt_id] += [settings, jobs.get(job_id)]
    # The ciphertext is compared, so secrets are not decrypted for this.
    ciphertexts = [Cast(name, TextField()) for name in SECRETS]
    olts = inventory.Olt.objects.filter(enabled=True).order_by().values_list("id", *OLT_SETTINGS, *ciphertexts)
    return {id_: fingerprint([settings, *nodes[id_]]) for id_, *settings in olts}


def _states(olt_ids: Collection[int]) -> dict[int, OltState]:
    olts = list(inventory.Olt.objects.filter(pk__in=olt_ids, enabled=True).only(*OLT_SETTINGS, *SECRETS))
    nodes = _nodes({row.pk: row.name for row in olts})
    states = {}
    for row in olts:
        address = f"{row.host}:{row.port} ({row.get_version_display()})"
        states[row.pk] = OltState(row.pk, row.name, address, tuple(nodes[row.pk]), _credentials(row))
    return states


def _credentials(row: inventory.Olt) -> str:
    """Return a digest of the credentials, independent of the encryption key."""
    users = (row.version, row.v3_user, row.v3_auth, row.v3_priv)
    secrets = [getattr(row, name) for name in SECRETS]
    try:
        return fingerprint([users, *(secret.reveal() for secret in secrets)])
    except WrongKeyError as error:
        # Its runs report the error too. The rest of the fleet must continue.
        logger.error("%s: %s", row.name, error)
        return fingerprint([users, *(secret.token for secret in secrets)])


def _nodes(olts: Mapping[int, str]) -> dict[int, list[Node]]:
    """Return the enabled nodes of these OLTs, given with their names."""
    raw_oids = _raw_oids(olts)
    now = timezone.now()
    nodes: defaultdict[int, list[Node]] = defaultdict(list)
    for row in WorkflowNode.objects.filter(olt_id__in=olts).polled().select_related("job"):
        job, prediction = row.job, expected(row.durations, now)
        node = Node(
            id=row.pk,
            olt_id=row.olt_id,
            olt_name=olts[row.olt_id],
            name=job.name,
            kind=JobKind(job.kind),
            interval=timedelta(seconds=row.interval_seconds),
            priority=row.priority,
            master_id=row.master_id,
            next_check=row.next_run_at,
            run_requested_at=row.run_requested_at,
            columns=tuple(job.columns),
            oids=tuple(raw_oids.get(job.pk, ())),
            timeout=timedelta(seconds=job.timeout_seconds),
            retries=job.retries,
            retry_delay=timedelta(seconds=job.retry_delay_seconds),
            expected=prediction.mean if prediction else None,
        )
        nodes[row.olt_id].append(node)
    return nodes


def _raw_oids(olt_ids: Collection[int]) -> dict[int, list[RawOid]]:
    """Return the raw OIDs of the jobs on these OLTs, by job."""
    raw_oids: dict[int, list[RawOid]] = {}
    for row in SnmpJobOid.objects.filter(job__nodes__olt_id__in=olt_ids).distinct():
        try:
            parsed = oid.parse(row.oid)
        except ValueError as error:
            # Forms and API refuse it, so it was written directly. The rest of the fleet must continue.
            logger.error("%s of job %d is skipped: %s", row.name, row.job_id, error)
            continue
        raw_oids.setdefault(row.job_id, []).append(RawOid(row.name, parsed, row.decode, row.scalar))
    return raw_oids


def _olt(olt_id: int) -> Olt:
    # Every run does this; see `bulk`.
    row = next(iter(inventory.Olt.objects.raw("SELECT * FROM olts WHERE id = %s", [olt_id])), None)
    if row is None or not row.enabled:
        raise OltGone(
            f"OLT {row.name if row else olt_id} was {'disabled' if row else 'deleted'} before the run started"
        )
    return Olt(
        id=row.pk,
        name=row.name,
        brand=row.brand,
        agent=row.agent(),
        max_in_flight=row.max_in_flight,
        max_pdus_per_second=row.max_pdus_per_second,
        learned=row.learned,
    )
