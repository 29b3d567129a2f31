"""Outbox: messages are sent at least once, and in order per channel.

A delivery is claimed by moving its next attempt into the future. If the process dies before the result is stored, it
is due again then: it may be sent twice, but is never lost.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When

from facho.alerts.channels import Notifier
from facho.alerts.messages import message
from facho.alerts.models import Channel, Delivery
from facho.alerts.notifiers import notifier
from facho.alerts.rules import MOST_ATTEMPTS, Message, News, Silence, next_try
from facho.apps.inventory.queries import OLT_HEAVY
from facho.apps.rest.fields import WrongKeyError
from facho.engine.errors import DeliveryFailed
from facho.engine.events import Event, log_event
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Channels served at once; each may take ten seconds.
SENDERS = 8

# Seconds that a stop waits for messages in progress.
GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Parcel:
    """A claimed delivery, ready to be sent."""

    delivery_id: int
    attempts: int
    news: News
    channel: Channel
    message: Message


class Outbox:
    """Sends due messages, one at a time per channel, so that a dead channel does not delay others."""

    def __init__(
        self,
        *,
        clock: Clock,
        thread: DbThread,
        public_url: str = "",
        notifier: Callable[[Channel], Notifier] = notifier,
    ) -> None:
        self._clock = clock
        self._thread = thread
        self._public_url = public_url
        self._notifier = notifier
        self._pool = ThreadPoolExecutor(max_workers=SENDERS, thread_name_prefix="notify")
        self._busy: dict[int, asyncio.Task[None]] = {}

    async def step(self) -> None:
        """Start sending to each channel that has due messages and is idle. Does not wait."""
        now = self._clock.now()
        for channel_id in await self._thread.run(lambda: due_channels(now)):
            if channel_id not in self._busy:
                self._busy[channel_id] = asyncio.create_task(self._serve(channel_id), name=f"outbox-{channel_id}")

    async def idle(self) -> None:
        """Wait until all sending is done."""
        while self._busy:
            await asyncio.wait([*self._busy.values()])

    async def close(self) -> None:
        """Wait a moment for messages in progress; the rest is sent after the next start."""
        if self._busy:
            _done, late = await asyncio.wait([*self._busy.values()], timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, channel_id: int) -> None:
        try:
            while parcel := await self._thread.run(partial(take, channel_id, self._clock.now(), self._public_url)):
                await self._send(parcel)
        except Exception:
            # The database may be unavailable. Claimed messages are due again later; other channels continue.
            logger.exception("sending the messages of channel %d failed, retrying later", channel_id)
        finally:
            del self._busy[channel_id]

    async def _send(self, parcel: Parcel) -> None:
        try:
            code = await asyncio.get_running_loop().run_in_executor(self._pool, self._call, parcel)
        except DeliveryFailed as error:
            await self._thread.run(partial(note_failure, parcel, error, self._clock.now()))
        else:
            await self._thread.run(partial(note_success, parcel, code, self._clock.now()))

    def _call(self, parcel: Parcel) -> int | None:
        try:
            return self._notifier(parcel.channel).send(parcel.message)
        except DeliveryFailed:
            raise
        except WrongKeyError as error:
            raise DeliveryFailed(str(error), is_temporary=False) from error
        except Exception as error:
            # A bug in a notifier must not stop the channel. Its text is not logged, because it may hold a secret.
            logger.exception("delivery %d to %s failed unexpectedly", parcel.delivery_id, parcel.channel)
            raise DeliveryFailed(f"unexpected {type(error).__name__}", is_temporary=True) from error


def _due(now: datetime) -> QuerySet[Delivery]:
    """Return the messages to send now. Messages behind a pending retry wait too, except tests."""
    pending = Delivery.objects.filter(status=Delivery.Status.PENDING, channel__isnull=False)
    waiting = pending.filter(channel=OuterRef("channel"), attempts__gt=0, next_try_at__gt=now).exclude(
        news=News.TEST.value
    )
    return pending.filter(Q(news=News.TEST.value) | ~Exists(waiting), next_try_at__lte=now)


def due_channels(now: datetime) -> list[int]:
    """Return the channels with messages to send now."""
    return list(_due(now).order_by("channel_id").values_list("channel_id", flat=True).distinct())


def take(channel_id: int, now: datetime, public_url: str) -> Parcel | None:
    """Claim the next delivery of a channel, tests first; None if there is none, or another process has it."""
    channel = Channel.objects.filter(pk=channel_id).first()
    if channel is None:
        return None
    if not channel.enabled:
        # A test is sent all the same.
        pending = Delivery.objects.filter(channel_id=channel_id, status=Delivery.Status.PENDING)
        pending.exclude(news=News.TEST.value).update(
            status=Delivery.Status.SUPPRESSED, reason=Silence.CHANNEL_DISABLED.value, next_try_at=None
        )
    tests_first = Case(When(news=News.TEST.value, then=Value(0)), default=Value(1))
    mine = _due(now).filter(channel_id=channel_id).order_by(tests_first, "due_at", "id")
    delivery = mine.select_related("alert__olt").defer(*(f"alert__{name}" for name in OLT_HEAVY)).first()
    if delivery is None or not _claim(delivery, now):
        return None
    said = message(delivery, channel.language, public_url)
    return Parcel(delivery.pk, delivery.attempts + 1, News(delivery.news), channel, said)


def _claim(delivery: Delivery, now: datetime) -> bool:
    same = Delivery.objects.filter(
        pk=delivery.pk, status=Delivery.Status.PENDING, next_try_at=delivery.next_try_at, attempts=delivery.attempts
    )
    return bool(same.update(attempts=F("attempts") + 1, next_try_at=next_try(delivery.attempts + 1, now)))


def note_success(parcel: Parcel, code: int | None, now: datetime) -> None:
    Delivery.objects.filter(pk=parcel.delivery_id).update(
        status=Delivery.Status.SENT, sent_at=now, next_try_at=None, response_code=code, error=""
    )


def note_failure(parcel: Parcel, failure: DeliveryFailed, now: datetime) -> None:
    """Store the failure and the time of the next attempt, if there is one. A test is tried once."""
    is_last = not failure.is_temporary or parcel.attempts >= MOST_ATTEMPTS or parcel.news is News.TEST
    columns: dict[str, Any] = {"error": str(failure).replace("\0", ""), "response_code": failure.code}
    if is_last:
        columns |= {"status": Delivery.Status.FAILED, "next_try_at": None}
    else:
        columns |= {"next_try_at": next_try(parcel.attempts, now, failure.retry_after)}
    Delivery.objects.filter(pk=parcel.delivery_id, status=Delivery.Status.PENDING).update(**columns)
    if is_last and parcel.news is not News.TEST:
        name = parcel.channel.name
        log_event(logger, Event.DELIVERY_FAILED, channel=name, attempts=parcel.attempts, error=str(failure))
