"""Report of a forecast, counted while it runs: quotas per hour, lateness, and causes of lost slots."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from facho.engine.forecast.verdict import ForecastFigures, Missed
from facho.engine.model import Cause, Node, Status
from facho.engine.quota.quota import SHARES, Share, severity
from facho.engine.scheduling.grid import DELAYED_AFTER

# Number of worst OLTs in a report.
WORST = 10


@dataclass(slots=True)
class SlotCounts:
    """Slots by result, counted as in `store/quotas.py`."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def required(self) -> int:
        return self.completed + self.failed + self.skipped

    @property
    def compliance(self) -> float:
        """Return the completed share of the required runs, in percent."""
        return 100 * self.completed / self.required if self.required else 100.0

    def add(self, status: Status, slots: int = 1) -> None:
        share = SHARES[status].value
        setattr(self, share, getattr(self, share) + slots)

    def take(self, other: "SlotCounts") -> None:
        self.completed += other.completed
        self.failed += other.failed
        self.skipped += other.skipped

    def as_json(self) -> dict[str, Any]:
        return {
            "required": self.required,
            "completed": self.completed,
            "failed": self.failed,
            "skipped": self.skipped,
            "compliance": round(self.compliance, 2),
        }


@dataclass(slots=True)
class Score:
    """Counts slots with start <= slot < end, each once; slots of a chain like those of its master.

    Lateness covers only reachable OLTs, because no pool size would help the others. The same applies to slots lost to
    an open breaker.
    """

    start: datetime
    end: datetime
    nodes: Mapping[int, Node]
    dead: Collection[int] = frozenset()
    # By node and hour since the start.
    quotas: defaultdict[tuple[int, int], SlotCounts] = field(default_factory=lambda: defaultdict(SlotCounts))
    # Delay of each composite in seconds, by task.
    lateness: defaultdict[str, "array[float]"] = field(default_factory=lambda: defaultdict(lambda: array("f")))
    causes: "Counter[str]" = field(default_factory=Counter)
    # Slots lost to an open breaker, by node.
    broken: "Counter[int]" = field(default_factory=Counter)
    # Slots lost to the OLT itself, by node: it failed or did not answer, so no pollers and no interval would help.
    lost_to_olt: "Counter[int]" = field(default_factory=Counter)
    # Seconds of all pollers, and of the busy ones.
    poller_seconds: float = 0.0
    busy_seconds: float = 0.0
    saturated_seconds: float = 0.0

    def covers(self, slot: datetime) -> bool:
        return self.start <= slot < self.end

    def began(self, node: Node, slot: datetime, now: datetime) -> None:
        """Record the delay of a composite."""
        if self.covers(slot) and node.olt_id not in self.dead:
            self.lateness[node.name].append((now - slot).total_seconds())

    def ended(self, node_id: int, slot: datetime, status: Status, cause: Cause | None) -> None:
        """Count a slot by its result."""
        if not self.covers(slot):
            return
        hour = int((slot - self.start).total_seconds() // 3600)
        self.quotas[node_id, hour].add(status)
        if SHARES[status] is not Share.COMPLETED:
            self.causes[cause.value if cause else "error"] += 1
        if cause is Cause.BREAKER_OPEN:
            self.broken[node_id] += 1
        if SHARES[status] is Share.FAILED or cause in (Cause.BREAKER_OPEN, Cause.UNREACHABLE):
            self.lost_to_olt[node_id] += 1

    def sampled(self, busy_percentage: float, pollers: int, seconds: float, is_saturated: bool) -> None:
        """Record the load of the pool."""
        self.poller_seconds += pollers * seconds
        self.busy_seconds += pollers * seconds * busy_percentage / 100
        self.saturated_seconds += seconds * is_saturated

    def report(self) -> dict[str, Any]:
        """Return the report as plain values."""
        every = SlotCounts()
        violations: Counter[str] = Counter()
        for count in self.quotas.values():
            every.take(count)
            judged = severity(count.completed, count.required)
            if judged is not None:
                violations[judged.value] += 1
        late = sorted(seconds for task in self.lateness.values() for seconds in task)
        return {
            **every.as_json(),
            "on_time": _on_time(late, self._composites_lost(None)),
            "lateness": _percentiles(late),
            "busy": round(100 * self.busy_seconds / self.poller_seconds, 1) if self.poller_seconds else 0.0,
            "saturated_minutes": round(self.saturated_seconds / 60, 1),
            "lost": dict(self.causes.most_common()),
            "violations": dict(violations),
            "jobs": self._jobs(),
            "worst_olts": self._worst(),
        }

    def figures(self, pollers: int, pollers_needed: int) -> ForecastFigures:
        """Return what decides whether the fleet fits."""
        seconds = (self.end - self.start).total_seconds()
        late = [each for task in self.lateness.values() for each in task]
        lost = self._composites_lost(None)
        return ForecastFigures(
            pollers,
            on_time=_on_time(late, lost),
            runs=(len(late) + lost) * 3600 / seconds,
            is_short=pollers_needed > pollers,
            busy=100 * self.busy_seconds / self.poller_seconds if self.poller_seconds else 0.0,
            saturated=100 * self.saturated_seconds / seconds,
            missed=self._missed(),
        )

    def _missed(self) -> dict[int, Missed]:
        """Return the quotas that are missed although their OLT answers."""
        nodes: defaultdict[int, SlotCounts] = defaultdict(SlotCounts)
        for (node_id, _), count in self.quotas.items():
            nodes[node_id].take(count)
        found = {}
        for node_id, count in nodes.items():
            node, owed = self.nodes[node_id], count.required - self.lost_to_olt[node_id]
            if node.olt_id not in self.dead and severity(count.completed, owed) is not None:
                found[node_id] = Missed(node_id, node.olt_name, node.name, 100 * count.completed / owed)
        return found

    def _composites_lost(self, task: str | None) -> int:
        """Return the number of skipped master slots of reachable OLTs, of one task or of all."""
        masters = {
            node.id
            for node in self.nodes.values()
            if node.master_id is None and node.olt_id not in self.dead and task in (None, node.name)
        }
        skipped = sum(count.skipped for (node_id, _), count in self.quotas.items() if node_id in masters)
        return skipped - sum(slots for node_id, slots in self.broken.items() if node_id in masters)

    def _jobs(self) -> list[dict[str, Any]]:
        """Return each job over the whole fleet, the worst first."""
        jobs: defaultdict[str, SlotCounts] = defaultdict(SlotCounts)
        for (node_id, _), count in self.quotas.items():
            jobs[self.nodes[node_id].name].take(count)
        rows = []
        for task, count in jobs.items():
            # Links start with their master and have no delay of their own.
            late = sorted(self.lateness.get(task, ()))
            on_time = _on_time(late, self._composites_lost(task)) if late else None
            p95 = _percentiles(late)["p95"] if late else None
            rows.append({"task": task, **count.as_json(), "on_time": on_time, "p95": p95})
        return sorted(rows, key=lambda row: (row["compliance"], row["task"]))

    def _worst(self) -> list[dict[str, Any]]:
        olts: defaultdict[int, SlotCounts] = defaultdict(SlotCounts)
        for (node_id, _), count in self.quotas.items():
            olts[self.nodes[node_id].olt_id].take(count)
        names = {node.olt_id: node.olt_name for node in self.nodes.values()}
        worst = sorted(olts.items(), key=lambda item: (item[1].compliance, item[0]))[:WORST]
        return [{"olt": names[id_], **count.as_json()} for id_, count in worst if count.compliance < 100]


def _on_time(late: Sequence[float], lost: int) -> float:
    """Return the share of slots that started in time, in percent. A lost slot is not in time."""
    slots = len(late) + lost
    in_time = sum(seconds <= DELAYED_AFTER.total_seconds() for seconds in late)
    return round(100 * in_time / slots, 2) if slots else 100.0


def _percentiles(late: Sequence[float]) -> dict[str, float]:
    if not late:
        return dict.fromkeys(("p50", "p95", "p99", "max"), 0.0)
    ranks = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(late[max(0, round(share * len(late)) - 1)], 1) for name, share in ranks.items()}
