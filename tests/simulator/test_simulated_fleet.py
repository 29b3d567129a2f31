"""A fleet of simulated OLTs listens on loopback, in this process or in one of its own."""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import replace

import pytest

from facho.adapters.snmp.codec import PduType, decode_answer, prepare
from facho.engine.oid import parse
from facho.engine.snmp import Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.endpoint import Endpoint
from facho.simulator.faults import Faults
from facho.simulator.fleet import OltSpec, SimulatedFleet, demo_fleet
from facho.simulator.pdulog import PduLog, read_log
from facho.simulator.request_handler import RequestHandler

SYS_NAME = parse("1.3.6.1.2.1.1.5.0")
PATIENCE = 20.0


class Asker(asyncio.DatagramProtocol):
    """A socket that keeps what comes."""

    def __init__(self):
        self.answers = asyncio.Queue()

    def datagram_received(self, data, addr):
        self.answers.put_nowait(decode_answer(data)[3])


async def ask_name(host, port, community="public"):
    """Ask an OLT for its name over a real socket, and return the answer as text."""
    loop = asyncio.get_running_loop()
    transport, asker = await loop.create_datagram_endpoint(Asker, remote_addr=(host, port))
    try:
        transport.sendto(prepare(Version.V2C, community.encode(), PduType.GET, [SYS_NAME]).datagram(0x01020304))
        answer = await asyncio.wait_for(asker.answers.get(), PATIENCE)
    finally:
        transport.close()
    return answer.values[0].decode()


async def test_each_olt_of_a_fleet_answers_on_its_own_port():
    specs = [OltSpec("OLT-CENTRAL-01", "huawei"), OltSpec("OLT-NORTE-02", "zte_c300", community="secreta")]

    async with SimulatedFleet(specs) as fleet:
        names = [await ask_name(olt.host, olt.port, olt.spec.community) for olt in fleet]

    assert names == ["OLT-CENTRAL-01", "OLT-NORTE-02"]
    assert fleet.log.count("OLT-CENTRAL-01") == fleet.log.count("OLT-NORTE-02") == 1


async def test_a_late_answer_waits_in_the_loop_and_comes():
    spec = OltSpec("OLT-NORTE-02", "zte_c300", faults=Faults(latency=0.001))

    async with SimulatedFleet([spec]) as fleet:
        name = await ask_name(fleet["OLT-NORTE-02"].host, fleet["OLT-NORTE-02"].port)

    pdu = fleet.log.pdus()[0]
    assert name == "OLT-NORTE-02"
    assert pdu.answered - pdu.arrived == pytest.approx(0.001, abs=1e-6)


async def test_a_mute_olt_can_be_made_to_speak():
    async with SimulatedFleet([OltSpec("OLT-SUR-03", faults=Faults(mute=True))]) as fleet:
        olt = fleet["OLT-SUR-03"]
        olt.change(replace(olt.agent.faults, mute=False))

        assert await ask_name(olt.host, olt.port) == "OLT-SUR-03"


async def test_a_fleet_that_stops_gives_its_ports_back():
    async with SimulatedFleet([OltSpec("OLT-CENTRAL-01")]) as fleet:
        port = fleet["OLT-CENTRAL-01"].port

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
    assert len(fleet) == 0


class Outbox:
    """A transport that only keeps what is sent."""

    def __init__(self):
        self.sent = []

    def sendto(self, data, addr):
        self.sent.append(addr)


@pytest.mark.parametrize(
    ("is_closed", "sent"),
    [pytest.param(False, [("127.0.0.1", 40000)], id="open"), pytest.param(True, [], id="closed before it was due")],
)
async def test_a_delayed_answer_leaves_only_if_the_socket_is_still_open(central, is_closed, sent):
    outbox, due = Outbox(), asyncio.Event()
    endpoint = Endpoint(RequestHandler(SimulatedAgent(central, faults=Faults(latency=0.001)), PduLog()))
    endpoint.connection_made(outbox)

    endpoint.datagram_received(
        prepare(Version.V2C, b"public", PduType.GET, [SYS_NAME]).datagram(0x01020304), ("127.0.0.1", 40000)
    )
    if is_closed:
        endpoint.connection_lost(None)
    asyncio.get_running_loop().call_later(0.002, due.set)
    await due.wait()

    assert outbox.sent == sent


