"""`facho record`: a recording that answers like the OLT, and from which nobody can be told."""

import re

import pytest

from command_stage import Tripwire, simulated, where
from facho.adapters.snmp.snmprec import read_records
from facho.engine.oid import arcs
from facho.simulator.faults import Disorder, Faults
from facho.simulator.fleet import MAKERS, MUTE, OltSpec

CENTRAL = "OLT-CENTRAL-01"
# What does not change between a recording and a collection.
FACTS = ("index", "slot", "port", "onu", "name", "serial", "model")


def facts(onus, names=FACTS):
    return [{name: onu[name] for name in names} for onu in onus]


def replay(facho, recording, brand="huawei"):
    """Collect from an OLT that answers what was recorded."""
    with simulated(OltSpec(CENTRAL, recording=recording)) as fleet:
        return facho("collect", where(fleet, CENTRAL), f"--brand={brand}", "--json").json


@pytest.mark.parametrize("brand", sorted(MAKERS))
def test_a_recording_decodes_to_what_the_olt_did(facho, tmp_path, brand):
    file = tmp_path / "olt.snmprec"
    with simulated(OltSpec(CENTRAL, brand, onus=30)) as fleet:
        said = facho("record", where(fleet, CENTRAL), "-o", file)
        collected = facho("collect", where(fleet, CENTRAL), "--json").json

    replayed = replay(facho, file, brand)

    assert said.status == 0
    assert len(replayed["onus"]) == 30
    assert facts(replayed["onus"]) == facts(collected["onus"])


def test_lines_are_in_the_order_of_snmp(facho, tmp_path):
    file = tmp_path / "olt.snmprec"
    with simulated(OltSpec(CENTRAL, onus=30)) as fleet:
        facho("record", where(fleet, CENTRAL), "-o", file)

    oids = [arcs(record.oid) for record in read_records(file)]
    assert oids == sorted(set(oids))
    assert oids[0] == (1, 3, 6, 1, 2, 1, 1, 1, 0)


def test_without_a_file_it_goes_to_standard_output_and_remarks_do_not(facho):
    with simulated(OltSpec(CENTRAL, onus=3)) as fleet:
        said = facho("record", where(fleet, CENTRAL))

    assert all(re.fullmatch(r"[0-9.]+\|\d+x?\|.*", line) for line in said.out.splitlines())
    assert "variables" in said.err


def test_one_request_at_a_time(facho):
    with simulated(OltSpec(CENTRAL, onus=30)) as fleet:
        facho("record", where(fleet, CENTRAL))

        assert fleet.log.peak_in_flight(CENTRAL) == 1


def test_anonymised_it_still_decodes_and_tells_nobody(facho, tmp_path):
    file = tmp_path / "olt.snmprec"
    with simulated(OltSpec(CENTRAL, onus=30)) as fleet:
        facho("record", where(fleet, CENTRAL), "-o", file, "--anonymise")
        onus = facho("collect", where(fleet, CENTRAL), "--json").json["onus"]

    replayed = replay(facho, file)["onus"]

    assert facts(replayed, ("index", "model", "software")) == facts(onus, ("index", "model", "software"))
    for was, now in zip(onus, replayed, strict=True):
        assert all(now[name] and was[name] != now[name] for name in ("serial", "mac", "name"))
        assert was["serial"][:4] == now["serial"][:4]
    written = file.read_bytes()
    for onu in onus:
        assert onu["name"].encode().hex().encode() not in written
        assert onu["serial"][4:].lower().encode() not in written
    assert CENTRAL.encode() not in written


def test_an_agent_that_goes_round_in_circles_leaves_what_was_read(facho, tmp_path):
    file = tmp_path / "olt.snmprec"
    circling = Faults(disorder=Disorder.LOOP, disorder_at_row=20)
    with simulated(OltSpec(CENTRAL, onus=30, faults=circling)) as fleet:
        said = facho("record", where(fleet, CENTRAL), "-o", file)

    assert said.status == 3
    assert "returns the same rows again" in said.err
    assert "PARTIAL" in said.err
    serials = [record for record in read_records(file) if arcs(record.oid)[:15][-4:] == (2, 43, 1, 3)]
    assert len(serials) == 20


def test_ctrl_c_keeps_what_was_recorded(facho, tmp_path):
    file = tmp_path / "olt.snmprec"
    with simulated(OltSpec(CENTRAL, onus=300), log=Tripwire(at=12)) as fleet:
        said = facho("record", where(fleet, CENTRAL), "-o", file)

    assert said.status == 130
    assert "stopped by Ctrl-C" in said.err
    assert 10 < len(read_records(file)) < 300 * 20


def test_an_olt_that_is_mute_leaves_no_file(facho, tmp_path):
    with simulated(OltSpec("OLT-SUR-03", faults=MUTE)) as fleet:
        said = facho("record", where(fleet, "OLT-SUR-03"), "-o", tmp_path / "olt.snmprec", "--timeout=0.2")

    assert said.status == 4
    assert not (tmp_path / "olt.snmprec").exists()


def test_a_folder_that_is_not_there_is_said_before_anybody_is_asked(facho, tmp_path):
    with simulated(OltSpec(CENTRAL)) as fleet:
        said = facho("record", where(fleet, CENTRAL), "-o", tmp_path / "nowhere" / "olt.snmprec")

        assert fleet.log.count() == 0
    assert said.status == 2
    assert "there is no such folder" in said.err
