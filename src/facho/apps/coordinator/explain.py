"""Explanation of a node's delay: last slots, next slots, obstacles, and a summary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from facho.apps.coordinator.models import ExecutionPlan
from facho.apps.coordinator.obstacles import Obstacle, in_the_way
from facho.apps.coordinator.queries import active_plans
from facho.apps.coordinator.stories import SlotStory, last_slots
from facho.apps.inventory.scopes import restrict
from facho.apps.inventory.spans import interval, span
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.models import CAUSE_CHOICES
from facho.engine.model import Cause
from facho.engine.quota.durations import expected
from facho.engine.scheduling.grid import missed_slots

NEXT_SLOTS = 5

CAUSE_LABELS = dict(CAUSE_CHOICES)


@dataclass(frozen=True, slots=True)
class NextSlot:
    """A future slot and its predicted time, from the plan of the hour or from the grid.

    With a cause, the plan expects it to be lost.
    """

    slot: datetime
    start: datetime | None
    end: datetime | None
    source: str
    cause: str = ""

    @property
    def cause_label(self) -> str:
        return str(CAUSE_LABELS.get(self.cause, self.cause))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of a node. A chained node is explained through its master."""

    node: WorkflowNode
    level: str
    answer: str
    last_slots: Sequence[SlotStory]
    next_slots: Sequence[NextSlot]
    in_the_way: Sequence[Obstacle]
    at: datetime
    stale: bool

    @property
    def scheduled(self) -> WorkflowNode:
        return self.node.master or self.node


def explain(node_id: int, now: datetime, user: Any) -> Explanation:
    """Explain a node to a user, with three queries; 404 if it does not exist or is outside the user's scope."""
    nodes = WorkflowNode.objects.select_related("olt", "job", "master__job").defer("olt__extra", "olt__learned")
    node = get_object_or_404(restrict(nodes, user), pk=node_id)
    slots = last_slots(node.pk, now)
    news = live.snapshot_for(user, now)
    obstacles = in_the_way(node, slots, news, now)
    is_off = any(each.code.endswith(("_disabled", "_reads_nothing")) for each in obstacles)
    upcoming = [] if is_off else next_slots(node, list(active_plans(node.olt_id, now)), now)
    if node.olt.breaker_opened_at is not None:
        upcoming = [replace(each, start=None, end=None, cause=Cause.BREAKER_OPEN.value) for each in upcoming]
    level, answer = _answer(node, slots, upcoming, obstacles, now)
    return Explanation(node, level, answer, slots, upcoming, obstacles, now, news["stale"])


def next_slots(node: WorkflowNode, plans: Sequence[ExecutionPlan], now: datetime) -> list[NextSlot]:
    """Return the future slots as planned; beyond the plan, from the grid."""
    planned = {slot.slot: slot for plan in plans for slot in _planned(node, plan.plan_data, now)}
    rest = (slot for slot in _on_the_grid(node, now) if slot.slot not in planned)
    found = list(planned.values())
    while len(found) < NEXT_SLOTS and (slot := next(rest, None)) is not None:
        # A change restarts the grid, so an older plan does not cover slots off the grid.
        found.append(slot)
    return sorted(found, key=lambda each: each.slot)[:NEXT_SLOTS]


def _planned(node: WorkflowNode, plan: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[NextSlot]:
    master = node.master_id or node.pk
    for item in plan:
        slot = _time(item, "slot")
        if item.get("node_id") == master and slot is not None and slot > now:
            # A link without its own times has those of its composite.
            links = [link for link in item.get("chain", ()) if isinstance(link, Mapping) and link.get("start")]
            mine = next((link for link in links if link.get("node_id") == node.pk), item)
            yield NextSlot(slot, _time(mine, "start"), _time(mine, "end"), "plan", item.get("cause") or "")


def _time(item: Mapping[str, Any], name: str) -> datetime | None:
    return parse_datetime(item[name]) if item.get(name) else None


def _on_the_grid(node: WorkflowNode, now: datetime) -> Iterator[NextSlot]:
    master = node.master or node
    if master.next_run_at is None:
        return
    every = timedelta(seconds=master.interval_seconds)
    took = expected(node.durations, now)
    # Slots missed while the engine was down will not run; the last one may still be queued.
    first = master.next_run_at + missed_slots(master.next_run_at, every, now) * every
    for number in range(NEXT_SLOTS):
        slot = first + number * every
        start = max(slot, now)
        yield NextSlot(slot, start, start + timedelta(seconds=took.mean) if took else None, "grid")


def _answer(
    node: WorkflowNode,
    slots: Sequence[SlotStory],
    upcoming: Sequence[NextSlot],
    obstacles: Sequence[Obstacle],
    now: datetime,
) -> tuple[str, str]:
    """Return a summary: from permanent obstacles, else temporary ones, else the queue, else the last slot."""
    behind = ""
    if node.master is not None:
        known = {"job": node.job, "master": node.master.job, "interval": interval(node.master.interval_seconds)}
        behind = _("%(job)s runs right after %(master)s, every %(interval)s.") % known
    grave = next((each for each in obstacles if each.level == "bad"), None)
    if grave is not None:
        return "bad", _joined(behind, grave.sentence)
    newest = slots[0] if slots else None
    if newest is not None and newest.is_open:
        return newest.level, _joined(behind, newest.sentence)
    queued = [each for each in obstacles if each.code in ("queued", "olt_busy")]
    if any(each.code == "queued" for each in queued):
        return "late", _joined(behind, *(each.sentence for each in reversed(queued)))
    return _from_last(node, newest, upcoming, behind, now)


def _from_last(
    node: WorkflowNode, newest: SlotStory | None, upcoming: Sequence[NextSlot], behind: str, now: datetime
) -> tuple[str, str]:
    """Return a summary from the last slot, with the time of the next one."""
    ahead = ""
    if upcoming:
        left = (upcoming[0].slot - now).total_seconds()
        ahead = _("The next is due in %(span)s.") % {"span": span(left)} if left >= 1 else _("The next is due now.")
    if newest is None:
        return "late", _joined(behind, _("%(job)s has not run yet.") % {"job": node.job}, ahead)
    due = _("Its last slot was %(span)s ago.") % {"span": span((now - newest.execution.slot).total_seconds())}
    return newest.level, _joined(behind, due, newest.sentence, ahead)


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))
