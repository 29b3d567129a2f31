"""When each master is due: the composites in memory, and what a change means for their slots. No I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.model import Cause, CompositeNode, Node, Skipped, Trigger
from facho.engine.quota.quota import by_hour
from facho.engine.scheduling.due import RESTART_GRACE, first_check, free_slot, missed_slots, next_check, regrid

# Slots of a longer step forward are not accounted for one by one: a clock that was a year off would fill the database.
LONGEST_GAP = timedelta(days=1)

# A master and its chain.
Links = tuple[Node, tuple[Node, ...]]


@dataclass(frozen=True, slots=True)
class Gap:
    """Time that never was: the clock was set forward from `start` to `end`.

    A slot that was just due at `start` counts as well: whether it had been offered by then is chance.
    """

    start: datetime
    end: datetime

    def __contains__(self, slot: datetime) -> bool:
        return self.start - RESTART_GRACE < slot <= self.end

    def has_passed(self, slot: datetime) -> bool:
        """Return whether a slot lies in the gap and is not just late."""
        return slot in self and slot + RESTART_GRACE < self.end

    def time_since(self, at: datetime, now: datetime) -> timedelta:
        """Return how much time has passed between two times, without the gap."""
        return now - at - (self.end - self.start if at <= self.start else timedelta(0))

    @property
    def is_accounted_for(self) -> bool:
        return self.end - self.start <= LONGEST_GAP


@dataclass(slots=True)
class Shift:
    """What a change of the set-up means for the grid."""

    # For `Slots.reschedule`: when masters are due now; None takes one off the grid.
    checks: dict[int, datetime | None] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    # For the heap.
    dues: dict[int, datetime] = field(default_factory=dict)

    def portions(self, at_once: int) -> Iterator[tuple[dict[int, datetime | None], list[Skipped]]]:
        """Yield the changes for `Slots.reschedule` in parts, each with the quotas of so many hours or a few more.

        A fleet that was not polled for a day has lost slots in more hours than fit into a transaction of a moment.
        """
        lost: defaultdict[int, list[Skipped]] = defaultdict(list)
        for item in self.skipped:
            lost[item.node.id].append(item)
        checks, skipped, hours = {}, [], 0
        for node_id in sorted(self.checks.keys() | lost.keys()):
            if node_id in self.checks:
                checks[node_id] = self.checks[node_id]
            skipped += lost[node_id]
            hours += 1 + sum(_hours(item) for item in lost[node_id])
            if hours >= at_once:
                yield checks, skipped
                checks, skipped, hours = {}, [], 0
        if checks or skipped:
            yield checks, skipped

    def avoid(self, taken: Mapping[int, Collection[datetime]], composites: Mapping[int, Links]) -> None:
        """Move due times off slots that have an execution already."""
        for node_id, due in list(self.dues.items()):
            master, chain = composites[node_id]
            used = [slot for link in (master, *chain) for slot in taken.get(link.id, ())]
            free = free_slot(due, master.interval, used)
            if free != due:
                self.checks[node_id] = self.dues[node_id] = free


class Grid:
    """Holds every composite, and the due ones on top of a heap.

    A master is on the heap until it is due, then with the manager until its
    slot is claimed, and back on the heap, at its next slot, from then on.
    """

    def __init__(self, restart_grace: timedelta = RESTART_GRACE) -> None:
        # How late a slot may be that is found when an engine starts, and still be run.
        self._restart_grace = restart_grace
        self._composites: dict[int, Links] = {}
        self._by_olt: dict[int, set[int]] = {}
        # When each master is due; an entry of the heap that disagrees is out of date. Absent: with the manager.
        self._due: dict[int, datetime] = {}
        self._heap: list[tuple[datetime, int]] = []
        # The interval that each master was put on the heap with.
        self._intervals: dict[int, timedelta] = {}
        # OLTs of masters that have another one by now: it was changed while a slot was being claimed.
        self.outdated: set[int] = set()

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._composites

    def of_olts(self, olt_ids: Iterable[int]) -> set[int]:
        """Return the masters of these OLTs."""
        return {node_id for olt_id in olt_ids for node_id in self._by_olt.get(olt_id, ())}

    def put(self, node_id: int, due: datetime, interval: timedelta) -> None:
        """Let a master be due then, on a grid of this interval."""
        self._due[node_id], self._intervals[node_id] = due, interval
        heappush(self._heap, (due, node_id))
        master, _ = self._composites[node_id]
        if master.interval != interval:
            self.outdated.add(master.olt_id)

    def follow_clock(self, gap: Gap | None, now: datetime) -> Shift:
        """Decide what becomes of the slots after the clock was set.

        Slots in the gap of a step forward are skipped: offering all of them at
        once would be a storm. After a step back, masters that would not be
        polled for longer than their interval are due earlier on their grid.
        """
        shift = Shift()
        for node_id, due in self._due.items():
            master, chain = self._composites[node_id]
            if due > now + master.interval + RESTART_GRACE:
                shift.dues[node_id] = regrid(due, master.interval, now)
            elif gap is not None and gap.has_passed(due):
                if gap.is_accounted_for:
                    lost = missed_slots(due, master.interval, now) + 1
                    shift.skipped.append(Skipped(master, due, lost, Cause.CLOCK_SET, chain))
                shift.dues[node_id] = next_check(due, master.interval, now)
        shift.checks.update(shift.dues)
        return shift

    def links_of(self, node_ids: Iterable[int]) -> dict[int, Links]:
        """Return masters with their chains."""
        return {node_id: self._composites[node_id] for node_id in node_ids}

    def take_due(self, now: datetime) -> Iterator[CompositeNode]:
        """Give out what is due. Costs nothing for nodes that are not."""
        while self._heap and self._heap[0][0] <= now:
            due, node_id = heappop(self._heap)
            if self._due.get(node_id) == due:
                del self._due[node_id]
                master, chain = self._composites[node_id]
                yield CompositeNode(master, chain, due)

    def next_due(self, olt_id: int, above: int) -> datetime | None:
        """Return when the OLT is next due for something of a higher priority than this."""
        dues = (
            self._due[node_id]
            for node_id in self._by_olt.get(olt_id, ())
            if node_id in self._due and self._composites[node_id][0].priority > above
        )
        return min(dues, default=None)

    def compare(
        self,
        before: set[int],
        composites: Mapping[int, Links],
        waiting: Mapping[int, CompositeNode],
        doubtful: Collection[int],
        now: datetime,
        *,
        is_start: bool,
    ) -> Shift:
        """Decide what becomes of each master: dropped, met for the first time or anew, or moved to another grid.

        `waiting` are slots that were offered and not claimed; `doubtful` the
        masters whose slot was not there to be claimed.
        """
        shift = Shift()
        for node_id in (before | set(doubtful)) - composites.keys():
            shift.checks[node_id] = None
            shift.skipped += _slot_of_dropped(waiting.get(node_id) or self._overdue(node_id, now), now)
        together = len(composites.keys() - before)
        for node_id, links in composites.items():
            if node_id not in before or node_id in doubtful:
                grace = self._restart_grace if is_start else RESTART_GRACE
                lost = shift.skipped if is_start else None
                shift.dues[node_id] = _first_due(links, now, lost, grace=grace, together=together)
            elif node_id in self._due and self._intervals[node_id] != links[0].interval:
                shift.dues[node_id] = regrid(self._due[node_id], links[0].interval, now)
                # Told even where its next slot stays: what it owes to the hour does not.
                shift.checks[node_id] = shift.dues[node_id]
        shift.checks |= {id_: due for id_, due in shift.dues.items() if due != composites[id_][0].next_check}
        return shift

    def _overdue(self, node_id: int, now: datetime) -> CompositeNode | None:
        """Return a composite that should have been given out by now: the scheduler comes late to it."""
        due = self._due.get(node_id)
        return CompositeNode(*self._composites[node_id], due) if due is not None and due <= now else None

    def apply(self, dropped: Collection[int], composites: Mapping[int, Links], shift: Shift) -> None:
        """Follow a change that has been written down."""
        for node_id in dropped:
            known = self._composites.pop(node_id, None)
            self._due.pop(node_id, None)
            self._intervals.pop(node_id, None)
            if known is not None:
                self._by_olt.get(known[0].olt_id, set()).discard(node_id)
        for node_id, links in composites.items():
            self._composites[node_id] = links
            self._by_olt.setdefault(links[0].olt_id, set()).add(node_id)
        for node_id, due in shift.dues.items():
            self.put(node_id, due, composites[node_id][0].interval)
        self._note_outdated(composites)

    def _note_outdated(self, composites: Mapping[int, Links]) -> None:
        """Note which of these OLTs have a master whose slot was claimed while it was being given another interval."""
        masters = [master for master, _ in composites.values()]
        self.outdated -= {master.olt_id for master in masters}
        self.outdated |= {
            master.olt_id
            for master in masters
            if master.id in self._due and self._intervals[master.id] != master.interval
        }


def _first_due(
    links: Links, now: datetime, skipped: list[Skipped] | None, *, grace: timedelta, together: int
) -> datetime:
    """Return when a master is due that we did not know.

    When an engine starts, slots that passed while none was there are lost, and
    put to those `skipped`; otherwise an old due time means nothing.
    """
    master, chain = links
    due = master.next_check
    is_over = due is not None and due + grace < now
    if due is None or (is_over and skipped is None):
        return first_check(master, now, together)
    if is_over and skipped is not None:
        lost = missed_slots(due, master.interval, now) + 1
        skipped.append(Skipped(master, due, lost, Cause.ENGINE_DOWN, chain))
        return next_check(due, master.interval, now)
    if due > now + master.interval:
        # Its interval was changed while the engine was down, or the clock of the machine was wrong.
        return regrid(due, master.interval, now)
    return due


def _slot_of_dropped(composite: CompositeNode | None, now: datetime) -> list[Skipped]:
    """Return the slots that a node was waiting with when it was disabled; more than one only a stall leaves behind."""
    if composite is None or composite.trigger is not Trigger.SCHEDULE:
        return []
    lost = missed_slots(composite.slot, composite.master.interval, now) + 1
    cause = Cause.DISABLED if lost == 1 else Cause.SCHEDULER_LATE
    return [Skipped(composite.master, composite.slot, lost, cause, composite.chain)]


def _hours(item: Skipped) -> int:
    """Return how many quotas lost slots belong to."""
    return sum(1 for _ in by_hour(item.slot, item.node.interval, item.slots)) * (1 + len(item.chain))
