"""A recording is served as the device that it was made of answered: in order, or in the file's own order."""

import pytest

from facho.adapters.snmp.snmprec import BadRecording, parse_records
from facho.engine.oid import parse, text
from facho.engine.snmp import Missing, Version
from facho.simulator.agent import SimulatedAgent
from facho.simulator.device import Device
from facho.simulator.faults import Faults
from facho.simulator.fleet import OltSpec, build
from facho.simulator.plant import NOTHING
from facho.simulator.recorded import RecordedMib

# As on a C320: a table comes too early, then the walk goes back, and later meets the table again.
LINES = [
    "1.3.6.1.2.1.1.5.0|4|OLT-NORTE-02",
    "1.3.6.1.4.1.1.1|2|11",
    "1.3.6.1.4.1.9.1|2|91",
    "1.3.6.1.4.1.9.2|70|92",
    "1.3.6.1.4.1.5.10|2|510",
    "1.3.6.1.4.1.5.2|2|52",
    "1.3.6.1.4.1.9.1|2|91",
    "1.3.6.1.4.1.9.2|70|92",
    "1.3.6.1.4.1.9.3|2|93",
]
ENTERPRISES = "1.3.6.1.4.1"
IN_FILE = ["1.1", "9.1", "9.2", "5.10", "5.2", "9.1", "9.2", "9.3"]
IN_ORDER = ["1.1", "5.2", "5.10", "9.1", "9.2", "9.3"]


def make_agent(*, keep_order, faults=None):
    mib = RecordedMib(parse_records(LINES), keep_order=keep_order)
    return SimulatedAgent(Device("OLT-NORTE-02", "zte_c300", NOTHING, mib), faults=faults or Faults())


def steps(ask, agent, kind, repetitions=0):
    """Return the names that a walk meets until the end of everything, or until it is clear that there is none."""
    names, last = [], parse(ENTERPRISES)
    while len(names) < 30:
        for name, value in ask(agent, kind, last, repetitions=repetitions):
            if value is Missing.END_OF_MIB_VIEW:
                return names
            names.append(text(name).removeprefix(ENTERPRISES + "."))
        last = parse(f"{ENTERPRISES}.{names[-1]}")
    return names


@pytest.mark.parametrize(("kind", "repetitions"), [("GET_NEXT", 0), ("GET_BULK", 1), ("GET_BULK", 3), ("GET_BULK", 25)])
@pytest.mark.parametrize(
    ("keep_order", "expected"),
    [pytest.param(False, IN_ORDER, id="in order"), pytest.param(True, IN_FILE, id="as in the file")],
)
def test_a_walk_meets_everything_once_in_its_order(ask, kind, repetitions, keep_order, expected):
    agent = make_agent(keep_order=keep_order)

    first, again = (steps(ask, agent, kind, repetitions) for _ in range(2))

    assert first == again == expected


def test_a_request_that_is_sent_again_is_answered_in_the_same_way(ask):
    agent = make_agent(keep_order=True)

    answers = [ask(agent, "GET_NEXT", f"{ENTERPRISES}.5.2").oids for _ in range(3)]

    assert answers == [[parse(f"{ENTERPRISES}.9.1")]] * 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("1.3.6.1.2.1.1.5.0", b"OLT-NORTE-02", id="what was recorded"),
        pytest.param(f"{ENTERPRISES}.9.7", Missing.NO_SUCH_INSTANCE, id="a row that was not there"),
        pytest.param(f"{ENTERPRISES}.8.7", Missing.NO_SUCH_OBJECT, id="a column that was not there"),
    ],
)
@pytest.mark.parametrize("keep_order", [False, True])
def test_get_tells_a_recorded_value_from_each_kind_of_none(ask, name, value, keep_order):
    assert ask(make_agent(keep_order=keep_order), "GET", name).values == [value]


@pytest.mark.parametrize("keep_order", [False, True])
def test_what_lies_between_two_recorded_names_is_followed_by_the_larger_one(ask, keep_order):
    answer = ask(make_agent(keep_order=keep_order), "GET_NEXT", f"{ENTERPRISES}.5.3")

    assert answer.oids == [parse(f"{ENTERPRISES}.5.10")]


def test_version_1_steps_over_a_recorded_counter_of_64_bits(ask):
    answer = ask(make_agent(keep_order=False), "GET_NEXT", f"{ENTERPRISES}.9.1", version=Version.V1)

    assert answer.oids == [parse(f"{ENTERPRISES}.9.3")]


def test_an_agent_of_a_recording_can_die_too(ask):
    agent = make_agent(keep_order=False, faults=Faults(dies_at_row=4))

    assert len(ask(agent, "GET_BULK", ENTERPRISES, repetitions=25)) == 3
    assert ask(agent, "GET_NEXT", f"{ENTERPRISES}.5.10") is None


def test_a_file_is_served_in_place_of_a_synthetic_olt(ask, tmp_path):
    path = tmp_path / "norte.snmprec"
    path.write_text("\n".join(LINES))

    device = build(OltSpec("OLT-NORTE-02", "zte_c300", recording=path, keep_order=True))

    assert steps(ask, SimulatedAgent(device), "GET_NEXT") == IN_FILE


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "norte.snmprec"
    path.write_text("1.3.6.1|4|well\nnonsense\n")

    with pytest.raises(BadRecording, match=r"norte.snmprec, line 2"):
        build(OltSpec("OLT-NORTE-02", recording=path))


def test_the_onus_of_a_recording_cannot_be_changed():
    device = Device("OLT-NORTE-02", "zte_c300", NOTHING, RecordedMib([]))

    with pytest.raises(ValueError, match="recording"):
        device.replanted(NOTHING)
