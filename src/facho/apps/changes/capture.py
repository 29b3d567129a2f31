"""Recording of every row that a person saves, deletes or links.

This acts below the views, so that no new page or endpoint can forget it. Nothing happens while no actor is set: the
engine writes its columns by other statements, and loads no row for this.

`save_base` is wrapped, because Django sends `pre_save` and `post_save` outside of the transaction of a save: a process
that is killed in between would leave a change without its record. Deletions and links send their signals inside.
"""

from functools import wraps
from typing import Any

from django.apps import apps
from django.db import models, router, transaction
from django.db.models.signals import m2m_changed, pre_delete

from facho.apps.changes.actor import current
from facho.apps.changes.fields import differences, name_of, read_rows, settings_of
from facho.apps.changes.models import Change
from facho.apps.changes.record import record

# Tables that people edit.
RECORDED = (
    "auth.Group",
    "auth.User",
    "accounts.ApiToken",
    "accounts.ExternalIdentity",
    "inventory.Olt",
    "inventory.Replacement",
    "inventory.Scope",
    "inventory.Site",
    "inventory.Tag",
    "maintenance.Maintenance",
    "jobs.SnmpJob",
    "jobs.SnmpJobOid",
    "jobs.WorkflowNode",
    "telemetry.PonPort",
    "telemetry.OnuNote",
    "coordinator.Forecast",
    "alerts.Channel",
    "alerts.Rule",
)


def watch_models() -> None:
    """Watch the tables that people edit."""
    for model in map(apps.get_model, RECORDED):
        model.save_base = _recording(model.save_base)
        for each in apps.get_models():
            if each._meta.concrete_model is model:
                pre_delete.connect(_record_deletion, sender=each)
        for field in model._meta.many_to_many:
            m2m_changed.connect(_Links(field), sender=field.remote_field.through, weak=False)


def _recording(save_base: Any) -> Any:
    @wraps(save_base)
    def save(row: models.Model, *args: Any, **kwargs: Any) -> None:
        if current() is None or kwargs.get("raw"):
            save_base(row, *args, **kwargs)
            return
        model = row._meta.concrete_model or type(row)
        chosen = kwargs.get("update_fields")
        names = [name for name in settings_of(model) if chosen is None or name in chosen]
        if not names:
            save_base(row, *args, **kwargs)
            return
        with transaction.atomic(using=kwargs.get("using") or router.db_for_write(model, instance=row)):
            before = read_rows(model, [row.pk], names, locked=True) if row.pk is not None else {}
            save_base(row, *args, **kwargs)
            after = read_rows(model, [row.pk], names)
            fields = differences(model, before.get(row.pk), after.get(row.pk))
            if fields or not before:
                record(Change.Action.CHANGED if before else Change.Action.CREATED, row, fields)

    return save


def _record_deletion(instance: models.Model, **_signal: Any) -> None:
    if current() is not None:
        model = instance._meta.concrete_model or type(instance)
        before = read_rows(model, [instance.pk], settings_of(model)).get(instance.pk)
        record(Change.Action.DELETED, instance, differences(model, before, None))


class _Links:
    """Records the rows that a many-to-many field links to, such as the groups of a user."""

    def __init__(self, field: Any) -> None:
        self._field = field

    def __call__(self, instance: models.Model, action: str, reverse: bool, pk_set: Any, **_signal: Any) -> None:
        actor = current()
        if actor is None:
            return
        if action.startswith("pre_"):
            actor.links[self._field] = {pk: self._names(pk) for pk in self._owners(instance, reverse, pk_set)}
            return
        for pk, before in actor.links.pop(self._field, {}).items():
            after = self._names(pk)
            if before != after:
                row = self._field.model._base_manager.get(pk=pk)
                record(Change.Action.CHANGED, row, {self._field.name: [before, after]})

    def _owners(self, instance: models.Model, reverse: bool, pk_set: Any) -> list[Any]:
        """Return the ids of the rows that have the field."""
        if not reverse:
            return [instance.pk]
        if pk_set is not None:
            return list(pk_set)
        owners = self._field.model._base_manager.filter(**{self._field.name: instance.pk})
        return list(owners.values_list("pk", flat=True))

    def _names(self, pk: Any) -> list[str]:
        linked = getattr(self._field.model(pk=pk), self._field.name).all()
        return sorted(map(name_of, linked))
