"""What an engine finds at its start: what an earlier one left open, sorted by what can become of it."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from facho.apps.polling.models import OPEN_STATUSES, Execution, ExecutionAttempt
from facho.engine.model import Cause, LeftOver, Recovery, Status, Trigger
from facho.store import endings, leases

COLUMNS = ("id", "olt_id", "node_id", "master_execution_id", "slot", "claimed_at", "trigger", "status", "retry_at")


@transaction.atomic
def recover(now: datetime, *, is_shared: bool) -> Recovery:
    """Interrupt what was running here, and return what goes on elsewhere or waits for an attempt."""
    held = _held(is_shared=is_shared)
    running, waiting, dead = [], [], []
    for composite in _open_composites():
        is_put_off = all(row.retry_at for row in composite)
        if not is_put_off and composite[0].olt_id in held:
            running.append(composite)
        elif all(row.status == Status.PENDING and row.trigger == Trigger.SCHEDULE for row in composite):
            waiting.append(composite)
        else:
            dead.append(composite)
    lost = Execution.objects.filter(pk__in=_ids(dead), status__in=OPEN_STATUSES)
    interrupted = len(endings.interrupt(lost, Cause.ENGINE_DOWN, now))
    _wait(_ids(waiting), now)
    attempts = _attempts(_ids([*running, *waiting]))
    left = [_left_over(rows, attempts, now, is_running=True) for rows in running]
    left += [_left_over(rows, attempts, now, is_running=False) for rows in waiting]
    return Recovery(interrupted, tuple(left))


def _held(*, is_shared: bool) -> set[int]:
    """Return the OLTs that another process may be at work on."""
    live = leases.live()
    # A database that was unavailable outlasts every lease, and what began before it may be in the spool of a worker.
    # The lease reaper gives workers time to deliver it.
    return {
        each.olt_id for each in leases.needed() if each.key in live or (is_shared and each.status == Status.RUNNING)
    }


def _open_composites() -> list[list[Execution]]:
    composites: defaultdict[int, list[Execution]] = defaultdict(list)
    for row in Execution.objects.filter(status__in=OPEN_STATUSES).order_by("pk").only(*COLUMNS):
        composites[row.master_execution_id or row.pk].append(row)
    return list(composites.values())


def _ids(composites: Sequence[Sequence[Execution]]) -> list[int]:
    return [row.pk for rows in composites for row in rows]


def _wait(execution_ids: Collection[int], now: datetime) -> None:
    """Let what was given out and never begun wait for an attempt, which is due at once."""
    given = Execution.objects.filter(pk__in=execution_ids, retry_at__isnull=True)
    given.filter(cause="").update(cause=Cause.ENGINE_DOWN)
    given.update(retry_at=now)


def _attempts(execution_ids: Collection[int]) -> dict[int, int]:
    made = ExecutionAttempt.objects.filter(execution_id__in=execution_ids).order_by()
    return dict(made.values_list("execution_id").annotate(Max("number")))


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
