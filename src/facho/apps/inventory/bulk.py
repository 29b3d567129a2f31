"""Actions on many OLTs at once. Each OLT is changed, or refused, alone."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.apps.inventory.changes import save_changes
from facho.apps.inventory.models import Olt, Site, Tag
from facho.apps.inventory.scopes import check_place, restrict_labels

# OLTs of one request: each is saved in a transaction of its own.
MOST_OLTS = 1000


class Action(StrEnum):
    """What can be done to many OLTs."""

    ENABLE = "enable"
    DISABLE = "disable"
    DISCOVER = "discover"
    ADD_TAG = "add_tag"
    REMOVE_TAG = "remove_tag"
    SET_SITE = "set_site"

    @property
    def label(self) -> str:
        return {
            Action.ENABLE: _("Enable"),
            Action.DISABLE: _("Disable"),
            Action.DISCOVER: _("Run discovery now"),
            Action.ADD_TAG: _("Add a tag"),
            Action.REMOVE_TAG: _("Remove a tag"),
            Action.SET_SITE: _("Set the site"),
        }[self]


CHOICES = [(action.value, action.value) for action in Action]

PERMISSIONS: Mapping[Action, str] = {
    Action.ENABLE: Olt.OPERATE_PERMISSION,
    Action.DISABLE: Olt.OPERATE_PERMISSION,
    # Of an app that depends on this one.
    Action.DISCOVER: "jobs.run_workflownode",
    Action.ADD_TAG: "inventory.change_olt",
    Action.REMOVE_TAG: "inventory.change_olt",
    Action.SET_SITE: "inventory.change_olt",
}


class Result(StrEnum):
    """What became of one OLT."""

    DONE = "done"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one OLT, and for a refusal its reason."""

    id: int
    name: str
    result: Result
    detail: str = ""


def actions_of(user: Any) -> list[Action]:
    """Return the actions that a user may run."""
    return [action for action in Action if user.has_perm(PERMISSIONS[action])]


def label_of(action: Action, name: str, user: Any) -> Site | Tag | None:
    """Return the site or tag of an action, by name; None for no site, and for an action without one."""
    if action not in (Action.ADD_TAG, Action.REMOVE_TAG, Action.SET_SITE) or (action == Action.SET_SITE and not name):
        return None
    model: Any = Site if action == Action.SET_SITE else Tag
    found: Site | Tag | None = restrict_labels(model.objects.all(), user).filter(name__iexact=name).first()
    if found is None:
        raise ValidationError(
            _("“%(name)s” does not exist, or is outside your scope. Create it first.") % {"name": name}
        )
    return found


def run(action: Action, olts: Iterable[Olt], label: Any, user: Any) -> list[Outcome]:
    """Run an action on each of these OLTs. One that is refused does not stop the others."""
    outcomes = []
    for olt in olts:
        try:
            with transaction.atomic():
                is_done = _ACTIONS[action](olt, label, user)
        except ValidationError as error:
            outcomes.append(Outcome(olt.pk, olt.name, Result.REFUSED, " ".join(error.messages)))
            continue
        outcomes.append(Outcome(olt.pk, olt.name, Result.DONE if is_done else Result.UNCHANGED))
    return outcomes


def _enable(olt: Olt, _label: Any, _user: Any) -> bool:
    if olt.enabled:
        return False
    olt.enable()
    return True


def _disable(olt: Olt, _label: Any, _user: Any) -> bool:
    if not olt.enabled:
        return False
    olt.disable()
    return True


def _discover(olt: Olt, _label: Any, _user: Any) -> bool:
    nodes = apps.get_model("jobs", "WorkflowNode").objects.filter(olt=olt.pk, job__kind="discovery")
    found = list(nodes.filter(master__isnull=True).select_related("olt", "job").prefetch_related("job__oids"))
    if not found:
        raise ValidationError(_("%(olt)s has no discovery job.") % {"olt": olt})
    if reasons := [reason for node in found if (reason := node.why_not_runnable())]:
        raise ValidationError(reasons[0])
    asked = [node.request_run() for node in found]
    return any(asked)


