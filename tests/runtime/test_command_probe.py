"""`facho probe` against simulated OLTs: a short report, and the same for programs."""

import pytest

from command_stage import simulated, where
from facho.engine.detect.detect import Identity
from facho.runtime.commands import probe
from facho.simulator.faults import Faults
from facho.simulator.fleet import MUTE, OltSpec

CENTRAL = "OLT-CENTRAL-01"


@pytest.fixture(scope="module")
def fleet():
    with simulated(OltSpec(CENTRAL, onus=40), OltSpec("OLT-SUR-03", faults=MUTE)) as fleet:
        yield fleet


def test_people_read_what_it_is_and_what_it_answers(facho, fleet):
    said = facho("probe", where(fleet, CENTRAL))

    assert said.status == 0
    facts = dict(line.split(maxsplit=1) for line in said.out.splitlines()[:3])
    assert facts["OLT"].startswith("OLT-CENTRAL-01 (127.0.0.1:")
    assert facts["brand"] == "Huawei MA5600T / MA5800 [huawei]"
    assert "ONUs       40" in said.out
    assert "(optics)" in said.out
    assert "Optical power" in said.out


def test_programs_get_tables_costs_and_intervals(facho, fleet):
    fleet.log.clear()

    report = facho("probe", where(fleet, CENTRAL), "--json").json

    assert (report["brand"], report["onus"], report["onus_are_more"]) == ("huawei", 40, False)
    assert [table["problem"] for table in report["tables"]] == [""] * len(report["tables"])
    assert report["seconds_an_optical_row"] > 0
    assert {job["name"] for job in report["allowed"]} >= {"Discovery", "State", "Optical power"}
    assert report["stats"]["pdus"] + report["olt"]["identify_pdus"] == fleet.log.count(CENTRAL)
    assert fleet.log.peak_in_flight(CENTRAL) == 1


def test_a_slow_olt_is_not_to_be_asked_every_minute(facho):
    slow = Faults(per_optical_row=0.05)
    with simulated(OltSpec(CENTRAL, onus=2000, faults=slow)) as fleet:
        report = facho("probe", where(fleet, CENTRAL), "--json").json

    (optics,) = [job for job in report["allowed"] if job["name"] == "Optical power"]
    assert report["onus"] == 2000
    assert report["seconds_an_optical_row"] >= 0.04
    assert optics["interval"] >= 300


def test_a_table_without_an_answer_is_partial(facho):
    silent = Faults(too_big_above=0)
    with simulated(OltSpec(CENTRAL, onus=40)) as fleet:
        fleet[CENTRAL].change(silent)
        said = facho("probe", where(fleet, CENTRAL), "--brand=huawei")

    assert said.status == 3
    assert "the agent answered tooBig" in said.out


@pytest.mark.parametrize("words", [[], ["--brand=huawei"]], ids=["any brand", "a named brand"])
def test_an_olt_that_is_mute_is_unreachable(facho, fleet, words):
    said = facho("probe", where(fleet, "OLT-SUR-03"), "--timeout=0.2", *words)

    assert said.status == 4
    assert "gave no usable answer" in said.err


def test_an_agent_that_is_no_olt_is_said_to_be_none(facho, tmp_path):
    linux = tmp_path / "linux.snmprec"
    linux.write_text("1.3.6.1.2.1.1.1.0|4|Linux box\n1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.8072.3.2.10\n")
    with simulated(OltSpec("OLT-NORTE-02", recording=linux)) as fleet:
        probed = facho("probe", where(fleet, "OLT-NORTE-02"))
        named = facho("probe", where(fleet, "OLT-NORTE-02"), "--brand=zte_c300")
        collected = facho("collect", where(fleet, "OLT-NORTE-02"))

    assert probed.status == 3
    assert "It reports 'Linux box'" in probed.err
    assert named.status == 0
    assert "Linux box" not in named.err
    assert collected.status == 2
    assert "Set the brand manually" in collected.err


def test_a_description_cannot_move_the_cursor(capsys):
    identity = Identity(None, sys_name="[red]OLT", sys_descr="\x1b[2JHuawei")

    probe._print("192.0.2.1", identity, None)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "OLT        [red]OLT (192.0.2.1)"
    assert "says       \\u001b[2JHuawei" in lines
