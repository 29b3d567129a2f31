"""Messages on their way: each once at least, in order for each channel, and no channel in the way of another."""

import asyncio
import logging
import threading
from datetime import timedelta

import pytest
from alert_rows import SECRET, make_channel, make_olt, make_rule, set_of, snapshot
from builders import HOUR, MIN, SEC, T0

from contracts.notify_servers import HttpServer
from facho.alerts import outbox as outbox_module
from facho.alerts.loop import AlertLoop
from facho.alerts.models import Alert, Channel, Delivery
from facho.alerts.outbox import Outbox, due_channels, take
from facho.alerts.rules import MOST_ATTEMPTS, News
from facho.apps.inventory.models import Olt
from facho.apps.rest.fields import WrongKeyError
from facho.engine.errors import DeliveryFailed


class SetClock:
    """A clock that only moves when it is set."""

    def __init__(self):
        self.time = T0

    def now(self):
        return self.time

    def monotonic(self):
        return self.time.timestamp()


class Post:
    """Stands in for all notifiers: keeps what was sent to which channel, and fails where it is told to."""

    def __init__(self):
        self.sent = []
        self.errors = {}
        # Sending to these channels waits until somebody lets it go.
        self.stuck = {}

    def notifier(self, channel):
        return Recipient(self, channel.name)

    def subjects(self, name):
        return [message.subject for channel, message in self.sent if channel == name]


class Recipient:
    def __init__(self, post, name):
        self.post, self.name = post, name

    def send(self, message):
        if self.name in self.post.stuck:
            assert self.post.stuck[self.name].wait(30)
        if error := self.post.errors.get(self.name):
            raise error
        self.post.sent.append((self.name, message))
        return 200


class Desk:
    """An outbox with everything around it."""

    def __init__(self, thread):
        self.thread, self.clock, self.post = thread, SetClock(), Post()
        self.outbox = Outbox(
            clock=self.clock, thread=thread, public_url="https://noc.example.net", notifier=self.post.notifier
        )

    async def do(self, work, *arguments, **more):
        return await self.thread.run(lambda: work(*arguments, **more))

    async def channel(self, name="NOC", **more):
        return await self.do(make_channel, name, **more)

    async def put(self, channel, *names, news="raised", **more):
        """Put a message about each of these OLTs into the outbox."""
        return [await self.do(put, channel, name, news, self.clock.time, **more) for name in names]

    async def step(self, after=timedelta(0)):
        self.clock.time += after
        await self.outbox.step()
        await self.outbox.idle()

    async def rows(self, *columns):
        return await self.do(lambda: list(Delivery.objects.order_by("id").values_list(*columns)))


def put(channel, name, news, now, *, rule=None, severity="critical", **more):
    olt, _is_new = Olt.objects.get_or_create(name=name, defaults={"host": "127.0.0.1", "community": "public"})
    alert = Alert.objects.create(
        # Of their own rules, so that each is a message.
        rule_name=rule or f"{name} is gone",
        kind="olt_unreachable",
        severity=severity,
        key=f"olt:{olt.pk}",
        olt=olt,
        params={"olt": name},
        opened_at=now,
        last_seen_at=now,
    )
    times = {"created_at": now, "due_at": now, "next_try_at": now} | more
    return Delivery.objects.create(alert=alert, channel=channel, channel_name=channel.name, news=news, **times).pk


@pytest.fixture
async def desk(make_thread):
    desk = Desk(make_thread("store-alerts"))
    yield desk
    await desk.outbox.close()


DEAD = DeliveryFailed("noc.example.net did not answer within 10 s", is_temporary=True)
REFUSED = DeliveryFailed("noc.example.net answered 404", is_temporary=False, code=404)


