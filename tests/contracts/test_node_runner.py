"""What every runner of composites promises, here or elsewhere: each link ends once, and the caller is told how."""

import asyncio

import pytest
from builders import MIN, SEC, T0
from runner_stage import SILENCE, Stage

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.adapters.runner.celery import CeleryRunner
from facho.adapters.wire import claim_from_message
from facho.engine.model import Cause, Status


class Here:
    """The runner of one process, and a stage on which collections go as a test says."""

    def __init__(self, monkeypatch, **options):
        self.stage = Stage(VirtualClock(T0), monkeypatch, **options)
        self.runner = self.stage.runner

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def run(self, claim=None):
        return list(await self.runner.run(claim or await self.stage.claim(), self.stage))


class Elsewhere(Here):
    """The same behind a queue: a message goes out as JSON would carry it, to a worker that is a task of its own."""

    def __init__(self, monkeypatch, **options):
        super().__init__(monkeypatch, **options)
        self._worker, self._tasks = self.stage.runner, {}
        # Its news are heard by the stage alone: the runner has to find out by itself.
        self.runner = CeleryRunner(send=self._send, slots=self.stage.slots, bus=self.stage.bus, clock=self.stage.clock)
        self.stage.bus.publish = self._obey

    async def _send(self, queue, message, expires):
        claim = claim_from_message(message["claim"])
        task = asyncio.ensure_future(self._worker.run(claim, self.stage))
        self._tasks[claim.composite.olt_id] = task
        await asyncio.sleep(0)

    def _obey(self, topic, payload):
        if topic == "interrupt":
            self._tasks[payload["olt_id"]].cancel()

    async def __aenter__(self):
        self._watching = asyncio.ensure_future(self.runner.watch())
        return self

    async def __aexit__(self, *_):
        self._watching.cancel()
        await asyncio.gather(self._watching, *self._tasks.values(), return_exceptions=True)


@pytest.fixture(params=[Here, Elsewhere], ids=["here", "elsewhere"])
def play(request, monkeypatch):
    """Play a story with a runner in virtual time."""

    def play(story, **options):
        async def whole():
            async with request.param(monkeypatch, **options) as place:
                return place.stage, await story(place)

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(whole())

    return play


def test_each_link_runs_in_turn_and_tells_how_it_ended(play):
    stage, outcomes = play(lambda place: place.run())

    assert [node_id for node_id, *_ in stage.asked] == [1, 2, 3]
    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS] * 3
    assert stage.ended == [(Status.SUCCESS, None)] * 3


def test_a_silent_olt_skips_the_rest_of_the_chain_and_says_why(play):
    stage, outcomes = play(lambda place: place.run(), results={1: SILENCE})

    expected = [(Status.FAILED, Cause.UNREACHABLE), *[(Status.SKIPPED, Cause.UNREACHABLE)] * 2]
    assert [(outcome.status, outcome.cause) for outcome in outcomes] == stage.ended == expected
    assert outcomes[0].error == str(SILENCE)
    assert not any(outcome.retry_at for outcome in outcomes)


def test_what_is_to_be_tried_again_stays_open_and_says_when(play):
    stage, outcomes = play(lambda place: place.run(), results={1: SILENCE}, retries=1)

    again = {outcome.retry_at for outcome in outcomes}
    assert len(again) == 1
    assert T0 + 2 * MIN <= again.pop() <= T0 + 2 * MIN + 5 * SEC
    assert [outcome.cause for outcome in outcomes] == [Cause.UNREACHABLE] * 3
    assert {status for status, _ in stage.ended} == {Status.PENDING}


def test_a_claim_that_comes_twice_runs_once(play):
    async def story(place):
        claim = await place.stage.claim()
        first = await place.run(claim)
        await place.run(claim)
        return first

    stage, outcomes = play(story)

    assert [outcome.status for outcome in outcomes] == [Status.SUCCESS] * 3
    assert len(stage.asked) == 3


def test_what_is_too_late_for_its_slot_is_not_run(play):
    async def story(place):
        claim = await place.stage.claim()
        await place.stage.clock.sleep((claim.next_check - T0).total_seconds())
        return await place.run(claim)

    stage, outcomes = play(story)

    assert stage.asked == []
    assert {(outcome.status, outcome.cause) for outcome in outcomes} == {(Status.SKIPPED, Cause.NO_FREE_POLLER)}
    assert set(stage.ended) == {(Status.SKIPPED, Cause.NO_FREE_POLLER)}


def test_who_is_cancelled_leaves_nothing_running(play):
    async def story(place):
        running = asyncio.ensure_future(place.run())
        await place.stage.clock.sleep(0.5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await place.stage.clock.sleep(5)

    stage, _ = play(story)

    assert len(stage.asked) == 1
    assert {status for status, _ in stage.ended} == {Status.INTERRUPTED}
