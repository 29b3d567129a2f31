"""Whether a run that failed is tried again, and when. A retry never outlives its slot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush

from facho.engine.model import Claim, CompositeNode, LeftOver, Node, Outcome, Status
from facho.engine.schedule import next_check


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


def retry_of_left(left: LeftOver, waiting: Mapping[int, Outcome], nodes: Mapping[int, Node]) -> Retry | None:
    """Return the links of an earlier engine's claim that wait for another attempt, as they are set up now.

    Links that are no longer polled are left out; None if there is no other.
    """
    polled = {id_: nodes[node_id] for id_, node_id in left.links if node_id is not None and node_id in nodes}
    again = [(node, id_) for id_, node in polled.items() if id_ in waiting]
    if not again:
        return None
    links, ids = zip(*again, strict=True)
    # Only a master has slots; without one, nothing of its chain is polled.
    master = nodes.get(links[0].master_id or links[0].id)
    if master is None:
        return None
    at = max(waiting[id_].retry_at or left.claimed_at for id_ in ids)
    composite = CompositeNode(links[0], links[1:], left.slot, retry_at=at)
    slot_end = next_check(left.slot, master.interval, left.claimed_at)
    # What was given out and not begun yet when we looked has been tried since.
    attempts = max(left.attempts, int(left.is_running))
    # A poller of ours is found for it when its time has come.
    claim = Claim(composite, ids, 0, slot_end, attempts + 1)
    return Retry(claim, tuple(waiting[id_].as_last() for id_ in ids), at)


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
