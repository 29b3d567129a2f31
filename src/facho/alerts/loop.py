"""The life of alerts: rules are evaluated and messages sent, beside the scheduler and never inside it."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from facho.alerts.channels import Notifier
from facho.alerts.evaluation import evaluate
from facho.alerts.models import Channel
from facho.alerts.notifiers import notifier
from facho.alerts.outbox import Outbox
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# How often the outbox is looked into, in seconds.
BEAT = 2.0

# In seconds.
EVALUATE_EVERY = 10.0


class AlertLoop:
    """Evaluates every ten seconds, sends every two. It watches the scheduler, and so has a thread of its own."""

    def __init__(
        self,
        clock: Clock,
        thread: DbThread,
        *,
        snapshot: Callable[[datetime], Mapping[str, Any]],
        public_url: str = "",
        notifier: Callable[[Channel], Notifier] = notifier,
    ) -> None:
        self._clock = clock
        self._thread = thread
        # How the pool stands, as far as anybody has told.
        self.snapshot = snapshot
        self._since: datetime | None = None
        # By the monotonic clock.
        self._due: float | None = None
        self.outbox = Outbox(clock=clock, thread=thread, public_url=public_url, notifier=notifier)

    async def run(self) -> None:
        while True:
            await self.step()
            await self._clock.sleep(BEAT)

    async def step(self) -> None:
        """Do what is due. What fails is due again at the next beat, or at the next evaluation."""
        try:
            await self._evaluate()
            await self.outbox.step()
        except Exception:
            # The database may be away, or a row be gone that was there a moment ago.
            logger.exception("alerts could not be looked after")

    async def _evaluate(self) -> None:
        now, seconds = self._clock.now(), self._clock.monotonic()
        # Not later than now: the clock may have been set back.
        since = self._since = min(self._since or now, now)
        if self._due is not None and seconds < self._due:
            return
        self._due = seconds + EVALUATE_EVERY
        snapshot = self.snapshot(now)
        await self._thread.run(lambda: evaluate(now, snapshot, since))

    async def close(self) -> None:
        await self.outbox.close()
