"""What every adapter of the Snmp port keeps: v2c and v3 alike, against agents that say what a test tells them to."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from snmp_agents import CommunityAgent, Said, ScriptedAgent, UsmAgent, mute, table

from facho.adapters.snmp.client import CommunitySnmp, SnmpByVersion
from facho.adapters.snmp.codec import PduType
from facho.adapters.snmp.usm import UsmSnmp
from facho.engine import oid as oids
from facho.engine.errors import BadAnswer, NoAnswer, SnmpError
from facho.engine.oid import Oid
from facho.engine.ports import Snmp
from facho.engine.snmp import Asked, ErrorStatus, Missing, Operation, Tag, User, Version

pytestmark = pytest.mark.usefixtures("hurried")

SYS_NAME = oids.parse("1.3.6.1.2.1.1.5.0")
POWER = "1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4.4194304000"
SERIAL = "1.3.6.1.4.1.2011.6.128.1.1.2.43.1.3.4194304000"
# Answers on loopback are there at once; only what never comes takes this long, or BRIEF where something else comes.
# The clock waits for whatever is under way.
SOON = 10.0
NEVER = 0.1
BRIEF = 0.6

USERS = {
    "v3 noAuthNoPriv": User("watcher"),
    "v3 authNoPriv": User("signer", "SHA256", "s3cret-signature"),
    "v3 authPriv": User("operator", "SHA512", "s3cret-signature", "AES256", "s3cret-cipher"),
}


def power(onu: int) -> Oid:
    return oids.parse(f"{POWER}.{onu}")


def serial(onu: int) -> Oid:
    return oids.parse(f"{SERIAL}.{onu}")


def onus(count: int) -> list[tuple[Oid, int, int | bytes]]:
    """Power and serial of some ONUs; the power of ONU 7 is -21.53 dBm."""
    powers = [(power(onu), Tag.INTEGER, -2146 - onu) for onu in range(1, count + 1)]
    return powers + [(serial(onu), Tag.OCTET_STRING, b"HWTC" + bytes(4)) for onu in range(1, count + 1)]


class Peers:
    """Starts agents that speak the version under test."""

    def __init__(self, make: Callable[..., ScriptedAgent]) -> None:
        self._make = make
        self._started: list[ScriptedAgent] = []

    async def start(self, script, **options) -> ScriptedAgent:
        agent = self._make(script, **options)
        await agent.start()
        self._started.append(agent)
        return agent

    def stop(self) -> None:
        for agent in self._started:
            agent.stop()


@pytest.fixture(params=["v2c", *USERS])
def version(request) -> str:
    return request.param


@pytest.fixture
async def snmp(version) -> AsyncIterator[Snmp]:
    adapter = CommunitySnmp() if version == "v2c" else UsmSnmp()
    yield adapter
    assert adapter.in_flight == 0
    await adapter.close()


@pytest.fixture
async def peers(version) -> AsyncIterator[Peers]:
    def make(script, **options):
        return CommunityAgent(script, **options) if version == "v2c" else UsmAgent(script, USERS[version], **options)

    peers = Peers(make)
    yield peers
    peers.stop()


async def test_get_brings_values_in_the_order_they_were_asked_for(snmp, peers):
    olt = await peers.start(table((SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01"), *onus(8)))

    answer = await snmp.get(olt.agent, [power(7), SYS_NAME, serial(7)], timeout=SOON)

    assert list(answer) == [(power(7), -2153), (SYS_NAME, b"OLT-CENTRAL-01"), (serial(7), b"HWTC" + bytes(4))]
    assert answer.tags == bytes([Tag.INTEGER, Tag.OCTET_STRING, Tag.OCTET_STRING])
    assert (answer.error_status, answer.error_index) == (ErrorStatus.NO_ERROR, 0)
    assert olt.asked[0].pdu_type == PduType.GET


async def test_get_next_brings_what_follows_each_name(snmp, peers):
    olt = await peers.start(table(*onus(8)))

    answer = await snmp.get_next(olt.agent, [power(6), oids.parse(SERIAL)], timeout=SOON)

    assert list(answer) == [(power(7), -2153), (serial(1), b"HWTC" + bytes(4))]
    assert olt.asked[0].pdu_type == PduType.GET_NEXT


async def test_get_bulk_brings_rows_by_position_behind_the_non_repeaters(snmp, peers):
    olt = await peers.start(table((SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01"), *onus(8)))
    asked = [oids.parse("1.3.6.1.2.1.1.5"), power(6), serial(6)]

    answer = await snmp.get_bulk(olt.agent, asked, non_repeaters=1, max_repetitions=2, timeout=SOON)

    assert answer.oids == [SYS_NAME, power(7), serial(7), power(8), serial(8)]
    assert answer.values[1] == -2153
    assert (olt.asked[0].non_repeaters, olt.asked[0].max_repetitions) == (1, 2)


@pytest.mark.parametrize(
    ("status", "index", "echoed"),
    [
        pytest.param(ErrorStatus.TOO_BIG, 0, False, id="tooBig with an empty list"),
        pytest.param(ErrorStatus.TOO_BIG, 0, True, id="tooBig with the request echoed"),
        pytest.param(ErrorStatus.GEN_ERR, 2, True, id="genErr at the second variable"),
        pytest.param(ErrorStatus.GEN_ERR, 2, False, id="genErr at a variable that is not in the answer"),
        pytest.param(ErrorStatus.AUTHORIZATION_ERROR, 0, True, id="authorizationError"),
        pytest.param(77, 0, True, id="an error that no standard knows"),
    ],
)
async def test_the_agents_error_is_surfaced_and_never_an_empty_answer_without_one(snmp, peers, status, index, echoed):
    def refuse(asked):
        return [Said([(oid, Tag.NULL, None) for oid in asked.oids] if echoed else [], status, index)]

    olt = await peers.start(refuse)

    answer = await snmp.get(olt.agent, [power(6), power(7)], timeout=SOON)

    assert (answer.error_status, answer.error_index) == (status, index)
    assert answer.values == ([None, None] if echoed else [])


async def test_the_three_ways_of_having_no_value_are_kept_apart(snmp, peers):
    kinds = [Missing.NO_SUCH_OBJECT, Missing.NO_SUCH_INSTANCE, Missing.END_OF_MIB_VIEW]
    rows = [(power(onu), kind.value, kind) for onu, kind in enumerate(kinds, 1)]
    olt = await peers.start(lambda _: [Said(rows)])

    answer = await snmp.get(olt.agent, [power(1), power(2), power(3)], timeout=SOON)

    assert answer.values == kinds
    assert answer.error_status == ErrorStatus.NO_ERROR


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(Tag.INTEGER, -(2**31), id="Integer32"),
        pytest.param(Tag.COUNTER32, 2**32 - 1, id="Counter32"),
        pytest.param(Tag.GAUGE32, 2**31, id="Gauge32"),
        pytest.param(Tag.TIME_TICKS, 4711, id="TimeTicks"),
        pytest.param(Tag.COUNTER64, 2**64 - 1, id="Counter64"),
        pytest.param(Tag.IP_ADDRESS, bytes([10, 0, 0, 7]), id="IpAddress"),
        pytest.param(Tag.OPAQUE, b"\x9f\x78\x04\x42\xf6\x00\x00", id="Opaque"),
        pytest.param(Tag.OBJECT_IDENTIFIER, oids.parse("1.3.6.1.4.1.2011.2.248"), id="OBJECT IDENTIFIER"),
        pytest.param(Tag.OCTET_STRING, bytes(range(256)), id="every octet"),
        pytest.param(Tag.NULL, None, id="NULL"),
    ],
)
async def test_every_type_arrives_with_its_value_and_tag(snmp, peers, tag, value):
    olt = await peers.start(table((SYS_NAME, tag, value)))

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert (answer.values, answer.tags) == ([value], bytes([tag]))


@pytest.mark.parametrize(
    "returned", [pytest.param(0, id="none"), pytest.param(1, id="fewer"), pytest.param(3, id="more")]
)
async def test_an_answer_with_another_number_of_variables_is_handed_on_as_it_is(snmp, peers, returned):
    olt = await peers.start(lambda _: [Said(onus(8)[:returned])])

    answer = await snmp.get(olt.agent, [power(1), power(2)], timeout=SOON)

    assert answer.oids == [power(onu) for onu in range(1, returned + 1)]


async def test_names_that_were_not_asked_for_are_handed_on_as_they_are(snmp, peers):
    olt = await peers.start(lambda _: [Said([(power(1), Tag.INTEGER, 1), (power(1), Tag.INTEGER, 1)])])

    answer = await snmp.get_next(olt.agent, [power(6), power(7)], timeout=SOON)

    assert answer.oids == [power(1), power(1)]


async def test_silence_is_no_answer_after_the_timeout(snmp, peers):
    olt = await peers.start(mute)

    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1 did not answer within 0\.1 s"):
        await snmp.get(olt.agent, [SYS_NAME], timeout=NEVER)


async def test_a_request_is_sent_once(snmp, peers):
    olt = await peers.start(mute)

    with pytest.raises(NoAnswer):
        await snmp.get(olt.agent, [SYS_NAME], timeout=BRIEF)

    assert len(olt.asked) == 1


async def test_nobody_listening_is_no_answer_and_harms_nobody_else(snmp, peers):
    gone = await peers.start(mute)
    gone_agent = gone.agent
    gone.stop()
    well = await peers.start(table(*onus(8)))

    with pytest.raises(NoAnswer):
        await snmp.get(gone_agent, [SYS_NAME], timeout=NEVER)
    answer = await snmp.get(well.agent, [power(7)], timeout=SOON)

    assert answer.values == [-2153]


@pytest.mark.parametrize(
    ("count", "size"),
    [pytest.param(3, 2000, id="over 4 kB"), pytest.param(30, 2000, id="nearly 64 kB")],
)
async def test_a_large_answer_arrives_whole(snmp, peers, count, size):
    rows = [(serial(onu), Tag.OCTET_STRING, bytes([onu]) * size) for onu in range(1, count + 1)]
    olt = await peers.start(table(*rows))

    answer = await snmp.get(olt.agent, [oid for oid, _, _ in rows], timeout=SOON)

    assert answer.values == [value for _, _, value in rows]
    assert answer.bytes_received > count * size


async def test_two_agents_on_one_adapter_are_not_mixed_up(snmp, peers):
    central = await peers.start(table((SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01")), hold=20)
    norte = await peers.start(table((SYS_NAME, Tag.OCTET_STRING, b"OLT-NORTE-02")), hold=20)

    answers = await asyncio.gather(
        *(snmp.get(olt.agent, [SYS_NAME], timeout=SOON) for _ in range(20) for olt in (central, norte))
    )

    assert [answer.values[0] for answer in answers] == [b"OLT-CENTRAL-01", b"OLT-NORTE-02"] * 20


async def test_many_requests_to_one_agent_are_in_flight_at_once_and_may_be_answered_in_any_order(snmp, peers):
    olt = await peers.start(table(*onus(100)), hold=100)

    answers = await asyncio.gather(*(snmp.get(olt.agent, [power(onu)], timeout=SOON) for onu in range(1, 101)))

    assert [answer.oids for answer in answers] == [[power(onu)] for onu in range(1, 101)]
    assert answers[6].values == [-2153]


async def test_an_answer_from_another_address_is_ignored(snmp, peers):
    def intrude(asked):
        return [Said([(power(7), Tag.INTEGER, 0)], elsewhere=True), Said([(power(7), Tag.INTEGER, -2153)])]

    olt = await peers.start(intrude)

    answer = await snmp.get(olt.agent, [power(7)], timeout=SOON)

    assert answer.values == [-2153]


async def test_an_answer_only_from_another_address_is_no_answer(snmp, peers):
    olt = await peers.start(lambda _: [Said([(power(7), Tag.INTEGER, 0)], elsewhere=True)])

    with pytest.raises(NoAnswer):
        await snmp.get(olt.agent, [power(7)], timeout=NEVER)


@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"", id="an empty datagram"),
        pytest.param(b"\x30\x82\xff\xff\x02\x01", id="the beginning of a message"),
        pytest.param(b"\xff" * 1400, id="nothing but ones"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another protocol"),
    ],
)
async def test_garbage_does_not_keep_the_answer_behind_it_from_arriving(snmp, peers, garbage):
    olt = await peers.start(lambda _: [garbage, Said([(power(7), Tag.INTEGER, -2153)])])

    answer = await snmp.get(olt.agent, [power(7)], timeout=SOON)

    assert answer.values == [-2153]


async def test_garbage_alone_is_an_error_of_ours(snmp, peers):
    olt = await peers.start(lambda _: [b"\xff" * 1400])

    with pytest.raises(SnmpError):
        await snmp.get(olt.agent, [power(7)], timeout=NEVER)


async def test_an_answer_that_is_cut_off_is_a_bad_answer(snmp, peers):
    olt = await peers.start(lambda _: [Said(onus(8), cut=20)])

    with pytest.raises(BadAnswer, match=r"127\.0\.0\.1"):
        await snmp.get(olt.agent, [power(7)], timeout=BRIEF)


async def test_the_same_answer_twice_counts_once(snmp, peers):
    olt = await peers.start(lambda asked: [Said([(oid, Tag.INTEGER, 1) for oid in asked.oids])] * 2)

    first = await snmp.get(olt.agent, [power(1)], timeout=SOON)
    second = await snmp.get(olt.agent, [power(2)], timeout=SOON)

    assert (first.oids, second.oids) == ([power(1)], [power(2)])


async def test_the_size_of_both_datagrams_is_noted(snmp, peers):
    olt = await peers.start(table(*onus(8)))

    answer = await snmp.get(olt.agent, [power(7)], timeout=SOON)

    assert answer.bytes_sent == len(olt.received[-1])
    assert answer.bytes_received > len(power(7))


async def test_a_caller_that_goes_away_leaves_nothing_behind(snmp, peers):
    olt = await peers.start(mute)
    caller = asyncio.create_task(snmp.get(olt.agent, [power(7)], timeout=SOON))
    await olt.was_asked(1)

    caller.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert snmp.in_flight == 0


async def test_close_ends_what_is_in_flight_and_refuses_what_comes_later(snmp, peers):
    olt = await peers.start(mute)
    callers = [asyncio.create_task(snmp.get(olt.agent, [power(onu)], timeout=SOON)) for onu in (6, 7)]
    await olt.was_asked(len(callers))

    await snmp.close()

    for caller in callers:
        with pytest.raises(NoAnswer, match="stopped"):
            await caller
    with pytest.raises(NoAnswer, match="stopped"):
        await snmp.get(olt.agent, [power(7)], timeout=SOON)


class Sent:
    """A request that was sent without waiting, and what came of it."""

    def __init__(self, snmp, agent, operation, names, repetitions=1, timeout=SOON):
        self.ended = asyncio.get_running_loop().create_future()
        self.calls = 0
        self.handle = snmp.line(agent).send(operation, Asked(names), repetitions, timeout, self._done)

    def _done(self, answer):
        self.calls += 1
        self.ended.set_result(answer)


@pytest.mark.parametrize(
    ("operation", "pdu_type", "names"),
    [
        (Operation.GET, PduType.GET, [power(7), serial(7)]),
        (Operation.NEXT, PduType.GET_NEXT, [power(6), serial(6)]),
        (Operation.BULK, PduType.GET_BULK, [power(6), serial(6)]),
    ],
)
async def test_a_request_of_an_earlier_run_is_sent_as_it_was(snmp, peers, operation, pdu_type, names):
    olt = await peers.start(table(*onus(8)))

    sent = Sent(snmp, olt.agent, operation, names)
    assert not sent.ended.done()
    answer = await sent.ended

    assert list(answer) == [(power(7), -2153), (serial(7), b"HWTC" + bytes(4))]
    assert (answer.error_status, answer.bytes_sent) == (ErrorStatus.NO_ERROR, len(olt.received[-1]))
    assert (olt.asked[0].pdu_type, list(olt.asked[0].oids)) == (pdu_type, names)
    if operation is Operation.BULK:
        assert (olt.asked[0].non_repeaters, olt.asked[0].max_repetitions) == (0, 1)


async def test_a_sent_request_is_the_same_whatever_its_length(snmp, peers):
    olt = await peers.start(table(*onus(200)))
    for count in (1, 2, 6, 12, 80):
        names = [power(onu) for onu in range(1, count + 1)]
        answer = await Sent(snmp, olt.agent, Operation.GET, names).ended
        assert answer.oids == names
        assert list(olt.asked[-1].oids) == names


async def test_a_sent_request_that_is_not_answered_ends_once(snmp, peers):
    olt = await peers.start(mute)

    sent = Sent(snmp, olt.agent, Operation.GET, [power(7)], timeout=NEVER)

    assert isinstance(await sent.ended, NoAnswer)
    assert (sent.calls, snmp.in_flight) == (1, 0)


async def test_a_sent_request_that_is_cancelled_calls_nobody_and_leaves_nothing_behind(snmp, peers):
    olt = await peers.start(mute)
    sent = Sent(snmp, olt.agent, Operation.GET, [power(7)])
    await olt.was_asked(1)

    sent.handle.cancel()
    # A task needs a turn of the loop to end.
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert (sent.calls, snmp.in_flight) == (0, 0)


async def test_close_ends_sent_requests(snmp, peers):
    olt = await peers.start(mute)
    sent = Sent(snmp, olt.agent, Operation.GET, [power(7)])
    await olt.was_asked(1)

    await snmp.close()

    assert isinstance(await sent.ended, NoAnswer)
    assert isinstance(await Sent(snmp, olt.agent, Operation.GET, [power(7)]).ended, NoAnswer)


async def test_secrets_show_in_no_error_no_repr_and_no_log_line(snmp, peers, caplog):
    caplog.set_level(0)
    olt = await peers.start(lambda _: [b"\xff", Said(onus(8), cut=20)])

    with pytest.raises(SnmpError) as caught:
        await snmp.get(olt.agent, [power(7)], timeout=NEVER)

    told = f"{caught.value!r} {caught.value.__cause__!r} {olt.agent!r} {snmp!r} {caplog.text}"
    assert "s3cret" not in told
    assert "c0mmun1ty" not in told


async def test_each_version_is_asked_by_its_own_adapter():
    script = table((SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01"))
    agents = [
        CommunityAgent(script),
        CommunityAgent(script, version=Version.V1),
        UsmAgent(script, USERS["v3 authPriv"]),
    ]
    for olt in agents:
        await olt.start()
    snmp = SnmpByVersion()

    answers = [await snmp.get_next(olt.agent, [oids.parse("1.3.6.1.2.1.1.5")], timeout=SOON) for olt in agents]
    bulk = [await snmp.get_bulk(olt.agent, [SYS_NAME], max_repetitions=1, timeout=SOON) for olt in agents]
    exact = [await snmp.get(olt.agent, [SYS_NAME], timeout=SOON) for olt in agents]

    assert [answer.values for answer in answers + exact] == [[b"OLT-CENTRAL-01"]] * 6
    assert [answer.values for answer in bulk] == [[Missing.END_OF_MIB_VIEW]] * 3
    await snmp.close()
    for olt in agents:
        olt.stop()
        with pytest.raises(NoAnswer, match="stopped"):
            await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)
