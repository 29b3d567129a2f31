"""Checks of the servers of scale-out: PostgreSQL and Redis."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.checks import CheckMessage, Error, Info, Warning
from django.db import DatabaseError, connection
from django.db.models import Count, DateTimeField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.retry import Retry

from facho.adapters.clock import SystemClock
from facho.runtime.clocks import measure, skew_of_database
from facho.runtime.config import Config
from facho.runtime.redact import redact
from facho.store.engine_lock import ENGINE_LOCK, holder_of_lease

# Seconds to connect, and for each answer.
PATIENCE = 3.0

# Oldest versions that have everything that Facho and Celery need. Valkey started from Redis 7.2.
OLDEST_REDIS = (6, 2)
OLDEST_VALKEY = (7, 2)


def redis(url: str) -> list[CheckMessage]:
    """Check the Redis at an address. The password is never printed."""
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
            return [*_kind(_info(client)), *_redis_clock(client)]
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


def _info(client: Redis) -> Mapping[str, Any]:
    # One section per query: several at once need Redis 7.
    return {
        name: value for section in ("server", "memory", "replication") for name, value in client.info(section).items()
    }


def _kind(info: Mapping[str, Any]) -> list[CheckMessage]:
    """Check the kind and version of the server."""
    return [*_version(info), *_topology(info), *_eviction(info)]


def _version(info: Mapping[str, Any]) -> list[CheckMessage]:
    # Valkey also reports the Redis version that it is compatible with.
    name, oldest = ("Valkey", OLDEST_VALKEY) if "valkey_version" in info else ("Redis", OLDEST_REDIS)
    version = str(info.get(f"{name.lower()}_version", "0"))
    if _numbers(version) >= oldest:
        return []
    needed = ".".join(map(str, oldest))
    return [
        Error(
            f"{name} has version {version}.",
            hint=f"Facho requires {needed} or later: upgrade it, or set another server in FACHO_REDIS_URL.",
            id="facho.E010",
        )
    ]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split(".")[:2])


def _topology(info: Mapping[str, Any]) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
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
    return messages


def _eviction(info: Mapping[str, Any]) -> list[CheckMessage]:
    """Find a server that evicts keys when memory is full: it could evict the queues."""
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy == "noeviction" or not int(info.get("maxmemory", 0)):
        return []
    return [
        Warning(
            f"Redis evicts keys when its memory is full (maxmemory-policy {policy}).",
            hint="Set maxmemory-policy noeviction, or use a separate Redis for Facho: its queues are keys too.",
            id="facho.W004",
        )
    ]


def _redis_clock(client: Redis) -> list[CheckMessage]:
    return measure(lambda: _time(client), SystemClock()).messages("Redis", error="facho.E013", warning="facho.W005")


def _time(client: Redis) -> datetime:
    seconds, microseconds = client.time()
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=microseconds)


def _without_password(error: Exception, url: str) -> str:
    """Return the error as a message without secrets."""
    said = redact(str(error).strip() or type(error).__name__)
    try:
        password = unquote(urlsplit(url).password or "")
    except ValueError:
        password = ""
    return said.replace(password, "***") if password else said


def refusals(config: Config) -> list[CheckMessage]:
    """Return the problems that prevent a start. The database answers, and is PostgreSQL."""
    if not config.is_scale:
        return roles_at_work(connection)
    return [*_embedded_engine(), *(message for message in _clock() if message.is_serious())]


def remarks(config: Config) -> list[CheckMessage]:
    """Return the other remarks."""
    # Imported late: an embedded installation has no Redis client.
    from facho.runtime.server_checks import redis

    return [*redis(config.redis_url), *_of_database()]


def _of_database() -> list[CheckMessage]:
    try:
        return [*(message for message in _clock() if not message.is_serious()), *_scheduler(), *_workers()]
    except DatabaseError:
        # Unavailable or outdated, which another check reports.
        return []


def roles_at_work(server: Any) -> list[CheckMessage]:
    """Find processes of scale-out, which do not know the leases of an embedded engine."""
    holder = holder_of_lease(server)
    if holder is None:
        return []
    return [
        Error(
            f"Scale-out processes are using this database, such as {holder}.",
            hint="Set FACHO_MODE=scale to join them, or stop them. Leases of a killed process expire after half a "
            "minute.",
            id="facho.E006",
        )
    ]


def _embedded_engine() -> list[CheckMessage]:
    """Find an embedded engine by its lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
            "AND mode = 'ExclusiveLock' "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND classid = %s AND objid = %s",
            [ENGINE_LOCK >> 32, ENGINE_LOCK & 0xFFFFFFFF],
        )
        (count,) = cursor.fetchone()
    if not count:
        return []
    return [
        Error(
            "`facho run` or `facho migrate-to` is using this database.",
            hint="Stop it first: a single-process engine and scale-out processes would poll the same OLTs.",
            id="facho.E005",
        )
    ]


def _clock() -> Sequence[CheckMessage]:
    return skew_of_database().messages("the database", error="facho.E007", warning="facho.W003")


def _scheduler() -> list[CheckMessage]:
    from facho.apps.polling.models import Lease
    from facho.store.leases import KEY

    holder = Lease.objects.filter(key=KEY, expires_at__gt=Now()).values_list("holder", flat=True).first()
    said = (
        f"The active scheduler is {holder}." if holder else "No scheduler is active: start one with `facho scheduler`."
    )
    return [Info(said, id="facho.I001")]


def _workers() -> list[CheckMessage]:
    from facho.apps.polling.models import Poller
    from facho.store.events import GONE_AFTER

    since = ExpressionWrapper(Now() - Value(GONE_AFTER), output_field=DateTimeField())
    is_busy = Q(status=Poller.Status.BUSY)
    workers = Poller.objects.filter(updated_at__gt=since).values("worker", "host").order_by("worker")
    counts = list(workers.annotate(pollers=Count("pk"), busy=Count("pk", filter=is_busy)))
    if not counts:
        return [Info("No worker is running: start one with `facho worker`.", id="facho.I002")]
    return [
        Info("Worker {worker} on {host} has {pollers} pollers, {busy} of them busy.".format(**row), id="facho.I002")
        for row in counts
    ]
