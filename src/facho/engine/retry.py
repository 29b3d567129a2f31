"""Whether a run that failed is tried again, and when. A retry never outlives its slot."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush

from facho.engine.model import Claim, CompositeNode, Node, Outcome, Status


def retry_at(node: Node, outcome: Outcome, attempts: int, slot_end: datetime | None, now: datetime) -> datetime | None:
    """Return when a node is tried again after so many attempts, or None if that was the last.

    What a person asked for has no slot, and is not repeated behind their back.
    What was read in part is kept, and not asked for again before its next slot.
    """
    if slot_end is None or outcome.status is not Status.FAILED or not outcome.is_temporary:
        return None
    again = now + node.retry_delay
    return again if attempts <= node.retries and again < slot_end else None


@dataclass(frozen=True, slots=True)
class Retry:
    """Executions that are tried again, and how they end if they cannot be."""

    claim: Claim
    outcomes: tuple[Outcome, ...]
    at: datetime


def retry_of(claim: Claim, outcomes: Sequence[Outcome]) -> Retry | None:
    """Return the links of a claim that wait for another attempt, as a claim of their own."""
    again = [
        (node, id_, outcome)
        for node, id_, outcome in zip(claim.composite.links, claim.execution_ids, outcomes, strict=False)
        if outcome.retry_at is not None
    ]
    if not again:
        return None
    nodes, ids, ends = zip(*again, strict=True)
    at = max(outcome.retry_at for outcome in ends)
    composite = CompositeNode(nodes[0], nodes[1:], claim.composite.slot, claim.composite.trigger, retry_at=at)
    later = replace(claim, composite=composite, execution_ids=ids, attempt=claim.attempt + 1)
    return Retry(later, tuple(replace(outcome, retry_at=None) for outcome in ends), at)


class Retries:
    """What waits for its next attempt, holding neither poller nor OLT meanwhile."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Retry]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Retry]:
        return (retry for _, _, retry in self._heap)

    def add(self, retry: Retry) -> None:
        # No two wait with the same executions, so retries themselves are never compared.
        heappush(self._heap, (retry.at, retry.claim.execution_ids[0], retry))

    def due(self, now: datetime) -> list[Retry]:
        """Give out those whose time has come."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heappop(self._heap)[2])
        return due

    def drain(self) -> list[Retry]:
        """Give out all of them."""
        left = [retry for _, _, retry in self._heap]
        self._heap.clear()
        return left
