"""What `facho check` looks at, and every start with it: ids and hints as Django's own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DEFAULT_DB_ALIAS, DatabaseError, NotSupportedError, connection
from django.db.migrations.executor import MigrationExecutor

from facho.runtime import config, scale_checks


@register
def environment(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Find settings that nobody reads: a misspelt one would silently not hold."""
    return [
        Error(
            f"{name} is not a setting of Facho.",
            hint=f"Did you mean {meant}?" if meant else f"The settings are {', '.join(sorted(config.KNOWN_NAMES))}.",
            id="facho.E001",
        )
        for name, meant in config.unknown_names().items()
    ]


@register("database")
def database(app_configs: Any, databases: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Find a database that is not there, or not up to date, or whose secrets we cannot read."""
    if not databases:
        return []
    if connection.vendor == "sqlite" and (closed := unwritable(Path(connection.settings_dict["NAME"]))):
        return closed
    try:
        connection.ensure_connection()
        shared = scale_checks.refusals(settings.CONFIG) if connection.vendor == "postgresql" else []
        pending = MigrationExecutor(connection).migration_plan(MigrationExecutor(connection).loader.graph.leaf_nodes())
    except NotSupportedError as error:
        return [
            Error(
                f"The database is too old: {error}",
                hint="Facho needs PostgreSQL 14 or later, and is tested with 15 and 18.",
                id="facho.E004",
            )
        ]
    except DatabaseError as error:
        return [
            Error(
                f"The database cannot be reached: {error}".strip(),
                hint="Check DATABASE_URL, and that the server runs.",
                id="facho.E002",
            )
        ]
    if pending:
        behind = Warning("The database is not up to date.", hint="Run `facho migrate`.", id="facho.W001")
        return [*shared, behind]
    return [*shared, *secrets(), *_brands()]


def unwritable(file: Path) -> Sequence[CheckMessage]:
    """Find a database that somebody else put there: it can be read, and the first write would fail."""
    needed = [path for path in (file.parent, file, file.with_name(f"{file.name}-wal")) if path.exists()]
    return [
        Error(
            f"{path} cannot be written by the user that runs Facho.",
            hint=f"Give the directory to that user: chown -R USER {file.parent}",
            id="facho.E015",
        )
        for path in needed
        if not os.access(path, os.W_OK)
    ][:1]


def _brands() -> list[CheckMessage]:
    """Find OLTs whose profile somebody has taken away: nothing can be read from them."""
    from facho.brands import BRANDS

    olts = apps.get_model("inventory", "Olt").objects.using(DEFAULT_DB_ALIAS).exclude(brand__in=["", *BRANDS])
    return [
        Warning(
            f"{name} is of the brand {brand}, of which there is no profile.",
            hint="Put its profile back into the folder brands of the data directory, or choose another brand.",
            id="facho.W002",
        )
        for name, brand in olts.values_list("name", "brand")
    ]


def secrets(using: str = DEFAULT_DB_ALIAS) -> list[CheckMessage]:
    """Find a secret that our keys do not open."""
    from facho.apps.inventory.fields import WrongKeyError, tables_with_secrets

    for model, names in tables_with_secrets():
        for row in model._default_manager.using(using).only(*names):
            try:
                for name in names:
                    getattr(row, name).reveal()
            except WrongKeyError as error:
                return [Error(f"{row}: {error}", id="facho.E003")]
    return []
