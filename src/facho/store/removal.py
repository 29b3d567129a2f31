"""Deletion of the rows of deleted OLTs by the engine, in portions with pauses for other writers."""

import logging
from datetime import datetime
from functools import partial

from facho.apps.inventory.removal import delete_rows, deleting
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Seconds of one portion, and the pause after it as a multiple of its duration.
PORTION = 0.1
PAUSE_FACTOR = 2
# The pause if there was nothing to delete, because an execution is still open.
LEAST_PAUSE = 0.2

# Seconds of one run. The next beat continues.
BUDGET = 240.0


class Removal:
    """Deletes the OLTs that users deleted, each in turn, so that a large one does not hold up a small one."""

    def __init__(self, *, thread: DbThread, clock: Clock) -> None:
        self._thread = thread
        self._clock = clock

    async def run(self, now: datetime) -> None:
        left = await self._thread.run(deleting)
        end = self._clock.monotonic() + BUDGET
        while left and self._clock.monotonic() < end:
            for olt_id in list(left):
                began = self._clock.monotonic()
                if await self._thread.run(partial(delete_rows, olt_id, seconds=PORTION, clock=self._clock.monotonic)):
                    left.remove(olt_id)
                    logger.info("OLT %d: all rows deleted", olt_id)
                took = self._clock.monotonic() - began
                await self._clock.sleep(max(took * PAUSE_FACTOR, LEAST_PAUSE))
