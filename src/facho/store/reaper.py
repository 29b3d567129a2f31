"""Ends executions that nobody runs any more, without a restart: the database was away when their holder gave up."""

import logging
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce

from facho.apps.jobs import in_effect
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.engine.grid import Gap
from facho.engine.model import Cause
from facho.store import endings

logger = logging.getLogger(__name__)

# Beyond all that its set-up allows for: a database, or a machine, that stalled for a while.
SLACK = timedelta(minutes=10)

# What is assumed of a node that was deleted: the longest interval of most, and the longest time limit there is.
UNKNOWN = 3600


def reap(now: datetime, gap: Gap | None = None) -> int:
    """End what can no longer be running or waiting, and return how much that was.

    A last attempt begins before the next slot, and each link ends at its time
    limit; nobody holds an execution for longer than that. A holder who does
    after all finds it ended, and writes nothing. `gap` is where the clock was
    set forward: what was claimed before is not older by that.
    """
    with transaction.atomic():
        left = _left(now, gap)
        if left:
            endings.interrupt(Execution.objects.filter(pk__in=left, status__in=OPEN_STATUSES), Cause.LEASE_LOST, now)
    if left:
        logger.warning("%d executions were held by nobody; they are interrupted now", len(left))
    return len(left)


def _left(now: datetime, gap: Gap | None) -> list[int]:
    """Return the open executions whose composite is older than it can get."""
    is_open = Execution.objects.filter(status__in=OPEN_STATUSES, claimed_at__lt=now - SLACK)
    members: defaultdict[int, list[int]] = defaultdict(list)
    ages: dict[int, timedelta] = {}
    for id_, master_id, claimed_at in is_open.order_by("pk").values_list("pk", "master_execution_id", "claimed_at"):
        if claimed_at is not None:
            members[master_id or id_].append(id_)
            ages[master_id or id_] = gap.time_since(claimed_at, now) if gap else now - claimed_at
    limits = _limits(members.keys()) if members else {}
    return [id_ for composite, ids in members.items() if ages[composite] > limits[composite] for id_ in ids]


def _limits(composites: Collection[int]) -> dict[int, timedelta]:
    """Return how old composites can get, the links that have ended included: the last one begins after them."""
    links = Execution.objects.filter(Q(pk__in=composites) | Q(master_execution__in=composites)).values_list(
        "pk",
        "master_execution_id",
        Coalesce(in_effect.interval_seconds("node__"), UNKNOWN),
        Coalesce("node__job__timeout_seconds", UNKNOWN),
    )
    limits: defaultdict[int, timedelta] = defaultdict(lambda: SLACK)
    for id_, master_id, interval, timeout in links:
        # Only the master has a slot.
        limits[master_id or id_] += timedelta(seconds=timeout if master_id else timeout + interval)
    return limits
