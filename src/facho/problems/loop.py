"""Loop of problems: evaluates the network beside the scheduler, in its process."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from facho.engine.ports import Clock, EventBus
from facho.problems.evaluation import ProblemWatch
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Seconds. Readings of an OLT arrive every few minutes, and people look at a list every few seconds.
EVALUATE_EVERY = 10.0


class ProblemLoop:
    """Evaluates every ten seconds, and publishes the OLTs whose problems changed on the topic "problems"."""

    def __init__(
        self, clock: Clock, thread: DbThread, bus: EventBus, *, snapshot: Callable[[datetime], Mapping[str, Any]]
    ) -> None:
        self._clock = clock
        self._thread = thread
        self._bus = bus
        # State of the pool, from the last snapshot.
        self._snapshot = snapshot
        self._watch = ProblemWatch()

    async def run(self) -> None:
        while True:
            await self.step()
            await self._clock.sleep(EVALUATE_EVERY)

    async def step(self) -> None:
        now = self._clock.now()
        is_stale = bool(self._snapshot(now)["stale"])
        try:
            changed = await self._thread.run(lambda: self._watch.evaluate(now, is_stale=is_stale))
        except Exception:
            # The database may be unavailable, or an OLT may have been deleted meanwhile.
            logger.exception("evaluating problems failed")
            return
        for olt_id in changed:
            self._bus.publish("problems", {"olt_id": olt_id})
