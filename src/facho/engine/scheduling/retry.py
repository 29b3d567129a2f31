"""Retries of failed runs. A retry never outlives its slot."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any

from facho.engine.events import Event, log_event
from facho.engine.model import Cause, Claim, CompositeNode, LeftOver, Node, Outcome, Status, Trigger
from facho.engine.scheduling.grid import next_check

logger = logging.getLogger(__name__)


def retry_at(node: Node, outcome: Outcome, attempts: int, slot_end: datetime | None, now: datetime) -> datetime | None:
    """Return the time of the next attempt, or None after the last one.

    Manual runs have no slot and are not retried. A partial result is kept and not read again before the next slot.
    """
    if slot_end is None or outcome.status is not Status.FAILED or not outcome.is_temporary:
        return None
    again = now + node.retry_delay
    return again if attempts <= node.retries and again < slot_end else None


def lateness(claim: Claim, execution_id: int, now: datetime) -> float | None:
    """Return the seconds between the slot and the start of an attempt.

    None for links, which start after the previous link, for retries, and for manual runs.
    """
    if claim.attempt > 1 or claim.composite.trigger is not Trigger.SCHEDULE or execution_id != claim.execution_ids[0]:
        return None
    return max((now - claim.composite.slot).total_seconds(), 0.0)


def tell_failure(olt_id: int, olt: str, node: Node, outcome: Outcome) -> None:
    """Log a failed attempt and whether another one follows."""
    if outcome.status is not Status.FAILED:
        return
    known: dict[str, Any] = {"olt": olt, "task": node.name, "error": outcome.error}
    if outcome.retry_at is not None:
        log_event(
            logger, Event.RETRY_PLANNED, olt_id=olt_id, at=outcome.retry_at.isoformat(timespec="seconds"), **known
        )
    elif outcome.cause is Cause.UNREACHABLE:
        log_event(logger, Event.OLT_UNREACHABLE, olt_id=olt_id, **known)
    else:
        log_event(logger, Event.RUN_FAILED, olt_id=olt_id, **known)


@dataclass(frozen=True, slots=True)
class Retry:
    """Executions that are retried, and their outcome if that is not possible."""

    claim: Claim
    outcomes: tuple[Outcome, ...]
    at: datetime


def retry_of(claim: Claim, outcomes: Sequence[Outcome]) -> Retry | None:
    """Return the links of a claim that wait for another attempt, as a new claim."""
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
    """Return the pending links of an earlier engine's claim, with their current configuration.

    Links that are no longer polled are left out. None if no link remains.
    """
    polled = {id_: nodes[node_id] for id_, node_id in left.links if node_id is not None and node_id in nodes}
    again = [(node, id_) for id_, node in polled.items() if id_ in waiting]
    if not again:
        return None
    links, ids = zip(*again, strict=True)
    # Only a master has slots; without it, its chain is not polled.
    master = nodes.get(links[0].master_id or links[0].id)
    if master is None:
        return None
    at = max(waiting[id_].retry_at or left.claimed_at for id_ in ids)
    composite = CompositeNode(links[0], links[1:], left.slot, retry_at=at)
    slot_end = next_check(left.slot, master.interval, left.claimed_at)
    # Executions that were assigned but not started at that time have been attempted since.
    attempts = max(left.attempts, int(left.is_running))
    # It gets a poller at its due time.
    claim = Claim(composite, ids, None, slot_end, attempts + 1)
    return Retry(claim, tuple(waiting[id_].as_last() for id_ in ids), at)


def _at(retry: Retry, at: datetime) -> Retry:
    composite = replace(retry.claim.composite, retry_at=at)
    return replace(retry, claim=replace(retry.claim, composite=composite), at=at)


class Retries:
    """Pending retries. They hold neither poller nor lease."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Retry]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Retry]:
        return (retry for _, _, retry in self._heap)

    def add(self, retry: Retry, now: datetime) -> None:
        # The clock may have been set back since the time was set.
        latest = now + max(link.retry_delay for link in retry.claim.composite.links)
        self._push(retry if retry.at <= latest else _at(retry, latest))

    def _push(self, retry: Retry) -> None:
        # Execution ids are unique, so retries themselves are never compared.
        heappush(self._heap, (retry.at, retry.claim.execution_ids[0], retry))

    def clock_set(self, by: timedelta) -> None:
        """Shift the times after the clock was set, at most to the end of the slot, where the retry ends."""
        for retry in self.drain():
            at, slot_end = retry.at + by, retry.claim.next_check
            self._push(_at(retry, at if slot_end is None else min(at, slot_end)))

    def due(self, now: datetime) -> list[Retry]:
        """Remove and return the due retries."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heappop(self._heap)[2])
        return due

    def drain(self) -> list[Retry]:
        """Remove and return all retries."""
        left = [retry for _, _, retry in self._heap]
        self._heap.clear()
        return left
