"""Gate of a worker: it takes messages only while it can start a run, because other workers share the queues."""

from collections.abc import Callable
from typing import Any

from celery import Celery, bootsteps
from celery.worker.consumer.tasks import Tasks

# A worker whose pollers were all busy asks for messages again within so many seconds. Nothing wakes Celery when one of
# its threads is free, and by itself it looks once a second.
LOOK_EVERY = 0.1


def put_gate(app: Celery, is_open: Callable[[], bool]) -> None:
    """Make the workers of an application leave messages in the queues while the gate is closed."""

    class Gate(bootsteps.StartStopStep):  # type: ignore[misc]  # celery has no types
        """Created again with each connection, like the consumer behind it."""

        requires = (Tasks,)

        def start(self, consumer: Any) -> None:
            credit = consumer.task_consumer.channel.qos
            has_credit = credit.can_consume
            # The transport checks this before it requests the next message.
            credit.can_consume = lambda: is_open() and has_credit()
            self._looking = consumer.hub.call_repeatedly(LOOK_EVERY, lambda: None)

        def stop(self, consumer: Any) -> None:
            self._looking.cancel()

    app.steps["consumer"].add(Gate)
