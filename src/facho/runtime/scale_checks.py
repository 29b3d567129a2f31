"""What must hold on a server that several processes share, and what `facho check` has to say of scale-out.

There are two kinds. `refusals` stop every start: with them something would go wrong. `remarks` are only told by
`facho check`: a role that starts while Redis is away waits for it, and one whose clock is a little off still works.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Info
from django.db import DatabaseError, connection
from django.db.models import Count, DateTimeField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now

from facho.runtime.clocks import skew_of_database
from facho.runtime.config import Config
from facho.store.tenancy import ENGINE_LOCK, holder_of_lease


def refusals(config: Config) -> list[CheckMessage]:
    """Return what no process may start with. The database answers, and is PostgreSQL."""
    if not config.is_scale:
        return roles_at_work(connection)
    return [*_embedded_engine(), *(message for message in _clock() if message.is_serious())]


def remarks(config: Config) -> list[CheckMessage]:
    """Return what a person should know who asks. Whatever refuses a start is not said again."""
    # Not before it is needed: an installation of one process has no Redis, nor what talks to it.
    from facho.runtime.redis_checks import redis

    return [*redis(config.redis_url), *_of_database()]


def _of_database() -> list[CheckMessage]:
    try:
        return [*(message for message in _clock() if not message.is_serious()), *_scheduler(), *_workers()]
    except DatabaseError:
        # It is away, or not up to date. That has been said.
        return []


def roles_at_work(server: Any) -> list[CheckMessage]:
    """Find processes of scale-out. They and an engine of one process know nothing of each other's leases."""
    holder = holder_of_lease(server)
    if holder is None:
        return []
    return [
        Error(
            f"Processes of scale-out are at work on this database, such as {holder}.",
            hint="Set FACHO_MODE=scale to be one of them, or stop them. What one of them held that was killed is free "
            "after half a minute.",
            id="facho.E006",
        )
    ]


def _embedded_engine() -> list[CheckMessage]:
    """Find an engine that has everything in one process, by the lock that it holds."""
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
            "`facho run` is at work on this database, or `facho migrate-to`.",
            hint="Stop it first: an engine in one process and the roles of scale-out would poll the same OLTs.",
            id="facho.E005",
        )
    ]


def _clock() -> Sequence[CheckMessage]:
    return skew_of_database().messages("the database", error="facho.E007", warning="facho.W003")


def _scheduler() -> list[CheckMessage]:
    from facho.apps.polling.models import Lease
    from facho.store.turns import KEY

    holder = Lease.objects.filter(key=KEY, expires_at__gt=Now()).values_list("holder", flat=True).first()
    said = (
        f"The active scheduler is {holder}." if holder else "No scheduler is active: start one with `facho scheduler`."
    )
    return [Info(said, id="facho.I001")]


def _workers() -> list[CheckMessage]:
    from facho.apps.polling.models import Poller
    from facho.store.pool import GONE_AFTER

    since = ExpressionWrapper(Now() - Value(GONE_AFTER), output_field=DateTimeField())
    is_busy = Q(status=Poller.Status.BUSY)
    workers = Poller.objects.filter(updated_at__gt=since).values("worker", "host").order_by("worker")
    counts = list(workers.annotate(pollers=Count("pk"), busy=Count("pk", filter=is_busy)))
    if not counts:
        return [Info("No worker is heard of: start one with `facho worker`.", id="facho.I002")]
    return [
        Info("Worker {worker} on {host} has {pollers} pollers, {busy} of them busy.".format(**row), id="facho.I002")
        for row in counts
    ]
