"""How the cast is made, for tests that need more of it than the fixtures give."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

import port_counts
from facho.apps.accounts.roles import Role, set_role
from facho.apps.coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.maintenance.models import Maintenance
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu, OnuEvent, PonPort
from search_rows import add_text

T0 = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)
SECRETS = {"community": "s3cret-community", "v3_auth_key": "s3cret-auth-key", "v3_priv_key": "s3cret-priv-key"}

# A user who sees everything, for queries outside requests.
BOSS = User(username="boss", is_superuser=True)


def make_olt(name: str, brand: str = "huawei", **more: Any) -> Olt:
    defaults = {"name": name, "brand": brand, "host": "127.0.0.1", "community": "public"}
    # Read again: its secrets are then what they are in the database.
    return Olt.objects.get(pk=Olt.objects.create(**defaults | more).pk)


def make_job(name: str, **more: Any) -> SnmpJob:
    return SnmpJob.objects.create(**{"name": name, "brand": "huawei", "kind": "table", "columns": ["rx_dbm"]} | more)


def make_onu(olt: Olt, number: int, **more: Any) -> Onu:
    defaults = {
        "index": f"4194304000.{number}",
        "slot": 0,
        "port": 1,
        "onu": number,
        "serial": f"HWTC0000000{number}",
        "name": f"client-{number}",
        "state": "online",
        "rx_dbm": -20.0 - number / 10,
        "first_seen_at": T0,
        "own_read_at": T0,
    }
    # A test may have given the ports other counters.
    is_counted = port_counts.stored(olt=olt) == port_counts.scanned(olt=olt)
    onu = Onu.objects.create(olt=olt, **defaults | more)
    if is_counted:
        port_counts.recount(olt=olt)
    add_text(onu)
    return onu


def make_port(olt: Olt, slot: int | None = 0, port: int | None = 1, **counters: Any) -> PonPort:
    """Make a port with these counters. If `total` is not given, it is the sum of the states and missing ONUs."""
    states = (counters.get(name, 0) for name in ("missing", *Onu.State.values))
    values = {"total": sum(states)} | counters
    return PonPort.objects.update_or_create(olt=olt, slot=slot, port=port, defaults=values)[0]


def make_user(role: Role) -> User:
    user = User.objects.create(username=role)
    set_role(user, role)
    return user


def make_maintenance(olt: Olt | None = None, *, hours: float = 2, **more: Any) -> Maintenance:
    """Make a maintenance that began a minute ago."""
    start = timezone.now() - timedelta(minutes=1)
    values = {"olt": olt, "starts_at": start, "ends_at": start + timedelta(hours=hours)}
    plan = Maintenance.objects.create(**values | more)
    plan.settle(timezone.now())
    return plan


def make_event(onu: Onu, at: datetime = T0, **more: Any) -> OnuEvent:
    """Make a loss of signal."""
    change = {"field": "state", "old": "online", "new": "los", "cause": "fiber cut"}
    return OnuEvent.objects.create(onu=onu, olt=onu.olt, at=at, **change | more)


def make_execution(node: WorkflowNode, slot: datetime = T0, **more: Any) -> Execution:
    defaults = {
        "olt": node.olt,
        "node": node,
        "node_name": node.job.name,
        "poller_id": 3,
        "slot": slot,
        "status": "SUCCESS",
        "started_at": slot + timedelta(seconds=2),
        "ended_at": slot + timedelta(seconds=32),
    }
    return Execution.objects.create(**defaults | more)


def make_quota(node: WorkflowNode, hour: datetime = T0, *, completed: int = 12, **more: Any) -> QuotaTracker:
    """Make an hour of a job; what is required follows from the parts."""
    numbers = {"completed": completed, **{name: more.pop(name, 0) for name in ("failed", "skipped", "pending")}}
    return QuotaTracker.objects.create(
        olt=node.olt,
        node=node,
        **{"task_type": node.job.name, "period_start": hour, "period_end": hour + timedelta(hours=1)} | more,
        quota_required=sum(numbers.values()),
        **{f"quota_{name}": number for name, number in numbers.items()},
    )


def make_violation(node: WorkflowNode, hour: datetime = T0, **more: Any) -> QuotaViolation:
    """Make 2 of 4 runs: HIGH, because the OLT did not answer."""
    report = {
        "required": 4,
        "completed": 2,
        "failed": 1,
        "skipped": 1,
        "pending": 0,
        "percent": 50.0,
        "causes": {"unreachable": 1, "breaker_open": 1},
        "slowest": [{"task": node.job.name, "mean_seconds": 31.5, "max_seconds": 40.0, "runs": 3}],
        "worst_lateness": {
            "task": node.job.name,
            "slot": hour.isoformat(),
            "seconds": 70.3,
            "parts": {"olt_busy": 70.2, "starting": 0.1},
        },
        "advice": [{"code": "check_reachability", "params": {"olt": node.olt.name}, "sentence": "Check it."}],
    }
    defaults = {
        "olt": node.olt,
        "node": node,
        "task_type": node.job.name,
        "period_start": hour,
        "period_end": hour + timedelta(hours=1),
        "severity": "HIGH",
        "report": report,
    }
    return QuotaViolation.objects.create(**defaults | more)


def make_plan(node: WorkflowNode, hour: datetime = T0, **more: Any) -> ExecutionPlan:
    """Make a plan of an hour with a slot every 15 minutes, each expected to start on time and to take 30 s."""
    slots = [hour + timedelta(minutes=15 * number) for number in range(4)]
    plan = [
        {
            "node_id": node.pk,
            "task": node.job.name,
            "slot": slot.isoformat(),
            "start": slot.isoformat(),
            "end": (slot + timedelta(seconds=30)).isoformat(),
            "p95_end": (slot + timedelta(seconds=45)).isoformat(),
            "chain": [],
        }
        for slot in slots
    ]
    defaults = {
        "olt": node.olt,
        "period_start": hour,
        "period_end": hour + timedelta(hours=1),
        "plan_data": plan,
        "needed_seconds": 120.0,
        "utilisation": 3.3,
        "total_tasks": 4,
    }
    return ExecutionPlan.objects.create(**defaults | more)


def make_log(event: str = "OLT_DISABLED", at: datetime = T0, **more: Any) -> CoordinatorLog:
    defaults = {"event_type": event, "level": "INFO", "message": "OLT-SUR-03: polling stopped", "timestamp": at}
    return CoordinatorLog.objects.create(**defaults | more)


class EngineClock:
    """Stands in for the time that a request waits: the engine does something at each look."""

    def __init__(self, *steps):
        self._steps = list(steps)
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds

    async def sleep(self, seconds):
        self.seconds += seconds
        if self._steps:
            await sync_to_async(self._steps.pop(0))()


def import_olts(client: Any, text: str, community: str = "public", *, preview: bool = False) -> Any:
    """Import a CSV file of OLTs on its page, or ask for its preview."""
    path = reverse("dashboard:preview-import" if preview else "dashboard:import-olts")
    return client.post(path, {"file": SimpleUploadedFile("olts.csv", text.encode()), "community": community})
