"""An OLT whose make was found out: it gets its brand, and the jobs that its brand proposes."""

import logging
from datetime import datetime

from django.db import transaction

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.jobs.templates import apply_usual_jobs
from facho.brands import brand
from facho.engine.events import Event, tell
from facho.engine.model import Node

logger = logging.getLogger(__name__)


def put_to_work(olt_id: int, brand_id: str) -> list[str] | None:
    """Give the OLT its brand and the usual jobs of it, and return their names.

    None where a person was faster: the brand that somebody chose meanwhile stands.
    """
    olt = Olt.objects.select_for_update().get(pk=olt_id)
    if olt.brand:
        return None
    olt.brand = brand_id
    # Takes the identification off, too.
    olt.save(update_fields=["brand", "updated_at"])
    return apply_usual_jobs(brand_id, [olt])


@transaction.atomic
def repair(now: datetime) -> None:
    """Add identification nodes that are missing, and delete those that are not needed.

    Saving an OLT does this now. An earlier version that was killed in between could leave an OLT that was never asked.
    """
    left = list(WorkflowNode.unsettled().select_for_update())
    if left:
        WorkflowNode.settle_identification(left)
        logger.warning("repaired the identification of %s", ", ".join(olt.name for olt in left))


def tell_identified(node: Node, brand_id: str, jobs: list[str]) -> None:
    """Tell what was found, and what follows from it. Called when it is committed."""
    tell(
        logger,
        Event.OLT_IDENTIFIED,
        olt_id=node.olt_id,
        olt=node.olt_name,
        brand=brand(brand_id).label,
        tasks=", ".join(jobs) or "-",
    )
