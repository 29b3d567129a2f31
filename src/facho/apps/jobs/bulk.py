"""Changes of one job on many OLTs: what each OLT has now, what it will have, and why one is left out.

A change is planned first and applied later. In between, somebody else may change an OLT: it is then left out, with
what changed, because its state is compared with the one that was shown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory.bulk import Result
from facho.apps.inventory.models import Olt
from facho.apps.inventory.spans import interval
from facho.apps.jobs.columns import floor_warnings
from facho.apps.jobs.models import SnmpJob, WorkflowNode


class JobAction(StrEnum):
    """What can be done to a job on many OLTs."""

    INTERVAL = "interval"
    ENABLE = "enable"
    DISABLE = "disable"
    APPLY = "apply"
    REMOVE = "remove"

    @property
    def label(self) -> str:
        return {
            JobAction.INTERVAL: _("Set the interval"),
            JobAction.ENABLE: _("Enable"),
            JobAction.DISABLE: _("Disable"),
            JobAction.APPLY: _("Add the job"),
            JobAction.REMOVE: _("Remove the job"),
        }[self]


JOB_ACTIONS = [(action.value, action.value) for action in JobAction]

PERMISSIONS: Mapping[JobAction, str] = {
    JobAction.INTERVAL: WorkflowNode.OPERATE_PERMISSION,
    JobAction.ENABLE: WorkflowNode.OPERATE_PERMISSION,
    JobAction.DISABLE: WorkflowNode.OPERATE_PERMISSION,
    JobAction.APPLY: "jobs.add_workflownode",
    JobAction.REMOVE: "jobs.delete_workflownode",
}


def job_actions_of(user: Any) -> list[JobAction]:
    """Return the actions that a user may run."""
    return [action for action in JobAction if user.has_perm(PERMISSIONS[action])]


@dataclass(frozen=True, slots=True)
class NodeState:
    """A job on one OLT, as a preview shows it: what is in effect, whether it is its own or that of the job."""

    is_applied: bool = False
    interval_seconds: int | None = None
    enabled: bool | None = None

    @classmethod
    def of(cls, node: WorkflowNode | None) -> "NodeState":
        if node is None:
            return cls()
        scheduled = node if node.master is None else node.master
        return cls(True, scheduled.interval_seconds, node.enabled)

    def __str__(self) -> str:
        if not self.is_applied or self.interval_seconds is None:
            return _("not applied")
        every = _("every %(interval)s") % {"interval": interval(self.interval_seconds)}
        return every if self.enabled else _("%(state)s, disabled") % {"state": every}


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What one OLT has, what it will have, and a reason if it is left out."""

    olt: Olt
    before: NodeState
    after: NodeState
    result: Result
    detail: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of one job. `interval_seconds`: for that action; None means that of the job."""

    job: SnmpJob
    action: JobAction
    interval_seconds: int | None = None

    def plan(self, olts: Iterable[Olt], seen: Mapping[int, NodeState] | None = None) -> list[PlannedChange]:
        """Return what would happen to each OLT. Nothing is changed. `seen`: what the user was shown before."""
        olts = list(olts)
        nodes = self._nodes(olts)
        return [self._planned(olt, nodes.get(olt.pk), seen) for olt in olts]

    def run(self, olts: Iterable[Olt], seen: Mapping[int, NodeState] | None = None) -> list[PlannedChange]:
        """Change each OLT alone, in a transaction. One that is refused does not stop the others."""
        done = []
        for olt in olts:
            with transaction.atomic():
                # Locked, so that nobody changes it between the comparison and the change.
                node = self._nodes([olt], locked=True).get(olt.pk)
                planned = self._planned(olt, node, seen)
                if planned.result == Result.DONE:
                    self._apply(olt, node)
            done.append(planned)
        return done

    def _nodes(self, olts: Iterable[Olt], *, locked: bool = False) -> dict[int, WorkflowNode]:
        nodes = WorkflowNode.objects.filter(job=self.job, olt__in=olts).select_related("olt", "job", "master__job")
        if locked:
            nodes = nodes.select_for_update(of=("self",))
        return {node.olt_id: node for node in nodes.prefetch_related("job__oids")}

    def _planned(self, olt: Olt, node: WorkflowNode | None, seen: Mapping[int, NodeState] | None) -> PlannedChange:
        before = NodeState.of(node)
        if seen is not None and (shown := seen.get(olt.pk, before)) != before:
            said = _("It was changed after the preview: %(seen)s, now %(now)s. Preview it again.")
            values = {"seen": shown, "now": before}
            return PlannedChange(olt, before, before, Result.REFUSED, said % values)
        try:
            after = self._after(olt, node, before)
        except ValidationError as error:
            return PlannedChange(olt, before, before, Result.REFUSED, " ".join(error.messages))
        if after == before and not self._frees(node):
            return PlannedChange(olt, before, after, Result.UNCHANGED)
        return PlannedChange(olt, before, after, Result.DONE, warnings=tuple(self._warnings(after)))

    def _frees(self, node: WorkflowNode | None) -> bool:
        """Return whether an interval of its own gives way to that of the job."""
        is_reset = self.action == JobAction.INTERVAL and self.interval_seconds is None
        return is_reset and node is not None and node.own_interval_seconds is not None

    def _after(self, olt: Olt, node: WorkflowNode | None, before: NodeState) -> NodeState:
        """Return what the OLT will have; `ValidationError` explains why it cannot."""
        olt.refuse_while_deleting()
        names = {"job": self.job, "master": self.job.follows, "brand": self.job.get_brand_display()}
        if olt.brand != self.job.brand:
            raise ValidationError(_("%(job)s is for %(brand)s, and this OLT has another brand.") % names)
        if self.job.follows is not None and self.action in (JobAction.APPLY, JobAction.REMOVE):
            raise ValidationError(_("%(job)s comes and goes with %(master)s. Choose %(master)s.") % names)
        if self.action == JobAction.APPLY:
            return before if node else NodeState(True, self.job.interval_seconds, self.job.enabled)
        if self.action == JobAction.REMOVE:
            return NodeState()
        if node is None:
            raise ValidationError(_("%(job)s is not applied to this OLT.") % names)
        if self.action == JobAction.INTERVAL:
            if node.master is not None:
                raise ValidationError(_("%(job)s runs whenever %(master)s does. Choose %(master)s.") % names)
            return replace(before, interval_seconds=self.interval_seconds or self.job.interval_seconds)
        if self.job.reads_nothing:
            raise ValidationError(_("%(job)s reads nothing. Add a column or a raw OID to the job first.") % names)
        return replace(before, enabled=self.action == JobAction.ENABLE)

    def _apply(self, olt: Olt, node: WorkflowNode | None) -> None:
        if node is None:
            self.job.apply_to([olt])
        elif self.action == JobAction.REMOVE:
            node.delete()
        elif self.action == JobAction.INTERVAL:
            node.set_interval(self.interval_seconds)
        else:
            node.set_enabled(self.action == JobAction.ENABLE)

    def _warnings(self, after: NodeState) -> list[str]:
        if self.action not in (JobAction.INTERVAL, JobAction.APPLY) or after.interval_seconds is None:
            return []
        return floor_warnings(self.job.brand, self.job.kind, self.job.columns, after.interval_seconds)

    def story(self, changes: Iterable[PlannedChange]) -> str:
        """Return what happened, as a sentence: 5 OLTs now every 15 min, 1 already was."""
        numbers = Counter(each.result for each in changes)
        done, unchanged, refused = (numbers[result] for result in Result)
        parts = [self._done(done)]
        if unchanged:
            parts.append(ngettext("%(n)d already was", "%(n)d already were", unchanged) % {"n": unchanged})
        if refused:
            parts.append(ngettext("%(n)d was left out", "%(n)d were left out", refused) % {"n": refused})
        return f"{self.job}: {', '.join(parts)}."

    def intention(self, changes: Iterable[PlannedChange]) -> str:
        """Return what will happen, as a sentence."""
        n = sum(each.result == Result.DONE for each in changes)
        sentences = {
            JobAction.INTERVAL: ngettext(
                "%(job)s will run every %(interval)s on %(n)d OLT.",
                "%(job)s will run every %(interval)s on %(n)d OLTs.",
                n,
            ),
            JobAction.ENABLE: ngettext(
                "%(job)s will be enabled on %(n)d OLT.", "%(job)s will be enabled on %(n)d OLTs.", n
            ),
            JobAction.DISABLE: ngettext(
                "%(job)s will be disabled on %(n)d OLT.", "%(job)s will be disabled on %(n)d OLTs.", n
            ),
            JobAction.APPLY: ngettext(
                "%(job)s will be applied to %(n)d OLT, with the jobs that follow it.",
                "%(job)s will be applied to %(n)d OLTs, with the jobs that follow it.",
                n,
            ),
            JobAction.REMOVE: ngettext(
                "%(job)s will be removed from %(n)d OLT, with the jobs that follow it. What was read is kept.",
                "%(job)s will be removed from %(n)d OLTs, with the jobs that follow it. What was read is kept.",
                n,
            ),
        }
        return sentences[self.action] % {"n": n, "job": self.job, "interval": self._interval}

    @property
    def _interval(self) -> str:
        return interval(self.interval_seconds or self.job.interval_seconds)

    def _done(self, n: int) -> str:
        sentence = {
            JobAction.INTERVAL: ngettext("%(n)d OLT now every %(interval)s", "%(n)d OLTs now every %(interval)s", n),
            JobAction.ENABLE: ngettext("enabled on %(n)d OLT", "enabled on %(n)d OLTs", n),
            JobAction.DISABLE: ngettext("disabled on %(n)d OLT", "disabled on %(n)d OLTs", n),
            JobAction.APPLY: ngettext("applied to %(n)d OLT", "applied to %(n)d OLTs", n),
            JobAction.REMOVE: ngettext("removed from %(n)d OLT", "removed from %(n)d OLTs", n),
        }[self.action]
        return sentence % {"n": n, "interval": self._interval}
