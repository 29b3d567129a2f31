"""The waiting room between the scheduler and the pollers."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from facho.engine.model import Cause, CompositeNode, Trigger
from facho.engine.schedule import is_delayed, urgency


@dataclass(slots=True)
class Waiting:
    """A composite that waits, and for what, in seconds by cause. The parts add up to the time since its slot."""

    composite: CompositeNode
    marked_at: datetime
    waits: dict[Cause, float] = field(default_factory=dict)

    def mark(self, cause: Cause, now: datetime) -> None:
        """Put the time since the last mark down to a cause."""
        seconds = (now - self.marked_at).total_seconds()
        if seconds > 0:
            self.waits[cause] = self.waits.get(cause, 0.0) + seconds
            self.marked_at = now


class NodeQueue:
    """Holds each composite once and gives out the most urgent one that may run.

    A busy OLT never blocks the others: its nodes are passed over, not waited for.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting.values())

    def offer(self, composite: CompositeNode, now: datetime) -> None:
        """Take a composite in. One that waits already is not doubled: its slot and its urgency are kept together."""
        waiting = Waiting(composite, composite.slot)
        waiting.mark(Cause.SCHEDULER_LATE, now)
        present = self._waiting.get(composite.id)
        self._waiting[composite.id] = _merged(present, waiting, composite) if present else waiting

    def put_back(self, waiting: Waiting) -> None:
        """Take back what could not be begun, with the time it has waited."""
        later = self._waiting.get(waiting.composite.id)
        self._waiting[waiting.composite.id] = _merged(waiting, later, later.composite) if later else waiting

    def find(self, node_id: int) -> Waiting | None:
        return self._waiting.get(node_id)

    def withdraw(self, node_id: int) -> Waiting | None:
        return self._waiting.pop(node_id, None)

    def mark(self, busy_olts: Collection[int], now: datetime) -> None:
        """Note for each one what it has been waiting for."""
        for waiting in self:
            waiting.mark(waits_for(waiting.composite, busy_olts), now)

    def take(self, busy_olts: Collection[int], now: datetime) -> Waiting | None:
        """Give out the most urgent composite whose OLT is free."""
        free = [waiting for waiting in self if waiting.composite.olt_id not in busy_olts]
        if not free:
            return None
        best = min(free, key=lambda waiting: urgency(waiting.composite, now))
        return self._waiting.pop(best.composite.id)

    def in_order(self, now: datetime) -> list[Waiting]:
        """Return all of them, most urgent first."""
        return sorted(self, key=lambda waiting: urgency(waiting.composite, now))

    def delayed(self, now: datetime) -> int:
        return sum(is_delayed(waiting.composite, now) for waiting in self)


def waits_for(composite: CompositeNode, busy_olts: Collection[int]) -> Cause:
    """Return what stands between a queued composite and a run."""
    return Cause.OLT_BUSY if composite.olt_id in busy_olts else Cause.NO_FREE_POLLER


def _merged(first: Waiting, second: Waiting, newest: CompositeNode) -> Waiting:
    """Return one for two wishes, with the newest links.

    A slot that is due is never lost to a manual run: the run serves both, and has waited since the slot.
    """
    kept = first if first.composite.trigger is Trigger.SCHEDULE else second
    urgent = first.composite.urgent or second.composite.urgent
    kept.composite = replace(kept.composite, master=newest.master, chain=newest.chain, urgent=urgent)
    return kept
