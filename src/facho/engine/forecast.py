"""A world for the engine in which nothing is asked: runs only take their time. What comes of it is counted, not kept.

Scheduler, pollers and queue are the real ones. On a virtual clock, a day of a thousand OLTs takes a minute.
"""

import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from facho.engine.breaker import OPENS_AFTER, Heard, heard
from facho.engine.changes import OltState
from facho.engine.errors import OltGone
from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    Lease,
    Node,
    Olt,
    Outcome,
    Skipped,
    Standing,
    Status,
)
from facho.engine.ports import Clock, PollerWatch
from facho.engine.predict import Prediction
from facho.engine.retry import retry_at
from facho.engine.schedule import group_chains, missed_slots, next_check
from facho.engine.score import Score

# A mute OLT is given up after this many seconds: a request and its repetitions.
SILENCE = 15.0

# Returns how long a node takes at a time.
Durations = Callable[[Node, datetime], Prediction]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is polled in a forecast. Dead OLTs die when it begins, and answer nothing until its end."""

    nodes: tuple[Node, ...]
    durations: Durations
    dead: frozenset[int] = frozenset()
    # OLTs whose breaker was open before.
    broken: frozenset[int] = frozenset()


class ForecastNodes:
    """A NodeSource that never changes, but for breakers.

    Dead OLTs do not come back in a forecast: one whose breaker is open is
    taken out, for waiting on until the end would only cost time.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._states = _states(fleet.nodes)
        self._standings = {id_: Standing(1) for id_ in self._states if id_ not in fleet.broken}
        self._fingerprints: Mapping[int, str] = {}

    async def standings(self) -> Mapping[int, Standing]:
        # The same mapping as long as nothing changed: asked every second of a day, it must cost nothing.
        return self._standings

    async def fingerprints(self) -> Mapping[int, str]:
        return self._fingerprints

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        return {olt_id: self._states[olt_id] for olt_id in olt_ids}

    async def olt(self, olt_id: int) -> Olt:
        raise OltGone(f"OLT {olt_id} exists in a forecast only")

    def open_breaker(self, olt_id: int) -> None:
        self._standings = {id_: standing for id_, standing in self._standings.items() if id_ != olt_id}

    def is_broken(self, olt_id: int) -> bool:
        return olt_id not in self._standings

    def of(self, olt_id: int) -> Sequence[Node]:
        return self._states[olt_id].nodes

    def broken(self) -> Sequence[int]:
        return [olt_id for olt_id in self._states if self.is_broken(olt_id)]


