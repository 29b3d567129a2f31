"""Job templates of brands, created as rows."""

from collections.abc import Collection

from django.db import transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob
from facho.brands import brand


@transaction.atomic
def propose(brand_id: str) -> list[SnmpJob]:
    """Create missing proposed jobs of a brand; return all, masters before their chains."""
    templates = sorted(brand(brand_id).templates, key=lambda template: template.follows is not None)
    jobs: dict[str, SnmpJob] = {}
    for template in templates:
        jobs[template.name], _ = SnmpJob.objects.get_or_create(
            brand=brand_id,
            name=template.name,
            defaults={
                "kind": template.kind.value,
                "columns": list(template.columns),
                "follows": jobs[template.follows] if template.follows else None,
                "interval_seconds": round(template.interval.total_seconds()),
                "priority": template.priority,
                "timeout_seconds": round(template.timeout.total_seconds()),
            },
        )
    return list(jobs.values())


def apply_usual_jobs(brand_id: str, olts: Collection[Olt]) -> list[str]:
    """Apply the usual jobs of a brand to its OLTs, with their followers, and return the names of the masters.

    They are created only if none of them exists: a job that a user deleted or renamed does not come back.
    """
    names = [template.name for template in brand(brand_id).templates]
    jobs = list(SnmpJob.objects.filter(brand=brand_id, name__in=names)) or propose(brand_id)
    masters = [job for job in jobs if job.follows_id is None]
    with transaction.atomic():
        for job in masters:
            job.apply_to(olts)
    return [job.name for job in masters]
