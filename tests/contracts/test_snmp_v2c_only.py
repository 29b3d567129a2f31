"""What only v1 and v2c have: no signature tells whose an answer is, so ids, addresses and communities must."""

import asyncio
from dataclasses import replace

import pytest
import uvloop
from snmp_agents import LOOPBACK, CommunityAgent, Said, mute, table

from facho.adapters.snmp import client, codec
from facho.adapters.snmp.client import CommunitySnmp
from facho.adapters.snmp.codec import PduType
from facho.engine import oid as oids
from facho.engine.errors import BadAnswer, NoAnswer
from facho.engine.snmp import Agent, Answer, Community, ErrorStatus, Tag, User, Version

pytestmark = pytest.mark.usefixtures("hurried")

SYS_NAME = oids.parse("1.3.6.1.2.1.1.5.0")
POWER_OF_ONU_7 = oids.parse("1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4.4194304000.7")
NAMED = table((SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01"))
SOON = 10.0
NEVER = 0.1


@pytest.fixture
async def snmp():
    adapter = CommunitySnmp()
    yield adapter
    assert adapter.in_flight == 0
    await adapter.close()


@pytest.fixture
async def start():
    started = []

    async def start(script, **options):
        started.append(CommunityAgent(script, **options))
        await started[-1].start()
        return started[-1]

    yield start
    for agent in started:
        agent.stop()


class Forger(CommunityAgent):
    """Answers each request as if it had been another one."""

    forge = staticmethod(lambda request: request)

    def encode(self, said, context):
        return super().encode(said, self.forge(context))


async def test_no_such_name_of_v1_is_surfaced_as_an_error_status(snmp, start):
    refuse = Said([(SYS_NAME, Tag.NULL, None)], ErrorStatus.NO_SUCH_NAME, 1)
    olt = await start(lambda _: [refuse], version=Version.V1)

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert (answer.error_status, answer.error_index) == (ErrorStatus.NO_SUCH_NAME, 1)


async def test_a_bulk_request_to_v1_asks_for_one_row_with_get_next(snmp, start):
    olt = await start(NAMED, version=Version.V1)

    answer = await snmp.get_bulk(olt.agent, [oids.parse("1.3.6.1.2.1.1")], max_repetitions=25, timeout=SOON)

    assert answer.oids == [SYS_NAME]
    assert olt.asked[0].pdu_type == PduType.GET_NEXT


async def test_a_wrong_community_is_no_answer(snmp, start):
    olt = await start(NAMED)

    with pytest.raises(NoAnswer):
        await snmp.get(replace(olt.agent, credentials=Community("wrong")), [SYS_NAME], timeout=NEVER)


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        pytest.param(lambda r: replace(r, community=b"private"), "another community or version", id="community"),
        pytest.param(lambda r: replace(r, version=Version.V1), "another community or version", id="version"),
        pytest.param(lambda r: replace(r, request_id=r.request_id ^ 1), "late or unknown id", id="request id"),
    ],
)
async def test_an_answer_to_something_else_is_dropped_and_counted(snmp, forge, reason):
    olt = Forger(NAMED)
    olt.forge = forge
    await olt.start()

    with pytest.raises(NoAnswer):
        await snmp.get(olt.agent, [SYS_NAME], timeout=NEVER)

    assert snmp.dropped == {reason: 1}
    olt.stop()


async def test_an_answer_from_another_address_is_counted(snmp, start):
    olt = await start(lambda _: [Said(elsewhere=True), Said()])

    await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert snmp.dropped["from another address"] == 1


async def test_a_late_answer_is_not_taken_for_that_of_the_next_request(snmp, start):
    def answer_the_first_request_on_the_second(_):
        if len(olt.received) < 2:
            return []
        late = [(SYS_NAME, Tag.OCTET_STRING, b"late")]
        forgotten = codec.decode_request(olt.received[0])
        return [codec.encode_response(forgotten, 0, 0, late), Said([(SYS_NAME, Tag.OCTET_STRING, b"in time")])]

    olt = await start(answer_the_first_request_on_the_second)

    with pytest.raises(NoAnswer):
        await snmp.get(olt.agent, [SYS_NAME], timeout=NEVER)
    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"in time"]
    assert snmp.dropped == {"late or unknown id": 1}


