"""Runs for workers elsewhere: sent once, again if no worker takes them, and ended by the database."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from builders import MIN, SEC, T0, make_composite, make_node

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.adapters.runner.celery import DEFAULT, HIGH, RETRY, CeleryRunner, queue_of
from facho.adapters.wire import claim_from_message
from facho.engine.model import Cause, Claim, Lease, Outcome, RunResult, Status, Trigger
from facho.engine.scheduling.outages import Outages
from in_memory import MemoryNodes, MemoryRuns, MemorySlots

LEASE = Lease(1, "noc-1/1", 5)
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


class Scene:
    """A runner, its slots, and the queue of a broker that may be unavailable."""

    def __init__(self):
        self.clock = VirtualClock(T0)
        self.node = make_node(1, olt_id=1, next_check=T0)
        self.link = make_node(2, olt_id=1, master_id=1)
        self.slots = MemorySlots(MemoryNodes([self.node, self.link]))
        self.runs = MemoryRuns(self.slots)
        self.bus = LocalBus()
        self.sent = []
        self.broker_is_away = False
        self.outages = Outages()
        # The queue of the worker that has a poller for each OLT; None: all are busy.
        self.worker = None
        self.runner = CeleryRunner(
            send=self.send,
            slots=self.slots,
            bus=self.bus,
            clock=self.clock,
            choose=lambda olt_id, taken: self.worker,
            outages=self.outages,
        )

    async def send(self, queue, message, expires):
        if self.broker_is_away:
            raise OSError("no route to the broker")
        self.sent.append(((self.clock.now() - T0).total_seconds(), queue, message, expires))

    async def give(self):
        """Claim and give out; the watcher is at work as long as the story lasts."""
        composite = make_composite(1, chain=[self.link], next_check=T0)
        claim = await self.slots.claim(composite, poller_id=1, now=self.clock.now(), waits={})
        self.watching = asyncio.ensure_future(self.runner.watch())
        return claim, asyncio.ensure_future(self.runner.run(claim, None))

    async def start(self, id_):
        return await self.runs.start(id_, lease=LEASE, now=self.clock.now())

    async def close(self, id_, outcome):
        await self.runs.finish(RunResult((id_,), outcome, LEASE, self.clock.now()))


@pytest.fixture
def play():
    """Play a story with a scene in virtual time."""

    def play(story):
        async def whole():
            scene = Scene()
            result = await story(scene)
            scene.watching.cancel()
            return result

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(whole())

    return play


def test_a_composite_is_sent_once_and_returns_how_its_links_ended(play):
    async def story(scene):
        claim, running = await scene.give()
        await scene.clock.sleep(2)
        first, second = claim.execution_ids
        assert await scene.start(first)
        await scene.clock.sleep(40)
        await scene.close(first, Outcome(Status.SUCCESS))
        assert await scene.start(second)
        await scene.close(second, Outcome(Status.PARTIAL, error="row 7"))
        return scene.sent, await running

    sent, outcomes = play(story)

    assert [at for at, *_ in sent] == [0]
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS, Status.PARTIAL]
    assert outcomes[1].error == "row 7"


def test_the_message_has_the_claim_and_says_until_when_it_is_wanted(play):
    async def story(scene):
        claim, running = await scene.give()
        await scene.clock.sleep(1)
        running.cancel()
        return claim, scene.sent[0]

    claim, (_, queue, message, expires) = play(story)

    assert claim_from_message(message["claim"]) == claim
    assert (queue, expires) == (DEFAULT, 20)
    assert message["not_after"] == (T0 + 20 * SEC).isoformat()


def test_what_nobody_takes_is_sent_again_until_its_slot_is_over(play):
    async def story(scene):
        _, running = await scene.give()
        outcomes = await running
        return [at for at, *_ in scene.sent], outcomes, (scene.clock.now() - T0), scene.slots.rows

    sent, outcomes, took, rows = play(story)

    assert sent == [25.0 * number for number in range(12)]
    assert timedelta(minutes=5) <= took <= timedelta(minutes=5, seconds=3)
    assert {(outcome.status, outcome.cause) for outcome in outcomes} == {(Status.SKIPPED, Cause.NO_FREE_POLLER)}
    assert {row.status for row in rows} == {Status.SKIPPED}


def test_a_composite_goes_to_the_queue_of_its_worker(play):
    async def story(scene):
        scene.worker = "snmp_worker_noc-1"
        claim, running = await scene.give()
        await scene.clock.sleep(0.5)
        for id_ in claim.execution_ids:
            await scene.start(id_)
            await scene.clock.sleep(30)
            await scene.close(id_, Outcome(Status.SUCCESS))
        await running
        return [(at, queue) for at, queue, *_ in scene.sent]

    assert play(story) == [(0, "snmp_worker_noc-1")]


def test_a_composite_that_its_worker_does_not_begin_goes_to_all_workers(play):
    async def story(scene):
        scene.worker = "snmp_worker_noc-1"
        claim, running = await scene.give()
        await scene.clock.sleep(40)
        for id_ in claim.execution_ids:
            await scene.start(id_)
            await scene.close(id_, Outcome(Status.SUCCESS))
        return [(at, queue) for at, queue, *_ in scene.sent], await running

    sent, outcomes = play(story)

    assert sent == [(0, "snmp_worker_noc-1"), (2, DEFAULT), (27, DEFAULT)]
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS] * 2


def test_a_composite_counts_as_its_workers_until_it_is_over_or_goes_to_all(play):
    async def story(scene):
        scene.worker = "a"
        taken = scene.runner._taken
        counts = []
        claim, running = await scene.give()
        for seconds in (1, 2):
            await scene.clock.sleep(seconds)
            counts.append(taken["a"])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        scene.watching.cancel()
        scene.slots = scene.runner._slots = Scene().slots
        scene.runs = MemoryRuns(scene.slots)
        claim, running = await scene.give()
        await scene.start(claim.execution_ids[0])
        await scene.clock.sleep(60)
        counts.append(taken["a"])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return [*counts, taken["a"]]

    assert play(story) == [1, 0, 1, 0]


def test_a_slot_that_could_not_be_sent_is_lost_to_the_broker(play):
    async def story(scene):
        scene.broker_is_away = True
        _, running = await scene.give()
        return await running

    outcomes = play(story)

    assert {(outcome.status, outcome.cause) for outcome in outcomes} == {(Status.SKIPPED, Cause.BROKER_UNAVAILABLE)}


def test_a_slot_without_time_left_after_an_outage_is_lost_to_the_outage(play):
    async def story(scene):
        scene.outages.note("broker", Cause.BROKER_UNAVAILABLE, T0)
        await scene.clock.sleep(280)
        scene.outages.note("broker", None, scene.clock.now())
        _, running = await scene.give()
        return await running

    assert {outcome.cause for outcome in play(story)} == {Cause.BROKER_UNAVAILABLE}


def test_a_broker_that_is_back_soon_is_no_cause(play):
    async def story(scene):
        scene.broker_is_away = True
        _, running = await scene.give()
        await scene.clock.sleep(30)
        scene.broker_is_away = False
        return await running

    assert {outcome.cause for outcome in play(story)} == {Cause.NO_FREE_POLLER}


def test_the_last_message_does_not_outlive_its_slot(play):
    async def story(scene):
        await scene.clock.sleep(290)
        _, running = await scene.give()
        await running
        return scene.sent

    sent = play(story)

    assert [expires for *_, expires in sent] == [10]


def test_a_broker_that_is_unavailable_costs_time_and_nothing_else(play):
    async def story(scene):
        scene.broker_is_away = True
        claim, running = await scene.give()
        await scene.clock.sleep(60)
        scene.broker_is_away = False
        await scene.clock.sleep(30)
        for id_ in claim.execution_ids:
            await scene.start(id_)
            await scene.close(id_, Outcome(Status.SUCCESS))
        return [at for at, *_ in scene.sent], await running

    sent, outcomes = play(story)

    assert sent == [75.0]
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS] * 2


def test_a_database_that_is_unavailable_is_asked_again(play):
    async def story(scene):
        claim, running = await scene.give()
        there, scene.slots.progress = scene.slots.progress, raise_away
        for id_ in claim.execution_ids:
            await scene.start(id_)
            await scene.close(id_, Outcome(Status.SUCCESS))
        await scene.clock.sleep(10)
        assert not running.done()
        scene.slots.progress = there
        return await running

    assert [outcome.status for outcome in play(story)] == [Status.SUCCESS] * 2


async def raise_away(*args, **kwargs):
    raise OSError("the database is away")


def test_what_cannot_be_given_up_at_the_end_of_its_slot_is_given_up_later(play):
    async def story(scene):
        _, running = await scene.give()
        there, scene.slots.close = scene.slots.close, raise_away
        await scene.clock.sleep(600)
        assert not running.done()
        scene.slots.close = there
        await scene.clock.sleep(5)
        return running.done() and running.result()

    assert [outcome.status for outcome in play(story)] == [Status.SKIPPED] * 2


def test_what_was_begun_in_the_last_moment_is_not_given_up(play):
    async def story(scene):
        claim, running = await scene.give()
        # Just before the end of the slot, and between two looks at the database.
        await scene.clock.sleep(299.99)
        await scene.start(claim.execution_ids[0])
        await scene.clock.sleep(10)
        statuses = [row.status for row in scene.slots.rows]
        for id_ in claim.execution_ids:
            await scene.start(id_)
            await scene.close(id_, Outcome(Status.SUCCESS))
        return statuses, await running

    statuses, outcomes = play(story)

    assert statuses == [Status.RUNNING, Status.PENDING]
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS] * 2


def test_what_cannot_be_put_into_a_message_ends_with_its_slot(play, monkeypatch):
    def claim_to_message(claim):
        raise TypeError("no way to write this")

    monkeypatch.setattr("facho.adapters.runner.celery.claim_to_message", claim_to_message)

    async def story(scene):
        _, running = await scene.give()
        return await asyncio.wait_for(running, 400)

    assert [outcome.status for outcome in play(story)] == [Status.SKIPPED] * 2


def test_what_was_put_off_comes_back_as_an_attempt_that_is_not_the_last(play):
    async def story(scene):
        claim, running = await scene.give()
        first, second = claim.execution_ids
        await scene.start(first)
        await scene.runs.finish(RunResult((first,), replace(SILENT, retry_at=T0 + 2 * MIN), LEASE, T0))
        skipped = Outcome(Status.SKIPPED, Cause.UNREACHABLE)
        await scene.runs.finish(RunResult((second,), replace(skipped, retry_at=T0 + 2 * MIN), LEASE, T0))
        return await running

    first, second = play(story)

    assert (first.status, first.cause, first.retry_at) == (Status.FAILED, Cause.UNREACHABLE, T0 + 2 * MIN)
    assert (second.status, second.cause, second.retry_at) == (Status.SKIPPED, Cause.UNREACHABLE, T0 + 2 * MIN)


def test_an_end_that_is_told_of_is_seen_at_once(play):
    async def story(scene):
        claim, running = await scene.give()
        await scene.clock.sleep(1.3)
        for id_ in claim.execution_ids:
            await scene.start(id_)
            await scene.close(id_, Outcome(Status.SUCCESS))
        told_at = scene.clock.now()
        scene.bus.publish("execution", {"id": id_, "status": "SUCCESS"})
        await running
        return scene.clock.now() - told_at

    assert play(story) < timedelta(seconds=0.2)


def test_who_is_interrupted_tells_the_workers_and_who_leaves_does_not(play):
    async def story(scene):
        heard = []

        async def listen():
            async for _, news in scene.bus.subscribe(["interrupt"]):
                heard.append(news["olt_id"])

        listening = asyncio.ensure_future(listen())
        for leaves in (False, True):
            _, running = await scene.give()
            await scene.clock.sleep(1)
            if leaves:
                scene.runner.leave()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            scene.watching.cancel()
            scene.slots = scene.runner._slots = Scene().slots
        await scene.clock.sleep(1)
        listening.cancel()
        return heard

    assert play(story) == [1]


def test_we_answer_for_what_nobody_has_begun(play):
    async def story(scene):
        claim, running = await scene.give()
        await scene.clock.sleep(2)
        before = set(scene.runner.offered)
        await scene.start(claim.execution_ids[0])
        await scene.clock.sleep(2)
        after = set(scene.runner.offered)
        running.cancel()
        return claim, before, after

    claim, before, after = play(story)

    assert (before, after) == (set(claim.execution_ids), set())


@pytest.mark.parametrize(
    ("more", "attempt", "queue"),
    [
        ({}, 1, DEFAULT),
        ({"priority": 90}, 1, HIGH),
        ({"urgent": True, "trigger": Trigger.MANUAL}, 1, HIGH),
        ({}, 2, RETRY),
        ({"priority": 90}, 3, RETRY),
    ],
    ids=["usual", "discovery", "asked for by hand", "second attempt", "third attempt of a discovery"],
)
def test_each_queue_has_its_own(more, attempt, queue):
    claim = Claim(make_composite(1, **more), (1,), 1, T0 + 5 * MIN, attempt)

    assert queue_of(claim) == queue
