"""`facho collect` against simulated OLTs: what it prints, what it costs, and how it ends."""

import pytest

from command_stage import Tripwire, answering, simulated, where
from contracts.snmp_agents import UsmAgent
from contracts.snmp_agents import mute as silence
from facho.engine.snmp import User
from facho.runtime.commands.report import ONU_KEYS
from facho.simulator.faults import Disorder, Faults
from facho.simulator.fleet import MAKERS, MUTE, OltSpec

CENTRAL = "OLT-CENTRAL-01"
STATS = {
    "seconds",
    "pdus",
    "cpu_seconds",
    "retransmissions",
    "varbinds",
    "values",
    "bytes_sent",
    "bytes_received",
    "rtt_p50",
    "rtt_p95",
    "rtt_p99",
    "peak_in_flight",
    "sizes",
    "answers_unchanged",
    "answers_parsed",
    "answers_decoded",
}


@pytest.fixture(scope="module")
def fleet():
    with simulated(
        OltSpec(CENTRAL, onus=40), OltSpec("OLT-NORTE-02", "zte_c300", onus=40), OltSpec("OLT-SUR-03", faults=MUTE)
    ) as fleet:
        yield fleet


def first_onu(fleet):
    return fleet[CENTRAL].device.plant.onus[7]


def test_everything_there_is_of_every_onu(facho, fleet):
    said = facho("collect", where(fleet, CENTRAL), "--json")

    assert said.status == 0
    report = said.json
    assert (report["brand"], report["completeness"], report["errors"]) == ("huawei", "COMPLETE", [])
    assert report["olt"]["sys_name"] == CENTRAL
    assert set(report["stats"]) == STATS
    assert len(report["onus"]) == 40
    assert all(tuple(onu)[: len(ONU_KEYS)] == ONU_KEYS for onu in report["onus"])
    seven = first_onu(fleet)
    (onu,) = [each for each in report["onus"] if each["onu"] == seven.position.onu]
    assert onu["serial"] == seven.serial[:4].decode() + seven.serial[4:].hex().upper()
    assert (onu["slot"], onu["port"], onu["model"]) == (seven.position.slot, seven.position.port, seven.model)


@pytest.mark.parametrize("brand", sorted(MAKERS))
def test_every_maker_is_found_out_and_read_to_the_last_onu(facho, brand):
    with simulated(OltSpec("OLT-NORTE-02", brand, onus=40)) as fleet:
        said = facho("collect", where(fleet, "OLT-NORTE-02"), "--json")

        count = len(fleet["OLT-NORTE-02"].device.plant.onus)
    assert (said.status, said.json["brand"], said.json["completeness"]) == (0, brand, "COMPLETE")
    assert len(said.json["onus"]) == count


def test_what_the_device_has_no_value_for_is_null(facho, fleet):
    report = facho("collect", where(fleet, CENTRAL), "--json").json

    dark = [onu for onu in report["onus"] if onu["state"] != "online"]
    assert dark
    assert {onu["rx_dbm"] for onu in dark} == {None}


def test_its_count_of_pdus_is_that_of_the_agent(facho, fleet):
    fleet.log.clear()

    report = facho("collect", where(fleet, CENTRAL), "--json").json

    asked = report["olt"]["identify_pdus"] + report["stats"]["pdus"]
    assert asked == fleet.log.count(CENTRAL)
    # Without --window it is automatic, up to the limit of the brand.
    assert 1 <= report["stats"]["peak_in_flight"] <= 8


def test_a_brand_that_is_named_is_not_found_out(facho, fleet):
    fleet.log.clear()

    report = facho("collect", where(fleet, CENTRAL), "--brand=huawei", "--json").json

    assert report["olt"]["identify_pdus"] == 0
    assert report["stats"]["pdus"] == fleet.log.count(CENTRAL)


def test_the_window_is_never_exceeded(facho, fleet):
    fleet.log.clear()

    report = facho("collect", where(fleet, CENTRAL), "--window=4", "--json").json

    assert fleet.log.peak_in_flight(CENTRAL) <= 4
    assert report["stats"]["peak_in_flight"] <= 4


def test_only_the_columns_that_were_asked_for(facho, fleet):
    report = facho("collect", where(fleet, "OLT-NORTE-02"), "--columns=name, model", "--json").json

    assert report["brand"] == "zte_c300"
    assert all(onu["name"] and onu["rx_dbm"] is None and "software" not in onu for onu in report["onus"])


