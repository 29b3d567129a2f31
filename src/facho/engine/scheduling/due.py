"""When things are due, and in what order. Only arithmetic: no clock, no I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from facho.engine.model import CompositeNode, JobKind, Node

# A node this late counts as delayed: it goes first, and into the statistics.
DELAYED_AFTER = timedelta(seconds=5)

# A node that was just enabled runs after this, plus its share of the spread: a minute, or more for many at once.
FIRST_AFTER = timedelta(minutes=1)
SPREAD = timedelta(minutes=1)
SPREAD_PER_NODE = timedelta(seconds=1)

# A slot that passed this short a time before the engine came up is late, not lost: a restart is no outage.
RESTART_GRACE = timedelta(seconds=10)

# Multiples of the golden ratio, less their whole part, fill an interval more evenly than chance, in any number.
GOLDEN_RATIO = 0.6180339887498949


def first_check(node: Node, now: datetime, together: int = 1) -> datetime:
    """Return when a node that was just enabled runs first, so that a hundred enabled at once do not start together.

    They stay where they start, slot for slot: with so many `together` that a
    minute would be a rush hour for ever, they get a second each. Discoveries
    take the first half of the spread: what other jobs ask for is what a
    discovery has found, and an optical one would wait half an hour more.
    """
    share = node.id * GOLDEN_RATIO % 1 / 2
    if node.kind is not JobKind.DISCOVERY:
        share += 0.5
    first = now + FIRST_AFTER + share * min(node.interval, max(SPREAD, together * SPREAD_PER_NODE))
    return first.replace(microsecond=0)


def next_check(slot: datetime, interval: timedelta, now: datetime) -> datetime:
    """Return the first slot of the grid through `slot` that lies after both `slot` and `now`.

    Slots are counted from the time the node was due, not from the time it
    ended. An interval of 5 minutes is then 12 runs an hour, however long each
    run takes. Slots missed while the OLT was busy are skipped, never made up
    for: an OLT that comes back must not get an hour of queries at once.
    """
    return slot + (missed_slots(slot, interval, now) + 1) * interval


def missed_slots(slot: datetime, interval: timedelta, now: datetime) -> int:
    """Return how many slots after `slot` have come and gone by `now`."""
    return max(now - slot, timedelta(0)) // interval


def regrid(due: datetime, interval: timedelta, now: datetime) -> datetime:
    """Return when a node is due whose interval has just changed.

    The new grid goes through the old due time, so nodes that were spread stay
    spread; a shorter interval takes effect at once, a longer one at that time.
    """
    if due <= now:
        return due
    return due - (due - now - timedelta(microseconds=1)) // interval * interval


def free_slot(due: datetime, interval: timedelta, taken: Collection[datetime]) -> datetime:
    """Return the first time from `due` on whose grid meets no slot that is taken.

    After the clock was set back, slots ahead have executions already. The
    grid moves by the fewest seconds that avoid all of them.
    """
    offsets = {(slot - due) % interval for slot in taken if slot >= due}
    shift = timedelta(0)
    while shift in offsets:
        shift += timedelta(seconds=1)
    return due + shift if shift < interval else next_check(due, interval, max(taken))


def group_chains(nodes: Iterable[Node]) -> dict[int, tuple[Node, tuple[Node, ...]]]:
    """Return each master with its chain, most urgent link first, then by id.

    A chained node whose master is not among them never runs.
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
    """Return a key that sorts the most urgent first.

    What a person waits for comes first, then what is delayed, longest delay
    first; among those in time the higher priority, then the earlier slot.
    """
    due = since.timestamp()
    priority = -composite.master.priority
    if composite.urgent:
        return (0, due, priority, composite.id)
    if is_delayed(since, now):
        return (1, due, priority, composite.id)
    return (2, priority, due, composite.id)


def may_make_way(since: datetime, interval: timedelta, now: datetime) -> bool:
    """Return whether a composite may be asked to wait for a gap: it is late anyway, and has half its interval left."""
    return is_delayed(since, now) and now - since < interval / 2
