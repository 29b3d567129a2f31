"""Whose turn it is to be the scheduler: one at a time, by a lease. A paused one that wakes up can do nothing stale."""

import asyncio
import logging
from datetime import timedelta

from django.db import Error

from facho.engine.errors import LeaseLost
from facho.engine.outages import Outages
from facho.engine.ports import Clock
from facho.store import leases
from facho.store.leases import Terms
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)

KEY = "scheduler"

# A standby takes over in less than ten seconds: when the lease of one that died is over, and at its next try.
TERMS = Terms(timedelta(seconds=8), timedelta(seconds=2), timedelta(seconds=2))
TRY_EVERY = 1.0


class SchedulerTurn:
    """The right to schedule. Everything that is written with it passes `fence` in its own transaction."""

    def __init__(
        self, thread: DbThread, clock: Clock, holder: str, terms: Terms = TERMS, outages: Outages | None = None
    ) -> None:
        self.holder = holder
        # Called when the database does not answer, so that slots lost meanwhile get the right cause.
        self.outages = outages or Outages()
        self._thread = thread
        self._clock = clock
        self._terms = terms
        self._token: int | None = None
        self._valid_until = 0.0

    @property
    def is_ours(self) -> bool:
        """Return whether it is our turn for certain."""
        return self._token is not None and self._clock.monotonic() < self._valid_until

    async def wait(self) -> None:
        """Stand by until it is our turn."""
        while not await self._try():
            await self._clock.sleep(TRY_EVERY)

    async def _try(self) -> bool:
        asked = self._clock.monotonic()
        try:
            with self.outages.watch(KEY, self._clock):
                self._token = await self._thread.run(lambda: leases.acquire(KEY, self.holder, self._terms.ttl))
        except Error as error:
            logger.warning("the lease of the scheduler cannot be read: %s", error)
            return False
        self._valid_until = asked + self._terms.trusted
        return self._token is not None

    async def keep(self) -> None:
        """Renew as long as it is our turn, and return when it no longer is."""
        while self.is_ours:
            await self._clock.sleep(self._terms.renew_every.total_seconds())
            asked = self._clock.monotonic()
            try:
                # A database that does not answer must not keep us from noticing that the time is up.
                with self.outages.watch(KEY, self._clock):
                    is_kept = await asyncio.wait_for(self._renew(), max(0.1, self._valid_until - asked))
            except (Error, TimeoutError) as error:
                logger.warning("the turn of the scheduler could not be renewed: %s", error)
                continue
            if not is_kept:
                self._token = None
                return
            self._valid_until = asked + self._terms.trusted
        self._token = None

    async def _renew(self) -> bool:
        token = self._token
        return token is not None and bool(await self._thread.run(lambda: leases.renew({KEY: token}, self._terms.ttl)))

    def fence(self) -> None:
        """Pass only if it is our turn, and keep it ours until the transaction is over. In a thread of the database."""
        if self._token is None or not leases.lock(KEY, self._token):
            raise LeaseLost("another scheduler has taken over; nothing was written")

    async def give_back(self) -> None:
        """Let another one begin at once."""
        token, self._token = self._token, None
        if token is None:
            return
        try:
            await self._thread.run(lambda: leases.release(KEY, token))
        except Error:
            logger.warning("the turn of the scheduler could not be given back; it ends by itself")
