"""System checks of `facho check` and of every start, with ids and hints like Django's own."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.db import DEFAULT_DB_ALIAS, DatabaseError, NotSupportedError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, DateTimeField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now

from facho.adapters.clock import SystemClock
from facho.adapters.tsdb.remote_write import RemoteWrite
from facho.apps.inventory.models import HOST_ADDRESS, Olt, host_address
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Lease, Poller
from facho.apps.rest.fields import WrongKeyError, tables_with_secrets
from facho.apps.telemetry.search_index import is_indexed
from facho.brands import BRANDS
from facho.engine.device import olts_by_device
from facho.engine.errors import BatchRejected, StoreRefuses, StoreUnavailable
from facho.engine.remote_write import request
from facho.runtime.clocks import measure, skew_of_database
from facho.runtime.config import KNOWN_NAMES, Config, unknown_names
from facho.runtime.files import loose_paths
from facho.runtime.lock import roles_at_work
from facho.runtime.logs import redact
from facho.runtime.upgrade import HOW_TO_UPGRADE, TOO_OLD, is_too_old
from facho.store.engine_lock import ENGINE_LOCK
from facho.store.events import GONE_AFTER
from facho.store.leases import KEY

# Pending migrations: a start applies them, other commands refuse to run.
OUTDATED = "facho.W001"

# Seconds to connect to Redis, and for each answer.
PATIENCE = 3.0

# Oldest versions that have everything that Facho and Celery need. Valkey started from Redis 7.2.
OLDEST_REDIS = (6, 2)
OLDEST_VALKEY = (7, 2)


@register
def environment(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Find unknown settings: a misspelt one would be ignored silently."""
    return [
        Error(
            f"{name} is not a setting of Facho.",
            hint=f"Did you mean {meant}?" if meant else f"The settings are {', '.join(sorted(KNOWN_NAMES))}.",
            id="facho.E001",
        )
        for name, meant in unknown_names().items()
    ]


