"""`facho migrate-to`: an installation from its present database into an empty PostgreSQL.

Everything is copied in one transaction, and committed only when both databases say the same of every column. So there
is no half of a move: whatever stops it leaves the target empty, and the source is only read.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor

from facho.runtime import checks, copying, scale_checks
from facho.runtime.config import Config, ConfigError
from facho.runtime.copying import SOURCE, Model
from facho.runtime.lock import EngineLock
from facho.store import history_upgrade
from facho.store.tenancy import take_for_engine

# What `migrate` itself puts into a new database.
MADE_BY_MIGRATE = (ContentType, Permission)


def move(source: Config, target: Config, *, is_sure: bool) -> bool:
    """Copy everything, and return whether it arrived. Django's default database is the target."""
    _refuse_target(source, target)
    _open_source(source)
    try:
        with _locked_source(source), EngineLock(target), transaction.atomic(using=SOURCE):
            _begin_snapshot()
            _refuse_source(source)
            if not is_sure:
                _ask(source, target)
            call_command("migrate", verbosity=0, interactive=False)
            return _copy_and_compare(copying.tables())
    except copying.NotCopied as error:
        raise ConfigError(
            f"{error}. Nothing was copied: correct the row in the source, and run the same again."
        ) from error
    except DatabaseError as error:
        raise ConfigError(f"Nothing was copied, and the same can be run again: {str(error).strip()}") from error
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Nothing was copied, and the same can be run again.\n")
        raise
    finally:
        connections[SOURCE].close()


def _refuse_target(source: Config, target: Config) -> None:
    """Refuse what is not an empty database of our own."""
    if target.is_sqlite:
        raise ConfigError("The target must be PostgreSQL. Write an address like postgresql://user@host:5432/facho.")
    if _place(source) == _place(target):
        raise ConfigError("Source and target are the same database. Name an empty one to copy into.")
    there = set(connection.introspection.table_names())
    ours = {model._meta.db_table: model for model in copying.tables()}
    strangers = sorted(there - ours.keys() - {"django_migrations"})
    if strangers:
        raise ConfigError(
            f"The target has tables that are not Facho's, such as {strangers[0]}. "
            "Make a database for Facho alone: createdb facho"
        )
    filled = [name for name in sorted(there & ours.keys()) if _has_rows(ours[name])]
    if filled:
        raise ConfigError(
            f"The target is not empty: there are rows in {', '.join(filled)}. "
            "Name an empty database, or empty this one: dropdb facho; createdb facho"
        )


def _has_rows(model: Model) -> bool:
    return model not in MADE_BY_MIGRATE and model._base_manager.exists()


def _place(config: Config) -> tuple[str, ...]:
    return tuple(str(config.database.get(name) or "") for name in ("ENGINE", "HOST", "PORT", "NAME"))


def _open_source(source: Config) -> None:
    """Give Django a second database, from which it can only read."""
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


def _locked_source(source: Config) -> AbstractContextManager[object]:
    """Keep engines from the source as long as it is copied."""
    return EngineLock(source) if source.is_sqlite else _locked_server()


@contextmanager
def _locked_server() -> Iterator[None]:
    # The lock lives as long as the connection does.
    if not take_for_engine(connections[SOURCE]) or scale_checks.roles_at_work(connections[SOURCE]):
        raise ConfigError("Facho is running on the source. Stop all of it first: what it does meanwhile would be lost.")
    yield


def _begin_snapshot() -> None:
    """See the source as it is now, whatever anybody does to it meanwhile."""
    if connections[SOURCE].vendor == "postgresql":
        with connections[SOURCE].cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _refuse_source(source: Config) -> None:
    executor = MigrationExecutor(connections[SOURCE])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()) or history_upgrade.is_pending(connections[SOURCE]):
        raise ConfigError("The source is not up to date. Run `facho migrate` on it first.")
    for message in checks.secrets(SOURCE):
        raise ConfigError(f"{message.msg} With other keys the secrets would be lost.")


def _ask(source: Config, target: Config) -> None:
    to = target.database
    if not sys.stdin.isatty():
        raise ConfigError("Nobody is there to be asked. Say that you mean it with --yes.")
    sys.stdout.write(f"Copy {source.database['NAME']} into {to['NAME']} on {to.get('HOST') or 'this machine'}? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("Nothing was copied.")


def _copy_and_compare(tables: Sequence[Model]) -> bool:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # To read and to compare takes the source as long as it takes.
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        copying.truncate(tables)
        for model in tables:
            _copy(model)
        copying.reset_sequences(tables)
        is_same = _compare(tables)
        transaction.set_rollback(not is_same)
    if is_same:
        _analyse(tables)
    return is_same


def _copy(model: Model) -> None:
    """Copy a table, and say how far that is where somebody watches."""
    watched, total, done = sys.stderr.isatty(), model._base_manager.using(SOURCE).count(), 0

    def say(rows: int) -> None:
        nonlocal done
        done += rows
        if watched:
            sys.stderr.write(f"\r\x1b[K{model._meta.db_table}: {done:,} of {total:,} rows")
            sys.stderr.flush()

    copying.copy(model, say)
    if watched:
        sys.stderr.write("\r\x1b[K")


def _compare(tables: Sequence[Model]) -> bool:
    """Print what both databases have of each table, and return whether it is the same."""
    is_same = True
    sys.stdout.write(f"{'table':28} {'source':>12} {'target':>12}\n")
    for model in sorted(tables, key=lambda each: each._meta.db_table):
        found = copying.compare(model)
        verdict = "same" if found.is_same else f"DIFFERENT {', '.join(found.differences)}".strip()
        sys.stdout.write(f"{model._meta.db_table:28} {found.there:>12,} {found.here:>12,}  {verdict}\n")
        is_same = is_same and found.is_same
    return is_same


def _analyse(tables: Sequence[Model]) -> None:
    """Let the planner know what there is before the first page asks."""
    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in tables)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {names}")
