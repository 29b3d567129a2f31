"""Recovery of open executions: at a start, and while the engine runs."""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max, Q
from django.db.models.functions import Coalesce

from facho.apps.jobs import in_effect
from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.engine.events import Event, log_event
from facho.engine.model import Cause, LeftOver, Recovery, Status, Trigger
from facho.engine.ports import Clock
from facho.engine.scheduling.grid import Gap
from facho.store import leases, runs

COLUMNS = ("id", "olt_id", "node_id", "master_execution_id", "slot", "claimed_at", "trigger", "status", "retry_at")


@transaction.atomic
def recover(now: datetime, *, is_shared: bool) -> Recovery:
    """Interrupt the executions of this process, and return those that continue elsewhere or wait for an attempt."""
    live = leases.live()
    # OLTs that another process may be polling. A database outage is longer than every lease, and earlier results may be
    # in the spool of a worker. The lease reaper gives workers time to deliver them.
    held = {
        each.olt_id for each in leases.needed() if each.key in live or (is_shared and each.status == Status.RUNNING)
    }
    composites: defaultdict[int, list[Execution]] = defaultdict(list)
    for row in Execution.objects.filter(status__in=OPEN_STATUSES).order_by("pk").only(*COLUMNS):
        composites[row.master_execution_id or row.pk].append(row)
    running, waiting, dead = [], [], []
    for composite in composites.values():
        is_put_off = all(row.retry_at for row in composite)
        if not is_put_off and composite[0].olt_id in held:
            running.append(composite)
        elif all(row.status == Status.PENDING and row.trigger == Trigger.SCHEDULE for row in composite):
            waiting.append(composite)
        else:
            dead.append(composite)
    lost = Execution.objects.filter(pk__in=_ids(dead), status__in=OPEN_STATUSES)
    interrupted = len(runs.interrupt(lost, Cause.ENGINE_DOWN, now))
    # Unstarted executions wait for an attempt, which is due at once.
    unstarted = Execution.objects.filter(pk__in=_ids(waiting), retry_at__isnull=True)
    unstarted.filter(cause="").update(cause=Cause.ENGINE_DOWN)
    unstarted.update(retry_at=now)
    made = ExecutionAttempt.objects.filter(execution_id__in=_ids([*running, *waiting])).order_by()
    attempts = dict(made.values_list("execution_id").annotate(Max("number")))
    left = [_left_over(rows, attempts, now, is_running=True) for rows in running]
    left += [_left_over(rows, attempts, now, is_running=False) for rows in waiting]
    return Recovery(interrupted, tuple(left))


def _ids(composites: Sequence[Sequence[Execution]]) -> list[int]:
    return [row.pk for rows in composites for row in rows]


def _left_over(rows: Sequence[Execution], attempts: dict[int, int], now: datetime, *, is_running: bool) -> LeftOver:
    first = rows[0]
    return LeftOver(
        first.olt_id,
        first.slot,
        first.claimed_at or now,
        tuple((row.pk, row.node_id) for row in rows),
        max(attempts.get(row.pk, 0) for row in rows),
        is_running,
    )


logger = logging.getLogger(__name__)

# Tolerance for a stalled database or machine.
SLACK = timedelta(minutes=10)

# Assumed interval and time limit of a deleted node, in seconds.
UNKNOWN = 3600


def reap(now: datetime, gap: Gap | None = None) -> int:
    """End executions that can no longer be running or waiting, and return their number.

    A last attempt starts before the next slot, and each link ends at its time limit; no execution lasts longer. A
    holder that does nevertheless finds it ended, and writes nothing. `gap` is a forward clock step: earlier claims
    are not older by that.
    """
    with transaction.atomic():
        is_open = Execution.objects.filter(status__in=OPEN_STATUSES, claimed_at__lt=now - SLACK).order_by("pk")
        members: defaultdict[int, list[int]] = defaultdict(list)
        ages: dict[int, timedelta] = {}
        for id_, master_id, claimed_at in is_open.values_list("pk", "master_execution_id", "claimed_at"):
            if claimed_at is not None:
                members[master_id or id_].append(id_)
                ages[master_id or id_] = gap.time_since(claimed_at, now) if gap else now - claimed_at
        limits = _limits(members.keys()) if members else {}
        left = [id_ for composite, ids in members.items() if ages[composite] > limits[composite] for id_ in ids]
        if left:
            runs.interrupt(Execution.objects.filter(pk__in=left, status__in=OPEN_STATUSES), Cause.LEASE_LOST, now)
    if left:
        logger.warning("%d executions without an owner were marked as interrupted", len(left))
    return len(left)


def _limits(composites: Collection[int]) -> dict[int, timedelta]:
    """Return the maximum age of composites, including finished links: the last one starts after them."""
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


# After a database outage every lease has expired. Workers with readings have this many seconds to deliver them.
GRACE = 15.0
# A worker that reports spooled results gets more time, but not unlimited: a disconnected one would report forever.
LONG_GRACE = 60.0

# If checks are further apart, the time between them is not counted.
LONGEST_GAP = 12.0


class LeaseReaper:
    """Checks every few seconds, and remembers since when each execution has had no holder."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Monotonic time since which each execution has had no holder.
        self._since: dict[int, float] = {}
        self._looked_at = 0.0

    def reap(self, now: datetime, *, answered_for: Collection[int], spooling: Collection[str]) -> int:
        """End executions that were without a holder for long enough, and return their number.

        The scheduler is responsible for unstarted executions. Workers in `spooling` have reported spooled results.
        """
        looked_at = self._clock.monotonic()
        if looked_at - self._looked_at > LONGEST_GAP:
            self._since = {}
        with transaction.atomic():
            tokens, holders = leases.live(), leases.holders()
            since: dict[int, float] = {}
            dead = []
            for each in leases.needed():
                token = tokens.get(each.key)
                # A link after a running one has no token yet.
                is_orphan = token is None or (each.status == Status.RUNNING and each.token != token)
                if is_orphan and each.execution_id not in answered_for:
                    since[each.execution_id] = self._since.get(each.execution_id, looked_at)
                    # A holder is the name of a worker and the number of a poller.
                    worker = holders.get(each.key, "").rpartition("/")[0]
                    if looked_at - since[each.execution_id] >= (LONG_GRACE if worker in spooling else GRACE):
                        dead.append(each.execution_id)
            self._since = since
            rows = Execution.objects.filter(pk__in=dead, status__in=OPEN_STATUSES)
            ended = runs.interrupt(rows, Cause.LEASE_LOST, now) if dead else []
        self._looked_at = looked_at
        if ended:
            log_event(logger, Event.EXECUTIONS_REAPED, executions=len(ended))
        return len(ended)
