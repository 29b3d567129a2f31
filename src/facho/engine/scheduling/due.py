"""Due times and urgency. Arithmetic only: no clock, no I/O."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from facho.engine.model import CompositeNode, JobKind, Node

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
