"""Result of each slot of a node as a sentence, and how its time was spent."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory.spans import exact, span
from facho.apps.polling.errors import first_line
from facho.apps.polling.lateness import IN_CHAIN, PART_LABELS, milliseconds
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.apps.polling.queries import with_parts
from facho.engine.model import Status
from facho.engine.scheduling.grid import DELAYED_AFTER

LAST_SLOTS = 20

# Shorter parts, in seconds, are not mentioned in a sentence.
WORTH_A_WORD = 1.0

# Shorter parts, in seconds, would be shown as zero.
WORTH_A_NUMBER = 0.005


@dataclass(frozen=True, slots=True)
class SlotStory:
    """One slot: its result, and the reason for a delay or loss. `level` is ok, late or bad."""

    execution: Any
    level: str
    sentence: str

    @property
    def lateness(self) -> float | None:
        late = self.execution.lateness
        return None if late is None else milliseconds(late) / 1000

    @property
    def waited_for(self) -> str:
        """Return the cause for which a slot did not run, or nothing."""
        return self.execution.cause if self.execution.status == Status.SKIPPED else ""

    @property
    def parts(self) -> dict[str, float]:
        parts: dict[str, float] = self.execution.parts
        return parts

    @property
    def shares(self) -> list[tuple[str, Any, float]]:
        """Return each visible part: name, label, seconds."""
        shown = {name: seconds for name, seconds in self.parts.items() if abs(seconds) >= WORTH_A_NUMBER}
        return [(name, PART_LABELS.get(name, name), seconds) for name, seconds in shown.items()]

    @property
    def is_open(self) -> bool:
        return self.execution.status in OPEN_STATUSES

    @property
    def is_running(self) -> bool:
        return bool(self.execution.status == Status.RUNNING)

    @property
    def is_retrying(self) -> bool:
        return self.execution.status == Status.PENDING and self.execution.retry_at is not None


def last_slots(node_id: int, now: datetime, many: int = LAST_SLOTS) -> list[SlotStory]:
    """Return the last slots of a node, the latest first, with one query."""
    rows = with_parts(Execution.objects.filter(node_id=node_id)).order_by("-slot", "-pk")[:many]
    return [SlotStory(row, *_said(row, now)) for row in rows]


def _said(run: Any, now: datetime) -> tuple[str, str]:
    """Return the level and the sentence."""
    match Status(run.status):
        case Status.PENDING:
            return _of_pending(run, now)
        case Status.RUNNING:
            return _of_running(run, now)
        case Status.SUCCESS:
            return _of_success(run)
        case Status.PARTIAL:
            said = _("It read only some of the data.")
            return "late", with_reason(f"{said} {_late(run)}".strip(), run)
        case Status.FAILED:
            said = ngettext("It failed.", "It failed in %(n)d attempts.", max(run.attempts_made, 1))
            return "bad", with_reason(said % {"n": run.attempts_made}, run)
        case Status.INTERRUPTED:
            return "bad", with_reason(_("It was interrupted."), run)
        case Status.SKIPPED:
            said = ngettext("It was lost.", "%(n)d slots in a row were lost.", run.slots)
            return "bad", with_reason(said % {"n": run.slots}, run)


def _of_pending(run: Any, now: datetime) -> tuple[str, str]:
    if run.retry_at is None:
        return "late", _("It is about to start.")
    ahead = (run.retry_at - now).total_seconds()
    known = {"n": run.attempts_made, "span": span(ahead)}
    if ahead >= 1:
        sentence = _("Attempt %(n)d failed; the next attempt is in %(span)s.") % known
    else:
        sentence = _("Attempt %(n)d failed; the next attempt starts as soon as the OLT and a poller are free.") % known
    return "late", with_reason(sentence, run)


def _of_running(run: Any, now: datetime) -> tuple[str, str]:
    known = {"span": exact((now - run.started_at).total_seconds()), "poller": run.poller_id, "n": run.attempts_made}
    # Its start is that of its first attempt.
    if run.attempts_made > 1:
        said = _("Attempt %(n)d is running in poller %(poller)s.") % known
    else:
        said = _("It has been running for %(span)s in poller %(poller)s.") % known
    return ("late" if is_late(run) else "ok"), f"{said} {_late(run)}".strip()


def _of_success(run: Any) -> tuple[str, str]:
    known = {"span": exact(run.duration or 0.0), "n": run.attempts_made}
    took = (_("It took %(span)s in %(n)d attempts.") if run.attempts_made > 1 else _("It took %(span)s.")) % known
    if is_late(run):
        return "late", f"{_late(run)} {took}"
    on_time = _("It ran on time.")
    return "ok", f"{on_time} {took}"


def waited(run: Any) -> float:
    """Return the delay of a run by cause. Earlier links of the chain are no delay."""
    return (run.lateness or 0.0) - float(run.parts.get(IN_CHAIN, 0.0))


def is_late(run: Any) -> bool:
    return waited(run) > DELAYED_AFTER.total_seconds()


def _late(run: Any) -> str:
    """Return the delay of a run or its chain with the causes, the longest first; empty if it was in time."""
    if not is_late(run):
        return ""
    parts = sorted(run.parts.items(), key=lambda part: -part[1])
    why = [
        _("%(span)s because %(why)s") % {"span": exact(seconds), "why": PART_LABELS.get(name, name)}
        for name, seconds in parts
        if seconds >= WORTH_A_WORD and name != IN_CHAIN
    ]
    is_link = run.master_execution_id is not None
    said = _("Its chain started %(span)s late") if is_link else _("It started %(span)s late")
    late = said % {"span": exact(waited(run))}
    return f"{late}: {', '.join(why)}." if why else f"{late}."


def with_reason(sentence: str, run: Any) -> str:
    """Return a sentence with the reason: the first line of the error, or the cause."""
    reason = first_line(run.error) or (str(run.get_cause_display()) if run.cause else "")
    if not reason:
        return sentence
    return f"{sentence} {reason[:1].upper()}{reason[1:].rstrip('.')}."
