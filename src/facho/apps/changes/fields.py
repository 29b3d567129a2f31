"""Values of rows before and after a change."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Any

from django.db import models
from django.utils import translation

from facho.apps.changes.models import SECRET

Values = Mapping[str, Any]

# Known names of rows, by table and id.
Names = dict[tuple[type[models.Model], Any], str]

# Columns that are not settings, besides the `ENGINE_OWNED` of a model and its times of creation and change.
NO_SETTINGS: dict[str, frozenset[str]] = {
    "auth.user": frozenset({"last_login", "date_joined"}),
    "accounts.apitoken": frozenset({"key_hash", "created_at", "last_used_at", "last_address"}),
    "accounts.externalidentity": frozenset({"created_at"}),
    "alerts.rule": frozenset({"is_narrowed"}),
    "coordinator.forecast": frozenset({"by", "status", "result", "error", "progress", "started_at", "ended_at"}),
}


def settings_of(model: type[models.Model]) -> list[str]:
    """Return the names of the columns that people set."""
    left_out = NO_SETTINGS.get(model._meta.label_lower, frozenset()) | getattr(model, "ENGINE_OWNED", frozenset())
    return [
        field.name
        for field in model._meta.concrete_fields
        if not field.primary_key
        and field.name not in left_out
        and not getattr(field, "auto_now", False)
        and not getattr(field, "auto_now_add", False)
    ]


def read_rows(
    model: type[models.Model], pks: Iterable[Any], names: Iterable[str], *, locked: bool = False
) -> dict[Any, Values]:
    """Read columns of rows from the database, by id. `locked`: no other process changes them before this one does."""
    rows = model._base_manager.filter(pk__in=list(pks))
    if locked:
        # As strong as the lock of an update: new executions can still refer to an OLT.
        rows = rows.select_for_update(no_key=True)
    return {row.pop("pk"): row for row in rows.values("pk", *names)}


def differences(
    model: type[models.Model], before: Values | None, after: Values | None, names: Names | None = None
) -> dict[str, Any]:
    """Return the changed values. A new or deleted row has changed all values that are not empty."""
    changed: dict[str, Any] = {}
    for name in before or after or {}:
        field = model._meta.get_field(name)
        old, new = (None if values is None else values[name] for values in (before, after))
        is_empty = (before is None or after is None) and not _is_filled(old) and not _is_filled(new)
        if old == new or is_empty:
            continue
        if is_secret(field):
            changed[name] = SECRET
        else:
            changed[name] = [_plain(field, old, names or {}), _plain(field, new, names or {})]
    return changed


def is_secret(field: Any) -> bool:
    """Return whether no value of a field may be recorded."""
    return getattr(field, "is_secret", False) or field.name == "password"


def _is_filled(value: Any) -> bool:
    return isinstance(value, bool | int | float) or bool(value)


def _plain(field: Any, value: Any, names: Names) -> Any:
    """Return a value as JSON. A reference is the name of its row, because the row may be deleted later."""
    if value is None:
        return None
    if field.is_relation:
        model = field.related_model
        return names.get((model, value)) or name_of(model._base_manager.filter(pk=value).first() or value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str | list | dict) else str(value)


def name_of(row: Any) -> str:
    """Return the name of a row. Names of jobs are translated, so it is in English in every record."""
    with translation.override("en"):
        return str(row)
