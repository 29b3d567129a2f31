"""Names and sockets of the SNMP adapters, without any agent."""

import asyncio
import socket

import pytest

from facho.adapters.snmp.udp import DATAGRAMS_A_TURN, Names, Peer, Sockets
from facho.engine.errors import NoAnswer

ADDRESS = ("127.0.0.1", 161)


class Resolver:
    """Stands in for the loop's resolver: answers from a table, and counts."""

    def __init__(self, monkeypatch) -> None:
        self.asked = 0
        self.hang = False
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", self.find)

    async def find(self, host, port, **_):
        self.asked += 1
        if self.hang:
            await asyncio.Event().wait()
        if host != "olt-central-01.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]


@pytest.fixture
async def resolver(monkeypatch):
    return Resolver(monkeypatch)


@pytest.mark.parametrize(
    ("host", "family"),
    [pytest.param("127.0.0.1", socket.AF_INET, id="IPv4"), pytest.param("::1", socket.AF_INET6, id="IPv6")],
)
async def test_a_numeric_address_is_not_looked_up(resolver, host, family):
    peer = await Names().find(host, 161, timeout=5)

    assert (peer.family, peer.address) == (family, (host, 161))
    assert resolver.asked == 0


async def test_a_name_is_looked_up_once_and_again_when_it_is_old(resolver):
    names = Names()
    forgetful = Names(ttl=0)

    for _ in range(3):
        peer = await names.find("olt-central-01.example", 161, timeout=5)
        await forgetful.find("olt-central-01.example", 161, timeout=5)

    assert peer.address == ADDRESS
    assert resolver.asked == 1 + 3


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("olt-sur-03.example", id="nobody knows it"),
        pytest.param("a" * 64 + ".example", id="a label too long for any name"),
        pytest.param("", id="no name at all"),
    ],
)
async def test_a_name_that_nobody_knows_is_no_answer_and_reports_it(resolver, name):
    with pytest.raises(NoAnswer, match=f"the name {name} could not be resolved"):
        await Names().find(name, 161, timeout=5)


async def test_a_name_server_that_does_not_answer_is_no_answer(resolver):
    resolver.hang = True

    with pytest.raises(NoAnswer, match=r"could not be resolved within 0\.01 s"):
        await Names().find("olt-central-01.example", 161, timeout=0.01)


class FakeSocket:
    """A socket whose next results are written down."""

    def __init__(self, *results) -> None:
        self.results = list(results)

    def recvfrom(self, _):
        result = self.results.pop(0) if self.results else BlockingIOError()
        if isinstance(result, Exception):
            raise result
        return result

    def sendto(self, data, address):
        raise self.results.pop(0)


def test_an_icmp_error_does_not_keep_later_answers_from_being_read():
    received = []
    sockets = Sockets(lambda data, sender: received.append((data, sender)) is None)
    refused = ConnectionRefusedError(111, "Connection refused")

    sockets._drain(FakeSocket((b"first", ADDRESS), refused, refused, (b"second", ADDRESS)))

    assert received == [(b"first", ADDRESS), (b"second", ADDRESS)]
    assert sockets.errors == {"ConnectionRefusedError": 2}


def test_a_flood_leaves_the_loop_its_turn():
    received = []
    sockets = Sockets(lambda data, sender: received.append(data) is None)
    flood = FakeSocket(*[(b"", ADDRESS)] * (DATAGRAMS_A_TURN + 1))

    sockets._drain(flood)
    first_turn = len(received)
    sockets._drain(flood)

    assert (first_turn, len(received)) == (DATAGRAMS_A_TURN, DATAGRAMS_A_TURN + 1)


def test_the_scope_of_an_ipv6_address_is_no_part_of_what_answers_are_matched_by():
    peer = Peer(socket.AF_INET6, ("fe80::1%eth0", 161, 0, 2))

    assert peer.address == ("fe80::1%eth0", 161)


async def test_a_full_send_buffer_loses_the_datagram_and_counts_it():
    sockets = Sockets(lambda data, sender: True)
    loop = sockets.loop = asyncio.get_running_loop()
    sockets._open[socket.AF_INET] = FakeSocket(BlockingIOError())

    sockets.send(b"x", Peer(socket.AF_INET, ADDRESS), loop)

    assert sockets.errors == {"send buffer full": 1}
