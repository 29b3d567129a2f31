"""What only v3 has: nobody on the way can alter, forge or repeat an answer, and an agent can refuse us."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
import uvloop
from snmp.security.usm.parameters import SignedUsmParameters
from snmp.smi import OctetString
from snmp.v3.message import SNMPv3WireMessage
from snmp_agents import ENGINE_ID, LOOPBACK, CommunityAgent, UsmAgent, mute, table

from facho.adapters.snmp.usm import LATE, UsmSession, UsmSnmp
from facho.adapters.snmp.usm_keys import Keys, work_out
from facho.engine import oid as oids
from facho.engine.errors import BadAnswer, NoAnswer, Refused
from facho.engine.snmp import Agent, Community, Tag, User, Version

pytestmark = pytest.mark.usefixtures("hurried")

SYS_NAME = oids.parse("1.3.6.1.2.1.1.5.0")
NAMED = table((SYS_NAME, Tag.OCTET_STRING, b"OLT-CENTRAL-01"))
SIGNER = User("signer", "SHA256", "s3cret-signature")
OPERATOR = User("operator", "SHA1", "s3cret-signature", "AES128", "s3cret-cipher")
SOON = 10.0
# What is refused takes this long, by a clock that waits for whatever is under way.
BRIEF = 0.6

Alter = Callable[[bytes], bytes]


class Intruder(asyncio.DatagramProtocol):
    """Stands between us and an agent: sees every datagram, and may alter what the agent answers.

    Discoveries pass unaltered: they are not signed, and an agent's engine id is known after the first.
    """

    def __init__(self, agent_port: int) -> None:
        self.agent_address = (LOOPBACK, agent_port)
        self.alter: Alter | None = None
        self.requests: list[bytes] = []
        self.answers: list[bytes] = []

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(lambda: self, (LOOPBACK, 0))

    @property
    def port(self) -> int:
        return self.transport.get_extra_info("sockname")[1]

    def datagram_received(self, data, sender):
        if sender != self.agent_address:
            self.manager = sender
            self.requests.append(data)
            self.transport.sendto(data, self.agent_address)
            return
        if parameters_of(data).userName:
            self.answers.append(data)
            data = self.alter(data) if self.alter else data
        self.transport.sendto(data, self.manager)


def parameters_of(data: bytes) -> SignedUsmParameters:
    return SignedUsmParameters.decodeExact(SNMPv3WireMessage.decodeExact(data).securityParameters.original)


def flip_the_last_byte(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def zero_the_signature(data: bytes) -> bytes:
    signature = parameters_of(data).signature
    return signature.replace(bytes(len(signature)))


def change_the_engine_id(data: bytes) -> bytes:
    return data.replace(ENGINE_ID, ENGINE_ID[:-1] + b"\x02")


def move_the_time(data: bytes) -> bytes:
    """Set the boots of the agent from 7 to 8: as if the message came from a later life of it."""
    return data.replace(ENGINE_ID + b"\x02\x01\x07", ENGINE_ID + b"\x02\x01\x08")


@pytest.fixture
async def snmp():
    adapter = UsmSnmp()
    yield adapter
    assert adapter.in_flight == 0
    await adapter.close()


@pytest.fixture
async def start():
    started = []

    async def start(user, script=NAMED, **options):
        started.append(UsmAgent(script, user, **options))
        await started[-1].start()
        return started[-1]

    yield start
    for agent in started:
        agent.stop()


@pytest.fixture(params=[SIGNER, OPERATOR], ids=["authNoPriv", "authPriv"])
async def intruder(request, start):
    olt = await start(request.param)
    intruder = Intruder(olt.port)
    await intruder.start()
    intruder.agent = replace(olt.agent, port=intruder.port)
    yield intruder
    intruder.transport.close()


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        pytest.param(flip_the_last_byte, "signature is wrong", id="a tampered answer"),
        pytest.param(zero_the_signature, "signature is wrong", id="a zeroed HMAC"),
        pytest.param(change_the_engine_id, "signature is wrong", id="a wrong engine id"),
        pytest.param(move_the_time, "signature is wrong", id="another time"),
        pytest.param(lambda data: data[:-4], "cannot be read", id="an answer that is cut off"),
    ],
)
async def test_what_was_altered_on_the_way_is_refused(snmp, intruder, alter, reason):
    await snmp.get(intruder.agent, [SYS_NAME], timeout=SOON)
    intruder.alter = alter

    with pytest.raises(BadAnswer, match=reason):
        await snmp.get(intruder.agent, [SYS_NAME], timeout=BRIEF)

    assert len(intruder.answers) == 2
    assert alter(intruder.answers[1]) != intruder.answers[1]


async def test_an_alteration_harms_no_later_request(snmp, intruder):
    intruder.alter = flip_the_last_byte
    with pytest.raises(BadAnswer):
        await snmp.get(intruder.agent, [SYS_NAME], timeout=BRIEF)

    intruder.alter = None
    answer = await snmp.get(intruder.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"OLT-CENTRAL-01"]


@pytest.mark.slow
async def test_no_flipped_bit_passes_for_an_answer_or_keeps_the_true_one_out(snmp, intruder, caplog):
    def flip_every_bit_first(data):
        for at in range(len(data) * 8):
            flipped = bytearray(data)
            flipped[at // 8] ^= 1 << at % 8
            snmp._receive(bytes(flipped), (LOOPBACK, intruder.port))
        return data

    intruder.alter = flip_every_bit_first

    answer = await snmp.get(intruder.agent, [SYS_NAME], timeout=60)

    assert answer.values == [b"OLT-CENTRAL-01"]
    assert snmp.dropped.total() == len(intruder.answers[0]) * 8
    assert caplog.text == ""


async def test_a_fault_of_the_library_costs_one_datagram_and_is_logged(snmp, start, monkeypatch, caplog):
    hear = UsmSession.hear
    faults = [ZeroDivisionError("s0mething")]

    def stumble_once(session, data):
        if faults:
            raise faults.pop()
        return hear(session, data)

    olt = await start(OPERATOR)
    monkeypatch.setattr(UsmSession, "hear", stumble_once)

    with pytest.raises(BadAnswer, match="cannot be read"):
        await snmp.get(olt.agent, [SYS_NAME], timeout=BRIEF)
    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"OLT-CENTRAL-01"]
    assert "could not be handled" in caplog.text


async def test_a_replayed_answer_is_refused(snmp, intruder):
    first = await snmp.get(intruder.agent, [SYS_NAME], timeout=SOON)
    intruder.alter = lambda _: intruder.answers[0]

    with pytest.raises(NoAnswer):
        await snmp.get(intruder.agent, [SYS_NAME], timeout=BRIEF)

    assert first.values == [b"OLT-CENTRAL-01"]
    assert snmp.dropped == {LATE: 1}


async def test_a_replayed_answer_with_the_id_of_the_present_request_is_refused(snmp, intruder):
    def replay(present):
        old = SNMPv3WireMessage.decodeExact(intruder.answers[0])
        header = old.header.withMessageID(SNMPv3WireMessage.decodeExact(present).header.msgID)
        parameters = OctetString(bytes(old.securityParameters.data))
        return SNMPv3WireMessage(header, old.scopedPduData, parameters).encode()

    await snmp.get(intruder.agent, [SYS_NAME], timeout=SOON)
    intruder.alter = replay

    with pytest.raises(BadAnswer, match="signature is wrong"):
        await snmp.get(intruder.agent, [SYS_NAME], timeout=BRIEF)


@pytest.mark.parametrize("user", [SIGNER, OPERATOR], ids=["authNoPriv", "authPriv"])
async def test_an_unsigned_answer_to_a_signed_request_is_refused(snmp, start, user):
    olt = await start(user)
    olt.unsigned = True

    with pytest.raises(BadAnswer, match="does not belong to the request"):
        await snmp.get(olt.agent, [SYS_NAME], timeout=BRIEF)

    assert len(olt.asked) == 1


async def test_what_is_asked_with_privacy_cannot_be_read_on_the_way(snmp, start):
    olt = await start(OPERATOR)

    await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert olt.asked[-1].oids == (SYS_NAME,)
    assert all(bytes(SYS_NAME) not in data for data in olt.received)


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        pytest.param(replace(OPERATOR, name="stranger"), "does not know user stranger", id="an unknown user"),
        pytest.param(
            replace(OPERATOR, auth_key="an0ther-s3cret"), "authentication of user operator", id="another password"
        ),
        pytest.param(replace(OPERATOR, auth="SHA256"), "authentication of user operator", id="another hash"),
        pytest.param(replace(OPERATOR, priv_key="an0ther-s3cret"), "cannot decrypt", id="another cipher key"),
    ],
)
async def test_an_agent_that_does_not_accept_us_is_refused_and_tells_why(snmp, start, user, sentence):
    olt = await start(OPERATOR)

    with pytest.raises(Refused, match=sentence) as caught:
        await snmp.get(replace(olt.agent, credentials=user), [SYS_NAME], timeout=BRIEF)

    assert "s3cret" not in f"{caught.value} {caught.value.__cause__!r}"
    assert not caught.value.is_temporary


async def test_more_security_than_the_agent_has_for_the_user_is_refused(snmp, start):
    olt = await start(SIGNER)
    user = replace(SIGNER, priv="AES128", priv_key="s3cret-cipher")

    with pytest.raises(Refused, match="security level"):
        await snmp.get(replace(olt.agent, credentials=user), [SYS_NAME], timeout=BRIEF)


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        pytest.param(User(""), "1 to 32 octets", id="no name"),
        pytest.param(User("x" * 33), "1 to 32 octets", id="a name too long"),
        pytest.param(User("operator", "MD5", "s3cret-signature"), "MD5 is not", id="a hash we do not speak"),
        pytest.param(replace(OPERATOR, priv="DES"), "DES is not", id="a cipher we do not speak"),
        pytest.param(
            User("operator", priv="AES128", priv_key="s3cret-cipher"), "requires authentication", id="privacy alone"
        ),
        pytest.param(User("operator", "SHA1", "s3cret"), "fewer than 8", id="a password too short"),
        pytest.param(replace(OPERATOR, priv_key=""), "fewer than 8", id="no privacy password"),
    ],
)
async def test_settings_that_cannot_work_are_refused_with_a_sentence(snmp, user, sentence):
    with pytest.raises(Refused, match=sentence) as caught:
        await snmp.get(Agent(LOOPBACK, 161, Version.V3, user), [SYS_NAME], timeout=SOON)

    assert "s3cret" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("auth", ["SHA1", "SHA224", "SHA256", "SHA384", "SHA512"])
@pytest.mark.parametrize("priv", ["", "AES128", "AES192", "AES256", "AES192C", "AES256C"])
async def test_every_pair_of_protocols_is_understood(snmp, start, auth, priv):
    olt = await start(User("operator", auth, "s3cret-signature", priv, "s3cret-cipher"))

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"OLT-CENTRAL-01"]


async def test_the_first_request_costs_a_discovery_and_later_ones_do_not(snmp, start):
    olt = await start(OPERATOR)

    for _ in range(3):
        await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert len(olt.received) == 1 + 3


async def test_an_agent_is_told_that_it_may_fill_a_datagram(snmp, start):
    olt = await start(OPERATOR)

    await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert olt.accepted == 65507


async def test_an_agent_that_was_restarted_is_understood_again(snmp, start):
    olt = await start(OPERATOR)
    await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)
    olt.usm.engineTime.snmpEngineBoots += 1

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"OLT-CENTRAL-01"]


async def test_a_new_device_at_an_old_address_is_understood(snmp, start):
    olt = await start(OPERATOR)
    await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)
    olt.usm.engineID = ENGINE_ID + b"\x99"

    answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)

    assert answer.values == [b"OLT-CENTRAL-01"]


async def test_one_agent_can_be_asked_as_several_users_at_once(snmp, start):
    olt = await start(OPERATOR)
    olt.usm.addUser(b"signer", "agent", **work_out(SIGNER).settings)
    olt.hold = 2
    other = replace(olt.agent, credentials=SIGNER)

    # The scripted agent answers as one user only; what matters is that each caller hears of its own.
    answer, refused = await asyncio.gather(
        snmp.get(olt.agent, [SYS_NAME], timeout=60),
        # Long enough to derive its keys and to send its request on a busy machine: the agent holds its answers until it
        # has both requests, and this one is refused at the end of its time.
        snmp.get(other, [SYS_NAME], timeout=5.0),
        return_exceptions=True,
    )

    assert answer.values == [b"OLT-CENTRAL-01"]
    assert isinstance(refused, BadAnswer)


async def test_keys_are_worked_out_once_and_not_on_the_loop(monkeypatch):
    threads = []

    def work(user):
        threads.append(threading.current_thread().name)
        return work_out(user)

    monkeypatch.setattr("facho.adapters.snmp.usm_keys.work_out", work)
    keys = Keys()

    first, second = await asyncio.gather(keys.of(OPERATOR), keys.of(OPERATOR))
    third = await keys.of(OPERATOR)

    assert first is second is third
    assert threads == ["snmp-keys_0"]
    keys.close()


async def test_who_is_cancelled_does_not_take_the_keys_of_others_away():
    keys = Keys()
    first, second = (asyncio.create_task(keys.of(OPERATOR)) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()

    assert (await second).name == "operator"
    assert first.cancelled()
    keys.close()


async def test_keys_show_in_no_repr():
    keys = work_out(OPERATOR)

    assert repr(keys) == "UserKeys(name='operator')"
    assert repr(keys.settings["authSecret"]) == "ReadyKey()"
    assert repr(keys.settings["authProtocol"](b"s3cret")) == "HmacSha()"


async def test_an_agent_of_v2c_is_not_asked_as_a_user(snmp):
    with pytest.raises(ValueError, match="not an agent of SNMPv3"):
        await snmp.get(Agent(LOOPBACK, 161, Version.V2C, Community("public")), [SYS_NAME], timeout=SOON)


async def test_an_agent_that_speaks_only_v2c_is_an_error_of_ours(snmp):
    olt = CommunityAgent(mute)
    await olt.start()
    olt.decode = lambda data, sender: olt.transport.sendto(b"\x30\x05\x02\x01\x01\x04\x00", sender)

    with pytest.raises(BadAnswer, match="cannot be read"):
        await snmp.get(Agent(LOOPBACK, olt.port, Version.V3, OPERATOR), [SYS_NAME], timeout=BRIEF)

    olt.stop()


def test_uvloop_serves_as_well():
    async def ask():
        snmp = UsmSnmp()
        olt = UsmAgent(NAMED, OPERATOR)
        await olt.start()
        answer = await snmp.get(olt.agent, [SYS_NAME], timeout=SOON)
        await snmp.close()
        olt.stop()
        return answer

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask()).values == [b"OLT-CENTRAL-01"]
