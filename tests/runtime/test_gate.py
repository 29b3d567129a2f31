"""A worker whose gate is shut leaves messages in the queues, whatever credit it has."""

from types import SimpleNamespace

import pytest
from celery import Celery
from kombu.asynchronous import Hub

from facho.runtime.roles.worker import put_gate


@pytest.mark.parametrize(
    ("is_open", "has_credit", "takes"),
    [
        pytest.param(True, True, True, id="open"),
        pytest.param(True, False, False, id="open, and all pollers are busy"),
        pytest.param(False, True, False, id="shut"),
    ],
)
def test_a_message_is_asked_for_only_through_an_open_gate(is_open, has_credit, takes):
    app = Celery("facho", set_as_current=False)
    credit = SimpleNamespace(can_consume=lambda: has_credit)
    consumer = SimpleNamespace(task_consumer=SimpleNamespace(channel=SimpleNamespace(qos=credit)), hub=Hub())
    put_gate(app, lambda: is_open)
    (gate,) = app.steps["consumer"]

    gate(consumer).start(consumer)

    assert credit.can_consume() is takes


def test_a_worker_looks_for_messages_as_often_after_each_new_connection():
    app, hub = Celery("facho", set_as_current=False), Hub()
    channel = SimpleNamespace(qos=SimpleNamespace(can_consume=lambda: True))
    consumer = SimpleNamespace(task_consumer=SimpleNamespace(channel=channel), hub=hub)
    put_gate(app, lambda: True)
    (gate,) = app.steps["consumer"]
    looks = []
    for _ in range(3):
        step = gate(consumer)
        step.start(consumer)
        looks.append([entry for _, _, entry in hub.timer.queue if not entry.cancelled])
        step.stop(consumer)

    assert [len(each) for each in looks] == [1, 1, 1]
