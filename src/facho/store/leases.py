"""Leases as rows: at most one holder per key, by the clock of the database. The active scheduler also holds one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import Error, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Q, Value
from django.db.models.functions import Now
from django.utils import timezone

from facho.apps.inventory.models import HOST_ADDRESS, host_address
from facho.apps.polling.models import OPEN_STATUSES, Execution
from facho.apps.polling.models import Lease as LeaseRow
from facho.engine.errors import LeaseLost, OltBusy
from facho.engine.events import Event, log_event
from facho.engine.model import Lease
from facho.engine.ports import Clock
from facho.engine.scheduling.outages import Outages
from facho.store import sql
from facho.store.database import DbThread
from facho.store.engine_lock import refuse_beside_engine

logger = logging.getLogger(__name__)

# End of a lease without a holder.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Terms:
    """Duration of a lease, interval of renewals, and safety margin of its holder."""

    ttl: timedelta
    renew_every: timedelta
    margin: timedelta

    @classmethod
    def lasting(cls, seconds: float) -> "Terms":
        """Return terms under which some renewals may fail before the lease ends."""
        ttl = timedelta(seconds=seconds)
        return cls(ttl, ttl / 6, ttl / 6)

    @property
    def trusted(self) -> float:
        """Return the seconds after a renewal request for which the holder trusts the lease."""
        return (self.ttl - self.margin).total_seconds()


# OLTs of a dead worker stay blocked for this long. A worker without the database can finish shorter runs.
OLT_TERMS = Terms.lasting(30)


def key_of(device: str) -> str:
    return f"device:{device}"


@transaction.atomic
def acquire(key: str, holder: str, ttl: timedelta) -> int | None:
    """Take a lease, and return its token; None if another holder has it."""
    refuse_beside_engine()
    token = _take(key, holder, ttl)
    if token is None:
        # Tokens go on growing over a change of mode: in one process they are counted from the time as well.
        first = int(timezone.now().timestamp() * 1e9)
        LeaseRow.objects.bulk_create(
            [LeaseRow(key=key, holder=holder, token=first, expires_at=NEVER)], ignore_conflicts=True
        )
        token = _take(key, holder, ttl)
    return token


def _take(key: str, holder: str, ttl: timedelta) -> int | None:
    """Take a lease whose row is there and that is free, and return its token."""
    found = sql.fetch(
        f"UPDATE leases SET holder = %s, token = token + 1, expires_at = {sql.in_seconds()}, revoked = %s"  # noqa: S608 - no values
        f" WHERE key = %s AND expires_at <= {sql.in_seconds()} RETURNING token",
        holder,
        ttl.total_seconds(),
        False,
        key,
        0.0,
    )
    return int(found[0][0]) if found else None


def renew(tokens: Mapping[str, int], ttl: timedelta) -> set[str]:
    """Renew leases, and return those that are still held."""
    ours = Q(pk__in=())
    for key, token in tokens.items():
        ours |= Q(key=key, token=token)
    with transaction.atomic():
        rows = LeaseRow.objects.filter(ours, expires_at__gt=Now(), revoked=False)
        kept = set(rows.select_for_update().order_by("key").values_list("key", flat=True))
        until = ExpressionWrapper(Now() + Value(ttl), output_field=DateTimeField())
        LeaseRow.objects.filter(key__in=kept).update(expires_at=until)
    return kept


def release(key: str, token: int) -> None:
    """Give a lease back, if it is still ours."""
    # Not now(): if the clock of the database is set back, that would be in the future, and no holder could take it.
    sql.execute("UPDATE leases SET expires_at = %s WHERE key = %s AND token = %s", NEVER, key, token)


def live() -> dict[str, int]:
    """Return the leases with a holder, and their tokens."""
    return dict(LeaseRow.objects.filter(expires_at__gt=Now()).values_list("key", "token"))


def holders() -> dict[str, str]:
    """Return the last holder of each lease."""
    return dict(LeaseRow.objects.values_list("key", "holder"))


class Needed(NamedTuple):
    """An open execution, and the key of its lease."""

    execution_id: int
    olt_id: int
    status: str
    token: int | None
    key: str


def needed() -> list[Needed]:
    """Return the leases that open executions need."""
    rows = Execution.objects.filter(status__in=OPEN_STATUSES).order_by("pk")
    columns = ("pk", "olt_id", "status", "lease_token", "device", "master_execution__device")
    where = (f"olt__{column}" for column in HOST_ADDRESS)
    return [
        # A link runs on the device of its master. An unstarted execution will run on the current device of its OLT.
        Needed(id_, olt_id, status, token, key_of(own or masters or host_address(*olt).device))
        for id_, olt_id, status, token, own, masters, *olt in rows.values_list(*columns, *where)
    ]


def revoke(held: Iterable[tuple[str, int]]) -> None:
    """Prevent renewals of these leases with these tokens. Another OLT may have the device by now."""
    for device, token in held:
        LeaseRow.objects.filter(key=key_of(device), token=token).update(revoked=True)


def lock(key: str, token: int) -> bool:
    """Keep a lease from changing until the transaction is over, if it is ours."""
    return bool(sql.fetch(f"SELECT key FROM leases WHERE key = %s AND token = %s{sql.locked('leases')}", key, token))  # noqa: S608 - no values


def is_superseded(lease: Lease) -> bool:
    """Return whether another holder had the device since: then writes under this lease do not count."""
    later = "SELECT 1 FROM leases WHERE key = %s AND token > %s"
    return bool(sql.fetch(later, key_of(lease.device), lease.token))


def keep(lease: Lease) -> bool:
    """Keep a device from another holder until the transaction is over; False if another one had it since.

    Leases within one process have no row. They cannot end while their holder writes.
    """
    found = sql.fetch(f"SELECT token FROM leases WHERE key = %s{sql.locked('leases')}", key_of(lease.device))  # noqa: S608 - no values
    return not found or int(found[0][0]) <= lease.token


def holder_of(key: str) -> str:
    return LeaseRow.objects.filter(key=key).values_list("holder", flat=True).first() or "another process"


@dataclass(slots=True)
class _Held:
    lease: Lease
    # Monotonic.
    valid_until: float


class DbLeases:
    """Leases of this process, renewed together."""

    def __init__(self, thread: DbThread, clock: Clock, terms: Terms = OLT_TERMS) -> None:
        self._thread = thread
        self._clock = clock
        self._terms = terms
        self._held: dict[str, _Held] = {}

    @asynccontextmanager
    async def hold(self, olt_id: int, holder: str, *, device: str) -> AsyncIterator[Lease]:
        lease = await self._acquire(olt_id, holder, device)
        try:
            yield lease
        finally:
            # A lost lease may be held again by this process.
            if self._holding(lease) is not None:
                del self._held[device]
            await asyncio.shield(self._release(device, lease.token))

    async def _acquire(self, olt_id: int, holder: str, device: str) -> Lease:
        key, asked = key_of(device), self._clock.monotonic()
        taking = asyncio.ensure_future(self._thread.run(lambda: acquire(key, holder, self._terms.ttl)))
        try:
            token = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # It may be held by now, and must be released.
            try:
                taken = await taking
            except (Error, OltBusy) as error:
                # If it was taken nevertheless, it expires.
                logger.info("the lease of %s was not taken: %s", device, error)
            else:
                if taken is not None:
                    await self._release(device, taken)
            raise
        if token is None:
            other = await self._thread.run(lambda: holder_of(key))
            raise OltBusy(f"{device} is held by {other}")
        lease = Lease(olt_id, holder, token, device)
        self._held[device] = _Held(lease, asked + self._terms.trusted)
        return lease

    async def _release(self, device: str, token: int) -> None:
        try:
            await self._thread.run(lambda: release(key_of(device), token))
        except Error:
            logger.warning("the lease of %s could not be released; it will expire", device)

    def is_valid(self, lease: Lease) -> bool:
        held = self._holding(lease)
        return held is not None and self._clock.monotonic() < held.valid_until

    def _holding(self, lease: Lease) -> _Held | None:
        held = self._held.get(lease.device)
        return held if held is not None and held.lease == lease else None

    async def run(self) -> None:
        """Renew forever."""
        while True:
            await self._clock.sleep(self._terms.renew_every.total_seconds())
            await self.renew()

    async def renew(self) -> None:
        """Renew the held leases. If that fails, they end; the holder notices before its next request."""
        held = list(self._held.values())
        if not held:
            return
        asked = self._clock.monotonic()
        tokens = {key_of(each.lease.device): each.lease.token for each in held}
        try:
            kept = await self._thread.run(lambda: renew(tokens, self._terms.ttl))
        except Error as error:
            logger.warning("leases could not be renewed, they expire in a few seconds: %s", error)
            return
        for each in held:
            if key_of(each.lease.device) in kept:
                each.valid_until = asked + self._terms.trusted
            elif self.is_valid(each.lease):
                each.valid_until = asked
                log_event(logger, Event.LEASE_LOST, olt_id=each.lease.olt_id, holder=each.lease.holder)


KEY = "scheduler"

# A standby takes over within ten seconds: after the lease of a dead scheduler ended, at its next try.
TERMS = Terms(timedelta(seconds=8), timedelta(seconds=2), timedelta(seconds=2))
TRY_EVERY = 1.0


class SchedulerTurn:
    """The right to schedule. Every write checks it with `fence` in its own transaction."""

    def __init__(
        self, thread: DbThread, clock: Clock, holder: str, terms: Terms = TERMS, outages: Outages | None = None
    ) -> None:
        self.holder = holder
        # Records database outages, so that lost slots get the right cause.
        self.outages = outages or Outages()
        self._thread = thread
        self._clock = clock
        self._terms = terms
        self._token: int | None = None
        self._valid_until = 0.0

    @property
    def is_ours(self) -> bool:
        """Return whether the lease is certainly held."""
        return self._token is not None and self._clock.monotonic() < self._valid_until

    async def wait(self) -> None:
        """Wait on standby until the lease is held."""
        while not await self._try():
            await self._clock.sleep(TRY_EVERY)

    async def _try(self) -> bool:
        asked = self._clock.monotonic()
        try:
            with self.outages.watch(KEY, self._clock):
                self._token = await self._thread.run(lambda: acquire(KEY, self.holder, self._terms.ttl))
        except Error as error:
            logger.warning("the lease of the scheduler cannot be read: %s", error)
            return False
        self._valid_until = asked + self._terms.trusted
        return self._token is not None

    async def keep(self) -> None:
        """Renew the lease, and return when it is lost."""
        while self.is_ours:
            await self._clock.sleep(self._terms.renew_every.total_seconds())
            asked = self._clock.monotonic()
            try:
                # A hung database must not hide that the lease has ended.
                with self.outages.watch(KEY, self._clock):
                    is_kept = await asyncio.wait_for(self._renew(), max(0.1, self._valid_until - asked))
            except (Error, TimeoutError) as error:
                logger.warning("the lease of the scheduler could not be renewed: %s", error)
                continue
            if not is_kept:
                break
            self._valid_until = asked + self._terms.trusted
        self._token = None

    async def _renew(self) -> bool:
        token = self._token
        return token is not None and bool(await self._thread.run(lambda: renew({KEY: token}, self._terms.ttl)))

    def fence(self) -> None:
        """Check and lock the lease until the transaction ends. Called in a database thread."""
        if self._token is None or not lock(KEY, self._token):
            raise LeaseLost("another scheduler is active; nothing was written")

    async def give_back(self) -> None:
        """Release the lease, so that a standby can start at once."""
        token, self._token = self._token, None
        if token is None:
            return
        try:
            await self._thread.run(lambda: release(KEY, token))
        except Error:
            logger.warning("the lease of the scheduler could not be released; it will expire")
