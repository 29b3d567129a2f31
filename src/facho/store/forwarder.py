"""Store and forward: with the database away, what a runner has to say waits in a spool, and lands once.

The database is asked first, unless something waits already: then the new comes
behind it, so that each execution is told in order. Nothing new begins while
something waits.

It lands once although it may be said twice, because a connection that broke, or
a process that died, may have been heard. A harvest is looked for in the
transaction that writes it (see `store/once.py`); an execution that has ended does not end again; an
attempt that was put off is put off to the same time. What is said with an older
token than the present one is not written, and is dropped here.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from facho.adapters.wire import UnreadableMessage
from facho.engine.errors import LeaseLost
from facho.engine.events import Event, tell
from facho.engine.ports import Ledger
from facho.store.away import is_away, is_short_of_something, ping
from facho.store.entries import (
    End,
    Entry,
    Harvest,
    PatientSink,
    Store,
    decode,
    encode,
    label,
    lost_harvests,
)
from facho.store.once import repeatable
from facho.store.spool import MEGABYTE, NotKept, Spool
from facho.store.threads import DbThread

logger = logging.getLogger(__name__)

# So often an entry fails while the database answers everybody else: then it is the entry.
PATIENCE = 10

LOST = "the readings could not be written when the database was back; they are in the folder of what was refused"


class Forwarder:
    """Says things to the store, now or later. Sink and ledger of one process share one, and with it their order."""

    def __init__(
        self,
        *,
        sink: PatientSink,
        ledger: Ledger,
        spool: Spool,
        thread: DbThread,
        ping: Callable[[], None] = ping,
    ) -> None:
        self._store = Store(sink, ledger)
        self._spool = spool
        # Disks are slow, and a loop must not wait for them.
        self._thread = thread
        self._ping = ping
        self._landing: asyncio.Task[None] | None = None
        self._failures: Counter[int] = Counter()
        self._lost = lost_harvests(spool.refused_labels())
        # Since the database was last there: how much has landed, and what has been told.
        self._landed = self._dropped = 0
        self._is_away = self._is_full = False

    @property
    def waiting(self) -> int:
        """Return how many entries wait."""
        return len(self._spool)

    @property
    def waiting_bytes(self) -> int:
        return self._spool.size

    async def say(self, entry: Entry) -> None:
        """Say something now, or let it wait; `NotKept` if it is a harvest for which there is no room."""
        if not self.waiting:
            try:
                await self._honest(entry).say(self._store)
            except Exception as error:
                if not is_away(error):
                    raise
                self._tell_away(error)
            else:
                self._is_away = self._is_full = False
                return
        await self._thread.run(lambda: self._keep(entry))

    def _keep(self, entry: Entry) -> None:
        """Put an entry into the spool, as well as there is room for it."""
        if isinstance(entry, Harvest):
            entry = repeatable(entry)
        try:
            self._spool.append(label(entry), encode(entry))
        except (NotKept, TypeError) as error:
            self._tell_full(error)
            if isinstance(entry, Harvest):
                raise NotKept(f"the database is away, and the readings could not be kept: {error}") from error
            self._squeeze_in(entry)

    def _squeeze_in(self, entry: Entry) -> None:
        bare = entry.bare()
        try:
            self._spool.append(label(bare), encode(bare), is_small=True)
        except NotKept:
            self._hold(bare)

    def _hold(self, entry: Entry) -> None:
        try:
            self._spool.hold(label(entry), encode(entry))
        except NotKept as error:
            # Its execution stays open, and whoever looks for such ends it.
            logger.error("%s of execution %s was lost: %s", entry.kind, entry.execution_ids, error)

    def _tell_away(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            tell(logger, Event.SPOOLING, error=_sentence(error))

    def _tell_full(self, error: Exception) -> None:
        if not self._is_full:
            self._is_full = True
            tell(logger, Event.SPOOL_FULL, size=self._spool.size / MEGABYTE, error=str(error))

    async def land(self) -> None:
        """Say all that waits, in order; the error of the database if it is still away."""
        if not self.waiting:
            return
        if self._landing is None:
            self._landing = asyncio.create_task(self._land(), name="spool")
            self._landing.add_done_callback(self._ended)
        # Many may wait for it, and who gives up waiting must not stop it for the others.
        await asyncio.shield(self._landing)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._landing = None
        if not task.cancelled():
            # Those who waited have it; if nobody did, nobody is to be warned of it.
            task.exception()

    async def step(self, now: datetime) -> None:
        """Land what there is, as a chore: that the database is still away has been told."""
        try:
            await self.land()
        except Exception as error:
            if not is_away(error):
                raise
            logger.debug("%d entries wait on: %s", self.waiting, error)

    async def close(self) -> None:
        """Wait for what is landing, and leave the rest to whoever comes next."""
        if self._landing is not None:
            await asyncio.gather(self._landing, return_exceptions=True)
        await self._thread.run(self._spool.close)

    async def _land(self) -> None:
        # What comes in meanwhile comes behind, and lands with the others.
        while (number := await self._thread.run(self._spool.first)) is not None:
            await self._land_one(number)
        self._tell_landed()

    async def _land_one(self, number: int) -> None:
        """Say an entry, and forget it; the error of the database if it is away."""
        entry = await self._read(number)
        if entry is None:
            return
        try:
            await self._say_again(self._honest(entry))
        except LeaseLost as error:
            logger.warning("%s of execution %s came too late: %s", entry.kind, entry.execution_ids, error)
            self._dropped += 1
        except Exception as error:
            if is_away(error) and not await self._is_to_blame(number, error):
                raise
            # A defect of ours, or of one row: those behind it must not wait for it.
            logger.exception("%s of execution %s could not land", entry.kind, entry.execution_ids)
            await self._refuse(number, error)
            return
        else:
            self._landed += 1
        await self._thread.run(lambda: self._spool.remove(number))

    async def _say_again(self, entry: Entry) -> None:
        """Say something that may have been heard when the line broke."""
        await (entry.say_again if isinstance(entry, Harvest) else entry.say)(self._store)

    async def _is_to_blame(self, number: int, error: Exception) -> bool:
        """Return whether a database that answers everybody else has been away for this entry, time and again."""
        if is_short_of_something(error):
            return False
        try:
            await self._thread.run(self._ping)
        except Exception as away:
            logger.debug("the database is away: %s", away)
            self._failures.clear()
            return False
        self._failures[number] += 1
        return self._failures[number] >= PATIENCE

    async def _read(self, number: int) -> Entry | None:
        try:
            return await self._thread.run(lambda: decode(self._spool.read(number)))
        except (UnreadableMessage, OSError) as error:
            await self._refuse(number, error)
            return None

    async def _refuse(self, number: int, error: Exception) -> None:
        name = self._spool.label(number)
        self._failures.pop(number, None)
        self._lost |= lost_harvests([name])
        await self._thread.run(lambda: self._spool.refuse(number))
        tell(logger, Event.SPOOL_REFUSED, entry=name, error=_sentence(error))

    def _honest(self, entry: Entry) -> Entry:
        """Return an end that does not boast of readings that were lost."""
        if isinstance(entry, End) and self._lost.intersection(entry.execution_ids):
            return entry.without_harvest(LOST)
        return entry

    def _tell_landed(self) -> None:
        if self._landed:
            tell(logger, Event.SPOOL_LANDED, entries=self._landed)
        if self._dropped:
            tell(logger, Event.SPOOL_DROPPED, entries=self._dropped)
        self._landed = self._dropped = 0
        self._is_away = self._is_full = False


def _sentence(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