def _add_tag(olt: Olt, tag: Tag, _user: Any) -> bool:
    if olt.tags.filter(pk=tag.pk).exists():
        return False
    olt.tags.add(tag)
    return True


def _remove_tag(olt: Olt, tag: Tag, user: Any) -> bool:
    tags = list(olt.tags.all())
    if tag not in tags:
        return False
    check_place(user, olt.site, [each for each in tags if each != tag])
    olt.tags.remove(tag)
    return True


def _set_site(olt: Olt, site: Site | None, user: Any) -> bool:
    if olt.site_id == (site.pk if site else None):
        return False
    check_place(user, site, olt.tags.all())
    olt.site = site
    save_changes(olt, ["site"])
    return True


_ACTIONS: Mapping[Action, Callable[[Olt, Any, Any], bool]] = {
    Action.ENABLE: _enable,
    Action.DISABLE: _disable,
    Action.DISCOVER: _discover,
    Action.ADD_TAG: _add_tag,
    Action.REMOVE_TAG: _remove_tag,
    Action.SET_SITE: _set_site,
}


def intention(action: Action, number: int, label: Any) -> str:
    """Return what will happen, as a sentence."""
    values = {"n": number, "label": label}
    sentences = {
        Action.ENABLE: ngettext(
            "%(n)d OLT will be enabled: polling starts within about one minute.",
            "%(n)d OLTs will be enabled: polling starts within about one minute.",
            number,
        ),
        Action.DISABLE: ngettext(
            "%(n)d OLT will be disabled: it is not polled any more, and its running executions end.",
            "%(n)d OLTs will be disabled: they are not polled any more, and their running executions end.",
            number,
        ),
        Action.DISCOVER: ngettext(
            "The discovery of %(n)d OLT will run as soon as the OLT and a poller are free.",
            "The discoveries of %(n)d OLTs will run as soon as each OLT and a poller are free.",
            number,
        ),
        Action.ADD_TAG: ngettext(
            "%(n)d OLT will get the tag %(label)s.", "%(n)d OLTs will get the tag %(label)s.", number
        ),
        Action.REMOVE_TAG: ngettext(
            "%(n)d OLT will lose the tag %(label)s.", "%(n)d OLTs will lose the tag %(label)s.", number
        ),
        Action.SET_SITE: ngettext("%(n)d OLT will be at %(label)s.", "%(n)d OLTs will be at %(label)s.", number)
        if label
        else ngettext("%(n)d OLT will have no site.", "%(n)d OLTs will have no site.", number),
    }
    return sentences[action] % values


def story(action: Action, outcomes: Iterable[Outcome]) -> str:
    """Return what happened, as a sentence: 5 OLTs disabled, 1 already was."""
    numbers = Counter(each.result for each in outcomes)
    done, unchanged, refused = (numbers[result] for result in Result)
    parts = [_done(action, done) % {"n": done}]
    if unchanged:
        parts.append(ngettext("%(n)d already was", "%(n)d already were", unchanged) % {"n": unchanged})
    if refused:
        parts.append(ngettext("%(n)d was refused", "%(n)d were refused", refused) % {"n": refused})
    return ", ".join(parts) + "."


def _done(action: Action, n: int) -> str:
    return {
        Action.ENABLE: ngettext("%(n)d OLT enabled", "%(n)d OLTs enabled", n),
        Action.DISABLE: ngettext("%(n)d OLT disabled", "%(n)d OLTs disabled", n),
        Action.DISCOVER: ngettext("%(n)d discovery requested", "%(n)d discoveries requested", n),
        Action.ADD_TAG: ngettext("%(n)d OLT tagged", "%(n)d OLTs tagged", n),
        Action.REMOVE_TAG: ngettext("Tag removed from %(n)d OLT", "Tag removed from %(n)d OLTs", n),
        Action.SET_SITE: ngettext("Site of %(n)d OLT set", "Site of %(n)d OLTs set", n),
    }[action]
