"""`facho migrate-to`: copies an installation into an empty PostgreSQL and compares both."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter
from itertools import islice
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, connections, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Max, Min, Q, Sum
from django.db.models.functions import Length

from facho.runtime import checks
from facho.runtime.commands.screen import ProgressBar, out, table
from facho.runtime.config import Config, ConfigError
from facho.runtime.lock import EngineLock, roles_at_work
from facho.runtime.upgrade import HOW_TO_UPGRADE, TOO_OLD, is_too_old
from facho.store import sql
from facho.store.engine_lock import take_for_engine

SOURCE = "source"

# Rows per COPY. PostgreSQL keeps each row in memory until its references are checked.
BATCH = 20_000

# Rows per COPY of packed history, with some kilobytes per row.
PACKED_BATCH = 500

# Key of the row count among the column figures.
ROWS = "how_many"

Model = type[models.Model]

# `migrate` fills these.
FILLED_BY_MIGRATE = (ContentType, Permission, Group, Group.permissions.through)


class NotCopied(Exception):
    """A row that the target refuses. The message names it and the reason."""


def tables() -> list[Model]:
    """Return all tables, referenced ones first."""
    ours = [model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy]
    graph = {model: {other for other in _references(model) if other is not model} for model in ours}
    return list(TopologicalSorter(graph).static_order())


def _references(model: Model) -> set[Model]:
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return {other._meta.concrete_model for other in related if isinstance(other, type) and other._meta.concrete_model}


def _stored(model: Model) -> "list[models.Field[Any, Any]]":
    """Return the fields of a table, without those that the database computes."""
    return [field for field in model._meta.concrete_fields if not field.generated]


def _copy(model: Model) -> None:
    """Copy a table in the open transaction, with progress on a terminal."""
    fields = _stored(model)
    columns, forms = tuple(str(field.column) for field in fields), [_form(field) for field in fields]
    _check_references(is_later=model in _references(model))
    rows, size = _rows(model), min(BATCH, PACKED_BATCH) if _is_packed(model) else BATCH
    total, done = model._base_manager.using(SOURCE).count(), 0
    with ProgressBar() as progress:
        while batch := list(islice(rows, size)):
            prepared = [
                tuple(value if form is None else form(value) for form, value in zip(forms, row, strict=True))
                for row in batch
            ]
            try:
                sql.copy(model, columns, prepared)
            except DatabaseError as error:
                raise NotCopied(_sentence(model, error, batch)) from error
            done += len(batch)
            progress.show(model._meta.db_table, done, total, "rows")
    # References to later rows of the same table exist by now.
    _check_references(is_later=False)


def _rows(model: Model) -> Iterator[tuple[Any, ...]]:
    names = [field.attname for field in _stored(model)]
    rows = model._base_manager.using(SOURCE).order_by("pk").values_list(*names)
    return iter(rows.iterator(chunk_size=PACKED_BATCH if _is_packed(model) else 2000))


def _is_packed(model: Model) -> bool:
    return any(isinstance(field, models.BinaryField) for field in model._meta.concrete_fields)


def _check_references(*, is_later: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET CONSTRAINTS ALL {'DEFERRED' if is_later else 'IMMEDIATE'}")


def _form(field: "models.Field[Any, Any]") -> Callable[[Any], Any] | None:
    """Return the conversion of a column's values; None: unchanged."""
    if isinstance(field, models.JSONField):
        return lambda value: (
            None if value is None and field.null else connection.ops.adapt_json_value(value, field.encoder)
        )
    # A secret is copied encrypted.
    is_plain = type(field).get_prep_value in _PLAIN
    return None if is_plain else field.get_prep_value


# Field methods whose values the driver accepts unchanged.
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


def _sentence(model: Model, error: DatabaseError, batch: Sequence[tuple[Any, ...]]) -> str:
    """Return a message that names the row without its content."""
    diagnosis = getattr(error.__cause__, "diag", None)
    reason = getattr(diagnosis, "message_primary", None) or str(error).strip()
    line = re.search(r"line (\d+)(?:, column (\w+))?", getattr(diagnosis, "context", None) or "")
    if line is None:
        return f"{model._meta.db_table} cannot be copied: {reason}"
    names = [field.attname for field in _stored(model)]
    key = batch[int(line[1]) - 1][names.index(str(model._meta.pk and model._meta.pk.attname))]
    where = f", column {line[2]}" if line[2] else ""
    return f"Row {key} of {model._meta.db_table}{where} cannot be copied: {reason}"


def _account(model: Model, using: str) -> dict[str, Any]:
    """Return figures of each column, computed by the database."""
    measures: dict[str, Any] = {ROWS: Count("*")}
    for field in _stored(model):
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


def move(source: Config, target: Config, *, is_sure: bool) -> bool:
    """Copy everything, and return whether it is complete. Django's default database is the target."""
    _refuse_target(source, target)
    _open_source(source)
    try:
        with _locked_source(source), EngineLock(target), transaction.atomic(using=SOURCE):
            if connections[SOURCE].vendor == "postgresql":
                with connections[SOURCE].cursor() as cursor:
                    # All tables as of one moment.
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            _refuse_source()
            if not is_sure:
                _ask(source, target)
            call_command("migrate", verbosity=0, interactive=False)
            return _copy_and_compare(tables())
    except NotCopied as error:
        raise ConfigError(
            f"{error}. Nothing was copied. Correct the row in the source and run the command again."
        ) from error
    except DatabaseError as error:
        raise ConfigError(f"Nothing was copied; the command can be run again: {str(error).strip()}") from error
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Nothing was copied; the command can be run again.\n")
        raise
    finally:
        connections[SOURCE].close()


