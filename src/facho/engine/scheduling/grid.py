"""The grid: due times and urgency of masters, and the effect of changes on their slots. No clock, no I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from facho.engine.maintenance import Window
from facho.engine.model import Cause, CompositeNode, JobKind, Node, Skipped, Trigger
from facho.engine.quota.quota import by_hour

# A node that is this late counts as delayed: it runs first and is counted in the statistics.
DELAYED_AFTER = timedelta(seconds=5)

# Delay of the first run of a new node, plus its share of the spread.
FIRST_AFTER = timedelta(minutes=1)
SPREAD = timedelta(minutes=1)
SPREAD_PER_NODE = timedelta(seconds=1)

# A slot missed by less than this before the engine started is late, not lost: a restart is not an outage.
RESTART_GRACE = timedelta(seconds=10)

# The fractional parts of multiples of the golden ratio fill an interval evenly for any count.
GOLDEN_RATIO = 0.6180339887498949


def first_check(node: Node, now: datetime, together: int = 1) -> datetime:
    """Return the first due time of a new node, so that nodes enabled together do not start together.

    Nodes keep their offset forever. If there are too many for one minute, they start one second apart. Discoveries
    take the first half of the spread, because other jobs need their ONUs; an optical job would otherwise wait half an
    hour more.
    """
    share = node.id * GOLDEN_RATIO % 1 / 2
    if node.kind is not JobKind.DISCOVERY:
        share += 0.5
    first = now + FIRST_AFTER + share * min(node.interval, max(SPREAD, together * SPREAD_PER_NODE))
    return first.replace(microsecond=0)


def next_check(slot: datetime, interval: timedelta, now: datetime) -> datetime:
    """Return the first slot of the grid through `slot` that is after both `slot` and `now`.

    Slots are counted from the due time, not from the end of a run, so 5 minutes are 12 runs an hour. Missed slots are
    skipped, never caught up: an OLT that recovers must not get an hour of requests at once.
    """
    return slot + (missed_slots(slot, interval, now) + 1) * interval


def missed_slots(slot: datetime, interval: timedelta, now: datetime) -> int:
    """Return the number of slots after `slot` that have passed by `now`."""
    return max(now - slot, timedelta(0)) // interval


def excused(item: Skipped, windows: Iterable[Window]) -> Iterator[Skipped]:
    """Split slots that were lost without an engine: those in a window without polling were not wanted."""
    paused = [each for each in windows if not each.polls]
    slots, count, is_paused = item.slot, 0, False
    for number in range(item.slots):
        slot = item.slot + number * item.node.interval
        now_paused = any(each.covers(slot) for each in paused)
        if count and now_paused != is_paused:
            yield _part(item, slots, count, is_paused)
            slots, count = slot, 0
        count, is_paused = count + 1, now_paused
    if count:
        yield _part(item, slots, count, is_paused)


def _part(item: Skipped, slot: datetime, slots: int, is_paused: bool) -> Skipped:
    return replace(item, slot=slot, slots=slots, cause=Cause.MAINTENANCE if is_paused else item.cause)


def regrid(due: datetime, interval: timedelta, now: datetime) -> datetime:
    """Return the due time of a node after its interval changed.

    The new grid contains the old due time, so nodes stay spread. A shorter interval takes effect at once, a longer
    one at that time.
    """
    if due <= now:
        return due
    return due - (due - now - timedelta(microseconds=1)) // interval * interval


def free_slot(due: datetime, interval: timedelta, taken: Collection[datetime]) -> datetime:
    """Return the first time from `due` on whose grid avoids all `taken` slots.

    After the clock was set back, future slots already have executions. The grid moves by as few seconds as possible.
    """
    offsets = {(slot - due) % interval for slot in taken if slot >= due}
    shift = timedelta(0)
    while shift in offsets:
        shift += timedelta(seconds=1)
    return due + shift if shift < interval else next_check(due, interval, max(taken))


def group_chains(nodes: Iterable[Node]) -> dict[int, tuple[Node, tuple[Node, ...]]]:
    """Return each master with its chain, sorted by priority, then by id.

    A chained node without its master never runs.
    """
    masters: dict[int, Node] = {}
    chains: defaultdict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.master_id is None:
            masters[node.id] = node
        else:
            chains[node.master_id].append(node)
    return {
        id_: (master, tuple(sorted(chains[id_], key=lambda link: (-link.priority, link.id))))
        for id_, master in masters.items()
    }


def is_delayed(since: datetime, now: datetime) -> bool:
    return now - since > DELAYED_AFTER


def urgency(composite: CompositeNode, since: datetime, now: datetime) -> tuple[int, float, float, int]:
    """Return a sort key, most urgent first.

    Manual runs come first, then delayed ones by longest delay, then the others by priority and slot.
    """
    due = since.timestamp()
    priority = -composite.master.priority
    if composite.urgent:
        return (0, due, priority, composite.id)
    if is_delayed(since, now):
        return (1, due, priority, composite.id)
    return (2, priority, due, composite.id)


def may_make_way(since: datetime, interval: timedelta, now: datetime) -> bool:
    """Return whether a composite can wait for a gap: it is late already and has half its interval left."""
    return is_delayed(since, now) and now - since < interval / 2


# Longest forward clock step whose slots are accounted for. A clock that was a year off would fill the database.
LONGEST_GAP = timedelta(days=1)

# A master and its chain.
Links = tuple[Node, tuple[Node, ...]]


@dataclass(frozen=True, slots=True)
class Gap:
    """A forward clock step from `start` to `end`.

    A slot that was just due at `start` is included, because it may or may not have been offered by then.
    """

    start: datetime
    end: datetime

    def __contains__(self, slot: datetime) -> bool:
        return self.start - RESTART_GRACE < slot <= self.end

    def has_passed(self, slot: datetime) -> bool:
        """Return whether a slot is inside the gap and not merely late."""
        return slot in self and slot + RESTART_GRACE < self.end

    def time_since(self, at: datetime, now: datetime) -> timedelta:
        """Return the time between two times, without the gap."""
        return now - at - (self.end - self.start if at <= self.start else timedelta(0))

    @property
    def is_accounted_for(self) -> bool:
        return self.end - self.start <= LONGEST_GAP


@dataclass(slots=True)
class Shift:
    """Effect of a configuration change on the grid."""

    # Due times for `Slots.reschedule`. None removes a master from the grid.
    checks: dict[int, datetime | None] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    # For the heap.
    dues: dict[int, datetime] = field(default_factory=dict)

    def portions(self, at_once: int) -> Iterator[tuple[dict[int, datetime | None], list[Skipped]]]:
        """Yield the changes for `Slots.reschedule` in parts with a limited number of hourly quotas each.

        After a day without polling, a fleet has lost slots in too many hours for one short transaction.
        """
        lost: defaultdict[int, list[Skipped]] = defaultdict(list)
        for item in self.skipped:
            lost[item.node.id].append(item)
        checks, skipped, hours = {}, [], 0
        for node_id in sorted(self.checks.keys() | lost.keys()):
            if node_id in self.checks:
                checks[node_id] = self.checks[node_id]
            skipped += lost[node_id]
            hours += 1
            for item in lost[node_id]:
                quotas = sum(1 for _ in by_hour(item.slot, item.node.interval, item.slots))
                hours += quotas * (1 + len(item.chain))
            if hours >= at_once:
                yield checks, skipped
                checks, skipped, hours = {}, [], 0
        if checks or skipped:
            yield checks, skipped

    def avoid(self, taken: Mapping[int, Collection[datetime]], composites: Mapping[int, Links]) -> None:
        """Move due times away from slots that already have an execution."""
        for node_id, due in list(self.dues.items()):
            master, chain = composites[node_id]
            used = [slot for link in (master, *chain) for slot in taken.get(link.id, ())]
            free = free_slot(due, master.interval, used)
            if free != due:
                self.checks[node_id] = self.dues[node_id] = free


class Grid:
    """All composites, with the due times on a heap.

    A master is on the heap until it is due, then with the manager until its slot is claimed, then on the heap again
    at its next slot.
    """

    def __init__(self, restart_grace: timedelta = RESTART_GRACE) -> None:
        # Maximum age of a slot that is still run when an engine starts.
        self._restart_grace = restart_grace
        self._composites: dict[int, Links] = {}
        self._by_olt: dict[int, set[int]] = {}
        # Current due times. A heap entry that differs is outdated; a master without an entry is with the manager.
        self._due: dict[int, datetime] = {}
        self._heap: list[tuple[datetime, int]] = []
        # Interval of each master when it was put on the heap.
        self._intervals: dict[int, timedelta] = {}
        # OLTs with a master whose interval changed while its slot was being claimed.
        self.outdated: set[int] = set()

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._composites

    def of_olts(self, olt_ids: Iterable[int]) -> set[int]:
        """Return the masters of these OLTs."""
        return {node_id for olt_id in olt_ids for node_id in self._by_olt.get(olt_id, ())}

    def put(self, node_id: int, due: datetime, interval: timedelta) -> None:
        """Set the due time and the interval of a master."""
        self._due[node_id], self._intervals[node_id] = due, interval
        heappush(self._heap, (due, node_id))
        master, _ = self._composites[node_id]
        if master.interval != interval:
            self.outdated.add(master.olt_id)

    def follow_clock(self, gap: Gap | None, now: datetime) -> Shift:
        """Return the changes of the slots after the clock was set.

        Slots in the gap of a forward step are skipped, because offering all at once would overload the pool. After a
        backward step, masters that would wait longer than their interval become due earlier on their grid.
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
        """Remove and return the due composites. The cost does not depend on the nodes that are not due."""
        while self._heap and self._heap[0][0] <= now:
            due, node_id = heappop(self._heap)
            if self._due.get(node_id) == due:
                del self._due[node_id]
                master, chain = self._composites[node_id]
                yield CompositeNode(master, chain, due)

    def first_due(self) -> datetime | None:
        """Return when the next master is due."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def next_due(self, olt_id: int, above: int) -> datetime | None:
        """Return the next due time of a node of this OLT with a higher priority."""
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
        """Decide for each master: removed, new, or moved to another grid.

        `waiting` are slots that were offered and not claimed. `doubtful` are masters whose slot could not be claimed.
        """
        shift = Shift()
        for node_id in (before | set(doubtful)) - composites.keys():
            shift.checks[node_id] = None
            composite, due = waiting.get(node_id), self._due.get(node_id)
            if composite is None and due is not None and due <= now:
                # It should have been offered already: the scheduler is late.
                composite = CompositeNode(*self._composites[node_id], due)
            if composite is not None and composite.trigger is Trigger.SCHEDULE:
                # More than one slot only after a stall.
                slots = missed_slots(composite.slot, composite.master.interval, now) + 1
                cause = Cause.DISABLED if slots == 1 else Cause.SCHEDULER_LATE
                shift.skipped.append(Skipped(composite.master, composite.slot, slots, cause, composite.chain))
        together = len(composites.keys() - before)
        for node_id, links in composites.items():
            if node_id not in before or node_id in doubtful:
                grace = self._restart_grace if is_start else RESTART_GRACE
                lost = shift.skipped if is_start else None
                shift.dues[node_id] = _first_due(links, now, lost, grace=grace, together=together)
            elif node_id in self._due and self._intervals[node_id] != links[0].interval:
                shift.dues[node_id] = regrid(self._due[node_id], links[0].interval, now)
                # Reported even if the next slot is the same, because the quota of the hour changes.
                shift.checks[node_id] = shift.dues[node_id]
        shift.checks |= {id_: due for id_, due in shift.dues.items() if due != composites[id_][0].next_check}
        return shift

    def apply(self, dropped: Collection[int], composites: Mapping[int, Links], shift: Shift) -> None:
        """Apply a change after it was stored."""
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
    """Return the due time of a new master.

    When an engine starts, slots that passed before are added to `skipped`. Otherwise an old due time is ignored.
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
        # The interval changed while the engine was down, or the system clock was wrong.
        return regrid(due, master.interval, now)
    return due
