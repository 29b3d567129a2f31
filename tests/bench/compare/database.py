"""Answers questions about an installation that is measured, one JSON object per line, until its input ends.

It runs beside Facho in the same environment and uses the models only. Its CPU is not counted.
"""

import json
import math
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from facho.runtime.cli import prepare

# About as long as Facho takes to start. Slots that are due before are skipped.
FIRST_AFTER = timedelta(seconds=5)
# Seconds from one first discovery of a fleet to the next.
SECONDS_PER_DISCOVERY = 0.6
STORED = ("SUCCESS", "PARTIAL")


def make(olts: list[dict[str, Any]], columns: list[str], jobs: int) -> None:
    """Create the tables, the OLTs and some jobs with the same columns."""
    from django.core.management import call_command
    from django.db import transaction

    from facho.apps.inventory.models import Olt
    from facho.apps.jobs.models import SnmpJob

    call_command("migrate", verbosity=0, interactive=False)
    with transaction.atomic():
        rows = [Olt.objects.create(brand="huawei", community="public", **olt) for olt in olts]
        for number in range(jobs):
            job = SnmpJob.objects.create(name=f"Table {number + 1}", brand="huawei", kind="table", columns=columns)
            job.apply_to(rows)


def make_usual(olts: list[dict[str, Any]]) -> None:
    """Create the tables and the OLTs with the usual jobs. Discoveries come first, so many a second."""
    from django.core.management import call_command
    from django.db import transaction
    from django.utils import timezone

    from facho.apps.inventory.models import Olt
    from facho.apps.jobs.models import WorkflowNode
    from facho.apps.jobs.templates import apply_usual_jobs

    call_command("migrate", verbosity=0, interactive=False)
    first = (timezone.now() + FIRST_AFTER).replace(microsecond=0)
    discoveries = len(olts) * SECONDS_PER_DISCOVERY
    with transaction.atomic():
        rows = [Olt.objects.create(brand="huawei", community="public", **olt) for olt in olts]
        apply_usual_jobs("huawei", rows)
        for place, row in enumerate(rows):
            for node in WorkflowNode.objects.filter(olt=row, master=None).select_related("job"):
                is_first = node.job.kind == "discovery"
                spread = discoveries if is_first else node.job.interval_seconds
                due = first + timedelta(seconds=(0 if is_first else discoveries) + place * spread // len(rows))
                WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=due)


def values(start: float, end: float) -> int:
    """Return how many values were read by runs that ended between two times: ONUs times columns of the job."""
    from facho.apps.polling.models import Execution

    ended = Execution.objects.filter(status__in=STORED, ended_at__gte=moment(start), ended_at__lt=moment(end))
    rows = ended.order_by().values_list("readings", "node__job__columns")
    return sum((readings or 0) * len(columns or ()) for readings, columns in rows)


def schedule(jobs: int, interval: int) -> None:
    """Enable the first jobs only, at this interval, with slots spread evenly over it. Facho must not run."""
    from django.db import transaction
    from django.utils import timezone

    from facho.apps.jobs.models import SnmpJob, WorkflowNode

    first = (timezone.now() + FIRST_AFTER).replace(microsecond=0)
    with transaction.atomic():
        for number, job in enumerate(SnmpJob.objects.filter(kind="table").order_by("pk")):
            job.enabled, job.interval_seconds = number < jobs, interval
            job.save()
            # The jobs of one OLT are spread as well: its values need time to change.
            offset = interval * number // jobs
            for place, node in enumerate(WorkflowNode.objects.filter(job=job).order_by("pk")):
                due = first + timedelta(seconds=(place + offset) % interval)
                WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=due)


def polled_since(start: float) -> int:
    """Return how many OLTs have a stored run that began after this time."""
    from facho.apps.polling.models import Execution

    found = Execution.objects.filter(status__in=STORED, started_at__gte=moment(start), readings__gt=0)
    return found.order_by().values("olt_id").distinct().count()


def count(start: float, end: float, columns: list[str]) -> dict[str, Any]:
    """Return what was stored between two times, and how late runs that were due then began."""
    from django.db.models import Count, Sum

    from facho.apps.polling.models import Execution
    from facho.apps.telemetry.models import Onu

    ended = Execution.objects.filter(ended_at__gte=moment(start), ended_at__lt=moment(end)).order_by()
    statuses = dict(ended.values_list("status").annotate(Count("pk")))
    readings = ended.filter(status__in=STORED).aggregate(total=Sum("readings"))["total"] or 0
    due = Execution.objects.filter(slot__gte=moment(start), slot__lt=moment(end), started_at__isnull=False).order_by()
    late = sorted(max((began - slot).total_seconds(), 0.0) for slot, began in due.values_list("slot", "started_at"))
    # An ONU that is off has no power. The share of cells with a value is that of the latest readings.
    cells = Onu.objects.aggregate(onus=Count("pk"), **{f"n_{name}": Count(name) for name in columns})
    filled = sum(cells[f"n_{name}"] for name in columns) / max(cells["onus"], 1)
    return {
        "statuses": statuses,
        "readings": readings,
        "values": readings * filled,
        "late_p99": late[math.ceil(0.99 * len(late)) - 1] if late else None,
        "runs_due": len(late),
    }


def sizes() -> dict[str, int]:
    """Return the bytes of each table with its indexes; partitions count as the table."""
    from django.db import connection

    query = (
        """SELECT coalesce(parent.relname, child.relname), sum(pg_total_relation_size(child.oid))
           FROM pg_class child LEFT JOIN pg_inherits ON inhrelid = child.oid
           LEFT JOIN pg_class parent ON parent.oid = inhparent
           WHERE child.relkind = 'r' AND child.relnamespace = 'public'::regnamespace GROUP BY 1"""
        if connection.vendor == "postgresql"
        else """SELECT coalesce(m.tbl_name, s.name), sum(s.pgsize)
                FROM dbstat s LEFT JOIN sqlite_master m ON m.name = s.name GROUP BY 1"""
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return {name: int(size) for name, size in cursor.fetchall()}


def versions() -> dict[str, str]:
    import django
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version" if connection.vendor == "postgresql" else "SELECT sqlite_version()")
        return {"Django": django.__version__, connection.display_name: str(cursor.fetchone()[0]).split()[0]}


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def main() -> None:
    prepare()
    known = {each.__name__: each for each in (make, make_usual, schedule, polled_since, count, values, sizes, versions)}
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(known[task.pop("do")](**task)), flush=True)


if __name__ == "__main__":
    main()
