"""Questions of people to OLTs: answered within seconds, under the lease, never beside a run, and bounded."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from builders import HOUR, MIN, SEC, T0, World, make_node

from facho.adapters.bus.local import LocalBus
from facho.brands import brand
from facho.brands.decode import RAW_DECODERS
from facho.engine import questions
from facho.engine.errors import NoAnswer
from facho.engine.model import KnownOnu, Question, QuestionKind, Status
from facho.engine.questions import (
    BUSY,
    FAILED,
    MOST_AT_ONCE,
    MOVED,
    NO_SUCH_ONU,
    STOPPED,
    WAIT_FOR_OLT,
    Answerer,
)
from facho.engine.snmp import Answer, Missing, Tag
from in_memory import MemoryQuestions

BODY = {
    "name": "Power",
    "kind": "get",
    "columns": [],
    "oids": [{"name": "uptime", "oid": "1.3.6.1.2.1.1.3.0", "decode": "number", "scalar": True}],
}


READ = {"onu": 7, "index": "4194304000.7", "oids": []}
ONU = KnownOnu("4194304000.7", "online", slot=0, port=1, onu=7, serial="HWTC00000007")


class Agents:
    """OLTs that answer the same to everything, each request after so many seconds; None: never."""

    value = 4711

    def __init__(self, clock, seconds=0.1):
        self.clock = clock
        self.seconds = seconds
        self.asked = 0
        self.under_way = 0
        self.most_at_once = 0
        # When each request began and ended.
        self.times = []

    async def get(self, agent, oids, *, timeout):
        self.asked += 1
        begun = self.clock.now()
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await self.clock.sleep(timeout if self.seconds is None else self.seconds)
        finally:
            self.under_way -= 1
            self.times.append((begun, self.clock.now()))
        if self.seconds is None:
            raise NoAnswer("no answer")
        return Answer(0, 0, list(oids), [self.value] * len(oids), bytes([Tag.TIME_TICKS] * len(oids)), 40, 40)


class AskedWorld(World):
    """A world in which people ask."""

    def __init__(self, clock, nodes=(), *, seconds=0.1, seconds_of_a_run=2.0):
        nodes = nodes or [make_node(1, next_check=T0 + HOUR, interval=HOUR)]
        super().__init__(clock, nodes, seconds=lambda node, slot: seconds_of_a_run)
        self.questions = MemoryQuestions()
        self.agents = Agents(clock, seconds)
        self.bus = LocalBus()
        self.runs._known = lambda olt_id: self.onus
        self.onus = [ONU]
        self.answerer = self.new_answerer()
        self._count = 0

    def new_answerer(self):
        return Answerer(
            name="noc",
            questions=self.questions,
            nodes=self.nodes,
            runs=self.runs,
            leases=self.runner._leases,
            snmp=self.agents,
            clock=self.clock,
            bus=self.bus,
            gate=self.scheduler.manager,
            brand=lambda _: brand("huawei"),
            raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
        )

    def ask(self, olt_id=1, body=BODY, kind=QuestionKind.TRY_JOB):
        self._count += 1
        question = Question(self._count, olt_id, kind, body)
        self.questions.ask(question, expires_at=questions.expiry(kind, self.clock.now()))
        return question.id

    def read(self):
        return self.ask(body=READ, kind=QuestionKind.READ_ONU)

    @asynccontextmanager
    async def answering(self):
        task = asyncio.create_task(self.answerer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.answerer.stop()


def test_a_question_is_answered_within_a_second_and_a_half(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        async with world.answering():
            await world.run_for(10 * SEC)
            id_, asked = world.ask(), clock.now()
            while id_ not in world.questions.replies:
                await clock.sleep(0.1)
            return world.questions.replies[id_], clock.now() - asked

    reply, took = virtually(story())

    [uptime] = reply.answer["columns"]
    assert (uptime["name"], uptime["oid"], uptime["decode"], uptime["remark"]) == (
        "uptime",
        "1.3.6.1.2.1.1.3.0",
        "number",
        "",
    )
    assert uptime["rows"] == ({"onu": "", "index": "", "type": "TimeTicks", "raw": "4711", "value": 4711},)
    assert took <= 1.5 * SEC


def test_it_is_never_beside_a_run(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0 + 5 * SEC, interval=MIN), make_node(2, next_check=T0 + 12 * SEC)]
        world = AskedWorld(clock, nodes, seconds=2.0, seconds_of_a_run=4.0)
        async with world.answering():
            await world.run_for(6 * SEC)
            id_ = world.ask()
            await world.run_for(30 * SEC)
            return world, id_

    world, id_ = virtually(story())

    assert world.questions.replies[id_].error == ""
    times = [(row.started_at, row.ended_at) for row in world.rows if row.status is Status.SUCCESS] + world.agents.times
    assert len(times) == 3
    for (_, end), (start, _) in itertools.pairwise(sorted(times)):
        assert end <= start


def test_an_olt_that_stays_busy_is_said_to_be_busy(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        olt = await world.nodes.olt(1)
        async with world.runner._leases.hold(1, "worker/3", device=olt.agent.device), world.answering():
            id_ = world.ask()
            await world.run_for(WAIT_FOR_OLT[QuestionKind.TRY_JOB] + 2 * SEC)
            return world, world.questions.replies[id_]

    world, reply = virtually(story())

    assert reply.error == BUSY
    assert world.agents.asked == 0
    assert not world.scheduler.manager.is_busy(1)


def test_a_silent_olt_costs_some_seconds_and_says_what_to_check(clock, virtually):
    async def story():
        world = AskedWorld(clock, seconds=None)
        async with world.answering():
            id_ = world.ask()
            await world.run_for(20 * SEC)
            return world.questions.replies[id_]

    reply = virtually(story())

    assert "did not answer within" in reply.error
    assert "Check the address" in reply.error


def test_questions_to_one_olt_are_answered_one_after_the_other(clock, virtually):
    async def story():
        world = AskedWorld(clock, seconds=2.0)
        async with world.answering():
            ids = [world.ask() for _ in range(3)]
            await world.run_for(20 * SEC)
            return world, [world.questions.replies[id_].error for id_ in ids]

    world, errors = virtually(story())

    assert errors == ["", "", ""]
    assert world.agents.most_at_once == 1


def test_only_some_are_answered_at_once(clock, virtually):
    async def story():
        nodes = [make_node(number, olt_id=number, next_check=T0 + HOUR) for number in range(1, 21)]
        world = AskedWorld(clock, nodes, seconds=2.0)
        async with world.answering():
            ids = [world.ask(number) for number in range(1, 21)]
            await world.run_for(20 * SEC)
            return world, ids

    world, ids = virtually(story())

    assert set(world.questions.replies) == set(ids)
    assert world.agents.most_at_once == MOST_AT_ONCE


def test_an_olt_that_was_disabled_meanwhile_is_not_asked(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        world.nodes.enabled[1] = False
        async with world.answering():
            id_ = world.ask()
            await world.run_for(2 * SEC)
            return world, world.questions.replies[id_]

    world, reply = virtually(story())

    assert "disabled" in reply.error
    assert world.agents.asked == 0


def test_a_body_that_makes_no_sense_is_an_error_and_not_silence(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        async with world.answering():
            id_ = world.ask(body={"kind": "nothing"})
            await world.run_for(2 * SEC)
            return world.questions.replies[id_]

    assert virtually(story()).error == FAILED


def test_an_engine_that_stops_reports_it(clock, virtually):
    async def story():
        world = AskedWorld(clock, seconds=5.0)
        async with world.answering():
            id_ = world.ask()
            await world.run_for(2 * SEC)
        return world, world.questions.replies[id_]

    world, reply = virtually(story())

    assert reply.error == STOPPED
    assert not world.scheduler.manager.is_busy(1)


def test_a_database_that_fails_is_asked_again(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        take, world.questions.take = world.questions.take, _fails
        async with world.answering():
            id_ = world.ask()
            await world.run_for(2 * SEC)
            world.questions.take = take
            await world.run_for(2 * SEC)
            return world.questions.replies[id_]

    assert virtually(story()).error == ""


async def _fails(**_):
    raise ConnectionError("the database is unavailable")


def test_an_onu_is_read_with_all_columns_of_its_brand_by_gets(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        async with world.answering():
            id_, asked = world.read(), clock.now()
            while id_ not in world.questions.replies:
                await clock.sleep(0.1)
            return world, world.questions.replies[id_], clock.now() - asked

    world, reply, took = virtually(story())

    asked = {name for name, column in brand("huawei").columns.items() if column.space.by_index}
    assert reply.error == ""
    assert set(reply.answer["values"]) | set(reply.answer["unanswered"]) >= asked
    assert (reply.answer["requests"], reply.answer["values"]["distance_m"]) == (world.agents.asked, 4711)
    assert [each.index for each in reply.read.collected.readings] == [ONU.index]
    # A small read must not change the request sizes of whole runs.
    assert reply.read.collected.learned == {}
    assert took <= 3 * SEC


def test_a_raw_oid_of_a_job_is_read_too(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        oids = [{"name": "vlan", "oid": "1.3.6.1.4.1.99.1", "decode": "number", "scalar": False}]
        async with world.answering():
            id_ = world.ask(body={**READ, "oids": oids}, kind=QuestionKind.READ_ONU)
            await world.run_for(5 * SEC)
            return world.questions.replies[id_]

    assert virtually(story()).answer["values"]["vlan"] == 4711


def test_a_read_waits_for_the_run_and_comes_before_the_next_one(clock, virtually):
    async def story():
        nodes = [make_node(1, next_check=T0 + 5 * SEC, interval=HOUR), make_node(2, next_check=T0 + 7 * SEC)]
        world = AskedWorld(clock, nodes, seconds_of_a_run=30.0)
        async with world.answering():
            await world.run_for(10 * SEC)
            id_ = world.read()
            await world.run_for(90 * SEC)
            return world, id_

    world, id_ = virtually(story())

    first, second = sorted(row.started_at for row in world.rows if row.status is Status.SUCCESS)
    begun, ended = min(world.agents.times)[0], max(world.agents.times)[1]
    assert first + 30 * SEC <= begun <= ended <= second
    assert world.questions.waits[id_] == [("node 1", None), None]


@pytest.mark.parametrize(
    ("value", "onus", "said", "requests"),
    [
        pytest.param(Missing.NO_SUCH_INSTANCE, [ONU], NO_SUCH_ONU, True, id="the OLT has no row of it"),
        pytest.param(4711, [], MOVED, False, id="it has another place now"),
    ],
)
def test_an_onu_that_is_not_there(clock, virtually, value, onus, said, requests):
    async def story():
        world = AskedWorld(clock)
        world.agents.value, world.onus = value, onus
        async with world.answering():
            id_ = world.read()
            await world.run_for(20 * SEC)
            return world, world.questions.replies[id_]

    world, reply = virtually(story())

    assert (reply.error, reply.read) == (said, None)
    assert bool(world.agents.asked) == requests


def test_a_missing_onu_is_asked_and_only_its_serial_proves_that_it_is_back(clock, virtually):
    async def story(value):
        world = AskedWorld(clock)
        world.agents.value, world.onus = value, [replace(ONU, is_missing=True)]
        async with world.answering():
            id_ = world.read()
            await world.run_for(5 * SEC)
            return world.questions.replies[id_]

    assert virtually(story(b"HWTC\x00\x00\x00\x07")).answer["values"]["serial"]
    assert virtually(story(4711)).error == NO_SUCH_ONU


def test_what_a_dead_engine_left_is_answered_by_the_next_one(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        id_ = world.read()
        # Taken, and the process was killed.
        await world.questions.take(limit=1, now=clock.now())
        world.answerer = world.new_answerer()
        async with world.answering():
            await world.run_for(5 * SEC)
        return world.questions.replies[id_]

    assert virtually(story()).error == ""


def test_pages_are_told_when_an_onu_was_read(clock, virtually):
    async def story():
        world = AskedWorld(clock)
        heard = world.bus.subscribe(["readings"])
        async with world.answering():
            world.read()
            return await anext(heard)

    assert virtually(story()) == ("readings", {"olt_id": 1, "node_id": 0, "count": 1})
