"""How the role that decides is put together."""

import pytest
from builders import T0

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock
from facho.apps.polling import live
from facho.runtime import config
from facho.runtime.observed import Observed
from facho.runtime.roles import scheduler
from facho.store.threads import DbThread
from facho.store.turns import SchedulerTurn


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
    clock, bus, thread = VirtualClock(T0), LocalBus(), DbThread("turn")
    observed = Observed("scheduler", clock, token="")
    turn = SchedulerTurn(thread, clock, "noc-1/1")
    parts = scheduler.make_parts(settings, turn, bus, clock, observed.metering())
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
