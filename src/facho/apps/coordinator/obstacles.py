"""Obstacles before the next run of a node: settings, breaker, engine, queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.coordinator.stories import SlotStory
from facho.apps.inventory import labels
from facho.apps.inventory.models import Olt
from facho.apps.inventory.spans import span
from facho.apps.jobs.models import WorkflowNode
from facho.engine.model import Cause


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One obstacle. `level` is late for a temporary one, bad for one that needs an action."""

    code: str
    level: str
    sentence: str
    since: datetime | None = None
    poller: int | None = None
    position: int | None = None
    node: int | None = None


def in_the_way(
    node: WorkflowNode, slots: Sequence[SlotStory], news: Mapping[str, Any], now: datetime
) -> list[Obstacle]:
    """Return all obstacles of a node, permanent ones first."""
    found = [*_switched_off(node), *_barred(node.olt), *_breaker(node.olt, now), *_engine(news)]
    if not news["stale"]:
        at_work = {slot.execution.poller_id for slot in slots if slot.is_open and not slot.is_retrying}
        found += [*_busy(node, news, at_work), *_queued(node, news), *_saturated(news)]
    return found


def _switched_off(node: WorkflowNode) -> list[Obstacle]:
    if not node.olt.enabled:
        return [Obstacle("olt_disabled", "bad", _("%(olt)s is disabled: nothing is read from it.") % {"olt": node.olt})]
    for each in filter(None, (node, node.master)):
        if each.job.reads_nothing:
            said = _("%(job)s reads nothing, so it is not scheduled. Add a column or a raw OID to the job.")
            return [Obstacle("job_reads_nothing", "bad", said % {"job": each.job}, node=each.pk)]
        if each.own_enabled is False:
            said = _("%(job)s is disabled on %(olt)s.") % {"job": each.job, "olt": node.olt}
            return [Obstacle("node_disabled", "bad", said, node=each.pk)]
        if not each.enabled:
            return [
                Obstacle("job_disabled", "bad", _("The job %(job)s is disabled.") % {"job": each.job}, node=each.pk)
            ]
    return []


def _barred(olt: Olt) -> list[Obstacle]:
    return [Obstacle("olt_barred", "bad", olt.barred_note)] if olt.barred_note else []


def _breaker(olt: Olt, now: datetime) -> list[Obstacle]:
    if olt.breaker_opened_at is None:
        return []
    known = {
        "olt": olt,
        "span": span((now - olt.breaker_opened_at).total_seconds()),
        "n": olt.failures,
    }
    said = (
        ngettext(
            "The breaker of %(olt)s has been open for %(span)s: it did not answer %(n)d attempt.",
            "The breaker of %(olt)s has been open for %(span)s: it did not answer %(n)d attempts in a row.",
            olt.failures,
        )
        % known
    )
    if olt.breaker_answered_at is not None:
        waits = _("It answers again. Close the breaker to resume polling.")
        return [Obstacle("breaker_waits", "bad", f"{said} {waits}", since=olt.breaker_opened_at)]
    probed = _("It is probed once a minute.")
    return [Obstacle("breaker_open", "bad", f"{said} {probed}", since=olt.breaker_opened_at)]


def _engine(news: Mapping[str, Any]) -> list[Obstacle]:
    if not news["stale"]:
        return []
    if news["at"] is None:
        return [Obstacle("engine_silent", "bad", _("The engine has not reported yet: it may be starting or down."))]
    said = _("The engine has not reported for %(span)s: nothing runs until it is back.") % {"span": span(news["age"])}
    return [Obstacle("engine_silent", "bad", said, since=parse_datetime(news["at"]))]


def _busy(node: WorkflowNode, news: Mapping[str, Any], at_work: set[int | None]) -> list[Obstacle]:
    """Return the node that keeps the device of the OLT busy, unless it is the node itself."""
    holders = {each["olt_id"]: each for each in news["pollers"] if each["olt_id"] is not None}
    holder = holders.get(node.olt_id)
    if holder is None and holders:
        holder = holders.get(node.olt.same_device.filter(pk__in=holders).values_list("pk", flat=True).first())
    if holder is None or holder["id"] in at_work:
        return []
    since = parse_datetime(holder["busy_since"]) if holder["busy_since"] else None
    known = {
        "olt": node.olt,
        "node": labels.job(holder["node"] or ""),
        "poller": holder["id"],
        "span": span(holder["seconds"]),
    }
    if holder["seconds"] >= 1:
        said = _("%(olt)s has been busy with %(node)s for %(span)s, in poller %(poller)s.") % known
    else:
        said = _("%(olt)s is busy with %(node)s, in poller %(poller)s.") % known
    return [Obstacle("olt_busy", "late", said, since=since, poller=holder["id"], node=holder["node_id"])]


def _queued(node: WorkflowNode, news: Mapping[str, Any]) -> list[Obstacle]:
    """Return its place in the queue, as far as the snapshot shows the queue."""
    mine = {node.pk, (node.master or node).pk}
    for position, each in enumerate(news["queue"]["next"], start=1):
        if each["node_id"] in mine:
            said = _waiting(each, position, news["queue"]["size"])
            return [Obstacle("queued", "late", said, since=parse_datetime(each["slot"]), position=position)]
    return []


def _waiting(each: Mapping[str, Any], position: int, size: int) -> str:
    """Return the start and cause of a wait, and the number of runs before it, if any."""
    what = waiting_for().get(each["waiting_for"], each["waiting_for"])
    known = {"what": what, "span": span(each["late"]), "n": position, "all": size}
    # Less than a second: it has just become due.
    if each["late"] >= 1:
        said = _("It has been due for %(span)s and is waiting for %(what)s.") % known
    else:
        said = _("It is due now and is waiting for %(what)s.") % known
    place = _("It is number %(n)d of %(all)d in the queue.") % known if size > 1 else ""
    return f"{said} {place}".rstrip()


def waiting_for() -> dict[str, str]:
    """Return the cause for which a queued composite waits."""
    return {
        Cause.OLT_BUSY.value: _("its OLT to be free"),
        Cause.NO_FREE_POLLER.value: _("a free poller"),
        Cause.BREAKER_OPEN.value: _("its OLT to answer again"),
        Cause.MAINTENANCE.value: _("the end of the maintenance"),
        Cause.DATABASE_UNAVAILABLE.value: _("the database, which is unavailable"),
        Cause.BROKER_UNAVAILABLE.value: _("Redis, which is unavailable"),
    }


def _saturated(news: Mapping[str, Any]) -> list[Obstacle]:
    stats = news["stats"]
    if not stats["is_saturated"]:
        return []
    known = {"busy": round(stats["busy_percentage"]), "all": stats["total_pollers"]}
    said = (
        ngettext(
            "The only poller was busy %(busy)d %% of the last minute: more pollers are needed.",
            "The %(all)d pollers were busy %(busy)d %% of the last minute: more pollers are needed.",
            stats["total_pollers"],
        )
        % known
    )
    return [Obstacle("pool_saturated", "late", said)]
