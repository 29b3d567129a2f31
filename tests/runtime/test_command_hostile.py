"""Commands against an OLT whose names hold escape sequences: nothing of them reaches the terminal."""

import json

import pytest

from command_stage import simulated, where
from facho.engine.escapes import CONTROL
from facho.simulator.faults import Faults
from facho.simulator.fleet import OltSpec
from facho.simulator.hostile import HOSTILE

NAME = f"OLT{HOSTILE}"


@pytest.fixture(scope="module")
def fleet():
    with simulated(OltSpec(NAME, onus=8, faults=Faults(hostile_names=True))) as fleet:
        yield fleet


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["for people", "for programs"])
@pytest.mark.parametrize("command", ["probe", "collect", "record"])
def test_no_control_character_is_printed(facho, fleet, command, options):
    if command == "record" and options:
        pytest.skip("a recording has one form")

    said = facho(command, where(fleet, NAME), *options)

    lines = (said.out + said.err).split("\n")
    assert said.status == 0
    assert [line for line in lines if CONTROL.search(line)] == []
    if options:
        assert "\x1b[2J" in json.dumps(json.loads(said.out), ensure_ascii=False).encode().decode("unicode_escape")


def test_the_simulator_does_not_print_them_either(capsys, fleet):
    from facho.runtime.commands.sim import _introduce

    _introduce(fleet[NAME])

    assert [line for line in capsys.readouterr().out.split("\n") if CONTROL.search(line)] == []
