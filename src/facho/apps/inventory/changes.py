"""Saving what a person changed."""

from collections.abc import Iterable

from django.db.models import Model


def save_changes(row: Model, names: Iterable[str]) -> None:
    """Save these columns of a row and no others.

    Two people may have the same page open: to save all columns would undo what
    the other one changed. What the engine writes the models look after.
    """
    stamps = {field.name for field in row._meta.concrete_fields if getattr(field, "auto_now", False)}
    columns = {field.name for field in row._meta.concrete_fields}
    row.save(update_fields=(columns & set(names)) | stamps)
