"""The walk of `facho record` on agents that lose answers, trip, or die: what was read stays, and it comes to an end."""

from datetime import timedelta

import pytest
from probe_fakes import ACME, CENTRAL, CENTRAL_V1, SYSTEM, MemoryAgent, make_brand, onu_rows

from facho.adapters.snmp.snmprec import Record
from facho.engine.brand import Manners
from facho.engine.detect.detect import SYS_UP_TIME, Asker
from facho.engine.errors import NoAnswer, OltUnreachable
from facho.engine.oid import parse, text
from facho.engine.snmp import ErrorStatus, Tag
from facho.runtime.commands.record import Recorder, tables_of

SERIALS = parse(f"{ACME}.2.1.1")
ROWS = SYSTEM | onu_rows(100)


def recorder(agent, whom=CENTRAL, seconds=3600):
    deadline = agent.clock.now() + timedelta(seconds=seconds)
    asker = Asker(whom, snmp=agent, clock=agent.clock, deadline=deadline, timeout=5.0, tries=3)
    return Recorder(asker, Manners(max_repetitions=10))


def behind(row):
    """Whether a request goes on behind so many rows of the serials."""
    places = [(1 + number // 16, number % 16) for number in range(100)]
    oids = {parse(f"{text(SERIALS)}.{port}.{onu}"): number for number, (port, onu) in enumerate(places, 1)}
    return lambda oid: oids.get(oid, 0) >= row


@pytest.mark.parametrize("whom", [pytest.param(CENTRAL, id="v2c"), pytest.param(CENTRAL_V1, id="v1 row by row")])
async def test_a_subtree_is_read_to_its_end(whom):
    walk = recorder(MemoryAgent(ROWS), whom)

    await walk.walk("serial", SERIALS)

    assert len(walk) == 100
    assert walk.problems == []
    assert walk.ordered()[0] == Record(parse(f"{text(SERIALS)}.1.0"), Tag.INTEGER, 1)


@pytest.mark.parametrize("whom", [pytest.param(CENTRAL, id="v2c"), pytest.param(CENTRAL_V1, id="v1")])
async def test_the_last_subtree_of_an_agent_ends_with_it(whom):
    walk = recorder(MemoryAgent(ROWS), whom)

    await walk.walk("rx_dbm", parse(f"{ACME}.3.1.1"))

    assert (len(walk), walk.problems) == (100, [])


async def test_a_lost_answer_is_asked_for_again_where_it_was_lost():
    agent = MemoryAgent(ROWS, trouble=lambda oids, times: NoAnswer("lost") if times == 1 else None)
    walk = recorder(agent)

    await walk.walk("serial", SERIALS)

    assert (len(walk), walk.problems) == (100, [])
    assert walk.asker.traffic().retransmissions == 11


async def test_rows_before_the_one_that_cannot_be_read_are_kept():
    is_behind = behind(57)
    agent = MemoryAgent(ROWS, trouble=lambda oids, times: ErrorStatus.GEN_ERR if is_behind(oids[0]) else None)
    walk = recorder(agent)

    await walk.walk("serial", SERIALS)

    assert 57 <= len(walk) <= 66
    assert walk.problems == ["serial: the agent answered genErr, the rest of it is missing"]


async def test_a_large_answer_that_never_comes_is_asked_for_in_small_ones():
    agent = MemoryAgent(ROWS)
    agent.trouble = lambda oids, times: NoAnswer("lost") if agent.asked[-1][2] > 2 else None
    walk = recorder(agent)

    await walk.walk("serial", SERIALS)

    assert (len(walk), walk.problems) == (100, [])


async def test_an_agent_that_dies_ends_the_recording_and_not_the_record():
    is_behind = behind(50)
    agent = MemoryAgent(ROWS)
    agent.trouble = lambda oids, times: NoAnswer("lost") if is_behind(oids[0]) or len(agent.asked) > 6 else None
    walk = recorder(agent)

    with pytest.raises(OltUnreachable, match="stopped answering"):
        await walk.walk("serial", SERIALS)

    assert len(walk) == 50
    # Three tries of the request, and three of whether anybody is there.
    assert [oids for _, oids, _ in agent.asked[-3:]] == [(text(SYS_UP_TIME),)] * 3


async def test_the_deadline_ends_it_with_what_there_is():
    agent = MemoryAgent(ROWS, latency=1.0)
    walk = recorder(agent, seconds=4.5)

    with pytest.raises(OltUnreachable, match="did not finish in time"):
        await walk.walk("serial", SERIALS)

    assert len(walk) == 50


async def test_answers_without_variables_are_not_the_end_of_a_table():
    class Empty(MemoryAgent):
        async def get_bulk(self, agent, oids, **more):
            answer = await super().get_bulk(agent, oids, **more)
            del answer.oids[:], answer.values[:]
            return answer

    walk = recorder(Empty(ROWS))

    await walk.walk("serial", SERIALS)

    assert walk.problems == ["serial: an answer without variables, the rest of it is missing"]


def test_each_subtree_is_walked_once_in_the_order_of_snmp():
    tables = tables_of(make_brand(probe=parse(f"{ACME}.2.1")))

    assert [(text(oid), *what) for oid, what in tables.items()] == [
        ("1.3.6.1.2.1.1", "system", False),
        (f"{ACME}.1.1", "ports", False),
        (f"{ACME}.2.1", "probe", False),
        (f"{ACME}.3.1.1", "rx_dbm", True),
    ]
