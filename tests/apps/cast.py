"""How the cast is made, for tests that need more of it than the fixtures give."""

from datetime import UTC, datetime, timedelta
from typing import Any

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu

T0 = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)
SECRETS = {"community": "s3cret-community", "v3_auth_key": "s3cret-auth-key", "v3_priv_key": "s3cret-priv-key"}


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
        "read_at": T0,
    }
    return Onu.objects.create(olt=olt, **defaults | more)


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