@register
def plain_passwords(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Find an LDAP server that gets passwords without encryption."""
    if not settings.CONFIG.sends_plain_passwords:
        return []
    return [
        Warning(
            "FACHO_LDAP_START_TLS is false, so passwords are sent to the LDAP server without encryption.",
            hint="Write ldaps:// in FACHO_LDAP_URL, or unset FACHO_LDAP_START_TLS.",
            id="facho.W009",
        )
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
        shared = _other_processes(settings.CONFIG) if connection.vendor == "postgresql" else []
        if is_too_old(connection):
            return [*shared, Error(TOO_OLD, hint=HOW_TO_UPGRADE, id="facho.E016")]
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
    if pending:
        behind = Warning("The database is not up to date.", hint="Run `facho migrate`.", id=OUTDATED)
        return [*shared, behind]
    return [*shared, *secrets(), *_unusable_rows(), *_search()]


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


def secrets(using: str = DEFAULT_DB_ALIAS) -> list[CheckMessage]:
    """Find a secret that the keys do not decrypt."""
    for model, names in tables_with_secrets():
        for row in model._default_manager.using(using).only(*names):
            try:
                for name in names:
                    getattr(row, name).reveal()
            except WrongKeyError as error:
                return [Error(f"{row}: {error}", id="facho.E003")]
    return []


def _unusable_rows() -> list[CheckMessage]:
    """Find OLTs and jobs that are not polled."""
    without_profile = Olt.objects.exclude(brand__in=["", *BRANDS])
    without_brand = WorkflowNode.unsettled().filter(brand="").order_by("name")
    return [
        *(
            Warning(
                f"{name} has the brand {brand}, but there is no profile for it.",
                hint="Put its profile back into the folder `brands` of the data directory, or set another brand.",
                id="facho.W002",
            )
            for name, brand in without_profile.values_list("name", "brand")
        ),
        *(
            Warning(
                f"{name} has no brand and no identification job.",
                hint="Start Facho, which adds the identification job, or set the brand of the OLT.",
                id="facho.W006",
            )
            for name in without_brand.values_list("name", flat=True)
        ),
        # They are refused now; earlier versions saved them.
        *(
            Warning(
                f"The job {job.name} of {job.brand} reads nothing, so it is not scheduled.",
                hint="Add a column or a raw OID to it, or delete it.",
                id="facho.W008",
            )
            for job in SnmpJob.objects.prefetch_related("oids")
            if job.reads_nothing
        ),
    ]


def _search() -> list[CheckMessage]:
    """Find a PostgreSQL without the index of the search."""
    if is_indexed(connection):
        return []
    return [
        Warning(
            "The search has no index, because this PostgreSQL has no extension pg_trgm. With many ONUs it is slow.",
            hint="Install the contrib package of PostgreSQL. As its superuser, run `CREATE EXTENSION pg_trgm` in the "
            "database of Facho. Then run `facho migrate`.",
            id="facho.W011",
        )
    ]


def time_series(config: Config) -> list[CheckMessage]:
    """Find a time series store that does not accept runs. Only in `facho check`: Facho keeps them for a while."""
    if not config.tsdb_url:
        return []
    client = RemoteWrite(config.tsdb_url, config.tsdb_token, patience=PATIENCE)
    try:
        client.post(request([]))
    except (StoreUnavailable, StoreRefuses, BatchRejected) as error:
        return [
            Warning(
                f"The time series store at {config.tsdb_address} does not accept runs: {str(error).rstrip('.')}.",
                hint="Check that it is running and accepts Prometheus remote write, and check FACHO_TSDB_URL and "
                "FACHO_TSDB_TOKEN.",
                id="facho.W012",
            )
        ]
    finally:
        client.close()
    return [Info(f"The time series store at {config.tsdb_address} accepts runs.", id="facho.I003")]


def shared_devices() -> list[CheckMessage]:
    """Find OLTs with the same device. Only in `facho check`: they are polled in turns, so this is not an error."""
    try:
        rows = list(Olt.objects.values_list("pk", "name", *HOST_ADDRESS))
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


def loose_files(config: Config) -> list[CheckMessage]:
    """Find files that other users of the machine can read. Only in `facho check`: a start closes those it owns."""
    return [
        Warning(
            f"Other users of this machine can read or change {path}.",
            hint=f"Run: chmod {'700' if path.is_dir() else '600'} {path}",
            id="facho.W010",
        )
        for path in loose_paths(config)
    ]


def _other_processes(config: Config) -> list[CheckMessage]:
    """Find processes of the other mode, and a clock that differs too much. The database answers, and is PostgreSQL."""
    if not config.is_scale:
        return roles_at_work(connection)
    messages = [message for message in _database_clock() if message.is_serious()]
    with connection.cursor() as cursor:
        # An embedded engine has this lock.
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
            "AND mode = 'ExclusiveLock' "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND classid = %s AND objid = %s",
            [ENGINE_LOCK >> 32, ENGINE_LOCK & 0xFFFFFFFF],
        )
        (count,) = cursor.fetchone()
    if not count:
        return messages
    engine = Error(
        "`facho run` or `facho migrate-to` is using this database.",
        hint="Stop it first: a single-process engine and scale-out processes would poll the same OLTs.",
        id="facho.E005",
    )
    return [engine, *messages]


def _database_clock() -> list[CheckMessage]:
    return skew_of_database().messages("the database", error="facho.E007", warning="facho.W003")


def servers(config: Config) -> list[CheckMessage]:
    """Return remarks about Redis, the clocks, the scheduler and the workers of scale-out."""
    messages = redis(config.redis_url)
    since = ExpressionWrapper(Now() - Value(GONE_AFTER), output_field=DateTimeField())
    workers = Poller.objects.filter(updated_at__gt=since).values("worker", "host").order_by("worker")
    is_busy = Q(status=Poller.Status.BUSY)
    try:
        clock = [message for message in _database_clock() if not message.is_serious()]
        holder = Lease.objects.filter(key=KEY, expires_at__gt=Now()).values_list("holder", flat=True).first()
        counts = list(workers.annotate(pollers=Count("pk"), busy=Count("pk", filter=is_busy)))
    except DatabaseError:
        # Unavailable or outdated, which another check reports.
        return messages
    scheduler = (
        f"The active scheduler is {holder}." if holder else "No scheduler is active: start one with `facho scheduler`."
    )
    described = [
        "Worker {worker} on {host} has {pollers} pollers, {busy} of them busy.".format(**row) for row in counts
    ] or ["No worker is running: start one with `facho worker`."]
    return [
        *messages,
        *clock,
        Info(scheduler, id="facho.I001"),
        *(Info(text, id="facho.I002") for text in described),
    ]


def redis(url: str) -> list[CheckMessage]:
    """Check the Redis at an address. The password is never printed."""
    # Imported late: an embedded installation has no Redis client.
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
    from redis.retry import Retry

    try:
        # The current state, without retries.
        with Redis.from_url(
            url,
            socket_connect_timeout=PATIENCE,
            socket_timeout=PATIENCE,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        ) as client:
            client.ping()
            # One section per query: several at once need Redis 7.
            info = client.info("server") | client.info("memory") | client.info("replication")

            def now() -> datetime:
                seconds, microseconds = client.time()
                return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=microseconds)

            skew = measure(now, SystemClock())
            return [*redis_server(info), *skew.messages("Redis", error="facho.E013", warning="facho.W005")]
    except AuthenticationError:
        hint = "Check the user and the password in FACHO_REDIS_URL, like redis://:password@host:6379/0."
        return [Error("Redis rejected the user or the password.", hint=hint, id="facho.E009")]
    except NoPermissionError as error:
        hint = "Allow the user of FACHO_REDIS_URL all keys and channels, INFO, and commands that are not @dangerous."
        return [Error(f"Redis denied a command: {_without_password(error, url)}.", hint=hint, id="facho.E009")]
    except ValueError as error:
        said = f"FACHO_REDIS_URL cannot be used: {_without_password(error, url)}."
        return [Error(said, hint="Write an address like redis://:password@host:6379/0.", id="facho.E014")]
    except (RedisError, OSError) as error:
        return [
            Error(
                f"Redis cannot be used: {_without_password(error, url)}",
                hint="Check FACHO_REDIS_URL and that the server is running. No new runs start until it is available.",
                id="facho.E008",
            )
        ]


def redis_server(info: Mapping[str, Any]) -> list[CheckMessage]:
    """Check version, topology and eviction policy of a server, from its answer to INFO."""
    messages: list[CheckMessage] = []
    # Valkey also reports the Redis version that it is compatible with.
    name, oldest = ("Valkey", OLDEST_VALKEY) if "valkey_version" in info else ("Redis", OLDEST_REDIS)
    version = str(info.get(f"{name.lower()}_version", "0"))
    if tuple(int(part) if part.isdecimal() else 0 for part in version.split(".")[:2]) < oldest:
        needed = ".".join(map(str, oldest))
        messages.append(
            Error(
                f"{name} has version {version}.",
                hint=f"Facho requires {needed} or later: upgrade it, or set another server in FACHO_REDIS_URL.",
                id="facho.E010",
            )
        )
    if info.get("redis_mode") == "cluster" or info.get("server_mode") == "cluster":
        messages.append(
            Error(
                "Redis runs as a cluster, which Celery's queues cannot use.",
                hint="Set a single server in FACHO_REDIS_URL. It can have a replica.",
                id="facho.E011",
            )
        )
    if info.get("role") == "slave":
        messages.append(
            Error(
                "FACHO_REDIS_URL points to a replica, which is read-only.",
                hint="Set the primary server.",
                id="facho.E012",
            )
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction" and int(info.get("maxmemory", 0)):
        messages.append(
            Warning(
                f"Redis evicts keys when its memory is full (maxmemory-policy {policy}).",
                hint="Set maxmemory-policy noeviction, or use a separate Redis for Facho: its queues are keys too.",
                id="facho.W004",
            )
        )
    return messages


def _without_password(error: Exception, url: str) -> str:
    """Return the error as a message without secrets."""
    said = redact(str(error).strip() or type(error).__name__)
    try:
        password = unquote(urlsplit(url).password or "")
    except ValueError:
        password = ""
    return said.replace(password, "***") if password else said
