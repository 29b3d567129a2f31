"""`facho brands`: the makers there are, and whether a profile is one. An admin's profiles count in every command."""

import pytest

from command_stage import simulated, where
from facho import brands
from facho.simulator.fleet import OltSpec

PROFILE = """\
id: acme
label: Acme OLT
match:
  sys_object_ids: [1.3.6.1.4.1.99999]
base: 1.3.6.1.4.1.99999.1
index: opaque
discovery: [serial]
columns:
  serial: {oid: 1, read: serial}
  name: {oid: 2, read: text}
"""
RECORDING = """\
1.3.6.1.2.1.1.1.0|4|Acme
1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.99999.5
1.3.6.1.4.1.99999.1.1.7|4|ACME7D4630C3
1.3.6.1.4.1.99999.1.2.7|4|Maria
"""


@pytest.fixture(autouse=True)
def _built_in_only():
    yield
    brands.register([])


@pytest.fixture
def profile(tmp_path):
    """An admin's profile where Facho looks for it."""
    file = tmp_path / "nothing" / "brands" / "acme.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(PROFILE)
    return file


def test_every_brand_is_listed_with_what_it_can_tell(facho):
    said = facho("brands")

    lines = {line.split()[0]: line for line in said.out.splitlines()[1:]}
    assert said.status == 0
    assert set(lines) == set(brands.BRANDS)
    assert "Huawei MA5600T / MA5800" in lines["huawei"]
    assert "rx_dbm" in lines["huawei"]
    assert {name for name, line in lines.items() if " experimental " in line} == {
        each.id for each in brands.BRANDS.values() if each.experimental
    }


def test_programs_get_the_oid_of_each_column(facho):
    report = facho("brands", "--json").json

    (huawei,) = [each for each in report["brands"] if each["id"] == "huawei"]
    assert huawei["columns"]["rx_dbm"] == "1.3.6.1.4.1.2011.6.128.1.1.2.51.1.4"


def test_a_profile_that_is_well_is_said_to_be(facho, profile):
    said = facho("brands", "--check", profile)

    assert said.status == 0
    assert "is a profile of Acme OLT [acme] with 2 columns" in said.out


def test_what_is_wrong_with_a_profile_is_said(facho, profile):
    profile.write_text(PROFILE.replace("read: text", "read: magic"))

    said = facho("brands", "--check", profile)

    assert said.status == 2
    assert "acme.yaml has 1 problem" in said.err
    assert "magic" in said.err


def test_a_profile_with_the_id_of_a_built_in_brand_is_refused_by_the_check_too(facho, profile):
    profile.write_text(PROFILE.replace("id: acme", "id: huawei"))

    said = facho("brands", "--check", profile)

    assert said.status == 2
    assert "huawei is built in" in said.err


def test_a_profile_that_is_not_there_is_said(facho, tmp_path):
    said = facho("brands", "--check", tmp_path / "nobody.yaml")

    assert said.status == 2
    assert "nobody.yaml" in said.err


def test_an_olt_of_an_admins_brand_is_found_out_and_collected(facho, profile, tmp_path):
    recording = tmp_path / "acme.snmprec"
    recording.write_text(RECORDING)
    with simulated(OltSpec("OLT-CENTRAL-01", recording=recording)) as fleet:
        report = facho("collect", where(fleet, "OLT-CENTRAL-01"), "--json").json

    assert (report["brand"], report["completeness"]) == ("acme", "COMPLETE")
    assert [(onu["index"], onu["serial"], onu["name"]) for onu in report["onus"]] == [("7", "ACME7D4630C3", "Maria")]


def test_a_broken_profile_stops_a_command_with_a_sentence(facho, profile):
    profile.write_text("id: [")

    said = facho("collect", "127.0.0.1")

    assert said.status == 2
    assert said.err.startswith("facho: the profile folder ")
    assert "acme.yaml" in said.err
