"""Loop of alerts: evaluates rules and sends messages, beside the scheduler."""

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

# Seconds between checks of the outbox.
BEAT = 2.0

# In seconds.
EVALUATE_EVERY = 10.0


class AlertLoop:
    """Evaluates every ten seconds, sends every two. It watches the scheduler, so it has its own thread."""

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
        # State of the pool, from the last snapshot.
        self.snapshot = snapshot
        self._since: datetime | None = None
        # Monotonic.
        self._due: float | None = None
        self.outbox = Outbox(clock=clock, thread=thread, public_url=public_url, notifier=notifier)

    async def run(self) -> None:
        while True:
            await self.step()
            await self._clock.sleep(BEAT)

    async def step(self) -> None:
        """Run the due steps. A failed step is due again at the next beat or evaluation."""
        now, seconds = self._clock.now(), self._clock.monotonic()
        # Not later than now: the clock may have been set back.
        since = self._since = min(self._since or now, now)
        try:
            if self._due is None or seconds >= self._due:
                self._due = seconds + EVALUATE_EVERY
                snapshot = self.snapshot(now)
                await self._thread.run(lambda: evaluate(now, snapshot, since))
            await self.outbox.step()
        except Exception:
            # The database may be unavailable, or a row may have been deleted.
            logger.exception("evaluating alerts failed")

    async def close(self) -> None:
        await self.outbox.close()
