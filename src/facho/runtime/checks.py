"""System checks of `facho check` and of every start, with ids and hints like Django's own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DEFAULT_DB_ALIAS, DatabaseError, NotSupportedError, connection
from django.db.migrations.executor import MigrationExecutor

from facho.runtime import config, server_checks
from facho.store import history_upgrade

# Pending migrations: a start applies them, other commands refuse to run.
OUTDATED = "facho.W001"


@register
def environment(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Find unknown settings: a misspelt one would be ignored silently."""
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
    """Find a database that is missing or outdated, or whose secrets cannot be decrypted."""
    if not databases:
        return []
    if connection.vendor == "sqlite" and (closed := unwritable(Path(connection.settings_dict["NAME"]))):
        return closed
    try:
        connection.ensure_connection()
        shared = server_checks.refusals(settings.CONFIG) if connection.vendor == "postgresql" else []
        pending = MigrationExecutor(connection).migration_plan(MigrationExecutor(connection).loader.graph.leaf_nodes())
    except NotSupportedError as error:
        return [
            Error(
                f"The database is too old: {error}",
                hint="Facho requires PostgreSQL 14 or later; it is tested with 15 and 18.",
                id="facho.E004",
            )
        ]
    except DatabaseError as error:
        return [
            Error(
                f"The database cannot be reached: {error}".strip(),
                hint="Check DATABASE_URL and that the server is running.",
                id="facho.E002",
            )
        ]
    if pending or history_upgrade.is_pending():
        behind = Warning("The database is not up to date.", hint="Run `facho migrate`.", id=OUTDATED)
        return [*shared, behind]
    return [*shared, *secrets(), *_brands(), *_identification(), *_jobs()]


def unwritable(file: Path) -> Sequence[CheckMessage]:
    """Find a database that is read-only for this user: the first write would fail."""
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
    """Find OLTs whose brand profile was removed: they cannot be read."""
    from facho.brands import BRANDS

    olts = apps.get_model("inventory", "Olt").objects.using(DEFAULT_DB_ALIAS).exclude(brand__in=["", *BRANDS])
    return [
        Warning(
            f"{name} has the brand {brand}, but there is no profile for it.",
            hint="Put its profile back into the folder `brands` of the data directory, or set another brand.",
            id="facho.W002",
        )
        for name, brand in olts.values_list("name", "brand")
    ]


def _identification() -> list[CheckMessage]:
    """Find OLTs without a brand and without an identification node."""
    olts = apps.get_model("jobs", "WorkflowNode").unsettled().filter(brand="").order_by("name")
    return [
        Warning(
            f"{name} has no brand and no identification job.",
            hint="Start Facho, which adds the identification job, or set the brand of the OLT.",
            id="facho.W006",
        )
        for name in olts.values_list("name", flat=True)
    ]


def shared_devices() -> list[CheckMessage]:
    """Find OLTs with the same device. Only in `facho check`: they are polled in turns, so this is not an error."""
    from facho.apps.inventory.models import HOST_ADDRESS, host_address
    from facho.engine.device import olts_by_device

    try:
        rows = list(apps.get_model("inventory", "Olt").objects.values_list("pk", "name", *HOST_ADDRESS))
    except DatabaseError:
        # Unavailable or outdated, which another check reports.
        return []
    names = {id_: name for id_, name, *_ in rows}
    devices = olts_by_device({id_: host_address(*where).device for id_, _, *where in rows})
    return [
        Warning(
            f"{', '.join(names[id_] for id_ in olt_ids)} are the same device: {device}.",
            hint="Only one of them is polled at a time. Delete all but one, or correct their addresses.",
            id="facho.W007",
        )
        for device, olt_ids in devices.items()
        if len(olt_ids) > 1
    ]


def _jobs() -> list[CheckMessage]:
    """Find jobs that read nothing. They are refused now; earlier versions saved them."""
    jobs = apps.get_model("jobs", "SnmpJob").objects.prefetch_related("oids")
    return [
        Warning(
            f"The job {job.name} of {job.brand} reads nothing, so it is not scheduled.",
            hint="Add a column or a raw OID to it, or delete it.",
            id="facho.W008",
        )
        for job in jobs
        if job.reads_nothing
    ]


def secrets(using: str = DEFAULT_DB_ALIAS) -> list[CheckMessage]:
    """Find a secret that the keys do not decrypt."""
    from facho.apps.inventory.fields import WrongKeyError, tables_with_secrets

    for model, names in tables_with_secrets():
        for row in model._default_manager.using(using).only(*names):
            try:
                for name in names:
                    getattr(row, name).reveal()
            except WrongKeyError as error:
                return [Error(f"{row}: {error}", id="facho.E003")]
    return []