def _refuse_target(source: Config, target: Config) -> None:
    """Refuse a target that is not an empty Facho database."""
    if target.is_sqlite:
        raise ConfigError("The target must be PostgreSQL. Write an address like postgresql://user@host:5432/facho.")
    if _place(source) == _place(target):
        raise ConfigError("Source and target are the same database. Use an empty database as the target.")
    there = set(connection.introspection.table_names())
    ours = {model._meta.db_table: model for model in tables()}
    strangers = sorted(there - ours.keys() - {"django_migrations"})
    if strangers:
        raise ConfigError(
            f"The target has tables that are not Facho's, such as {strangers[0]}. "
            "Create a separate database for Facho: createdb facho"
        )
    filled = [
        name
        for name in sorted(there & ours.keys())
        if ours[name] not in FILLED_BY_MIGRATE and ours[name]._base_manager.exists()
    ]
    if filled:
        raise ConfigError(
            f"The target is not empty: there are rows in {', '.join(filled)}. "
            "Use an empty database, or empty this one: dropdb facho; createdb facho"
        )


def _place(config: Config) -> tuple[str, ...]:
    return tuple(str(config.database.get(name) or "") for name in ("ENGINE", "HOST", "PORT", "NAME"))


def _open_source(source: Config) -> None:
    """Add the source to Django as a second, read-only database."""
    if source.is_sqlite and not Path(str(source.database["NAME"])).exists():
        raise ConfigError(f"There is no database in {source.database['NAME']}. Check FACHO_DATA_DIR and DATABASE_URL.")
    options = dict(source.database["OPTIONS"])  # type: ignore[call-overload]  # a mapping, as `config` makes it
    if source.is_sqlite:
        options = {"timeout": options["timeout"], "init_command": "PRAGMA query_only=ON;"}
    else:
        options["options"] = "-c default_transaction_read_only=on -c idle_in_transaction_session_timeout=0"
    both = {"default": {}, SOURCE: {**source.database, "OPTIONS": options}}
    connections.settings[SOURCE] = connections.configure_settings(both)[SOURCE]
    try:
        connections[SOURCE].ensure_connection()
    except DatabaseError as error:
        raise ConfigError(f"The source cannot be reached: {str(error).strip()} Check DATABASE_URL.") from error


@contextmanager
def _locked_source(source: Config) -> Iterator[None]:
    """Lock the source against engines during the copy."""
    if source.is_sqlite:
        with EngineLock(source):
            yield
        return
    # The lock lives as long as the connection.
    if not take_for_engine(connections[SOURCE]) or roles_at_work(connections[SOURCE]):
        raise ConfigError(
            "Facho is running on the source. Stop all its processes first: changes during the copy would be lost."
        )
    yield


def _refuse_source() -> None:
    if is_too_old(connections[SOURCE]):
        raise ConfigError(f"{TOO_OLD} {HOW_TO_UPGRADE}")
    executor = MigrationExecutor(connections[SOURCE])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise ConfigError("The source is not up to date. Run `facho migrate` on it first.")
    for message in checks.secrets(SOURCE):
        raise ConfigError(f"{message.msg} With other keys the secrets would be lost.")


def _ask(source: Config, target: Config) -> None:
    to = target.database
    if not sys.stdin.isatty():
        raise ConfigError("There is no terminal to confirm. Add --yes to copy without confirmation.")
    sys.stdout.write(f"Copy {source.database['NAME']} into {to['NAME']} on {to.get('HOST') or 'this machine'}? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("Nothing was copied.")


def _copy_and_compare(tables: Sequence[Model]) -> bool:
    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in tables)
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Reading and comparing may take any time.
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            # Delete the rows created by `migrate`; the source has them with its own ids.
            cursor.execute(f"TRUNCATE {names}")
        for model in tables:
            _copy(model)
        with connection.cursor() as cursor:
            # Set the sequences after the copied ids.
            for statement in connection.ops.sequence_reset_sql(no_style(), tables):
                cursor.execute(statement)
        is_same = _compare(tables)
        transaction.set_rollback(not is_same)
    if is_same:
        with connection.cursor() as cursor:
            # Update the planner statistics before the first page is opened.
            cursor.execute(f"ANALYZE {names}")
    return is_same


def _compare(tables: Sequence[Model]) -> bool:
    """Print both row counts of each table, and return whether the content is the same."""
    rows, is_same = [], True
    with ProgressBar() as progress:
        for number, model in enumerate(sorted(tables, key=lambda each: each._meta.db_table)):
            progress.show(f"comparing {model._meta.db_table}", number, len(tables), "tables")
            there, here = _account(model, SOURCE), _account(model, "default")
            columns = {name.partition("_of_")[2] for name, value in there.items() if here[name] != value} - {""}
            verdict = "same" if there == here else f"DIFFERENT {', '.join(sorted(columns))}".strip()
            rows.append((model._meta.db_table, there[ROWS], here[ROWS], verdict))
            is_same = is_same and there == here
    out("\n".join(table(["table", "source", "target", ""], rows)))
    return is_same
