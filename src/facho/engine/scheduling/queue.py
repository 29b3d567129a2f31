"""The waiting room between the scheduler and the pollers."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.device import olts_by_device
from facho.engine.model import Cause, CompositeNode, Node, Trigger
from facho.engine.scheduling.due import DELAYED_AFTER, is_delayed, missed_slots, urgency
from facho.engine.scheduling.outages import NO_OUTAGES, Outages
from facho.engine.scheduling.retry import Retry


@dataclass(slots=True, eq=False)
class QueuedNode:
    """A composite that waits, and for what, in seconds by cause. The parts add up to the time since its slot."""

    composite: CompositeNode
    marked_at: datetime
    # Since when it has been passed over, over lost slots too: a short interval must not lose its place to a long one.
    since: datetime
    waits: dict[Cause, float] = field(default_factory=dict)
    # Set where its executions are claimed already, and wait for another attempt.
    retry: Retry | None = None
    # What stands between it and a run at the moment.
    cause: Cause = Cause.SCHEDULER_LATE
    # Time in which the database or the broker was unavailable is not put down to anything else.
    outages: Outages = NO_OUTAGES
    # Its place in the line; without one it has been passed over, until something happens at its OLT.
    ticket: int | None = None

    def mark(self, now: datetime) -> None:
        """Put the time since the last mark down to what it has been waiting for."""
        seconds = (now - self.marked_at).total_seconds()
        if seconds > 0:
            # An OLT that does not answer would not have been asked anyway.
            lost = {} if self.cause is Cause.BREAKER_OPEN else self.outages.within(self.marked_at, now)
            for cause, share in (*lost.items(), (self.cause, seconds - sum(lost.values()))):
                if share > 0:
                    self.waits[cause] = self.waits.get(cause, 0.0) + share
            self.marked_at = now

    def waits_for(self, now: datetime) -> Cause:
        """Return what stands between it and a run now."""
        return self.cause if self.cause is Cause.BREAKER_OPEN else self.outages.present(now) or self.cause

    def wait_for(self, cause: Cause, now: datetime) -> None:
        """Wait for something else from now on."""
        if cause is not self.cause:
            self.mark(now)
            self.cause = cause

    def clock_set(self, by: timedelta, now: datetime) -> None:
        """Move with the clock, which was set by so much and is at `now`. Only a slot stays where it is."""
        self.mark(now - by)
        self.marked_at += by
        self.since += by
        if self.retry is None and self.composite.trigger is Trigger.SCHEDULE:
            seconds = self.waits.pop(Cause.CLOCK_SET, 0.0) + by.total_seconds()
            if seconds > 0:
                self.waits[Cause.CLOCK_SET] = seconds

    @property
    def key(self) -> tuple[int, bool]:
        """Return what there is only one of: a node's slot, and a node's retry."""
        return self.composite.id, self.retry is not None

    @property
    def main_cause(self) -> Cause:
        """Return what it has waited for longest."""
        return max(self.waits, key=lambda cause: self.waits[cause], default=Cause.SCHEDULER_LATE)

    @property
    def expires_at(self) -> datetime | None:
        """Return when the next slot takes the place of this one; None for a wish, which waits as long as it must."""
        if self.retry is not None:
            return self.retry.claim.next_check
        return self.composite.slot_end if self.composite.trigger is Trigger.SCHEDULE else None

    def lost_slots(self, now: datetime) -> int:
        """Return how many slots, its own first, have come and gone."""
        return missed_slots(self.composite.slot, self.composite.master.interval, now)

    def renewed(self, now: datetime) -> "QueuedNode":
        """Return it with the latest slot that has come, for the ones before it are lost."""
        slot = self.composite.slot + self.lost_slots(now) * self.composite.master.interval
        return QueuedNode(replace(self.composite, slot=slot), slot, self.since, cause=self.cause)


# Says when a composite that makes way for another should be looked at again at the latest; None: it need not make way.
MakesWay = Callable[[QueuedNode], datetime | None]


class NodeQueue:
    """Holds each composite once and gives out the most urgent one that may run.

    A busy OLT never blocks the others: its nodes are passed over, not waited
    for, and get into the line again when the OLT is free. So what it costs to
    take one out does not depend on how many wait. OLTs with the same device
    are busy together. A retry waits beside the slots of its node, and never
    longer than until the next of them.
    """

    def __init__(self, outages: Outages = NO_OUTAGES) -> None:
        self._outages = outages
        self._waiting: dict[tuple[int, bool], QueuedNode] = {}
        self._by_olt: defaultdict[int, dict[tuple[int, bool], QueuedNode]] = defaultdict(dict)
        # The device of each OLT, and the OLTs of each device. An OLT without one has a device of its own.
        self._devices: Mapping[int, str] = {}
        self._by_device: Mapping[str, Sequence[int]] = {}
        # The OLTs that are being asked, each with the device that it keeps busy.
        self._busy: dict[int, str] = {}
        self._busy_devices: Counter[str] = Counter()
        self._broken: Collection[int] = frozenset()
        self._tickets = itertools.count(1)
        # By urgency; by when one must be looked at though nothing happened; by when slots end.
        self._line: list[tuple[tuple[int, float, float, int], int, QueuedNode]] = []
        self._alarms: list[tuple[datetime, int, QueuedNode]] = []
        self._ends: list[tuple[datetime, int, QueuedNode]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[QueuedNode]:
        return iter(self._waiting.values())

    def offer(self, composite: CompositeNode, now: datetime, cause: Cause = Cause.SCHEDULER_LATE) -> None:
        """Take a composite in; `cause` is why it comes after its slot.

        One that waits already is not doubled: its slot and its urgency are kept together.
        """
        self.put_back(QueuedNode(composite, composite.slot, composite.slot, cause=cause), now=now)

    def offer_retry(self, retry: Retry, now: datetime) -> None:
        """Take in what is to be tried again. It has not been waiting before its time came."""
        self.put_back(QueuedNode(retry.claim.composite, retry.at, retry.at, retry=retry), now=now)

    def put_back(self, *waitings: QueuedNode, now: datetime) -> None:
        """Take in, or back, with the time it has waited."""
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
        """Give it a place by how urgent it is now, and another one when it becomes delayed."""
        waiting.wait_for(self._blocked_by(waiting) or Cause.NO_FREE_POLLER, now)
        waiting.ticket = next(self._tickets)
        heappush(self._line, (_urgency(waiting, now), waiting.ticket, waiting))
        if not is_delayed(waiting.since, now):
            self._alarm(waiting, waiting.since + DELAYED_AFTER)

    def _alarm(self, waiting: QueuedNode, at: datetime) -> None:
        heappush(self._alarms, (at, next(self._tickets), waiting))

    def renew(self, node_id: int, master: Node, chain: tuple[Node, ...], now: datetime) -> None:
        """Let a composite that waits run as it is set up now, not as it was when it came in."""
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
            # Somebody may have made way for it.
            self._line_up_olt(waiting.composite.olt_id, now)
        return waiting

    def _remove(self, waiting: QueuedNode) -> None:
        waiting.ticket = None
        del self._waiting[waiting.key]
        del self._by_olt[waiting.composite.olt_id][waiting.key]

    def _is_there(self, waiting: QueuedNode) -> bool:
        return self._waiting.get(waiting.key) is waiting

    def expire(self, now: datetime) -> list[QueuedNode]:
        """Give out what has waited until its next slot came."""
        expired = []
        while self._ends and self._ends[0][0] <= now:
            _, _, waiting = heappop(self._ends)
            # Its interval may have become longer meanwhile, and then it is in here once more.
            if self._is_there(waiting) and waiting.expires_at is not None and waiting.expires_at <= now:
                waiting.mark(now)
                self._remove(waiting)
                expired.append(waiting)
        for olt_id in {waiting.composite.olt_id for waiting in expired}:
            self._line_up_olt(olt_id, now)
        return expired

    def clock_set(self, by: timedelta, now: datetime) -> None:
        """Move with the clock, which was set by so much and is at `now`."""
        for heap in (self._line, self._alarms, self._ends):
            heap.clear()
        for waiting in self._waiting.values():
            waiting.clock_set(by, now)
        self._outages.clock_set(by)
        for waiting in self._waiting.values():
            self._keep(waiting, now)

    def is_blocked(self, olt_id: int) -> bool:
        """Return whether an OLT, or another one with its device, is being asked."""
        device = self._devices.get(olt_id, "")
        return olt_id in self._busy or (device != "" and self._busy_devices[device] > 0)

    def block(self, olt_id: int, now: datetime) -> None:
        """Pass over the nodes of an OLT whose device is busy from now on, and those of others with this device."""
        self._free(olt_id)
        self._keep_busy(olt_id, self._devices.get(olt_id, ""))
        for each in self._sharing(olt_id, self._busy[olt_id]):
            for waiting in self._by_olt[each].values():
                waiting.wait_for(Cause.OLT_BUSY, now)

    def release(self, olt_id: int, now: datetime) -> None:
        """Let the nodes of an OLT into the line again, and those of others with its device."""
        for each in self._sharing(olt_id, self._free(olt_id)):
            self._line_up_olt(each, now)

    def _keep_busy(self, olt_id: int, device: str) -> None:
        self._busy[olt_id] = device
        self._busy_devices[device] += 1

    def _free(self, olt_id: int) -> str:
        """Return the device that an OLT kept busy until now."""
        device = self._busy.pop(olt_id, "")
        self._busy_devices[device] -= 1
        return device

    def _sharing(self, olt_id: int, device: str) -> set[int]:
        return {olt_id, *self._by_device.get(device, ())}

    def follow_devices(self, devices: Mapping[int, str], now: datetime) -> None:
        """Take over the device of each OLT. One that is being asked keeps the device that it is asked at."""
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
        """Pass over OLTs whose breaker is open, and let in those whose breaker was."""
        changed = set(broken) ^ set(self._broken)
        self._broken = broken
        for olt_id in changed:
            self._line_up_olt(olt_id, now)

    def _line_up_olt(self, olt_id: int, now: datetime) -> None:
        for waiting in self._by_olt[olt_id].values():
            self._line_up(waiting, now)

    def _blocked_by(self, waiting: QueuedNode) -> Cause | None:
        if self.is_blocked(waiting.composite.olt_id):
            return Cause.OLT_BUSY
        is_broken = waiting.composite.olt_id in self._broken and not waiting.composite.urgent
        return Cause.BREAKER_OPEN if is_broken else None

    def take(self, now: datetime, makes_way: MakesWay = lambda waiting: None) -> QueuedNode | None:
        """Give out the most urgent composite that may run."""
        self._wake(now)
        while self._line:
            _, ticket, waiting = heappop(self._line)
            if waiting.ticket == ticket and not self._passes_over(waiting, makes_way, now):
                waiting.mark(now)
                self._remove(waiting)
                return waiting
        return None

    def _passes_over(self, waiting: QueuedNode, makes_way: MakesWay, now: datetime) -> bool:
        """Return whether it may not run now; it is looked at again when something happens at its OLT."""
        waiting.ticket = None
        cause = self._blocked_by(waiting)
        if cause is None:
            again = makes_way(waiting)
            if again is None:
                return False
            self._alarm(waiting, again)
            cause = Cause.OLT_BUSY
        waiting.wait_for(cause, now)
        return True

    def _wake(self, now: datetime) -> None:
        while self._alarms and self._alarms[0][0] < now:
            _, _, waiting = heappop(self._alarms)
            if self._is_there(waiting):
                self._line_up(waiting, now)

    def highest_priority(self, olt_id: int) -> int:
        """Return the highest priority that waits for an OLT."""
        return max((waiting.composite.master.priority for waiting in self._by_olt[olt_id].values()), default=0)

    def delayed(self, now: datetime) -> int:
        """Return how many are late, but for those that wait for an OLT that never answers: that is told of it."""
        return sum(is_delayed(each.since, now) for each in self if each.cause is not Cause.BREAKER_OPEN)


def in_order(waitings: Iterable[QueuedNode], now: datetime) -> list[QueuedNode]:
    """Return all of them, most urgent first."""
    return sorted(waitings, key=lambda waiting: _urgency(waiting, now))


def _urgency(waiting: QueuedNode, now: datetime) -> tuple[int, float, float, int]:
    return urgency(waiting.composite, waiting.since, now)


def _merged(present: QueuedNode, coming: QueuedNode) -> QueuedNode:
    """Return one for two wishes, with the newest links.

    A slot that is due is never lost to a manual run: the run serves both, and has waited since the slot.
    """
    is_same = present.composite.slot == coming.composite.slot and present.composite.trigger is coming.composite.trigger
    kept = present if is_same or present.composite.trigger is Trigger.SCHEDULE else coming
    urgent = present.composite.urgent or coming.composite.urgent
    master, chain = _newest(present, coming)
    kept.composite = replace(kept.composite, master=master, chain=chain, urgent=urgent)
    return kept


def _newest(present: QueuedNode, coming: QueuedNode) -> tuple[Node, tuple[Node, ...]]:
    """Return the links of whichever slot or wish is the later one: its node was read later."""
    newest = max(present, coming, key=lambda waiting: waiting.composite.slot)
    return newest.composite.master, newest.composite.chain
