"""Fleet of a forecast and its random part: durations, results and outages. A seed makes it repeatable."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from facho.engine.forecast.failures import Failure, Habit, RunRecord
from facho.engine.model import Cause, CompositeNode, Node, Outcome, Status, Traffic
from facho.engine.quota.durations import Prediction
from facho.engine.quota.hour_plan import Work
from facho.engine.scheduling.breaker import PROBE_EVERY, first_probe
from facho.engine.scheduling.grid import first_check, group_chains, next_check

# Seconds after which a run without any answer is given up: one time-out.
SILENCE = 5.0

# Outcomes of a run with answers, with an error, and without an answer.
DONE = Outcome(Status.SUCCESS, traffic=Traffic(pdus=1, rtt_p50=0.0))
FAILED = Outcome(Status.FAILED, traffic=Traffic(pdus=1, rtt_p50=0.0))
REFUSED = Outcome(Status.FAILED, traffic=Traffic(pdus=1, rtt_p50=0.0), is_temporary=False)
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE)

# Maximum length of a forecast.
LONGEST = timedelta(days=31)

# Returns the expected duration of a node at a time.
Durations = Callable[[Node, datetime], Prediction]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes and OLTs of a forecast. Dead OLTs fail at its start and never answer."""

    nodes: tuple[Node, ...]
    durations: Durations
    dead: frozenset[int] = frozenset()
    # OLTs whose breaker was open before. If dead, they were so all the time.
    broken: frozenset[int] = frozenset()
    # Failures of OLTs. An OLT without a record always succeeds, unless it is dead.
    records: Mapping[int, RunRecord] = field(default_factory=dict)


class Chance:
    """Draws results and durations of runs.

    Outages are not drawn: they repeat those of the observed time, so that OLTs that failed together fail together
    again. Before the start, an OLT is as it is at the start.
    """

    def __init__(self, fleet: Fleet, start: datetime, *, seed: int) -> None:
        self._durations = fleet.durations
        self._records = fleet.records
        self._dead, self._broken = fleet.dead, fleet.broken
        self._start = start
        self._dice = random.Random(seed)
        # Results that are still to be drawn, by node.
        self._decks: dict[int, list[int]] = {}

    def is_away(self, olt_id: int, at: datetime) -> bool:
        """Return whether an OLT is unreachable."""
        if olt_id in self._dead:
            record = self._records.get(olt_id)
            is_away_now = record is not None and record.outages is not None and record.outages.left > 0
            return at >= self._start or olt_id in self._broken or is_away_now
        return self._back_at(olt_id, at) > at

    def _back_at(self, olt_id: int, at: datetime) -> datetime:
        """Return the time at which an OLT that is not dead is reachable; `at` itself if it is reachable then."""
        record = self._records.get(olt_id)
        if record is None or record.outages is None:
            return at
        first = self._start + timedelta(seconds=record.outages.left)
        if at < self._start:
            return max(at, first) if record.outages.left else at
        return first if at < first else record.outages.back_at(at)

    def found_at(self, olt_id: int, opened_at: datetime) -> datetime | None:
        """Return the time of the first answered probe after a breaker opened, or None if there is none."""
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
        """Return the outcome of a run and its seconds, at most `limit`."""
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
        """Draw from the observed attempts without replacement, then start again.

        So the failure rate is the observed one and not a matter of luck.
        """
        if not habit.failures:
            return None
        deck = self._decks.get(node_id)
        if not deck:
            deck = self._decks[node_id] = self._dice.sample(range(habit.attempts), habit.attempts)
        card = deck.pop()
        return habit.failures[card] if card < len(habit.failures) else None


def asked(fleet: Fleet) -> list[Node]:
    """Return the nodes that need pollers: OLTs that were dead before are not polled."""
    return [node for node in fleet.nodes if node.olt_id not in fleet.broken & fleet.dead]


def works(nodes: Iterable[Node], fleet: Fleet, start: datetime) -> Sequence[Work]:
    """Return the composites of a fleet with their expected durations."""
    found = []
    for master, chain in group_chains(nodes).values():
        composite = CompositeNode(master, chain, master.next_check or first_check(master, start))
        found.append(Work(composite, tuple(fleet.durations(link, start) for link in composite.links)))
    return found