class ForecastLedger:
    """A Ledger that counts. Nobody else writes here, so whatever is claimed is there to be taken."""

    def __init__(self, nodes: ForecastNodes, score: Score, opens_after: int = OPENS_AFTER) -> None:
        self._nodes = nodes
        self._score = score
        self._opens_after = opens_after
        self._ids = itertools.count(1)
        self._open: dict[int, tuple[Node, datetime]] = {}
        self._failures: dict[int, int] = {}
        # The first slot of each master that is not accounted for yet.
        self._next: dict[int, datetime] = {}

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        self._next.update({node_id: check for node_id, check in checks.items() if check is not None})
        for item in skipped:
            # Those of an OLT that was taken out are accounted for at the end.
            if not self._nodes.is_broken(item.node.olt_id):
                self._skip(item)

    def _skip(self, item: Skipped) -> None:
        for node in (item.node, *item.chain):
            for number in range(item.slots):
                self._score.ended(node.id, item.slot + number * item.node.interval, Status.SKIPPED, item.cause)
        self._next[item.node.id] = item.slot + item.slots * item.node.interval

    def account_for_broken(self) -> None:
        """Count what was under way when a breaker opened, and the slots that are lost to it until the end."""
        for node, slot in self._open.values():
            if self._nodes.is_broken(node.olt_id):
                self._score.ended(node.id, slot, Status.FAILED, Cause.UNREACHABLE)
        for olt_id in self._nodes.broken():
            for master, chain in group_chains(self._nodes.of(olt_id)).values():
                due = self._next.get(master.id) or master.next_check or self._score.start
                slots = max(0, -((due - self._score.end) // master.interval))
                self._skip(Skipped(master, due, slots, Cause.BREAKER_OPEN, chain))

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        master = composite.master
        missed = missed_slots(composite.slot, master.interval, now)
        if missed:
            cause = max(waits, key=lambda key: waits[key], default=Cause.SCHEDULER_LATE)
            self._skip(Skipped(master, composite.slot + master.interval, missed, cause, composite.chain))
        self._score.began(master, composite.slot, now)
        ids = tuple(next(self._ids) for _ in composite.links)
        for id_, node in zip(ids, composite.links, strict=True):
            self._open[id_] = (node, composite.slot)
        check = self._next[master.id] = next_check(composite.slot, master.interval, now)
        return Claim(composite, ids, poller_id, check)

    async def reclaim(self, claim: Claim, *, poller_id: int, now: datetime) -> bool:
        return not self._nodes.is_broken(claim.composite.olt_id)

    async def start(self, execution_id: int, *, lease: Lease, now: datetime) -> bool:
        return True

    async def put_off(
        self, execution_ids: Sequence[int], outcome: Outcome, *, retry_at: datetime, lease: Lease, now: datetime
    ) -> None: ...

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        for id_ in execution_ids:
            node, slot = self._open.pop(id_)
            self._score.ended(node.id, slot, outcome.status, outcome.cause)
            if heard(outcome) is Heard.SILENCE:
                self._count_silence(node.olt_id)

    def _count_silence(self, olt_id: int) -> None:
        # Nothing is ever heard of a dead OLT, so the count only grows.
        self._failures[olt_id] = self._failures.get(olt_id, 0) + 1
        if self._failures[olt_id] == self._opens_after:
            self._nodes.open_breaker(olt_id)

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        return 0

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        return False

    async def probed(self, olt_id: int, *, now: datetime) -> None: ...

    async def forgive(self, olt_ids: Collection[int], *, now: datetime) -> None: ...

    async def recover(self, now: datetime) -> int:
        return 0


class SleepingRunner:
    """Runs nothing, but takes the time that a run takes: drawn for each link from what is known of it."""

    def __init__(self, fleet: Fleet, ledger: ForecastLedger, clock: Clock, *, seed: int, dead_from: datetime) -> None:
        self._durations = fleet.durations
        self._dead = fleet.dead
        self._dead_from = dead_from
        self._ledger = ledger
        self._clock = clock
        self._dice = random.Random(seed)

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        now = self._clock.now()
        if claim.composite.olt_id in self._dead and now >= self._dead_from:
            return await self._time_out(claim)
        # One wait for the whole chain: nobody looks at its links while they run.
        await self._clock.sleep(sum(self._draw(node, now) for node in claim.composite.links))
        done = Outcome(Status.SUCCESS)
        await self._ledger.close(claim.execution_ids, done, lease=None, now=self._clock.now())
        return [done] * len(claim.execution_ids)

    def _draw(self, node: Node, now: datetime) -> float:
        """Return how long a run takes, its time limit at most."""
        prediction = self._durations(node, now)
        seconds = prediction.mean * self._dice.lognormvariate(0.0, prediction.spread)
        return min(seconds, node.timeout.total_seconds())

    async def _time_out(self, claim: Claim) -> Sequence[Outcome]:
        """Wait as a real run waits for a mute OLT, and fail as it does: the links behind the first are not asked."""
        await self._clock.sleep(SILENCE)
        now, master = self._clock.now(), claim.composite.master
        failed = Outcome(Status.FAILED, Cause.UNREACHABLE)
        again = retry_at(master, failed, claim.attempt, claim.next_check, now)
        skipped = Outcome(Status.SKIPPED, Cause.UNREACHABLE, retry_at=again)
        if again is None:
            await self._ledger.close(claim.execution_ids[:1], failed, lease=None, now=now)
            await self._ledger.close(claim.execution_ids[1:], skipped, lease=None, now=now)
        return [replace(failed, retry_at=again), *[skipped] * (len(claim.execution_ids) - 1)]


def _states(nodes: Sequence[Node]) -> dict[int, OltState]:
    by_olt: dict[int, list[Node]] = {}
    for node in nodes:
        by_olt.setdefault(node.olt_id, []).append(node)
    return {id_: OltState(id_, its[0].olt_name, "", tuple(its)) for id_, its in by_olt.items()}


def on_grid(node: Node, begin: datetime) -> Node:
    """Return a node with the first slot of its grid from `begin` on."""
    if node.next_check is None:
        return node
    return replace(node, next_check=begin + (node.next_check - begin) % node.interval)