def test_people_get_a_table_and_a_line_on_how_it_went(facho, fleet):
    said = facho("collect", where(fleet, CENTRAL))

    title, *rows, summary = said.out.splitlines()
    assert said.status == 0
    assert title.split()[:4] == ["onu", "name", "serial", "mac"]
    assert len(rows) == 40
    seven = first_onu(fleet)
    assert any(line.startswith(f"{seven.position.slot}/{seven.position.port}/{seven.position.onu} ") for line in rows)
    assert summary.startswith("OLT-CENTRAL-01, Huawei MA5600T / MA5800: COMPLETE, 40 ONUs (")
    assert said.err == ""


def test_an_olt_without_onus_is_complete_and_says_that_it_is_empty(facho):
    with simulated(OltSpec(CENTRAL, onus=0)) as fleet:
        said = facho("collect", where(fleet, CENTRAL), "--json")

    assert (said.status, said.json["completeness"], said.json["onus"]) == (0, "EMPTY", [])


@pytest.mark.parametrize("as_json", [pytest.param(True, id="for programs"), pytest.param(False, id="for people")])
def test_a_table_that_could_not_be_read_to_its_end_is_partial_and_what_was_read_is_kept(facho, as_json):
    circling = Faults(disorder=Disorder.LOOP, disorder_at_row=20)
    with simulated(OltSpec(CENTRAL, onus=40, faults=circling)) as fleet:
        said = facho("collect", where(fleet, CENTRAL), *["--json"] * as_json)

    assert said.status == 3
    if as_json:
        assert said.json["completeness"] == "PARTIAL"
        assert said.json["onus"]
        assert said.json["errors"]
    else:
        assert "PARTIAL" in said.out
        assert said.err.count("\n") >= 1


def test_an_olt_that_is_mute_is_unreachable(facho, fleet):
    said = facho("collect", where(fleet, "OLT-SUR-03"), "--timeout=0.2", "--community=hunter2")

    assert said.status == 4
    assert said.err.startswith("facho: 127.0.0.1 port ")
    assert "Check the address, the community" in said.err
    assert "hunter2" not in said.err


def test_a_user_that_the_agent_does_not_know_is_refused_without_its_password(facho, monkeypatch):
    monkeypatch.setenv("FACHO_AUTH_KEY", "hunter2-hunter2")
    known = User("noc", "SHA256", "another-password")
    with answering(UsmAgent(silence, known)) as agent:
        words = ("--version=3", "--user=noc", "--auth=SHA256", "--timeout=1")
        said = facho("collect", f"127.0.0.1:{agent.port}", *words, "--json")

    assert said.status == 4
    assert "rejected the authentication of user noc" in said.err
    assert "rejected the authentication of user noc" in said.json["errors"][0]
    assert "hunter2" not in said.out + said.err


def test_an_olt_that_is_mute_is_unreachable_where_its_brand_was_named_too(facho, fleet):
    said = facho("collect", where(fleet, "OLT-SUR-03"), "--timeout=0.2", "--brand=huawei")

    assert said.status == 4


def test_programs_get_json_of_an_olt_that_is_mute(facho, fleet):
    said = facho("collect", where(fleet, "OLT-SUR-03"), "--timeout=0.2", "--json")

    assert said.status == 4
    assert (said.json["brand"], said.json["completeness"], said.json["onus"]) == (None, None, [])
    assert "gave no usable answer" in said.json["errors"][0]


def test_what_was_read_before_ctrl_c_is_printed(facho):
    with simulated(OltSpec(CENTRAL, onus=600), log=Tripwire(at=12)) as fleet:
        said = facho("collect", where(fleet, CENTRAL), "--brand=huawei", "--json")

    assert said.status == 130
    assert said.json["completeness"] == "PARTIAL"
    assert 0 < len(said.json["onus"]) < 600
    assert said.json["errors"] == ["stopped by Ctrl-C before the end"]


def test_ctrl_c_before_anything_was_read_reports_it(facho):
    with simulated(OltSpec(CENTRAL, faults=MUTE), log=Tripwire(at=1)) as fleet:
        said = facho("collect", where(fleet, CENTRAL))

    assert (said.status, said.err) == (130, "facho: stopped by Ctrl-C before the end\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["--columns=rx_dbm,colour"], "has no column colour", id="a column that the brand does not have"),
        pytest.param(["--brand=acme"], "there is no brand 'acme'", id="a brand that nobody knows"),
        pytest.param(["--window=0"], "at least 1 request", id="a window without requests"),
        pytest.param(["--version=3"], "needs a user", id="version 3 without a user"),
    ],
)
def test_bad_usage_is_told_from_an_olt_that_does_not_answer(facho, fleet, words, sentence):
    said = facho("collect", where(fleet, CENTRAL), *words)

    assert said.status == 2
    assert sentence in said.err
    assert said.out == ""


def test_no_data_directory_comes_into_being(facho, fleet, tmp_path):
    facho("collect", where(fleet, CENTRAL))

    assert list(tmp_path.iterdir()) == []
