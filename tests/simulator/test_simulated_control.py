"""Commands to a running fleet, and their answers."""

import asyncio
import json
import sys

import pytest

from facho.engine.brand import Position
from facho.engine.oid import parse
from facho.simulator.control import Control
from facho.simulator.faults import FAULT_OPTIONS, WELL, Disorder, Faults, Spoiling, faults_from, to_options
from facho.simulator.fleet import OltSpec, SimulatedFleet
from facho.simulator.life import Down, observe
from facho.simulator.pdulog import Pdu

CENTRAL, NORTE, SUR = "OLT-CENTRAL-01", "OLT-NORTE-02", "OLT-SUR-03"
PATIENCE = 20.0


@pytest.fixture
async def fleet():
    specs = [
        OltSpec(CENTRAL, "huawei", onus=20, seed=11),
        OltSpec(NORTE, "zte_c300", onus=20, seed=12, faults=Faults(latency=0.5)),
        OltSpec(SUR, "huawei", faults=Faults(mute=True)),
    ]
    async with SimulatedFleet(specs) as fleet:
        yield fleet


@pytest.fixture
def control(fleet, now):
    return Control(fleet, lambda: now)


def faults_of(fleet):
    return [olt.agent.faults for olt in fleet]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(f"{NORTE} loss=0.05", [WELL, Faults(latency=0.5, loss=0.05), Faults(mute=True)], id="one more"),
        pytest.param(f"{NORTE} latency=none", [WELL, WELL, Faults(mute=True)], id="one less"),
        pytest.param(f"{NORTE} well loss=5%", [WELL, Faults(loss=0.05), Faults(mute=True)], id="others instead"),
        pytest.param("* well", [WELL, WELL, WELL], id="everybody is well"),
        pytest.param(f"{CENTRAL} mute", [Faults(mute=True), Faults(latency=0.5), Faults(mute=True)], id="a flag"),
        pytest.param(f"{SUR} mute=no slow-by=2", [WELL, Faults(latency=0.5), Faults(slow_by=2)], id="a flag undone"),
    ],
)
async def test_a_line_changes_faults(control, fleet, line, expected):
    answer = control.run(line)

    assert answer["ok"]
    assert faults_of(fleet) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("", "name of an OLT", id="nothing"),
        pytest.param(CENTRAL, "name of an OLT", id="only a name"),
        pytest.param("OLT-LUNA-99 well", f"no OLT 'OLT-LUNA-99'; there are {CENTRAL}, ", id="an unknown OLT"),
        pytest.param("* lose=1", "no fault 'lose'; there are mute, ", id="an unknown fault"),
        pytest.param("* loss=2", "share between 0 and 1", id="more than all"),
        pytest.param("* loss=much", "loss=much: write a share", id="a share in words"),
        pytest.param("* latency=inf", "latency=inf: write a number of seconds", id="for ever"),
        pytest.param("* loss=0.1 disorder=chaos", "choose one of loop, repeat, swap", id="an unknown disorder"),
        pytest.param("* queue_limit=-1", "write a whole number", id="a negative limit"),
        pytest.param("* gen_err_at=7", "write slot/port/onu", id="half a place"),
        pytest.param("* mute=perhaps", "write yes or no", id="neither yes nor no"),
        pytest.param("* log all", "takes no arguments", id="too many words"),
        pytest.param(f"{CENTRAL} move 1/3/7", "write move ONU PORT", id="too few words"),
        pytest.param(f"{CENTRAL} go 1/99/7", "no ONU 1/99/7", id="an unknown ONU"),
        pytest.param(f"{CENTRAL} come 1/2/3", "slot/port", id="an ONU for a port"),
        pytest.param(f"{CENTRAL} down 1/0/7 boredom", "one of los, dying_gasp, ", id="an unknown cause"),
    ],
)
async def test_a_line_that_cannot_be_done_is_explained_and_nothing_is_done(control, fleet, line, reason):
    before = faults_of(fleet)

    answer = control.run(line)

    assert not answer["ok"]
    assert reason in answer["error"]
    assert faults_of(fleet) == before


