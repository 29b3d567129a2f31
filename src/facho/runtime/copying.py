"""All rows of one database into another that has the same tables, and the proof that they arrived.

Rows go from the alias SOURCE to the default database, which is PostgreSQL. They are never all in memory: a table of
readings may have more of them than the machine has room for.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import islice
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.db import DatabaseError, connection, models
from django.db.models import Count, Max, Min, Q, Sum
from django.db.models.functions import Length

from facho.store import bulk
from facho.store.rows import Rows

SOURCE = "source"

# Rows in one COPY. PostgreSQL remembers each of them until it has looked for the rows that they refer to.
BATCH = 20_000

# Of a table with packed history, whose rows have some kilobytes each.
PACKED_BATCH = 500

# What the number of rows is called among what is said of columns.
ROWS = "how_many"

Model = type[models.Model]


class NotCopied(Exception):
    """A row that the other database does not take. The message names it, and says why."""


def tables() -> list[Model]:
    """Return every table that Facho has, those that others refer to before them."""
    ours = [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]
    graph = {model: {other for other in _references(model) if other is not model} for model in ours}
    return list(TopologicalSorter(graph).static_order())


def _references(model: Model) -> set[Model]:
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return {other._meta.concrete_model for other in related if isinstance(other, type) and other._meta.concrete_model}


def copy(model: Model, on_batch: Callable[[int], None]) -> None:
    """Copy a table in the transaction that is open; `on_batch` hears how many rows were copied."""
    fields = model._meta.concrete_fields
    columns, forms = tuple(str(field.column) for field in fields), [_form(field) for field in fields]
    _check_references(is_later=model in _references(model))
    rows, size = _rows(model), min(BATCH, PACKED_BATCH) if _is_packed(model) else BATCH
    while batch := list(islice(rows, size)):
        prepared = [tuple(map(_formed, forms, row)) for row in batch]
        try:
            bulk.copy(Rows(model._meta.db_table, columns, prepared), model._meta.db_table)
        except DatabaseError as error:
            raise NotCopied(_sentence(model, error, batch)) from error
        on_batch(len(batch))
    # What refers to a row that comes later in the same table has it by now.
    _check_references(is_later=False)


def _rows(model: Model) -> Iterator[tuple[Any, ...]]:
    names = [field.attname for field in model._meta.concrete_fields]
    rows = model._base_manager.using(SOURCE).order_by("pk").values_list(*names)
    return iter(rows.iterator(chunk_size=PACKED_BATCH if _is_packed(model) else 2000))


def _is_packed(model: Model) -> bool:
    return any(isinstance(field, models.BinaryField) for field in model._meta.concrete_fields)


def _check_references(*, is_later: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET CONSTRAINTS ALL {'DEFERRED' if is_later else 'IMMEDIATE'}")


Form = Callable[[Any], Any]


def _form(field: "models.Field[Any, Any]") -> Form | None:
    """Return how a value of a column is written; None: as it is."""
    if isinstance(field, models.JSONField):
        return lambda value: (
            None if value is None and field.null else connection.ops.adapt_json_value(value, field.encoder)
        )
    # A secret is written as it was: nobody decrypts it on the way.
    is_plain = type(field).get_prep_value in _PLAIN
    return None if is_plain else field.get_prep_value


# How fields prepare values that the driver understands as they are.
_PLAIN = {
    each.get_prep_value
    for each in (
        models.CharField,
        models.TextField,
        models.IntegerField,
        models.BigAutoField,
        models.FloatField,
        models.BooleanField,
        models.DateTimeField,
        models.TimeField,
        models.ForeignKey,
    )
}


def _formed(form: Form | None, value: Any) -> Any:
    return value if form is None else form(value)


def _sentence(model: Model, error: DatabaseError, batch: Sequence[tuple[Any, ...]]) -> str:
    """Say which row it was, without quoting what is in it."""
    diagnosis = getattr(error.__cause__, "diag", None)
    reason = getattr(diagnosis, "message_primary", None) or str(error).strip()
    line = re.search(r"line (\d+)(?:, column (\w+))?", getattr(diagnosis, "context", None) or "")
    if line is None:
        return f"{model._meta.db_table} cannot be copied: {reason}"
    names = [field.attname for field in model._meta.concrete_fields]
    key = batch[int(line[1]) - 1][names.index(str(model._meta.pk and model._meta.pk.attname))]
    where = f", column {line[2]}" if line[2] else ""
    return f"Row {key} of {model._meta.db_table}{where} cannot be copied: {reason}"


def truncate(models_: Iterable[Model]) -> None:
    """Remove what `migrate` put into the tables itself: the same comes from the source, with the ids it has there."""
    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models_)
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {names}")


def reset_sequences(models_: Sequence[Model]) -> None:
    """Let new rows have ids behind those that were copied."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models_):
            cursor.execute(statement)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many rows each database has of a table, and the columns of which they do not say the same."""

    there: int
    here: int
    differences: list[str]

    @property
    def is_same(self) -> bool:
        return self.there == self.here and not self.differences


def compare(model: Model) -> Comparison:
    there, here = (_account(model, using) for using in (SOURCE, "default"))
    different = {name.partition("_of_")[2] for name, value in there.items() if here[name] != value} - {""}
    return Comparison(there[ROWS], here[ROWS], sorted(different))


def _account(model: Model, using: str) -> dict[str, Any]:
    """Return what can be said of each column as a whole, worked out by the database itself."""
    measures: dict[str, Any] = {ROWS: Count("*")}
    for field in model._meta.concrete_fields:
        name = field.attname
        measures |= {f"{kind}_of_{name}": measure for kind, measure in _measures(field, name).items()}
    return model._base_manager.using(using).aggregate(**measures)


def _measures(field: "models.Field[Any, Any]", name: str) -> dict[str, Any]:
    target = field.target_field if isinstance(field, models.ForeignKey) else field
    if isinstance(target, models.BooleanField):
        return {"true": Count("pk", filter=Q(**{name: True}))}
    filled = {"filled": Count(name)}
    if isinstance(target, models.CharField | models.TextField | models.BinaryField):
        return filled | {"length": Sum(Length(name))}
    if isinstance(target, models.IntegerField | models.FloatField | models.DateTimeField | models.TimeField):
        return filled | {"least": Min(name), "most": Max(name)}
    return filled
