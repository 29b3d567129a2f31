"""How the role that decides is put together."""

import asyncio

import pytest
from builders import T0

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock
from facho.apps.polling import live
from facho.engine.model import Cause
from facho.runtime import config
from facho.runtime.monitoring import Monitoring
from facho.runtime.roles import scheduler
from facho.store.database import DbThread
from facho.store.leases import SchedulerTurn


class Bus(LocalBus):
    """A bus that may have lost its broker."""

    is_connected = True


@pytest.fixture
async def parts(tmp_path):
    """The parts of a turn, and the bus that they tell of it on."""
    settings = config.load(
        {
            "FACHO_DATA_DIR": str(tmp_path),
            "FACHO_MODE": "scale",
            "DATABASE_URL": "postgresql://facho@127.0.0.1:1/facho",
            "FACHO_REDIS_URL": "redis://127.0.0.1:1/0",
            "FACHO_SECRET_KEYS": "dGVzdHMgb25seTogMzIgYnl0ZXMgb2Ygbm8gc2VjcmU=",
        }
    )
    clock, bus, thread = VirtualClock(T0), Bus(), DbThread("turn")
    observed = Monitoring("scheduler", clock, token="")
    turn = SchedulerTurn(thread, clock, "noc-1/1")
    parts = scheduler.Parts(settings, turn, bus, clock, observed.meters(), observed.show_olts(0, lambda: True))
    yield parts, bus
    await parts.snmp.close()
    scheduler.logs.remove_events(parts.events)
    parts.sender.close()
    for each in (*parts.threads, thread):
        each.close()
    observed.close()


async def test_alerts_hear_of_the_pool_what_the_scheduler_tells(parts):
    made, bus = parts
    before = made.alerts.snapshot(T0)

    bus.publish("snapshot", {**live.EMPTY, "at": T0.isoformat()})

    assert before["stale"] is True
    assert made.alerts.snapshot(T0)["stale"] is False


def report(**more):
    return {"worker": "noc-1", "draining": False, "pollers": [{"id": 1}], **more}


async def test_a_tick_notes_why_there_are_no_pollers(parts):
    made, bus = parts
    manager = made.scheduler.manager
    seen = []
    for is_connected, is_cut_off in ((True, False), (False, False), (True, True), (True, False)):
        bus.is_connected = is_connected
        made.workers.update(report(cut_off=is_cut_off), asyncio.get_running_loop().time())
        made.scheduler._on_tick(manager)
        seen.append(manager.outages.present(manager.started_at))

    assert seen == [None, Cause.BROKER_UNAVAILABLE, Cause.DATABASE_UNAVAILABLE, None]
