"""The waiting room between the scheduler and the pollers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from facho.engine.model import Cause, CompositeNode, Node, Trigger
from facho.engine.retry import Retry
from facho.engine.schedule import is_delayed, missed_slots, urgency


@dataclass(slots=True)
class Waiting:
    """A composite that waits, and for what, in seconds by cause. The parts add up to the time since its slot."""

    composite: CompositeNode
    marked_at: datetime
    # Since when it has been passed over, over lost slots too: a short interval must not lose its place to a long one.
    since: datetime
    waits: dict[Cause, float] = field(default_factory=dict)
    # Set where its executions are claimed already, and wait for another attempt.
    retry: Retry | None = None

    def mark(self, cause: Cause, now: datetime) -> None:
        """Put the time since the last mark down to a cause."""
        seconds = (now - self.marked_at).total_seconds()
        if seconds > 0:
            self.waits[cause] = self.waits.get(cause, 0.0) + seconds
            self.marked_at = now

    @property
    def main_cause(self) -> Cause:
        """Return what it has waited for longest."""
        return max(self.waits, key=lambda cause: self.waits[cause], default=Cause.SCHEDULER_LATE)

    @property
    def expires_at(self) -> datetime | None:
        """Return when the next slot takes the place of this one; None for a wish, which waits as long as it must."""
        if self.retry is not None:
            return self.retry.claim.next_check
        return self.composite.slot_end if self.composite.trigger is Trigger.SCHEDULE else None

    def lost_slots(self, now: datetime) -> int:
        """Return how many slots, its own first, have come and gone."""
        return missed_slots(self.composite.slot, self.composite.master.interval, now)

    def renewed(self, now: datetime) -> "Waiting":
        """Return it with the latest slot that has come, for the ones before it are lost."""
        slot = self.composite.slot + self.lost_slots(now) * self.composite.master.interval
        return Waiting(replace(self.composite, slot=slot), slot, self.since)


# Says what stands between a composite and a run; None: nothing but a free poller.
WhyNot = Callable[[Waiting], Cause | None]


class NodeQueue:
    """Holds each composite once and gives out the most urgent one that may run.

    A busy OLT never blocks the others: its nodes are passed over, not waited
    for. A retry waits beside the slots of its node, and never longer than
    until the next of them.
    """

    def __init__(self) -> None:
        # By node, and whether it is a retry.
        self._waiting: dict[tuple[int, bool], Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting.values())

    def offer(self, composite: CompositeNode, now: datetime) -> None:
        """Take a composite in. One that waits already is not doubled: its slot and its urgency are kept together."""
        waiting = Waiting(composite, composite.slot, composite.slot)
        waiting.mark(Cause.SCHEDULER_LATE, now)
        self.put_back(waiting)

    def offer_retry(self, retry: Retry) -> None:
        """Take in what is to be tried again. It has not been waiting before its time came."""
        self.put_back(Waiting(retry.claim.composite, retry.at, retry.at, retry=retry))

    def put_back(self, *waitings: Waiting) -> None:
        """Take in, or back, with the time it has waited."""
        for waiting in waitings:
            key = _key(waiting)
            present = self._waiting.get(key)
            self._waiting[key] = _merged(present, waiting) if present else waiting

    def find(self, node_id: int) -> Waiting | None:
        return self._waiting.get((node_id, False))

    def withdraw(self, node_id: int) -> Waiting | None:
        return self._waiting.pop((node_id, False), None)

    def expire(self, now: datetime) -> list[Waiting]:
        """Give out what has waited until its next slot came."""
        expired = [waiting for waiting in self if waiting.expires_at is not None and waiting.expires_at <= now]
        for waiting in expired:
            del self._waiting[_key(waiting)]
        return expired

    def mark(self, why_not: WhyNot, now: datetime) -> None:
        """Note for each one what it has been waiting for."""
        for waiting in self:
            waiting.mark(why_not(waiting) or Cause.NO_FREE_POLLER, now)

    def take(self, why_not: WhyNot, now: datetime) -> Waiting | None:
        """Give out the most urgent composite that may run."""
        best, best_urgency = None, None
        for waiting in self:
            its_urgency = _urgency(waiting, now)
            is_better = best_urgency is None or its_urgency < best_urgency
            if is_better and why_not(waiting) is None:
                best, best_urgency = waiting, its_urgency
        return self._waiting.pop(_key(best)) if best else None

    def in_order(self, now: datetime) -> list[Waiting]:
        """Return all of them, most urgent first."""
        return sorted(self, key=lambda waiting: _urgency(waiting, now))

    def delayed(self, now: datetime) -> int:
        return sum(is_delayed(waiting.since, now) for waiting in self)


def _key(waiting: Waiting) -> tuple[int, bool]:
    return waiting.composite.id, waiting.retry is not None


def _urgency(waiting: Waiting, now: datetime) -> tuple[int, float, float, int]:
    return urgency(waiting.composite, waiting.since, now)


def _merged(present: Waiting, coming: Waiting) -> Waiting:
    """Return one for two wishes, with the newest links.

    A slot that is due is never lost to a manual run: the run serves both, and has waited since the slot.
    """
    kept = present if present.composite.trigger is Trigger.SCHEDULE else coming
    urgent = present.composite.urgent or coming.composite.urgent
    master, chain = _newest(present, coming)
    kept.composite = replace(kept.composite, master=master, chain=chain, urgent=urgent)
    return kept


def _newest(present: Waiting, coming: Waiting) -> tuple[Node, tuple[Node, ...]]:
    """Return the links of whichever slot or wish is the later one: its node was read later."""
    newest = max(present, coming, key=lambda waiting: waiting.composite.slot)
    return newest.composite.master, newest.composite.chain