async def test_what_is_due_is_sent_once(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")

    await desk.step()
    await desk.step(after=HOUR)

    assert desk.post.subjects("NOC") == ["[critical] OLT-SUR-03 does not answer"]
    assert await desk.rows("status", "attempts", "sent_at", "response_code", "next_try_at") == [
        ("SENT", 1, T0, 200, None)
    ]


async def test_what_is_held_waits_for_its_time(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03", due_at=T0 + HOUR, next_try_at=T0 + HOUR)

    await desk.step()
    before = list(desk.post.sent)
    await desk.step(after=HOUR)

    assert before == []
    assert len(desk.post.sent) == 1


async def test_a_message_is_in_the_language_of_its_channel_and_leads_to_the_olt(desk):
    noc = await desk.channel()
    [delivery_id] = await desk.put(noc, "OLT-SUR-03")

    await desk.step()

    [(_name, message)] = desk.post.sent
    olt_id = await desk.do(lambda: Olt.objects.get(name="OLT-SUR-03").pk)
    assert message.url == f"https://noc.example.net/olts/{olt_id}/"
    assert (message.news, message.delivery_id, message.olt) == (News.RAISED, str(delivery_id), "OLT-SUR-03")
    assert "Rule: OLT-SUR-03 is gone." in message.text


async def test_messages_of_a_channel_arrive_in_order(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03")

    await desk.step()

    assert [message.olt for _name, message in desk.post.sent] == ["OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"]


async def test_alerts_of_a_rule_at_the_same_time_are_one_message(desk):
    noc = await desk.channel()
    ids = await desk.put(noc, "OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03", rule="Gone")
    await desk.put(noc, "OLT-OESTE-04", rule="Gone", due_at=T0 + MIN, next_try_at=T0 + MIN)

    await desk.step()

    [(_name, message)] = desk.post.sent
    assert message.subject == "[critical] 3 OLTs do not answer: OLT-CENTRAL-01, OLT-NORTE-02, OLT-SUR-03"
    assert (message.delivery_id, len(message.alerts)) == (str(ids[0]), 3)
    assert await desk.rows("status", "attempts") == [("SENT", 1)] * 3 + [("PENDING", 0)]


async def test_a_message_that_is_sent_again_is_the_same_message(desk):
    noc = await desk.channel()
    ids = await desk.put(noc, "OLT-CENTRAL-01", "OLT-NORTE-02", rule="Gone")
    desk.post.errors["NOC"] = DEAD
    await desk.step()
    del desk.post.errors["NOC"]

    await desk.step(after=30 * SEC)

    [(_name, message)] = desk.post.sent
    assert (message.delivery_id, len(message.alerts)) == (str(ids[0]), 2)
    assert await desk.rows("status", "attempts") == [("SENT", 2)] * 2


async def test_each_attempt_of_a_message_has_the_same_key_and_no_other_message_has_it(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", "OLT-NORTE-02")
    keys = []

    def send(self, message):
        keys.append(message.key)
        raise DEAD

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recipient, "send", send)
        for _ in range(2):
            await desk.step(after=MIN)
    await desk.step(after=5 * MIN)
    sent = [message.key for _name, message in desk.post.sent]

    assert keys == [sent[0]] * 2
    assert len(set(sent)) == 2


async def test_a_number_that_is_used_again_after_a_restore_has_another_key(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", id=7)
    await desk.step()
    # The backup was made before that message.
    await desk.do(Alert.objects.all().delete)
    desk.clock.time += MIN
    await desk.put(noc, "OLT-NORTE-02", id=7)
    await desk.step()

    first, second = (message for _name, message in desk.post.sent)
    assert first.delivery_id == second.delivery_id == "7"
    assert first.key != second.key


async def test_a_critical_message_does_not_wait_behind_warnings(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", "OLT-NORTE-02", severity="warning")
    desk.post.errors["NOC"] = DEAD
    await desk.step()
    del desk.post.errors["NOC"]

    await desk.put(noc, "OLT-SUR-03")
    await desk.step(after=1 * SEC)
    before = [message.olt for _name, message in desk.post.sent]
    await desk.step(after=30 * SEC)

    assert before == ["OLT-SUR-03"]
    assert [message.olt for _name, message in desk.post.sent] == ["OLT-SUR-03", "OLT-CENTRAL-01", "OLT-NORTE-02"]


async def test_behind_a_message_that_waits_the_others_wait_too(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", "OLT-NORTE-02")
    desk.post.errors["NOC"] = DEAD

    await desk.step()
    tried = await desk.rows("attempts")
    del desk.post.errors["NOC"]
    await desk.step(after=29 * SEC)
    before = list(desk.post.sent)
    await desk.step(after=1 * SEC)

    assert tried == [(1,), (0,)]
    assert before == []
    assert [message.olt for _name, message in desk.post.sent] == ["OLT-CENTRAL-01", "OLT-NORTE-02"]


async def test_a_held_message_does_not_hold_up_a_critical_one(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", due_at=T0 + HOUR, next_try_at=T0 + HOUR)
    await desk.put(noc, "OLT-SUR-03")

    await desk.step()

    assert [message.olt for _name, message in desk.post.sent] == ["OLT-SUR-03"]


async def test_a_dead_channel_is_tried_less_and_less_and_then_no_more(desk, caplog):
    caplog.set_level(logging.INFO, "facho")
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    desk.post.errors["NOC"] = DEAD

    waits = []
    for _ in range(MOST_ATTEMPTS):
        await desk.step()
        [(next_try_at, status)] = await desk.rows("next_try_at", "status")
        if next_try_at is not None:
            waits.append(next_try_at - desk.clock.time)
            desk.clock.time = next_try_at

    assert waits == [30 * SEC * 2**number for number in range(7)]
    assert status == "FAILED"
    assert await desk.rows("attempts", "error") == [(8, str(DEAD))]
    assert [(record.event.name, record.details["attempts"]) for record in caplog.records] == [("DELIVERY_FAILED", 8)]


async def test_a_channel_that_will_not_is_not_asked_again(desk, caplog):
    noc = await desk.channel()
    await desk.put(noc, "OLT-CENTRAL-01", "OLT-SUR-03")
    desk.post.errors["NOC"] = REFUSED

    await desk.step()

    assert await desk.rows("status", "attempts", "response_code") == [("FAILED", 1, 404), ("FAILED", 1, 404)]
    assert [record.event.name for record in caplog.records] == ["DELIVERY_FAILED"] * 2


async def test_a_channel_that_asks_for_time_gets_it(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    desk.post.errors["NOC"] = DeliveryFailed("too many", is_temporary=True, code=429, retry_after=300.0)

    await desk.step()

    assert await desk.rows("next_try_at") == [(T0 + 5 * MIN,)]


async def test_a_channel_that_hangs_holds_up_no_other(desk):
    stuck, noc = await desk.channel("stuck"), await desk.channel()
    desk.post.stuck["stuck"] = threading.Event()
    await desk.put(stuck, "OLT-CENTRAL-01", "OLT-NORTE-02")
    await desk.put(noc, "OLT-SUR-03")

    # It returns although one of them hangs, and does not begin with that one a second time.
    await desk.outbox.step()
    while not desk.post.sent:
        await asyncio.wait(desk.outbox._busy.values(), return_when=asyncio.FIRST_COMPLETED)
    desk.clock.time += 31 * SEC
    await desk.outbox.step()
    arrived = [name for name, _message in desk.post.sent]
    desk.post.stuck["stuck"].set()
    await desk.outbox.idle()

    assert arrived == ["NOC"]
    assert sorted(name for name, _message in desk.post.sent) == ["NOC", "stuck", "stuck"]


async def test_what_was_claimed_by_a_process_that_died_is_sent_again(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    parcel = await desk.do(take, noc.pk, T0, "")

    await desk.step(after=29 * SEC)
    before = list(desk.post.sent)
    await desk.step(after=1 * SEC)

    assert parcel.message.olt == "OLT-SUR-03"
    assert before == []
    assert await desk.rows("status", "attempts") == [("SENT", 2)]


async def test_of_two_outboxes_one_sends(desk, make_thread):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    threads = [desk.thread, *(make_thread(f"other-{number}") for number in range(3))]

    parcels = await asyncio.gather(*(thread.run(lambda: take(noc.pk, T0, "")) for thread in threads))

    assert len([parcel for parcel in parcels if parcel]) == 1


async def test_of_two_who_saw_the_same_message_one_has_it(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    seen = [await desk.do(Delivery.objects.get) for _ in range(2)]

    claims = [await desk.do(outbox_module._claim, delivery, T0) for delivery in seen]

    assert [len(claimed) for claimed in claims] == [1, 0]


async def test_a_disabled_channel_gets_nothing_but_the_test_that_somebody_asks_for(desk):
    noc = await desk.channel(enabled=False)
    await desk.put(noc, "OLT-SUR-03")
    await desk.do(lambda: ask_for_test(noc))

    await desk.step()

    assert await desk.rows("news", "status", "reason") == [
        ("raised", "SUPPRESSED", "channel_disabled"),
        ("test", "SENT", ""),
    ]


async def test_a_test_message_goes_through_apprise_to_a_real_server(make_thread, caplog):
    caplog.set_level(logging.DEBUG)
    server, thread = HttpServer(), make_thread("store-alerts")
    outbox = Outbox(clock=SetClock(), thread=thread)
    url = f"json://noc:{SECRET}@127.0.0.1:{server.port}/{SECRET}"
    channel = await thread.run(lambda: make_channel("Pigeon", kind="apprise", apprise_url=url))
    await thread.run(lambda: ask_for_test(channel))

    await outbox.step()
    await outbox.idle()
    await outbox.close()
    server.close()

    assert [each["title"] for each in server.json] == ["[test] Facho can send to Pigeon"]
    assert await thread.run(lambda: list(Delivery.objects.values_list("status", "error"))) == [("SENT", "")]
    assert SECRET not in caplog.text


def ask_for_test(channel):
    delivery = channel.ask_for_test()
    Delivery.objects.filter(pk=delivery.pk).update(created_at=T0, due_at=T0, next_try_at=T0)


async def test_a_test_is_tried_once_and_does_not_wait_behind_others(desk, caplog):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    desk.post.errors["NOC"] = DEAD
    await desk.step()

    await desk.do(ask_for_test, noc)
    await desk.step(after=1 * SEC)

    assert await desk.rows("news", "status", "error") == [
        ("raised", "PENDING", str(DEAD)),
        ("test", "FAILED", str(DEAD)),
    ]
    # The user sees the result of a test message; it is not logged.
    assert caplog.records == []


async def test_a_notifier_that_we_got_wrong_fails_its_message_and_not_the_outbox(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    desk.post.errors["NOC"] = KeyError("s3cret")

    await desk.step()

    assert await desk.rows("status", "error") == [("PENDING", "unexpected KeyError")]


async def test_a_secret_that_cannot_be_read_fails_its_message_with_the_reason(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    desk.post.errors["NOC"] = WrongKeyError()

    await desk.step()

    [(status, error)] = await desk.rows("status", "error")
    assert status == "FAILED"
    assert "FACHO_SECRET_KEYS" in error


async def test_a_message_that_could_not_be_written_down_as_sent_is_sent_again(desk, monkeypatch):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")

    with monkeypatch.context() as patch:
        patch.setattr(outbox_module, "note_success", lambda *_arguments: 1 / 0)
        await desk.step()
    await desk.step(after=30 * SEC)

    assert len(desk.post.sent) == 2
    assert await desk.rows("status") == [("SENT",)]


async def test_a_channel_that_was_deleted_leaves_its_log_behind(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")
    await desk.do(lambda: Channel.objects.all().delete())

    await desk.step()

    assert await desk.rows("channel_name", "status") == [("NOC", "PENDING")]
    assert await desk.do(due_channels, T0) == []


async def test_a_stop_lets_what_is_on_its_way_arrive(desk):
    noc = await desk.channel()
    await desk.put(noc, "OLT-SUR-03")

    await desk.outbox.step()
    await desk.outbox.close()

    assert await desk.rows("status") == [("SENT",)]


class LoopDesk:
    """The loop around evaluation and outbox, on a clock that is set by hand."""

    def __init__(self, thread, *, told=snapshot):
        self.clock, self.post, self.thread = SetClock(), Post(), thread
        self.loop = AlertLoop(self.clock, thread, snapshot=told, notifier=self.post.notifier)

    async def step(self, after=timedelta(0)):
        self.clock.time += after
        await self.loop.step()
        await self.loop.outbox.idle()


@pytest.fixture
async def looping(make_thread):
    desk = LoopDesk(make_thread("store-alerts"))
    yield desk
    await desk.loop.close()


def set_up_a_mute_olt():
    olt = make_olt("OLT-SUR-03")
    set_of(olt, breaker_opened_at=T0)
    make_rule(channels=[make_channel()], severity="critical")
    return olt


async def test_the_loop_tells_of_an_olt_that_is_gone_and_that_it_is_back(looping):
    olt = await looping.thread.run(set_up_a_mute_olt)

    await looping.step()
    await looping.thread.run(lambda: set_of(olt, breaker_opened_at=None, reachability="reachable"))
    for _ in range(10):
        await looping.step(after=10 * SEC)

    assert looping.post.subjects("NOC") == [
        "[critical] OLT-SUR-03 does not answer",
        "[resolved] OLT-SUR-03 answers again",
    ]


async def test_the_loop_evaluates_every_ten_seconds_and_sends_at_every_beat(looping):
    await looping.step()
    await looping.thread.run(set_up_a_mute_olt)

    await looping.step(after=9 * SEC)
    before = await looping.thread.run(Alert.objects.count)
    await looping.step(after=1 * SEC)

    assert before == 0
    assert len(looping.post.sent) == 1


async def test_the_loop_notices_that_the_scheduler_is_stopped(make_thread):
    desk = LoopDesk(make_thread("store-alerts"), told=lambda now: snapshot(now, age=None))
    await desk.thread.run(lambda: make_rule("scheduler_stalled", channels=[make_channel()]))

    await desk.step()
    await desk.step(after=30 * SEC)
    before = list(desk.post.sent)
    await desk.step(after=10 * SEC)
    await desk.loop.close()

    assert before == []
    assert desk.post.subjects("NOC") == ["[warning] The scheduler is stalled"]


async def test_the_loop_goes_on_after_the_database_was_unavailable(looping, monkeypatch):
    await looping.thread.run(set_up_a_mute_olt)

    with monkeypatch.context() as patch:
        patch.setattr("facho.alerts.loop.evaluate", lambda *_arguments: 1 / 0)
        await looping.step()
    await looping.step(after=10 * SEC)

    assert len(looping.post.sent) == 1
