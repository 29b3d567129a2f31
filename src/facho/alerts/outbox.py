"""Outbox: messages are sent at least once, and in order per channel, critical ones first.

A message is the deliveries of one rule to one channel with the same news and the same due time. They are claimed
together, by moving their next attempt into the future. If the process dies before the result is stored, they are due
again then: a message may be sent twice, with the same number, but is never lost.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When

from facho.alerts.channels import Notifier
from facho.alerts.messages import message
from facho.alerts.models import Channel, Delivery
from facho.alerts.notifiers import notifier
from facho.alerts.rules import MOST_ATTEMPTS, AlertSeverity, Message, News, Silence, next_try
from facho.apps.inventory.queries import OLT_HEAVY
from facho.apps.rest.fields import WrongKeyError
from facho.engine.errors import DeliveryFailed
from facho.engine.events import Event, log_event
from facho.engine.ports import Clock
from facho.store.database import DbThread

logger = logging.getLogger(__name__)

# Channels served at once; each may take ten seconds.
SENDERS = 8

CRITICAL = Q(alert__severity=AlertSeverity.CRITICAL.value)

# Seconds that a stop waits for messages in progress.
GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Parcel:
    """A claimed message, ready to be sent."""

    deliveries: tuple[int, ...]
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
            logger.exception("delivery %d to %s failed unexpectedly", parcel.deliveries[0], parcel.channel)
            raise DeliveryFailed(f"unexpected {type(error).__name__}", is_temporary=True) from error


def _due(now: datetime) -> QuerySet[Delivery]:
    """Return the deliveries to send now.

    Those behind a pending retry wait too, except tests. Critical ones only wait behind critical ones.
    """
    pending = Delivery.objects.filter(status=Delivery.Status.PENDING, channel__isnull=False)
    waiting = pending.filter(channel=OuterRef("channel"), attempts__gt=0, next_try_at__gt=now).exclude(
        news=News.TEST.value
    )
    is_free = Q(news=News.TEST.value) | ~Exists(waiting) | CRITICAL & ~Exists(waiting.filter(CRITICAL))
    return pending.filter(is_free, next_try_at__lte=now)


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
    urgent_first = Case(When(news=News.TEST.value, then=Value(0)), When(CRITICAL, then=Value(1)), default=Value(2))
    head = (
        _due(now).filter(channel_id=channel_id).order_by(urgent_first, "due_at", "id").select_related("alert").first()
    )
    claimed = _claim(head, now) if head else []
    if not claimed:
        return None
    said = message(claimed, channel, public_url)
    return Parcel(tuple(each.pk for each in claimed), claimed[0].attempts + 1, News(claimed[0].news), channel, said)


@transaction.atomic
def _claim(head: Delivery, now: datetime) -> list[Delivery]:
    """Claim a delivery with all that are one message with it; none if another process has claimed them."""
    same = Delivery.objects.filter(
        channel=head.channel_id,
        status=Delivery.Status.PENDING,
        news=head.news,
        due_at=head.due_at,
        next_try_at=head.next_try_at,
        attempts=head.attempts,
    )
    if head.alert is None:
        same = same.filter(pk=head.pk)
    elif head.news == News.SUMMARY:
        # Of all rules.
        same = same.filter(alert__window=head.alert.window_id)
    else:
        same = same.filter(alert__rule_name=head.alert.rule_name)
    rows = (
        same.select_related("alert__olt", "alert__window__maintenance")
        .defer(*(f"alert__{name}" for name in OLT_HEAVY))
        .order_by("id")
    )
    claimed = list(rows.select_for_update(of=("self",)))
    Delivery.objects.filter(pk__in=[each.pk for each in claimed]).update(
        attempts=F("attempts") + 1, next_try_at=next_try(head.attempts + 1, now)
    )
    return claimed


def note_success(parcel: Parcel, code: int | None, now: datetime) -> None:
    Delivery.objects.filter(pk__in=parcel.deliveries).update(
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
    Delivery.objects.filter(pk__in=parcel.deliveries, status=Delivery.Status.PENDING).update(**columns)
    if is_last and parcel.news is not News.TEST:
        name = parcel.channel.name
        log_event(logger, Event.DELIVERY_FAILED, channel=name, attempts=parcel.attempts, error=str(failure))
