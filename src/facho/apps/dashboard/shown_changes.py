"""Changes of the record in the user's language."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.db.models import QuerySet
from django.urls import NoReverseMatch, reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from facho.apps.changes.fields import is_secret
from facho.apps.changes.models import Change
from facho.apps.coordinator.answers import question_text
from facho.apps.inventory.formats import moment

CHANGES_ON_OBJECT = 10

# Fields shown at once; the others on demand. A new object has all of its fields.
FIELDS_AT_ONCE = 3

# Objects with a page of their own. Others have one in the admin.
PAGES = {
    "coordinator.forecast": "dashboard:forecast-answer",
    "inventory.olt": "dashboard:olt",
    "alerts.rule": "dashboard:alert-rule",
    "jobs.snmpjob": "dashboard:job",
    "jobs.workflownode": "dashboard:node",
    "maintenance.maintenance": "dashboard:change-maintenance",
}


@dataclass(frozen=True, slots=True)
class ShownField:
    """A changed field in the user's language. An empty text is no value."""

    label: str
    before: str
    after: str
    # Only `after` is shown: of a new object, and of a secret.
    is_single: bool


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change as pages show it."""

    change: Change
    type_name: str
    url: str
    fields: Sequence[ShownField]

    @property
    def first(self) -> Sequence[ShownField]:
        return self.fields[:FIELDS_AT_ONCE]

    @property
    def others(self) -> Sequence[ShownField]:
        return self.fields[FIELDS_AT_ONCE:]


def last_changes(rows: QuerySet[Change], user: Any) -> list[ShownChange]:
    """Return the last changes of an object, for its page."""
    return shown_changes(list(rows[:CHANGES_ON_OBJECT]), user)


def shown_changes(rows: Sequence[Change], user: Any) -> list[ShownChange]:
    return [ShownChange(each, type_name(each.object_type), _url(each, user), _shown_fields(each)) for each in rows]


def _model(object_type: str) -> type[models.Model] | None:
    try:
        return apps.get_model(object_type)
    except (LookupError, ValueError):
        # No object, or a table of an earlier version.
        return None


def type_name(object_type: str) -> str:
    model = _model(object_type)
    return object_type if model is None else str(model._meta.verbose_name)


def _url(change: Change, user: Any) -> str:
    if change.object_id is None or change.action == Change.Action.DELETED:
        return ""
    if change.object_type in PAGES:
        return reverse(PAGES[change.object_type], args=[change.object_id])
    if change.object_type == "auth.user" and user.has_perm("auth.view_user"):
        return reverse("dashboard:user", args=[change.object_id])
    if not user.is_staff:
        return ""
    try:
        return reverse(f"admin:{change.object_type.replace('.', '_')}_change", args=[change.object_id])
    except NoReverseMatch:
        return ""


def _shown_fields(change: Change) -> list[ShownField]:
    model = _model(change.object_type)
    shown = []
    for name, before, after in change.values:
        field = _field(model, name)
        label = name if field is None else str(field.verbose_name)
        if field is not None and is_secret(field):
            shown.append(ShownField(label, "", pgettext("secret", "changed"), is_single=True))
        else:
            is_new = change.action == Change.Action.CREATED
            if change.object_type == "coordinator.forecast" and name == "params" and isinstance(after, dict):
                label, after = _("Question"), question_text(after)
            shown.append(ShownField(label, _text(field, before), _text(field, after), is_single=is_new))
    return shown


def _field(model: type[models.Model] | None, name: str) -> Any:
    try:
        return None if model is None else model._meta.get_field(name)
    except FieldDoesNotExist:
        return None


def _text(field: Any, value: Any) -> str:
    """Return a stored value in the user's language."""
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(field, models.DateTimeField) and isinstance(value, str) and (at := parse_datetime(value)):
        return moment(at)
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {each}" for name, each in value.items())
    choices = dict(getattr(field, "flatchoices", None) or ())
    return str(choices.get(value, value))
