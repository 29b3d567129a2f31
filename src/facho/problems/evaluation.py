"""Evaluation: problems open, grow, last and end, each evaluation in one transaction.

The result depends on the database only, so it is the same after a restart and in each process. What is kept in memory
saves reading and computing again what has not changed.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from facho.apps.telemetry.models import RX_WEAK
from facho.engine.problems.branches import located
from facho.engine.problems.flapping import flapping
from facho.engine.problems.lasting import with_cause_of_peak
from facho.engine.problems.model import (
    OF_ONUS,
    Confidence,
    FoundProblem,
    OltState,
    OpenProblem,
    ProbableCause,
    ProblemKind,
)
from facho.engine.problems.olts import late_jobs, olts_down, suspects, violations
from facho.engine.problems.optics import low_power, power_drops
from facho.engine.problems.outages import outages
from facho.problems.models import Problem, ProblemEntry
from facho.problems.sources import Network, late_nodes, port_onus, violated_quotas

logger = logging.getLogger(__name__)

# A problem that is not found ends after this time. One reading may have missed it.
ENDS_AFTER = timedelta(seconds=60)
# One that comes back within this time is the same problem.
REOPENS_WITHIN = timedelta(minutes=10)
# OLTs without new values are looked at again, because problems end with time too.
AGAIN_AFTER = timedelta(minutes=1)
TURNS = 6
# Growth worth an entry of the history.
GROWTH = 1.25
# Ids of ONUs that a problem keeps.
MOST_ONUS = 500

# Columns that the evaluation writes. People write the others.
COLUMNS = (
    "kind", "severity", "since", "until", "absent_since", "unknown_since", "cause", "confidence", "affected", "peak",
    "evidence", "onus", "part_of",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Looked:
    """The problems of an OLT, and what they follow from."""

    version: int
    state: tuple[object, ...]
    open: Mapping[str, OpenProblem]
    at: datetime
    found: list[FoundProblem]


@dataclass(slots=True)
class _Changes:
    """Changes of one evaluation."""

    now: datetime
    new: list[Problem] = field(default_factory=list)
    changed: dict[int, Problem] = field(default_factory=dict)
    entries: list[ProblemEntry] = field(default_factory=list)
    # Problems that turned out to be part of another, which may be new.
    parts: list[tuple[Problem, Problem]] = field(default_factory=list)
    # OLTs whose pages show something else now; None for problems of no OLT.
    olts: set[int | None] = field(default_factory=set)

    def change(self, problem: Problem) -> None:
        self.changed[problem.pk] = problem
        self.olts.add(problem.olt_id)

    def note(self, problem: Problem, kind: str, at: datetime | None = None, **values: object) -> None:
        self.entries.append(ProblemEntry(problem=problem, at=at or self.now, kind=kind, values=values))
        logger.info("%s: %s %s", problem.key, problem.kind, kind)


class ProblemWatch:
    """Evaluates the network again and again."""

    def __init__(self) -> None:
        self._network = Network()
        self._looked: dict[int, _Looked] = {}

    def evaluate(self, now: datetime, *, is_stale: bool = False) -> set[int | None]:
        """Find the problems, write what changed, and return the OLTs concerned.

        `is_stale`: the scheduler does not report, so late jobs are not its OLTs' problem; they stay as they are.
        """
        standing = {problem.key: problem for problem in Problem.objects.open()}
        oldest: dict[int, datetime] = {}
        for problem in standing.values():
            if problem.olt_id is not None:
                oldest[problem.olt_id] = min(problem.since, oldest.get(problem.olt_id, problem.since))
        olts = self._network.read(now, oldest)
        found = self._of_onus(olts, standing, now)
        found += olts_down(list(olts.values())) + suspects(olts.values()) + violations(violated_quotas(now), olts)
        if not is_stale:
            found += late_jobs(late_nodes(now), olts, now)
        changes = _compare({each.key: each for each in found}, standing, olts, now, is_stale=is_stale)
        if changes.new or changes.changed:
            _write(changes)
        return changes.olts

    def _of_onus(
        self, olts: Mapping[int, OltState], standing: Mapping[str, Problem], now: datetime
    ) -> list[FoundProblem]:
        """Return the problems of ONUs, computed again for OLTs that changed, and for the others once a minute."""
        open_: dict[int | None, dict[str, OpenProblem]] = defaultdict(dict)
        for problem in standing.values():
            if problem.kind in OF_ONUS:
                open_[problem.olt_id][problem.key] = _open(problem)
        looked = {}
        for id_, olt in olts.items():
            version, state = self._network.version(id_), (olt.is_enabled, olt.down_since)
            last = self._looked.get(id_)
            if (
                last is None
                or (last.version, last.state, last.open) != (version, state, open_[id_])
                or not timedelta(0) <= now - last.at < AGAIN_AFTER
            ):
                # Not all OLTs in the same evaluation: the first look counts as one of the last minute.
                at = now if last is not None else now - AGAIN_AFTER * (id_ % TURNS) / TURNS
                last = _Looked(version, state, open_[id_], at, problems_of(olt, open_[id_], now))
            looked[id_] = last
        self._looked = looked
        return [each for last in looked.values() for each in last.found]


def _open(problem: Problem) -> OpenProblem:
    return OpenProblem(
        problem.key,
        problem.since,
        problem.peak,
        ProblemKind(problem.kind),
        ProbableCause(problem.cause),
        Confidence(problem.confidence),
    )


def problems_of(olt: OltState, open_: Mapping[str, OpenProblem], now: datetime) -> list[FoundProblem]:
    """Return the problems of the ONUs of one OLT."""
    found = [
        *outages(olt, open_, now),
        *low_power(olt, open_, now),
        *power_drops(olt, now),
        *flapping(olt, open_, now),
    ]
    onus = port_onus(olt.id, found)
    at_places = [located(each, onus.get((each.slot, each.port), []), RX_WEAK) for each in found]
    return [with_cause_of_peak(each, open_) for each in at_places]


def _compare(
    found: Mapping[str, FoundProblem],
    standing: Mapping[str, Problem],
    olts: Mapping[int, OltState],
    now: datetime,
    *,
    is_stale: bool,
) -> _Changes:
    changes = _Changes(now)
    ended = _recently_ended(found.keys() - standing.keys(), now)
    rows = dict(standing)
    for key, each in found.items():
        problem = standing.get(key) or ended.get(key)
        if problem is None:
            problem = rows[key] = _new(each, now)
            changes.new.append(problem)
            changes.olts.add(problem.olt_id)
            changes.note(problem, ProblemEntry.Kind.FOUND, customers=each.affected)
        else:
            rows[key] = problem
            _continue(problem, each, changes)
    for key, problem in standing.items():
        if key not in found and not (is_stale and problem.kind == Problem.Kind.JOB_LATE):
            _miss(problem, found, rows, olts, changes)
    return changes


def _recently_ended(keys: Iterable[str], now: datetime) -> dict[str, Problem]:
    """Return the problems that ended a moment ago, by key."""
    keys = list(keys)
    if not keys:
        return {}
    rows = Problem.objects.filter(key__in=keys, until__gt=now - REOPENS_WITHIN).order_by("until")
    return {problem.key: problem for problem in rows}


def _new(found: FoundProblem, now: datetime) -> Problem:
    return Problem(
        kind=found.kind.value,
        severity=found.severity.value,
        key=found.key,
        olt_id=found.olt,
        slot=found.slot,
        port=found.port,
        onu_id=found.onu,
        since=found.since,
        found_at=now,
        cause=found.cause.value,
        confidence=found.confidence.value,
        affected=found.affected,
        peak=found.affected,
        evidence=dict(found.evidence),
        onus=list(found.onus[:MOST_ONUS]),
    )


def _continue(problem: Problem, found: FoundProblem, changes: _Changes) -> None:
    """Bring an open problem, or one that came back, up to date."""
    if problem.until is not None:
        problem.until = problem.part_of = None
        changes.note(problem, ProblemEntry.Kind.REOPENED)
        changes.change(problem)
    if problem.cause != found.cause:
        changes.note(problem, ProblemEntry.Kind.CHANGED, before=problem.cause, after=found.cause.value)
    if found.affected > problem.peak:
        if found.affected >= problem.peak * GROWTH:
            changes.note(problem, ProblemEntry.Kind.GREW, before=problem.peak, after=found.affected)
        problem.peak, problem.onus = found.affected, list(found.onus[:MOST_ONUS])
        changes.change(problem)
    values = {
        "kind": found.kind.value,
        "severity": found.severity.value,
        # Some of the first ONUs may be back.
        "since": min(problem.since, found.since),
        "cause": found.cause.value,
        "confidence": found.confidence.value,
        "affected": found.affected,
        "evidence": dict(found.evidence),
        "absent_since": None,
        "unknown_since": None,
    }
    different = {name: value for name, value in values.items() if getattr(problem, name) != value}
    for name, value in different.items():
        setattr(problem, name, value)
    if different:
        changes.change(problem)


def _miss(
    problem: Problem,
    found: Mapping[str, FoundProblem],
    rows: Mapping[str, Problem],
    olts: Mapping[int, OltState],
    changes: _Changes,
) -> None:
    """Handle an open problem that was not found: its state is unknown, it is part of another, or it ends."""
    now, olt = changes.now, olts.get(problem.olt_id or 0)
    if problem.kind in OF_ONUS and olt is not None and not olt.knows(problem.slot, problem.port, now):
        if problem.unknown_since is None:
            problem.unknown_since = olt.down_since or now
            changes.change(problem)
        return
    larger = next((key for key in _larger(problem) if key in found), None)
    if larger is not None:
        problem.until = now
        changes.parts.append((problem, rows[larger]))
        changes.note(problem, ProblemEntry.Kind.ENDED, part_of=larger)
        changes.change(problem)
    elif problem.absent_since is None:
        problem.absent_since = now
        # Unknown no longer: it was looked at.
        problem.unknown_since = None
        changes.change(problem)
    elif now - problem.absent_since >= ENDS_AFTER:
        problem.until = problem.absent_since
        changes.note(problem, ProblemEntry.Kind.ENDED, at=problem.absent_since)
        changes.change(problem)


def _larger(problem: Problem) -> list[str]:
    """Return the keys of problems that an outage of a port or card can turn out to be a part of."""
    if not problem.key.startswith("outage/"):
        return []
    own = f"outage/{problem.olt_id}"
    return [key for key in (f"{own}/{problem.slot}", own, f"power/{problem.olt_id}") if key != problem.key]


@transaction.atomic
def _write(changes: _Changes) -> None:
    Problem.objects.bulk_create(changes.new)
    for part, larger in changes.parts:
        part.part_of = larger
    Problem.objects.bulk_update(changes.changed.values(), COLUMNS, batch_size=200)
    ProblemEntry.objects.bulk_create(changes.entries)
