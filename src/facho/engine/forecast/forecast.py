"""Forecast adapters: runs only take time and nothing is sent. Results are counted, not stored.

Scheduler, pollers and queue are the real ones. On a virtual clock, a day of a thousand OLTs takes a minute.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.errors import OltGone
from facho.engine.forecast.fleet import SILENT, Chance, Fleet
from facho.engine.forecast.report import Score
from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    Node,
    Olt,
    Outcome,
    Recovery,
    Skipped,
    Standing,
    Status,
)
from facho.engine.ports import Clock, PollerWatch
from facho.engine.scheduling import prober
from facho.engine.scheduling.breaker import OPENS_AFTER, Heard, heard
from facho.engine.scheduling.changes import OltState
from facho.engine.scheduling.grid import missed_slots, next_check
from facho.engine.scheduling.pollers import PollerManager, TakeClaim
from facho.engine.scheduling.retry import retry_at

# A link after one without an answer.
UNASKED = Outcome(Status.SKIPPED, Cause.UNREACHABLE)


class ForecastNodes:
    """A NodeSource in which only breakers change.

    Probes are not sent: the time of the first answered probe is known when a breaker opens, and it closes then.
    """

    def __init__(self, fleet: Fleet, chance: Chance, clock: Clock, *, auto_recover: bool = True) -> None:
        self._chance = chance
        self._clock = clock
        self._auto_recover = auto_recover
        by_olt: dict[int, list[Node]] = {}
        for node in fleet.nodes:
            by_olt.setdefault(node.olt_id, []).append(node)
        self._states = {id_: OltState(id_, its[0].olt_name, "", tuple(its)) for id_, its in by_olt.items()}
        self._standings = {id_: Standing(1) for id_ in self._states}
        self._fingerprints: Mapping[int, str] = {}
        # Closing times of breakers, the next one first.
        self._closing: list[tuple[datetime, int]] = []
        for olt_id in sorted(fleet.broken & self._states.keys()):
            self.open_breaker(olt_id)

    async def standings(self) -> Mapping[int, Standing]:
        while self._closing and self._closing[0][0] <= self._clock.now():
            self._set(heappop(self._closing)[1], Standing(1))
        # The same mapping while nothing changed, because it is called every virtual second.
        return self._standings

    async def fingerprints(self) -> Mapping[int, str]:
        return self._fingerprints

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        return {olt_id: self._states[olt_id] for olt_id in olt_ids}

    async def olt(self, olt_id: int) -> Olt:
        raise OltGone(f"OLT {olt_id} exists in a forecast only")

    def open_breaker(self, olt_id: int) -> None:
        now = self._clock.now()
        self._set(olt_id, Standing(1, now))
        found = self._chance.found_at(olt_id, now) if self._auto_recover else None
        if found is not None:
            heappush(self._closing, (found, olt_id))

    def is_broken(self, olt_id: int) -> bool:
        return self._standings[olt_id].breaker_since is not None

    def _set(self, olt_id: int, standing: Standing) -> None:
        self._standings = {**self._standings, olt_id: standing}


class ForecastSlots:
    """Slots that are only counted. A claim always succeeds, because there is no other process."""

    def __init__(self, nodes: ForecastNodes, score: Score, opens_after: int = OPENS_AFTER) -> None:
        self._nodes = nodes
        self._score = score
        self._opens_after = opens_after
        self._ids = itertools.count(1)
        self._open: dict[int, tuple[Node, datetime]] = {}
        self._failures: dict[int, int] = {}

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        for item in skipped:
            self._skip(item)

    async def taken(self, node_ids: Collection[int], *, after: datetime) -> Mapping[int, Collection[datetime]]:
        return {}

    async def move(self, execution_ids: Collection[int], by: timedelta) -> None: ...

    def _skip(self, item: Skipped) -> None:
        for node in (item.node, *item.chain):
            for number in range(item.slots):
                self._score.ended(node.id, item.slot + number * item.node.interval, Status.SKIPPED, item.cause)

    async def claim(
        self, composite: CompositeNode, *, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
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
        return Claim(composite, ids, poller_id, next_check(composite.slot, master.interval, now))

    async def reclaim(self, claim: Claim, *, poller_id: int | None, now: datetime) -> bool:
        return True

    async def close(self, execution_ids: Sequence[int], outcome: Outcome, *, now: datetime) -> None:
        for id_ in execution_ids:
            self.finish(id_, outcome)

    def finish(self, execution_id: int, outcome: Outcome) -> None:
        """Count the end of an execution once; with `retry_at` only the result of the attempt."""
        if execution_id not in self._open:
            return
        node, slot = self._open[execution_id]
        if outcome.retry_at is None:
            del self._open[execution_id]
            self._score.ended(node.id, slot, outcome.status, outcome.cause)
        olt_id, said = node.olt_id, heard(outcome)
        if said is Heard.ANSWER:
            self._failures.pop(olt_id, None)
        elif said is Heard.SILENCE and not self._nodes.is_broken(olt_id):
            self._failures[olt_id] = self._failures.get(olt_id, 0) + 1
            if self._failures[olt_id] >= self._opens_after:
                # After it closes, counting starts again.
                del self._failures[olt_id]
                self._nodes.open_breaker(olt_id)

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        return 0

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        self._failures.pop(olt_id, None)
        return True

    async def probed(self, olt_id: int, *, now: datetime) -> None: ...

    async def reset_breakers(self, olt_ids: Collection[int], *, now: datetime) -> None: ...

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        return {id_: Outcome(Status.RUNNING) for id_ in execution_ids if id_ in self._open}

    async def recover(self, now: datetime) -> Recovery:
        return Recovery()


class SleepingRunner:
    """Sends nothing, but takes the time of a run; result and duration are drawn for each link."""

    def __init__(self, chance: Chance, slots: ForecastSlots, clock: Clock) -> None:
        self._chance = chance
        self._slots = slots
        self._clock = clock

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        start, seconds = self._clock.now(), 0.0
        for node in claim.composite.links:
            at = start + timedelta(seconds=seconds)
            limit = node.timeout.total_seconds()
            if claim.attempt > 1 and claim.next_check is not None:
                # A retry has only the rest of its slot.
                limit = max(min(limit, (claim.next_check - at).total_seconds()), 0.0)
            outcome, took = self._chance.run(node, at, limit)
            seconds += took
            again = retry_at(node, outcome, claim.attempt, claim.next_check, start + timedelta(seconds=seconds))
            outcomes.append(outcome if again is None else replace(outcome, retry_at=again))
            if outcome.cause is Cause.UNREACHABLE:
                # The other links are skipped.
                rest = len(claim.execution_ids) - len(outcomes)
                outcomes += [replace(UNASKED, retry_at=again)] * rest
                break
        # One wait for the whole chain.
        await self._clock.sleep(seconds)
        end(self._slots, claim, outcomes)
        return outcomes


class SleepingProber:
    """Checks OLTs in doubt. A time-out takes its time; an answer takes none.

    Probes are not sent: see `ForecastNodes`.
    """

    def __init__(self, chance: Chance, slots: ForecastSlots, clock: Clock) -> None:
        self._chance = chance
        self._slots = slots
        self._clock = clock

    def follow(self, broken: Mapping[int, datetime]) -> None: ...

    def tick(self, now: datetime, manager: PollerManager) -> None: ...

    async def check(self, olt_id: int, claim: TakeClaim) -> Sequence[Outcome] | None:
        if not self._chance.is_away(olt_id, self._clock.now()):
            return None
        await self._clock.sleep(prober.TIMEOUT)
        taken = await claim()
        if taken is None:
            return []
        again = retry_at(taken.composite.master, SILENT, taken.attempt, taken.next_check, self._clock.now())
        rest = len(taken.execution_ids) - 1
        outcomes = [replace(SILENT, retry_at=again), *[replace(UNASKED, retry_at=again)] * rest]
        end(self._slots, taken, outcomes)
        return outcomes


def end(slots: ForecastSlots, claim: Claim, outcomes: Sequence[Outcome]) -> None:
    """Count the outcomes of the links of a claim."""
    for execution_id, outcome in zip(claim.execution_ids, outcomes, strict=True):
        slots.finish(execution_id, outcome)


def on_grid(node: Node, begin: datetime) -> Node:
    """Return a node with the first slot of its grid from `begin` on."""
    if node.next_check is None:
        return node
    return replace(node, next_check=begin + (node.next_check - begin) % node.interval)