async def test_an_unreadable_answer_with_our_id_is_told_at_once(snmp, start):
    olt = await start(lambda _: [Said([(SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01")], cut=3)])

    with pytest.raises(BadAnswer, match=r"127\.0\.0\.1 sent an answer that cannot be decoded"):
        await snmp.get(olt.agent, [SYS_NAME], timeout=60)


async def test_a_request_that_comes_back_as_it_was_is_a_bad_answer(snmp):
    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport):
            self.transport = transport

        def datagram_received(self, data, sender):
            self.transport.sendto(data, sender)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Echo, (LOOPBACK, 0))
    agent = Agent(LOOPBACK, transport.get_extra_info("sockname")[1], Version.V2C, Community("public"))

    with pytest.raises(BadAnswer, match="not an answer"):
        await snmp.get(agent, [SYS_NAME], timeout=SOON)

    transport.close()


async def test_the_sizes_of_the_datagrams_are_exact(snmp, start):
    olt = await start(NAMED)

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    said = codec.encode_response(codec.decode_request(olt.received[0]), 0, 0, [(SYS_NAME, 4, b"OLT-CENTRAL-01")])
    assert (answer.bytes_sent, answer.bytes_received) == (len(olt.received[0]), len(said))


async def test_answers_leave_at_most_one_timer_behind(snmp, start):
    olt = await start(NAMED)

    for _ in range(3):
        await snmp.get(olt.agent, [SYS_NAME], timeout=600)

    timers = [timer for timer in asyncio.get_running_loop()._scheduled if "_give_up" in repr(timer)]
    assert sum(not timer.cancelled() for timer in timers) == 1


async def test_each_request_ends_at_its_own_time(snmp, start):
    olt = await start(mute)
    long = asyncio.create_task(snmp.get(olt.agent, [SYS_NAME], timeout=600))
    await olt.was_asked(1)

    # The timer of the first one is far away.
    with pytest.raises(NoAnswer, match=r"in 0\.1 s"):
        await snmp.get(olt.agent, [SYS_NAME], timeout=NEVER)
    assert not long.done()

    long.cancel()
    await asyncio.gather(long, return_exceptions=True)


async def test_deadlines_of_answered_requests_do_not_pile_up(snmp, start, monkeypatch):
    monkeypatch.setattr(client, "MANY_DEADLINES", 4)
    olt = await start(NAMED)

    for _ in range(40):
        await snmp.get(olt.agent, [SYS_NAME], timeout=600)

    assert len(snmp._deadlines) <= 4 + 2
    silent = await start(mute)
    with pytest.raises(NoAnswer):
        await snmp.get(silent.agent, [SYS_NAME], timeout=NEVER)


@pytest.mark.parametrize(
    ("host", "count"),
    [
        pytest.param("255.255.255.255", 1, id="an address that the system refuses"),
        pytest.param(LOOPBACK, 3000, id="a request larger than a datagram"),
    ],
)
async def test_what_cannot_be_sent_is_no_answer_at_once(snmp, host, count):
    agent = Agent(host, 161, Version.V2C, Community("public"))

    with pytest.raises(NoAnswer, match="no request can be sent"):
        await snmp.get(agent, [POWER_OF_ONU_7] * count, timeout=60)


async def test_an_agent_of_v3_is_not_asked_with_a_community(snmp):
    with pytest.raises(ValueError, match="not an agent of SNMPv1 or v2c"):
        await snmp.get(Agent(LOOPBACK, 161, Version.V3, User("operator")), [SYS_NAME], timeout=SOON)


async def test_an_agent_may_have_an_ipv6_address(snmp):
    olt = CommunityAgent(NAMED)
    olt.host = "::1"
    try:
        await olt.start()
    except OSError:
        pytest.skip("this machine has no IPv6")

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"OLT-CENTRAL-01"]
    olt.stop()


async def ask_a_well_agent(snmp: CommunitySnmp) -> Answer:
    olt = CommunityAgent(NAMED)
    await olt.start()
    try:
        return await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)
    finally:
        olt.stop()


def test_uvloop_serves_as_well():
    async def ask():
        snmp = CommunitySnmp()
        answer = await ask_a_well_agent(snmp)
        await snmp.close()
        return answer

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask()).values == [b"OLT-CENTRAL-01"]


def test_an_adapter_moves_to_the_loop_that_runs():
    snmp = CommunitySnmp()

    answers = [asyncio.run(ask_a_well_agent(snmp)) for _ in range(2)]

    assert [answer.values for answer in answers] == [[b"OLT-CENTRAL-01"]] * 2
    asyncio.run(snmp.close())
