"""What is polled in a forecast, and the chance in it: how long runs take, how they end, and when OLTs are away.

A seed makes it repeatable.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from facho.engine.forecast.failures import Failure, Habit, RunRecord
from facho.engine.model import Cause, Node, Outcome, Status, Traffic
from facho.engine.quota.durations import Prediction
from facho.engine.scheduling.breaker import PROBE_EVERY, first_probe
from facho.engine.scheduling.due import next_check

# A run that meets silence from its first request is given up after one time-out, in seconds.
SILENCE = 5.0

# How a run ends that heard from its OLT, well or with an error, and one that did not.
DONE = Outcome(Status.SUCCESS, traffic=Traffic(pdus=1, rtt_p50=0.0))
FAILED = Outcome(Status.FAILED, traffic=Traffic(pdus=1, rtt_p50=0.0))
REFUSED = Outcome(Status.FAILED, traffic=Traffic(pdus=1, rtt_p50=0.0), is_temporary=False)
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE)

# No forecast is longer. What is not found by then need not be looked for.
LONGEST = timedelta(days=31)

# Returns how long a node takes at a time.
Durations = Callable[[Node, datetime], Prediction]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is polled in a forecast. Dead OLTs die when it begins, and answer nothing until its end."""

    nodes: tuple[Node, ...]
    durations: Durations
    dead: frozenset[int] = frozenset()
    # OLTs whose breaker was open before. Those that are dead as well were so all the time.
    broken: frozenset[int] = frozenset()
    # How the runs of OLTs fail. One that is not in here succeeds whenever the OLT is not dead.
    records: Mapping[int, RunRecord] = field(default_factory=dict)


class Chance:
    """Draws how runs end, and how long they take.

    When an OLT is away is not drawn: it is when it was in the time that was
    learned from, so that OLTs that went dark together do so again. Before the
    start it is as it stands at the start.
    """

    def __init__(self, fleet: Fleet, start: datetime, *, seed: int) -> None:
        self._durations = fleet.durations
        self._records = fleet.records
        self._dead, self._broken = fleet.dead, fleet.broken
        self._start = start
        self._dice = random.Random(seed)
        # What is still to be dealt, by node.
        self._decks: dict[int, list[int]] = {}

    def is_away(self, olt_id: int, at: datetime) -> bool:
        """Return whether an OLT answers nobody."""
        if olt_id in self._dead:
            return at >= self._start or olt_id in self._broken or self._left(olt_id) > 0
        return self._back_at(olt_id, at) > at

    def _left(self, olt_id: int) -> float:
        record = self._records.get(olt_id)
        return record.outages.left if record and record.outages else 0.0

    def _back_at(self, olt_id: int, at: datetime) -> datetime:
        """Return when an OLT that is not dead is back; the time itself, if it is there."""
        record = self._records.get(olt_id)
        if record is None or record.outages is None:
            return at
        first = self._start + timedelta(seconds=record.outages.left)
        if at < self._start:
            return max(at, first) if record.outages.left else at
        return first if at < first else record.outages.back_at(at)

    def found_at(self, olt_id: int, opened_at: datetime) -> datetime | None:
        """Return when the first probe is answered by an OLT whose breaker opened then, or None if never."""
        if olt_id in self._dead:
            return None
        probe = first_probe(olt_id, opened_at)
        while probe - opened_at < LONGEST:
            back = self._back_at(olt_id, probe)
            if back <= probe:
                return probe
            probe = next_check(probe, PROBE_EVERY, back)
        return None

    def run(self, node: Node, at: datetime, limit: float) -> tuple[Outcome, float]:
        """Return how a run that begins then ends, and after how many seconds: so many at most."""
        record = self._records.get(node.olt_id)
        if self.is_away(node.olt_id, at):
            silences = record.silences if record else ()
            return SILENT, min(self._dice.choice(silences) if silences else SILENCE, limit)
        failure = self._failure(node.id, record.habit(node.id)) if record else None
        if failure is not None:
            answer = FAILED if failure.is_temporary else REFUSED
            return SILENT if failure.is_silent else answer, min(failure.seconds, limit)
        prediction = self._durations(node, at)
        return DONE, min(prediction.mean * self._dice.lognormvariate(0.0, prediction.spread), limit)

    def _failure(self, node_id: int, habit: Habit) -> Failure | None:
        """Deal what was seen of a node like cards: each comes once, in any order, before one comes again.

        So the share of failures is what it was, and no matter of luck.
        """
        if not habit.failures:
            return None
        deck = self._decks.get(node_id)
        if not deck:
            deck = self._decks[node_id] = self._dice.sample(range(habit.attempts), habit.attempts)
        card = deck.pop()
        return habit.failures[card] if card < len(habit.failures) else None
