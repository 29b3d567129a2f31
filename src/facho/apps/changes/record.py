"""Writing of changes. Call this where a change is made without saving a row, in the same transaction."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import models, transaction

from facho.apps.changes import output
from facho.apps.changes.actor import Actor, current
from facho.apps.changes.fields import Names, differences, name_of, read_rows, settings_of
from facho.apps.changes.models import LONGEST_NAME, Change

Fields = Mapping[str, Any]


def record(action: str, row: models.Model | None = None, fields: Fields | None = None) -> None:
    """Record an action on a row. Without an actor, nothing is recorded: the engine writes rows all the time."""
    if (actor := current()) is not None:
        write(actor, action, [(row, fields or {})])


def write(actor: Actor, action: str, rows: Iterable[tuple[models.Model | None, Fields]]) -> None:
    """Record an action of an actor on each of these rows, with the changed fields."""
    user = actor.user
    circumstances = {
        "actor": (user.get_username() if user is not None else actor.name)[:LONGEST_NAME],
        "user_id": None if user is None else user.pk,
        "token": actor.token[:LONGEST_NAME],
        "address": actor.address,
        "interface": actor.interface,
        "request_id": actor.request_id,
        "note": actor.note,
        "action": action,
    }
    changes = [Change(**circumstances, **_object(row), fields=dict(fields)) for row, fields in rows]
    output.send_after_commit(Change.objects.bulk_create(changes))


def _object(row: models.Model | None) -> dict[str, Any]:
    """Return the columns that name the object of a change."""
    if row is None:
        return {}
    model = row._meta.concrete_model or type(row)
    object_type = model._meta.label_lower
    olt_id = row.pk if object_type == "inventory.olt" else getattr(row, "olt_id", None)
    return {
        "object_type": object_type,
        "object_id": row.pk,
        "object_name": name_of(row)[:LONGEST_NAME],
        "olt_id": olt_id,
    }


def record_created(rows: Iterable[models.Model]) -> None:
    """Record rows of one table that were created by `bulk_create`: thousands of nodes, if a job is applied to all."""
    actor, created = current(), list(rows)
    if actor is None or not created:
        return
    model = type(created[0])
    values = read_rows(model, [row.pk for row in created], settings_of(model))
    # With their references, so that no name needs a query of its own.
    found = list(model._base_manager.filter(pk__in=values).select_related())
    names: Names = {}
    for field in model._meta.concrete_fields:
        if field.is_relation:
            linked = (getattr(row, field.name) for row in found if getattr(row, field.attname) is not None)
            names |= {(type(each), each.pk): name_of(each) for each in linked}
    write(actor, Change.Action.CREATED, [(row, differences(model, None, values[row.pk], names)) for row in found])


@contextmanager
def recorded(rows: models.QuerySet[Any], *names: str, action: str = Change.Action.CHANGED) -> Iterator[None]:
    """Record the effect of an `update` of these columns in a `with` block, in one transaction with it."""
    actor, model = current(), rows.model
    if actor is None:
        yield
        return
    with transaction.atomic():
        before = read_rows(model, rows.values_list("pk", flat=True), names, locked=True)
        yield
        after = read_rows(model, before, names)
        changed = {pk: differences(model, before[pk], after[pk]) for pk in after}
        touched = model._base_manager.filter(pk__in=[pk for pk, fields in changed.items() if fields])
        write(actor, action, [(row, changed[row.pk]) for row in touched.select_related()])