async def test_a_line_for_all_is_done_for_all_or_for_none(control, fleet):
    port = fleet[CENTRAL].device.plant.onus[0].position
    onus = [len(olt.device.plant.onus) for olt in fleet]

    # The third one has no such ONU.
    answer = control.run(f"* go {port.slot}/{port.port}/{port.onu}")

    assert not answer["ok"]
    assert [len(olt.device.plant.onus) for olt in fleet] == onus


async def test_faults_and_log_are_told(control, fleet, now):
    fleet.log.add(Pdu(now, now, NORTE, 40000, "get", 1, 1))

    told = control.run(f"{NORTE} faults")
    logged = control.run(f"{NORTE} log")
    control.run("* forget")

    assert told == {"ok": True, "olts": {NORTE: {"faults": {"latency": "0.5"}}}}
    assert logged["olts"][NORTE]["kinds"] == {"get": 1}
    assert fleet.log.count() == 0


async def test_onus_are_changed_by_lines(control, fleet, now):
    plant = fleet[CENTRAL].device.plant
    onu = next(onu for onu in plant.onus if observe(onu, now).up)
    port = next(port for port in plant.ports if port.port != onu.position.port)
    place = f"{onu.position.slot}/{onu.position.port}/{onu.position.onu}"

    answers = [
        control.run(f"{CENTRAL} {command}")
        for command in (
            f"come {port.slot}/{port.port} 2",
            f"fade {place} -1.5",
            f"down {place} dying_gasp",
            f"up {place}",
            "fade * -0.5",
            f"down {place}",
            f"move {place} {port.slot}/{port.port}",
        )
    ]

    assert [answer["olts"][CENTRAL]["onus"] for answer in answers] == [22] * 7
    moved = next(each for each in fleet[CENTRAL].device.plant.onus if each.serial == onu.serial)
    assert (moved.position.port, moved.fade_per_hour, moved.cause) == (port.port, -0.5, Down.LOS)
    gone = control.run(f"{CENTRAL} go {moved.position.slot}/{moved.position.port}/{moved.position.onu}")
    assert gone["olts"][CENTRAL] == {"onus": 21}


EVERYTHING = Faults(
    mute=True,
    latency=0.1,
    jitter=0.2,
    loss=0.3,
    per_pdu=0.4,
    per_varbind=0.5,
    per_optical_row=0.6,
    slow_by=2.0,
    crowding=0.25,
    queue_limit=7,
    too_big_above=8,
    bulk_rows=9,
    bulk_bytes=500,
    gen_err_at=Position(0, 1, 3, 7),
    silent_at=Position(0, 1, 3, 8),
    only_column=parse("1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4"),
    dies_at_row=1200,
    disorder=Disorder.SWAP,
    disorder_at_row=3,
    spoiled=0.1,
    spoiling=Spoiling.HALF,
    zero_repetitions_hang=45.0,
    invented=100,
    name_bytes=10_000,
    hostile_names=True,
)


def test_every_fault_can_be_written_and_read_again():
    options = to_options(EVERYTHING)

    assert list(options) == [option.name for option in FAULT_OPTIONS]
    assert faults_from(options) == EVERYTHING
    assert to_options(WELL) == {}
    assert all(option.help for option in FAULT_OPTIONS)
    assert [option.name for option in FAULT_OPTIONS if option.is_flag] == ["mute", "hostile_names"]


async def test_a_process_takes_lines_until_they_end():
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *["-m", "facho.simulator", "--olts", "3", "--onus", "40"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )

    lines = f"{SUR} well loss=0.05\n\n* nonsense\n{SUR} faults".encode()
    output, _ = await asyncio.wait_for(process.communicate(lines), PATIENCE)

    fleet, changed, refused, told = (json.loads(line) for line in output.splitlines())
    assert [olt["name"] for olt in fleet] == [CENTRAL, NORTE, SUR]
    assert changed == told == {"ok": True, "olts": {SUR: {"faults": {"loss": "0.05"}}}}
    assert not refused["ok"]
    assert process.returncode == 0
