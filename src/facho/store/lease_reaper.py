"""Ends executions whose worker is dead: the lease of their device is over, and has been for as long as we looked."""

import logging
from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.engine.events import Event, tell
from facho.engine.model import Cause, Status
from facho.engine.ports import Clock
from facho.store import endings, leases

logger = logging.getLogger(__name__)

# When the database was away, every lease is over when it is back. Who holds readings for it has this many seconds to
# bring them in.
GRACE = 15.0
# As long as one says that it has some, it gets more time for it; a worker that is cut off would say so for ever.
LONG_GRACE = 60.0

# Looks that are further apart than this have seen nothing of what was between them.
LONGEST_GAP = 12.0


class LeaseReaper:
    """Looks every few seconds, and remembers since when it has found each execution without a holder."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Since when each is known to be held by nobody, by the monotonic clock.
        self._since: dict[int, float] = {}
        self._looked_at = 0.0

    def reap(self, now: datetime, *, answered_for: Collection[int], spooling: Collection[str]) -> int:
        """End what has been held by nobody for long enough, and return how much that was.

        The scheduler has in hand what it answers for: executions that nobody has
        begun. Workers that are `spooling`, by name, say that they have readings left.
        """
        looked_at = self._clock.monotonic()
        if looked_at - self._looked_at > LONGEST_GAP:
            self._since = {}
        with transaction.atomic():
            orphans = {id_: holder for id_, holder in _orphans().items() if id_ not in answered_for}
            self._since = {id_: self._since.get(id_, looked_at) for id_ in orphans}
            dead = [id_ for id_, since in self._since.items() if looked_at - since >= _grace(orphans[id_], spooling)]
            rows = Execution.objects.filter(pk__in=dead, status__in=OPEN_STATUSES)
            ended = endings.interrupt(rows, Cause.LEASE_LOST, now) if dead else []
        self._looked_at = looked_at
        if ended:
            tell(logger, Event.EXECUTIONS_REAPED, executions=len(ended))
        return len(ended)


def _grace(holder: str, spooling: Collection[str]) -> float:
    # A holder is the name of a worker, and which of its pollers it is.
    return LONG_GRACE if holder.rpartition("/")[0] in spooling else GRACE


def _orphans() -> dict[int, str]:
    """Return the open executions that no holder of a lease can be at work on, and who held their devices last."""
    held, holders = leases.live(), leases.holders()
    return {
        each.execution_id: holders.get(each.key, "")
        for each in leases.needed()
        if _is_orphan(each.status, each.token, held.get(each.key))
    }


def _is_orphan(status: str, token: int | None, held: int | None) -> bool:
    # A link that waits behind a running one has no token of its own yet.
    return held is None or (status == Status.RUNNING and token != held)
