"""Sending: what is repeated, how fast, until when, and how it is counted."""

import asyncio
from datetime import timedelta

import pytest
from collect_fakes import FakeAgent, FakeClock, Faults, make_mib, make_olt, oid_of, one_port
from collect_virtual import VirtualAgent, virtually

from facho.engine.brand import Manners
from facho.engine.collect import requester as requester_module
from facho.engine.collect.learned import Learned
from facho.engine.collect.requester import SYS_UP_TIME, Requester, RunOver, percentile
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.model import Traffic
from facho.engine.snmp import Version

ONUS = one_port(5)
NAMES = [oid_of("name", onu) for onu in ONUS]


def make_requester(agent, *, seconds=300.0, **olt):
    return Requester(
        agent,
        make_olt(**olt),
        Manners(timeout=5.0, retries=3, optical_timeout=20.0),
        learned=Learned({}),
        clock=agent.clock,
        deadline=agent.clock.now() + timedelta(seconds=seconds),
    )


def make_agent(**faults):
    return FakeAgent(FakeClock(), make_mib(ONUS), Faults(**faults))


async def test_a_lost_request_is_sent_again_as_it_was():
    agent = make_agent(drop_every=2)
    requester = make_requester(agent)

    await requester.get(NAMES[:1])
    answer = await requester.get(NAMES)

    assert answer.oids == NAMES
    assert [request.oids for request in agent.log] == [NAMES[:1], NAMES, NAMES]


async def test_everything_is_counted():
    agent = make_agent(drop_every=2)
    requester = make_requester(agent)

    await requester.get(NAMES[:1])
    await requester.get(NAMES)

    assert requester.traffic() == Traffic(
        pdus=3,
        retransmissions=1,
        varbinds=6,
        # The lost one was as large as the one that was answered.
        bytes_sent=31 + 2 * 35,
        bytes_received=31 + 35,
        rtt_p50=pytest.approx(0.01),
        rtt_p95=pytest.approx(0.01),
        rtt_p99=pytest.approx(0.01),
        peak_in_flight=1,
        answers_decoded=2,
    )


async def test_when_a_request_stays_unanswered_the_agent_is_asked_whether_it_is_there():
    agent = make_agent(silent_at=frozenset(NAMES))

    with pytest.raises(NoAnswer):
        await make_requester(agent).get(NAMES)

    up_time = [SYS_UP_TIME]
    assert [request.oids for request in agent.log] == [NAMES, up_time, NAMES, NAMES, NAMES, up_time]


async def test_an_agent_that_says_nothing_at_all_ends_the_run():
    agent = make_agent(dies_after=0)

    with pytest.raises(RunOver, match="the OLT stopped answering"):
        await make_requester(agent).get(NAMES)

    assert [request.oids for request in agent.log] == [NAMES, [SYS_UP_TIME], [SYS_UP_TIME]]


@pytest.mark.parametrize("optical", [False, True], ids=["cheap", "optical"])
def test_an_agent_that_is_silent_from_the_beginning_costs_one_time_out(optical):
    agent = VirtualAgent({}, Faults(dies_after=0))

    async def story():
        requester = make_requester(agent)
        with pytest.raises(RunOver, match="the OLT stopped answering"):
            await requester.get(NAMES, optical=optical)
        return requester.seconds

    assert virtually(story()) == pytest.approx(20.0 if optical else 5.0)
    assert [request.oids for request in agent.log] == [NAMES, [SYS_UP_TIME], [SYS_UP_TIME]]


def test_a_slow_agent_keeps_its_whole_time_out():
    agent = VirtualAgent(dict.fromkeys(NAMES, 1) | {SYS_UP_TIME: 1}, service=3.0)

    async def story():
        return await make_requester(agent).get(NAMES)

    assert virtually(story()).oids == NAMES
    assert [request.oids for request in agent.log] == [NAMES, [SYS_UP_TIME]]


def test_a_first_request_that_got_lost_is_sent_again():
    agent = VirtualAgent(dict.fromkeys(NAMES, 1) | {SYS_UP_TIME: 1}, Faults(lost_above=1))

    async def story():
        with pytest.raises(NoAnswer):
            await make_requester(agent).get(NAMES, retries=1)

    virtually(story())

    assert [request.oids for request in agent.log] == [NAMES, [SYS_UP_TIME], NAMES]


async def test_an_agent_that_falls_silent_later_is_given_its_retries_first():
    agent = make_agent(dies_after=1)
    requester = make_requester(agent)
    await requester.get(NAMES)

    with pytest.raises(RunOver, match="the OLT stopped answering"):
        await requester.get(NAMES)

    assert [request.oids for request in agent.log[1:]] == [NAMES] * 4 + [[SYS_UP_TIME]] * 2


@pytest.mark.parametrize(
    ("faults", "asked"),
    [
        pytest.param({"garbage_every": 1}, 4 + 1, id="garbage: a sign of life, but no answer"),
        pytest.param({"empty_every": 1}, 4, id="no variables: it is there, so nobody asks"),
    ],
)
async def test_an_unusable_answer_is_asked_for_again_and_then_given_up(faults, asked):
    agent = make_agent(**faults)

    with pytest.raises(BadAnswer):
        await make_requester(agent).get(NAMES)

    assert len(agent.log) == asked


async def test_an_error_of_the_agent_is_an_answer():
    answer = await make_requester(make_agent(too_big_above=2)).get(NAMES)

    assert answer.error_status == 1


