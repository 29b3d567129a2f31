"""The queue between the scheduler and the pollers."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.device import olts_by_device
from facho.engine.model import Cause, CompositeNode, Node, Skipped, Trigger
from facho.engine.scheduling.grid import DELAYED_AFTER, is_delayed, missed_slots, urgency
from facho.engine.scheduling.outages import NO_OUTAGES, Outages
from facho.engine.scheduling.retry import Retry

# A node with one of these would not have been polled anyway.
NOT_POLLED = frozenset({Cause.BREAKER_OPEN, Cause.MAINTENANCE})


@dataclass(slots=True, eq=False)
class QueuedNode:
    """A queued composite, with its waiting time in seconds by cause. The parts add up to the time since its slot."""

    composite: CompositeNode
    marked_at: datetime
    # Start of the wait, across lost slots: a node with a short interval must not lose its place to a long one.
    since: datetime
    waits: dict[Cause, float] = field(default_factory=dict)
    # Set if its executions are already claimed and wait for another attempt.
    retry: Retry | None = None
    # Current reason for the wait.
    cause: Cause = Cause.SCHEDULER_LATE
    # Outages of the database or the broker are never attributed to another cause.
    outages: Outages = NO_OUTAGES
    # Place in the queue. None: skipped until something changes at its OLT.
    ticket: int | None = None
    # What there is only one of: a node's slot, and a node's retry.
    key: tuple[int, bool] = field(init=False)

    def __post_init__(self) -> None:
        self.key = (self.composite.id, self.retry is not None)

    def mark(self, now: datetime) -> None:
        """Add the time since the last mark to the current cause."""
        seconds = (now - self.marked_at).total_seconds()
        if seconds > 0:
            lost = {} if self.cause in NOT_POLLED else self.outages.within(self.marked_at, now)
            for cause, share in (*lost.items(), (self.cause, seconds - sum(lost.values()))):
                if share > 0:
                    self.waits[cause] = self.waits.get(cause, 0.0) + share
            self.marked_at = now

    def waits_for(self, now: datetime) -> Cause:
        """Return the current reason for the wait."""
        return self.cause if self.cause in NOT_POLLED else self.outages.present(now) or self.cause

    def wait_for(self, cause: Cause, now: datetime) -> None:
        """Set another reason for the wait from now on."""
        if cause is not self.cause:
            self.mark(now)
            self.cause = cause

    def clock_set(self, by: timedelta, now: datetime) -> None:
        """Shift the times after the clock was set to `now`. A slot is not shifted."""
        self.mark(now - by)
        self.marked_at += by
        self.since += by
        if self.retry is None and self.composite.trigger is Trigger.SCHEDULE:
            seconds = self.waits.pop(Cause.CLOCK_SET, 0.0) + by.total_seconds()
            if seconds > 0:
                self.waits[Cause.CLOCK_SET] = seconds

    @property
    def main_cause(self) -> Cause:
        """Return the cause with the longest waiting time."""
        return max(self.waits, key=lambda cause: self.waits[cause], default=Cause.SCHEDULER_LATE)

    @property
    def expires_at(self) -> datetime | None:
        """Return the start of the next slot, which replaces this one. None for a manual run, which does not expire."""
        if self.retry is not None:
            return self.retry.claim.next_check
        return self.composite.slot_end if self.composite.trigger is Trigger.SCHEDULE else None

    def lost_slots(self, now: datetime) -> int:
        """Return the number of slots that have passed, including its own."""
        return missed_slots(self.composite.slot, self.composite.master.interval, now)

    def as_skipped(self, now: datetime) -> Skipped:
        """Return its lost slots, with their cause."""
        composite = self.composite
        return Skipped(composite.master, composite.slot, self.lost_slots(now), self.main_cause, composite.chain)

    def renewed(self, now: datetime) -> "QueuedNode":
        """Return it with the latest slot; the earlier ones are lost."""
        slot = self.composite.slot + self.lost_slots(now) * self.composite.master.interval
        return QueuedNode(replace(self.composite, slot=slot), slot, self.since, cause=self.cause)


# Returns the latest time at which a composite that waits for a gap is checked again. None: it does not wait.
MakesWay = Callable[[QueuedNode], datetime | None]


class NodeQueue:
    """Queued composites, each once, most urgent first.

    A busy OLT never blocks another one: its nodes are skipped and queued again when the OLT is free, so the cost of
    `take` does not depend on the queue length. OLTs with the same device are busy together. A retry is queued beside
    the slots of its node, at most until the next slot.
    """

    def __init__(self, outages: Outages = NO_OUTAGES) -> None:
        self._outages = outages
        self._waiting: dict[tuple[int, bool], QueuedNode] = {}
        self._by_olt: defaultdict[int, dict[tuple[int, bool], QueuedNode]] = defaultdict(dict)
        # Device of each OLT, and OLTs of each device. An OLT without a known device has its own.
        self._devices: Mapping[int, str] = {}
        self._by_device: Mapping[str, Sequence[int]] = {}
        # OLTs that are polled, with the device that each keeps busy.
        self._busy: dict[int, str] = {}
        self._busy_devices: Counter[str] = Counter()
        self._broken: Collection[int] = frozenset()
        # OLTs in maintenance, and those of them that are not polled.
        self._maintained: Collection[int] = frozenset()
        self._paused: Collection[int] = frozenset()
        self._tickets = itertools.count(1)
        # Sorted by urgency, by time of the next check, and by end of the slot.
        self._line: list[tuple[tuple[int, float, float, int], int, QueuedNode]] = []
        self._alarms: list[tuple[datetime, int, QueuedNode]] = []
        self._ends: list[tuple[datetime, int, QueuedNode]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[QueuedNode]:
        return iter(self._waiting.values())

    def offer(self, composite: CompositeNode, now: datetime, cause: Cause = Cause.SCHEDULER_LATE) -> None:
        """Add a composite; `cause` is the reason for its delay.

        A node that is already queued is merged: slot and urgency are kept together.
        """
        self.put_back(QueuedNode(composite, composite.slot, composite.slot, cause=cause), now=now)

    def offer_retry(self, retry: Retry, now: datetime) -> None:
        """Add a retry. Its waiting time starts at its due time."""
        self.put_back(QueuedNode(retry.claim.composite, retry.at, retry.at, retry=retry), now=now)

    def put_back(self, *waitings: QueuedNode, now: datetime) -> None:
        """Add a composite again, with its waiting time so far."""
        for coming in waitings:
            present = self._waiting.get(coming.key)
            if present is not None:
                self._remove(present)
            self._keep(_merged(present, coming) if present else coming, now)

    def _keep(self, waiting: QueuedNode, now: datetime) -> None:
        waiting.outages = self._outages
        self._waiting[waiting.key] = self._by_olt[waiting.composite.olt_id][waiting.key] = waiting
        if waiting.expires_at is not None:
            heappush(self._ends, (waiting.expires_at, next(self._tickets), waiting))
        self._line_up(waiting, now)

    def _line_up(self, waiting: QueuedNode, now: datetime) -> None:
        """Sort it in by its current urgency, and again when it becomes delayed."""
        waiting.wait_for(self._blocked_by(waiting) or Cause.NO_FREE_POLLER, now)
        waiting.ticket = next(self._tickets)
        heappush(self._line, (_urgency(waiting, now), waiting.ticket, waiting))
        if not is_delayed(waiting.since, now):
            heappush(self._alarms, (waiting.since + DELAYED_AFTER, next(self._tickets), waiting))

    def renew(self, node_id: int, master: Node, chain: tuple[Node, ...], now: datetime) -> None:
        """Update a queued composite to its current configuration."""
        waiting = self.find(node_id)
        if waiting is not None and (waiting.composite.master, waiting.composite.chain) != (master, chain):
            waiting.composite = replace(waiting.composite, master=master, chain=chain)
            self._keep(waiting, now)

    def find(self, node_id: int) -> QueuedNode | None:
        return self._waiting.get((node_id, False))

    def withdraw(self, node_id: int, now: datetime) -> QueuedNode | None:
        waiting = self.find(node_id)
        if waiting is not None:
            self._remove(waiting)
            # Another composite may wait for it.
            self._line_up_olt(waiting.composite.olt_id, now)
        return waiting

    def _remove(self, waiting: QueuedNode) -> None:
        waiting.ticket = None
        del self._waiting[waiting.key]
        del self._by_olt[waiting.composite.olt_id][waiting.key]

    def _is_there(self, waiting: QueuedNode) -> bool:
        return self._waiting.get(waiting.key) is waiting

    def expire(self, now: datetime) -> list[QueuedNode]:
        """Remove and return composites whose next slot has started."""
        expired = []
        while self._ends and self._ends[0][0] <= now:
            _, _, waiting = heappop(self._ends)
            # If the interval became longer, there is a second entry.
            if self._is_there(waiting) and waiting.expires_at is not None and waiting.expires_at <= now:
                waiting.mark(now)
                self._remove(waiting)
                expired.append(waiting)
        for olt_id in {waiting.composite.olt_id for waiting in expired}:
            self._line_up_olt(olt_id, now)
        return expired

    def clock_set(self, by: timedelta, now: datetime) -> None:
        """Shift the times after the clock was set to `now`."""
        for heap in (self._line, self._alarms, self._ends):
            heap.clear()
        for waiting in self._waiting.values():
            waiting.clock_set(by, now)
        self._outages.clock_set(by)
        for waiting in self._waiting.values():
            self._keep(waiting, now)

    def is_blocked(self, olt_id: int) -> bool:
        """Return whether an OLT, or another one with its device, is polled."""
        device = self._devices.get(olt_id, "")
        return olt_id in self._busy or (device != "" and self._busy_devices[device] > 0)

    def block(self, olt_id: int, now: datetime) -> None:
        """Skip the nodes of an OLT whose device is busy, and those of other OLTs with this device."""
        self._free(olt_id)
        self._keep_busy(olt_id, self._devices.get(olt_id, ""))
        for each in self._sharing(olt_id, self._busy[olt_id]):
            for waiting in self._by_olt[each].values():
                waiting.wait_for(Cause.OLT_BUSY, now)

    def release(self, olt_id: int, now: datetime) -> None:
        """Queue the nodes of an OLT again, and those of other OLTs with its device."""
        for each in self._sharing(olt_id, self._free(olt_id)):
            self._line_up_olt(each, now)

    def _keep_busy(self, olt_id: int, device: str) -> None:
        self._busy[olt_id] = device
        self._busy_devices[device] += 1

    def _free(self, olt_id: int) -> str:
        """Return the device that an OLT kept busy."""
        device = self._busy.pop(olt_id, "")
        self._busy_devices[device] -= 1
        return device

    def _sharing(self, olt_id: int, device: str) -> set[int]:
        return {olt_id, *self._by_device.get(device, ())}

    def follow_devices(self, devices: Mapping[int, str], now: datetime) -> None:
        """Update the device of each OLT. An OLT that is polled keeps its device until the end."""
        if devices == self._devices:
            return
        moved = {id_ for id_, _ in devices.items() ^ self._devices.items()}
        self._devices, self._by_device = devices, olts_by_device(devices)
        # After a restart an OLT may be held before its device is known.
        for olt_id in [id_ for id_, device in self._busy.items() if not device]:
            self._free(olt_id)
            self._keep_busy(olt_id, devices.get(olt_id, ""))
        for olt_id in moved:
            self._line_up_olt(olt_id, now)

    def follow_breakers(self, broken: Collection[int], now: datetime) -> None:
        """Skip OLTs with an open breaker, and queue those whose breaker closed."""
        changed = set(broken) ^ set(self._broken)
        self._broken = broken
        for olt_id in changed:
            self._line_up_olt(olt_id, now)

    def follow_maintenance(self, maintained: Collection[int], paused: Collection[int], now: datetime) -> None:
        """Skip OLTs in maintenance without polling, and queue those whose maintenance ended."""
        changed = (set(paused) ^ set(self._paused)) | (set(maintained) ^ set(self._maintained))
        self._maintained, self._paused = maintained, paused
        for olt_id in changed:
            self._line_up_olt(olt_id, now)

    def _line_up_olt(self, olt_id: int, now: datetime) -> None:
        for waiting in self._by_olt[olt_id].values():
            self._line_up(waiting, now)

    def _blocked_by(self, waiting: QueuedNode) -> Cause | None:
        if self.is_blocked(waiting.composite.olt_id):
            return Cause.OLT_BUSY
        olt_id = waiting.composite.olt_id
        if waiting.composite.urgent or (olt_id not in self._paused and olt_id not in self._broken):
            return None
        # An OLT that does not answer during its maintenance is not to blame.
        return Cause.MAINTENANCE if olt_id in self._paused or olt_id in self._maintained else Cause.BREAKER_OPEN

    def take(self, now: datetime, makes_way: MakesWay = lambda waiting: None) -> QueuedNode | None:
        """Remove and return the most urgent composite that can run."""
        while self._alarms and self._alarms[0][0] < now:
            _, _, waiting = heappop(self._alarms)
            if self._is_there(waiting):
                self._line_up(waiting, now)
        while self._line:
            _, ticket, waiting = heappop(self._line)
            if waiting.ticket == ticket and not self._passes_over(waiting, makes_way, now):
                waiting.mark(now)
                self._remove(waiting)
                return waiting
        return None

    def _passes_over(self, waiting: QueuedNode, makes_way: MakesWay, now: datetime) -> bool:
        """Return whether it cannot run now. It is checked again when something changes at its OLT."""
        waiting.ticket = None
        cause = self._blocked_by(waiting)
        if cause is None:
            again = makes_way(waiting)
            if again is None:
                return False
            heappush(self._alarms, (again, next(self._tickets), waiting))
            cause = Cause.OLT_BUSY
        waiting.wait_for(cause, now)
        return True

    def next_alarm(self) -> datetime | None:
        """Return the time after which `take` looks at a composite again though nothing happened at its OLT."""
        return self._first(self._alarms)

    def next_end(self) -> datetime | None:
        """Return when the next slot ends, for `expire`."""
        return self._first(self._ends)

    def _first(self, heap: list[tuple[datetime, int, QueuedNode]]) -> datetime | None:
        while heap and not self._is_there(heap[0][2]):
            heappop(heap)
        return heap[0][0] if heap else None

    def highest_priority(self, olt_id: int) -> int:
        """Return the highest queued priority of an OLT."""
        return max((waiting.composite.master.priority for waiting in self._by_olt[olt_id].values()), default=0)

    def delayed(self, now: datetime) -> int:
        """Return the number of delayed composites, without those of OLTs that are not polled."""
        return sum(is_delayed(each.since, now) for each in self if each.cause not in NOT_POLLED)


def in_order(waitings: Iterable[QueuedNode], now: datetime) -> list[QueuedNode]:
    """Return all of them, most urgent first."""
    return sorted(waitings, key=lambda waiting: _urgency(waiting, now))


def _urgency(waiting: QueuedNode, now: datetime) -> tuple[int, float, float, int]:
    return urgency(waiting.composite, waiting.since, now)


def _merged(present: QueuedNode, coming: QueuedNode) -> QueuedNode:
    """Return one composite for a slot and a manual run, with the newest links.

    The run serves both, and its waiting time starts at the slot, so no due slot is lost to a manual run.
    """
    is_same = present.composite.slot == coming.composite.slot and present.composite.trigger is coming.composite.trigger
    kept = present if is_same or present.composite.trigger is Trigger.SCHEDULE else coming
    urgent = present.composite.urgent or coming.composite.urgent
    # The node of the later slot or request was read later.
    newest = max(present.composite, coming.composite, key=lambda composite: composite.slot)
    kept.composite = replace(kept.composite, master=newest.master, chain=newest.chain, urgent=urgent)
    return kept