async def test_a_preferred_port_is_taken_if_it_is_free_and_another_one_if_not():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]

        async with SimulatedFleet([OltSpec("OLT-CENTRAL-01", port=taken)]) as fleet:
            elsewhere = fleet["OLT-CENTRAL-01"].port
    async with SimulatedFleet([OltSpec("OLT-CENTRAL-01", port=taken)]) as fleet:
        again = fleet["OLT-CENTRAL-01"].port

    assert elsewhere not in (0, taken)
    assert again == taken


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
async def test_nothing_but_loopback_is_listened_on(host):
    with pytest.raises(ValueError, match="loopback"):
        async with SimulatedFleet([OltSpec("OLT-CENTRAL-01")], host=host):
            pass


async def test_an_olt_that_cannot_start_takes_the_others_down_with_it():
    fleet = SimulatedFleet([OltSpec("OLT-CENTRAL-01"), OltSpec("OLT-NORTE-02", "acme")])

    with pytest.raises(ValueError, match="acme"):
        await fleet.__aenter__()

    assert len(fleet) == 0


def test_two_olts_of_one_name_are_refused():
    with pytest.raises(ValueError, match="name of its own"):
        SimulatedFleet([OltSpec("OLT-CENTRAL-01"), OltSpec("OLT-CENTRAL-01")])


def test_the_demonstration_has_three_huawei_two_zte_and_a_mute_one():
    specs = demo_fleet()

    assert [spec.name for spec in specs[:3]] == ["OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"]
    assert [spec.name for spec in specs if spec.faults.mute] == ["OLT-SUR-03"]
    assert sorted(spec.brand for spec in specs if not spec.faults.mute) == ["huawei"] * 3 + ["zte_c300"] * 2
    assert specs[1].faults.per_optical_row > 0
    assert sum(spec.dark_ports for spec in specs) == 1


@pytest.mark.parametrize(("olts", "onus"), [(1, 10), (2, 2000), (6, 2100), (50, 20000)])
def test_the_onus_of_a_demonstration_are_on_olts_that_answer_and_unevenly_shared(olts, onus):
    specs = demo_fleet(olts, onus)

    sizes = [spec.onus for spec in specs if not spec.faults.mute]
    assert len({spec.name for spec in specs}) == olts
    assert sum(sizes) == onus
    assert min(sizes) > 0
    assert len(sizes) == 1 or len(set(sizes)) > 1


async def start(*arguments):
    """Start the process form, and return it with what it says about its fleet."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "facho.simulator",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
    return process, json.loads(line) if line else None


async def test_a_process_serves_a_fleet_until_its_input_ends(tmp_path):
    log = tmp_path / "pdus.jsonl"
    process, olts = await start("--olts", "3", "--onus", "40", "--log", str(log))

    name = await ask_name(olts[0]["host"], olts[0]["port"], olts[0]["community"])
    # To communicate is to close its input when there is nothing more to say.
    output, errors = await asyncio.wait_for(process.communicate(b""), PATIENCE)

    assert name == "OLT-CENTRAL-01"
    assert [(olt["name"], olt["brand"]) for olt in olts[:2]] == [
        ("OLT-CENTRAL-01", "huawei"),
        ("OLT-NORTE-02", "zte_c300"),
    ]
    assert olts[0]["onus"] + olts[1]["onus"] == 40
    assert (process.returncode, output, errors) == (0, b"", b"")
    assert read_log(log).count("OLT-CENTRAL-01", "get") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_stops_cleanly_when_told_to(number):
    process, _ = await start("--olts", "1", "--onus", "10")

    process.send_signal(number)

    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    process.stdin.close()


async def test_a_process_dies_with_its_parent_even_if_that_is_killed():
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'facho.simulator', '--olts', '1', '--onus', '10'],"
        " stdin=subprocess.PIPE)\n"
        "child.wait()\n",
        stdout=asyncio.subprocess.PIPE,
    )
    line = await asyncio.wait_for(parent.stdout.readline(), PATIENCE)

    parent.kill()
    # The child holds the other end of this pipe: it ends when the child does.
    rest = await asyncio.wait_for(parent.stdout.read(), PATIENCE)
    await parent.wait()

    assert json.loads(line)[0]["name"] == "OLT-CENTRAL-01"
    assert rest == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--olts", "0"], id="no OLTs"),
        pytest.param(["--onus", "many"], id="not a number"),
        pytest.param(["--ports", "70000"], id="no such port"),
        pytest.param(["--olts", "1", "--onus", "99999"], id="more ONUs than an OLT holds"),
        pytest.param(["--log", os.devnull + "/x"], id="a log that cannot be written"),
    ],
)
async def test_a_process_says_what_is_wrong_with_its_options(arguments):
    process, olts = await start(*arguments)

    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert olts is None
    assert process.returncode == 2
    assert b"error: " in errors