async def test_being_refused_is_not_repeated():
    agent = make_agent(refuses_after=0)

    with pytest.raises(Refused):
        await make_requester(agent).get(NAMES)

    assert len(agent.log) == 1


async def test_fewer_retries_can_be_asked_for():
    agent = make_agent(silent_at=frozenset(NAMES))

    with pytest.raises(NoAnswer):
        await make_requester(agent).get(NAMES, retries=0)

    assert len(agent.log) == 1 + 1


@pytest.mark.parametrize(("optical", "longest"), [(False, 5.0), (True, 20.0)])
async def test_the_first_wait_is_as_long_as_the_maker_says_and_the_next_follow_the_round_trips(optical, longest):
    agent = make_agent()
    agent.latency = 0.8
    requester = make_requester(agent)

    await requester.get(NAMES, optical=optical)
    await requester.rows_after(NAMES, 3, optical=optical)

    assert [request.timeout for request in agent.log] == pytest.approx([longest, 3 * 0.8])


async def test_round_trips_of_cheap_columns_do_not_hurry_dear_ones():
    agent = make_agent()
    requester = make_requester(agent)

    await requester.get(NAMES)
    await requester.get(NAMES, optical=True)

    assert [request.timeout for request in agent.log] == [5.0, 20.0]


async def test_after_silence_the_same_request_is_given_more_time():
    agent = make_agent(silent_at=frozenset(NAMES[1:]))
    agent.latency = 0.4
    requester = make_requester(agent)
    await requester.get(NAMES[:1])

    with pytest.raises(NoAnswer):
        await requester.get(NAMES)

    assert [request.timeout for request in agent.log[1:5]] == pytest.approx([1.2, 2.4, 4.8, 5.0])


async def test_a_timeout_is_cut_to_the_time_that_is_left():
    agent = make_agent(dies_after=1)
    agent.latency = 4.0
    requester = make_requester(agent, seconds=11)
    await requester.get(NAMES)

    with pytest.raises(RunOver, match="the time limit was reached"):
        await requester.get(NAMES)

    assert [request.timeout for request in agent.log] == [5, 5, 2]
    assert agent.clock.elapsed == 11


async def test_nothing_is_sent_after_the_deadline():
    agent = make_agent()

    with pytest.raises(RunOver, match="the time limit was reached"):
        await make_requester(agent, seconds=0).get(NAMES)

    assert agent.log == []


async def test_a_step_of_the_wall_clock_neither_cuts_nor_lengthens_a_run():
    agent = make_agent()
    requester = make_requester(agent, seconds=10)
    agent.clock.now = lambda: pytest.fail("the wall clock was read in mid-run")

    await requester.get(NAMES)
    agent.clock.elapsed = 10

    with pytest.raises(RunOver):
        await requester.get(NAMES)


async def test_requests_keep_the_distance_that_the_olt_is_allowed():
    agent = make_agent()
    requester = make_requester(agent, max_pdus_per_second=4.0)

    for _ in range(4):
        await requester.get(NAMES)

    # The first one waits too: the run before may have asked just now.
    assert [request.at for request in agent.log] == pytest.approx([0.25, 0.5, 0.75, 1.0])


async def test_a_slow_agent_is_not_made_to_wait_longer():
    agent = make_agent()
    agent.latency = 1.0
    requester = make_requester(agent, max_pdus_per_second=4.0)

    for _ in range(3):
        await requester.get(NAMES)

    assert agent.clock.sleeps == [0.25]


async def test_the_next_turn_is_not_waited_for_beyond_the_deadline():
    agent = make_agent()
    requester = make_requester(agent, max_pdus_per_second=0.1, seconds=15)

    await requester.get(NAMES)
    with pytest.raises(RunOver, match="the time limit was reached"):
        await requester.get(NAMES)

    assert agent.clock.sleeps == [10]
    assert len(agent.log) == 1


def test_no_more_requests_are_under_way_than_the_olt_allows():
    agent = VirtualAgent(dict.fromkeys(NAMES, 1))

    async def ask_for_eight():
        requester = make_requester(agent, max_in_flight=2)
        await asyncio.gather(*(requester.get(NAMES) for _ in range(8)))

    virtually(ask_for_eight())

    assert agent.peak == 2


async def test_requests_have_a_limit(monkeypatch):
    monkeypatch.setattr(requester_module, "MAX_PDUS", 3)
    requester = make_requester(make_agent())

    for _ in range(3):
        await requester.get(NAMES)

    with pytest.raises(RunOver, match="the limit of 3 requests was reached"):
        await requester.get(NAMES)


async def test_zero_repetitions_are_never_sent():
    agent = make_agent()

    await make_requester(agent).rows_after(NAMES, 0)

    assert agent.log[0].repetitions == 1


async def test_snmpv1_is_asked_by_getnext():
    agent = make_agent()

    await make_requester(agent, version=Version.V1).rows_after(NAMES, 10)

    assert agent.log[0].kind == "get_next"


@pytest.mark.parametrize(
    ("numbers", "share", "expected"),
    [
        pytest.param([], 0.5, None, id="nothing"),
        pytest.param([3.0], 0.95, 3.0, id="one"),
        pytest.param([1.0, 2.0], 0.5, 1.0, id="the lower of two is their middle"),
        pytest.param([float(n) for n in range(1, 101)], 0.95, 95.0, id="95 of 100"),
        pytest.param([float(n) for n in range(1, 11)], 0.95, 10.0, id="rounded up"),
    ],
)
def test_percentiles_are_of_what_was_measured(numbers, share, expected):
    assert percentile(numbers, share) == expected
