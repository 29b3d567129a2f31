"""Fills an empty database: `python tests/stack_setup.py` reads {"olts": [...], "jobs": {...}} from standard input.

Each job is applied to all OLTs whose brand has its columns, and is due in a few seconds:
{"Optical power": {"kind": "get", "columns": ["rx_dbm"], "interval_seconds": 10, "follows": "State"}}
"""

import json
import sys
from datetime import timedelta

from facho.runtime.cli import prepare

FIRST_AFTER = timedelta(seconds=3)
USER = PASSWORD = "demo"


def main() -> None:
    task = json.load(sys.stdin)
    prepare()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import transaction

    call_command("migrate", verbosity=0, interactive=False)
    with transaction.atomic():
        get_user_model().objects.create_superuser(USER, password=PASSWORD)
        make(task["olts"], task["jobs"])


def make(olts, jobs):
    from django.utils import timezone

    from facho.apps.inventory.models import Olt
    from facho.apps.jobs.models import SnmpJob, WorkflowNode

    columns = ("name", "brand", "host", "port", "community")
    rows = [Olt.objects.create(**{column: olt[column] for column in columns}) for olt in olts]
    for brand in sorted({row.brand for row in rows}):
        made = {}
        for name, values in jobs.items():
            follows = made[values["follows"]] if "follows" in values else None
            made[name] = SnmpJob.objects.create(name=name, brand=brand, **{**values, "follows": follows})
        for job in made.values():
            if job.follows is None:
                job.apply_to([row for row in rows if row.brand == brand])
    first = (timezone.now() + FIRST_AFTER).replace(microsecond=0)
    for number, node in enumerate(WorkflowNode.objects.filter(master=None).order_by("job__priority", "pk")):
        WorkflowNode.objects.filter(pk=node.pk).update(next_run_at=first + timedelta(seconds=number % 10))


if __name__ == "__main__":
    main()
