"""A process that sends alerts dies at any step, and a receiver is down for minutes: each alert is told once."""

import asyncio
import logging
from collections import defaultdict
from random import Random

import pytest
from builders import MIN, SEC, T0
from coordinator_world import BesideTheLoop
from mortal import DatabaseSide, Killed, Machine

from facho.alerts.loop import AlertLoop
from facho.alerts.models import Alert, Channel, Delivery, Rule
from facho.apps.inventory.models import Olt
from facho.apps.polling import live
from facho.engine.errors import DeliveryFailed

pytestmark = pytest.mark.django_db

TICK = 20 * SEC
END = T0 + 12 * MIN
OLTS = ("OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03")
DOWN = {"OLT-CENTRAL-01": T0, "OLT-NORTE-02": T0, "OLT-SUR-03": T0 + 2 * TICK}
BACK_AT = T0 + 6 * MIN
# The channel boss refuses everything until then.
RECEIVER_IS_BACK_AT = T0 + 3 * MIN


class Town:
    """OLTs that stop answering and come back, the receivers of messages, and the time."""

    def __init__(self):
        self.time = T0
        # (channel, number of the message, news, alerts)
        self.received = []
        for name in OLTS:
            Olt.objects.create(
                name=name, brand="huawei", host="127.0.0.1", community="public", reachability="reachable"
            )
        rule = Rule.objects.create(name="Gone", kind="olt_unreachable", severity="critical")
        rule.channels.set([Channel.objects.create(name=name, kind="webhook") for name in ("NOC", "boss")])

    def now(self):
        return self.time

    def monotonic(self):
        return self.time.timestamp()

    def notifier(self, channel):
        return Receiver(self, channel.name)

    def tick(self):
        for name, at in DOWN.items():
            is_down = at <= self.time < BACK_AT
            Olt.objects.filter(name=name).update(reachability="unreachable" if is_down else "reachable")


class Receiver:
    def __init__(self, town, name):
        self.town, self.name = town, name

    def send(self, message):
        if self.name == "boss" and self.town.time < RECEIVER_IS_BACK_AT:
            raise DeliveryFailed("connection refused", is_temporary=True)
        alerts = frozenset(alert["alert_id"] for alert in message.alerts)
        self.town.received.append((self.name, message.delivery_id, message.news.value, alerts))
        return 200


async def live_through(town, kill_at):
    """Run the loop of alerts to the end of the story. A process that dies is followed by another one."""
    machine = Machine(kill_at)
    loop = new_loop(town, machine)
    while town.time <= END:
        await BesideTheLoop().run(town.tick)
        try:
            await loop.step()
            await asyncio.gather(*loop.outbox._busy.values())
        except Killed:
            await asyncio.gather(*loop.outbox._busy.values(), return_exceptions=True)
            loop = new_loop(town, Machine())
        town.time += TICK
    return machine.steps


def new_loop(town, machine):
    stale = {**live.EMPTY, "age": None, "stale": True}
    return AlertLoop(town, DatabaseSide(machine), snapshot=lambda now: stale, notifier=town.notifier)


def check(town):
    told = defaultdict(set)
    contents = {}
    for channel, number, news, alerts in town.received:
        # A message that arrives twice has the same number and says the same.
        assert contents.setdefault((channel, number), (news, alerts)) == (news, alerts)
        for alert in alerts:
            told[channel, news, alert].add(number)
    ids = list(Alert.objects.order_by("pk").values_list("pk", flat=True))
    assert len(ids) == len(OLTS)
    assert set(told) == {
        (channel, news, id_) for channel in ("NOC", "boss") for news in ("raised", "recovered") for id_ in ids
    }
    assert {len(numbers) for numbers in told.values()} == {1}
    rows = Delivery.objects.order_by("alert", "channel_name", "id").values_list(
        "alert", "channel_name", "news", "status"
    )
    assert list(rows) == [
        (id_, channel, news, "SENT") for id_ in ids for channel in ("NOC", "boss") for news in ("raised", "recovered")
    ]


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL)


def test_without_a_death_the_receiver_that_was_down_gets_everything_once():
    town = Town()

    asyncio.run(live_through(town, None))

    check(town)
    # One message with two alerts, one with the third a minute later, and one that all are back; to each channel.
    assert sorted(len(alerts) for _channel, _number, _news, alerts in town.received) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("part", range(10))
def test_a_death_at_any_step_loses_nothing_and_tells_nothing_twice(part):
    # 200 steps; each part takes one of its share.
    kill_at = 20 * part + Random().randint(1, 18)
    town = Town()

    steps = asyncio.run(live_through(town, kill_at))

    assert steps >= kill_at
    check(town)
