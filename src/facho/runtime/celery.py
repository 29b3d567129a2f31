"""Facho's use of Celery: queues on Redis that carry messages, without results.

Three queues are shared by all workers; each worker has one more of its own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from celery import Celery
from kombu.entity import Exchange, Queue

from facho.adapters.runner.celery import DEFAULT, QUEUES
from facho.runtime.config import Config

POLL = "facho.poll"

# Seconds without a new message after which Redis drops a queue, and messages in it that no worker wants any more.
QUEUE_EXPIRES = 60.0


def make_app(config: Config, queues: Sequence[str] = QUEUES) -> Celery:
    """Return the application of a scheduler, or of a worker that takes messages from these queues, in this order.

    A message leaves the queue when a worker takes it. Runs of a dead worker are recovered by their leases, never by
    Celery.
    """
    app = Celery("facho", broker=config.redis_url, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        task_queues=[_queue(name) for name in queues],
        task_default_queue=DEFAULT,
        task_create_missing_queues=False,
        task_acks_late=False,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        # No prefetch: another worker may be free now.
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "queue_order_strategy": "priority",
            # Messages of a queue are equally urgent. By default Redis has four lists for each.
            "priority_steps": [0],
            "socket_connect_timeout": 5,
            "socket_timeout": 10,
            "socket_keepalive": True,
        },
    )
    return app


def _queue(name: str) -> Queue:
    """Return a queue that is addressed by its name: without an exchange nothing has to be looked up.

    Messages are not acknowledged: keeping those that a worker has taken costs Redis and worker more than the message,
    and none is ever delivered again.
    """
    exchange = Exchange("")  # type: ignore[no-untyped-call]  # kombu has no types
    return Queue(name, exchange, routing_key=name, expires=QUEUE_EXPIRES, no_ack=True)  # type: ignore[no-untyped-call]


class Sender:
    """Sends messages in a separate thread: an unavailable broker must not block the engine."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="broker")

    async def send(self, queue: str, message: Mapping[str, Any], expires: float) -> None:
        send = partial(
            self._app.send_task,
            POLL,
            kwargs=dict(message),
            queue=_queue(queue),
            expires=expires,
            ignore_result=True,
            retry=False,
        )
        await asyncio.get_running_loop().run_in_executor(self._pool, send)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._app.close()
