"""Replacement of the device behind an OLT: the row keeps its name, ONUs and history, and forgets the old hardware."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.models import Olt, Replacement
from facho.apps.jobs.models import WorkflowNode
from facho.apps.jobs.templates import apply_usual_jobs
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.apps.telemetry.models import Onu
from facho.engine.model import Cause, JobKind, Status
from facho.store import leases, runs

# What the engine learned about the old device.
UNKNOWN_DEVICE: Mapping[str, Any] = {
    "reachability": Olt.Reachability.UNKNOWN,
    "last_answer_at": None,
    "last_error": "",
    "extra": {},
    "suspect_since": None,
    "suspect_reason": "",
    "breaker_probed_at": None,
    "learned": {},
    **Olt.CLOSED_BREAKER,
}


@transaction.atomic
def replace_device(olt: Olt, names: Iterable[str], now: datetime) -> Replacement:
    """Store these new columns of an OLT, which were checked, and prepare it for another device.

    Its ONUs lose their places and are not polled until a run finds their serials: a number of the old device says
    nothing about the new one. Runs in progress end, because what they read is of the old one.
    """
    before = Olt.objects.select_for_update().get(pk=olt.pk)
    end_runs(olt.pk, now)
    nodes = WorkflowNode.objects.filter(olt=olt)
    if olt.brand != before.brand:
        nodes.exclude(job__brand__in=("", olt.brand)).delete()
    save_changes(olt, names)
    Olt.objects.filter(pk=olt.pk).update(**UNKNOWN_DEVICE, inventory_version=F("inventory_version") + 1)
    Onu.objects.filter(olt=olt, missing_since=None).update(place_taken=True, misses=0)
    nodes.update(durations={}, blank_runs={})
    if olt.brand and olt.brand != before.brand:
        apply_usual_jobs(olt.brand, [olt])
    replacement = Replacement.objects.create(olt=olt, at=now, before=_device(before), after=_device(olt))
    discoveries = nodes.filter(job__kind=JobKind.DISCOVERY, master__isnull=True).select_related("olt", "job")
    for node in discoveries:
        node.request_run()
    Olt.touch([olt.pk])
    olt.refresh_from_db()
    return replacement


def end_runs(olt_id: int, now: datetime) -> None:
    """End the open executions of an OLT in the open transaction. Their results are not stored any more."""
    running = Execution.objects.filter(olt=olt_id, status=Status.RUNNING)
    held = running.filter(~Q(device=None), ~Q(lease_token=None)).values_list("device", "lease_token")
    leases.revoke((device or "", token or 0) for device, token in held)
    runs.interrupt(Execution.objects.filter(olt=olt_id, status__in=OPEN_STATUSES), Cause.DISABLED, now)


def _device(olt: Olt) -> str:
    """Return brand and address of an OLT as a text."""
    return f"{olt.get_brand_display() or '?'}, {olt.written_address}"
