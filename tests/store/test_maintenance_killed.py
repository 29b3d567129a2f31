"""Ports are cut before, during and after a maintenance, and while the receiver is down: each message arrives once.

The receiver is a web server. It believes what is signed, and ignores a message whose key it knows, as the manual tells
it to. So the process that sends may die at any step, also between sending a message and storing that it was sent.
"""

import asyncio
import json
import logging
from collections import Counter
from random import Random

import pytest
from alert_rows import make_channel, make_olt, make_onus, make_rule, snapshot
from builders import MIN, SEC, T0
from coordinator_world import BesideTheLoop
from mortal import DatabaseSide, Killed, Machine

import port_counts
from contracts.notify_servers import HttpServer
from facho.alerts.channels.webhook import Webhook, signature
from facho.alerts.loop import AlertLoop
from facho.apps.maintenance.models import Maintenance
from facho.apps.telemetry.models import Onu

pytestmark = pytest.mark.django_db

SECRET = "a secret of sixteen and more"
TICK = 20 * SEC
END = T0 + 24 * MIN

# Port: from when until when its ONUs have no signal.
MAINTAINED = T0 + 1 * MIN, T0 + 6 * MIN
CUTS = {
    1: (T0, T0 + 18 * MIN),
    2: (T0 + 3 * MIN, T0 + 18 * MIN),
    3: (T0, T0 + 4 * MIN),
    4: (T0 + 8 * MIN, T0 + 18 * MIN),
    5: (T0 + 12 * MIN, T0 + 18 * MIN),
}
DOWN = T0 + 10 * MIN, T0 + 15 * MIN

# What the NOC reads: event and ports.
STORY = [
    # Cut before the maintenance.
    ("raised", {1, 3}),
    ("closed", {1, 3}),
    # Cut during it: held until its end. Port 3 was repaired meanwhile.
    ("summary", {1, 2, 3}),
    # Cut after it.
    ("raised", {4}),
    # Cut while the receiver was down.
    ("raised", {5}),
    ("recovered", {1, 2, 4, 5}),
]


class Town:
    """An OLT with five ports, its maintenance, the receiver of messages, and the time."""

    def __init__(self):
        self.time = T0
        self.server = HttpServer()
        self.olt = make_olt("OLT-SUR-03", reachability="reachable")
        for port in CUTS:
            make_onus(self.olt, 8, port=port)
        make_rule("port_dark", channels=[make_channel("NOC", signing_secret=SECRET)], name="Dark ports")
        start, end = MAINTAINED
        Maintenance.objects.create(olt=self.olt, starts_at=start, ends_at=end).settle(T0)

    def now(self):
        return self.time

    def monotonic(self):
        return self.time.timestamp()

    def notifier(self, channel):
        return Webhook(url=f"{self.server.url}/alerts", secret=SECRET)

    def tick(self):
        self.server.status = 503 if DOWN[0] <= self.time < DOWN[1] else 204
        for port, (cut, spliced) in CUTS.items():
            state = "los" if cut <= self.time < spliced else "online"
            Onu.objects.filter(olt=self.olt, port=port).exclude(state=state).update(state=state)
        port_counts.recount(olt=self.olt)


async def live_through(town, kill_at):
    """Run the loop of alerts to the end of the story. A process that dies is followed by another one."""
    machine = Machine(kill_at)
    loop = new_loop(town, machine)
    while town.time <= END:
        await BesideTheLoop().run(town.tick)
        before = len(town.server.received)
        try:
            await loop.step()
            await asyncio.gather(*loop.outbox._busy.values())
        except Killed:
            await asyncio.gather(*loop.outbox._busy.values(), return_exceptions=True)
            loop = new_loop(town, Machine())
        for received in town.server.received[before:]:
            received.is_accepted = town.server.status == 204
        town.time += TICK
    await loop.close()
    return machine.steps


def new_loop(town, machine):
    return AlertLoop(town, DatabaseSide(machine), snapshot=snapshot, notifier=town.notifier)


def read(town):
    """Return what a receiver makes of its mail, and how often each accepted message came."""
    story, seen = [], Counter()
    for received in town.server.received:
        signed = signature(SECRET, received.headers["X-Facho-Timestamp"], received.body.encode())
        assert received.headers["X-Facho-Signature"] == f"sha256={signed}"
        if not received.is_accepted:
            continue
        key = received.headers["Idempotency-Key"]
        seen[key] += 1
        if seen[key] == 1:
            message = json.loads(received.body)
            story.append((message["event"], {alert["details"]["port"] for alert in message["alerts"]}))
    return story, seen


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL)


@pytest.fixture
def town(db):
    town = Town()
    yield town
    town.server.close()


def test_a_port_is_cut_before_during_and_after_a_maintenance_and_while_the_receiver_is_down(town):
    asyncio.run(live_through(town, None))

    story, seen = read(town)
    assert story == STORY
    assert set(seen.values()) == {1}


@pytest.mark.parametrize("part", range(14))
def test_a_death_at_any_step_changes_nothing_of_what_is_read(town, part):
    # 340 steps; each part takes one of its share.
    kill_at = 24 * part + Random().randint(1, 24)

    steps = asyncio.run(live_through(town, kill_at))

    assert steps >= kill_at
    story, seen = read(town)
    assert story == STORY, kill_at
    # One message at most came twice, with the same key.
    assert sum(seen.values()) <= len(STORY) + 1
