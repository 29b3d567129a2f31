"""News of another process, which may be of another version."""

import asyncio
import logging

from facho.adapters.bus.local import LocalBus
from facho.engine.scheduling.workers import WorkerRegistry
from facho.runtime.roles import act_on

WORKER = {"worker": "noc-1/1", "draining": False, "pollers": [{"id": 1}, {"id": 2}], "spooled": 0}


async def test_news_that_is_not_understood_is_left_out_and_the_next_is_heard(caplog):
    bus, workers = LocalBus(), WorkerRegistry()
    caplog.set_level(logging.WARNING)
    following = asyncio.create_task(act_on(bus, "worker", lambda report: workers.update(report, 0.0)))
    await asyncio.sleep(0)

    bus.publish("worker", {"name": "noc-1/1", "shape": "of another version"})
    bus.publish("worker", {**WORKER, "spooled": "many"})
    bus.publish("worker", WORKER)
    bus.close()
    await following

    assert workers.capacity == 2
    assert caplog.text.count("invalid message on topic worker") == 2
