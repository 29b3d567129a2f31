"""Whether a column or OID had a value in a run, and when a run cannot tell."""

import pytest
from collect_fakes import COLUMNS, TABLE, FakeAgent, Faults, known, make_mib, make_node, oid_of, one_port, run

from facho.engine.model import JobKind, RawOid
from facho.engine.oid import parse

ONUS = one_port(5)
WITHOUT_RX = make_mib(ONUS, [name for name in COLUMNS if name != "rx_dbm"])
VLAN = RawOid("vlan", parse(f"{TABLE}.9"), "number")
UPTIME = RawOid("uptime", parse("1.3.6.1.2.1.1.3.0"), "number", scalar=True)
LOCATION = RawOid("location", parse("1.3.6.1.2.1.1.6.0"), "text", scalar=True)


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.WALK, JobKind.GET])
async def test_a_column_that_the_agent_does_not_have_had_no_value(clock, kind):
    node = make_node(kind, "name", "rx_dbm", oids=(VLAN,))

    collected = await run(FakeAgent(clock, WITHOUT_RX), node, onus=known(ONUS))

    assert collected.had_values == {"name": True, "rx_dbm": False, "vlan": False}


async def test_a_discovery_that_names_nothing_tells_of_what_its_brand_reads(clock):
    collected = await run(FakeAgent(clock, make_mib(ONUS, ["serial"])), make_node(JobKind.DISCOVERY))

    assert collected.had_values == {"serial": True, "state": False}


async def test_a_column_that_the_job_did_not_name_is_not_remarked_on(clock):
    collected = await run(FakeAgent(clock, make_mib(ONUS, ["serial"])), make_node(JobKind.DISCOVERY, "name"))

    assert collected.had_values == {"name": False}


async def test_only_an_unknown_column_of_an_olt_with_onus_had_no_value(clock):
    collected = await run(FakeAgent(clock, make_mib(ONUS)), make_node(oids=(VLAN,)), onus=known(ONUS))

    assert collected.had_values == {"vlan": False}


async def test_an_agent_that_answers_only_placeholders_has_no_optics(clock):
    mib = make_mib(ONUS) | {oid_of("rx_dbm", onu): 2147483647 for onu in ONUS}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "rx_dbm", "tx_dbm"), onus=known(ONUS))

    assert collected.had_values == {"rx_dbm": False, "tx_dbm": True}


async def test_a_column_whose_values_mean_none_is_there(clock):
    """An OLT on which nobody has a name yet has the column all the same."""
    mib = make_mib(ONUS) | {oid_of("distance_m", onu): 0 for onu in ONUS}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "distance_m"))

    assert collected.had_values == {"distance_m": True}


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.GET])
async def test_an_olt_without_onus_tells_nothing(clock, kind):
    collected = await run(FakeAgent(clock, make_mib([])), make_node(kind, "name", "rx_dbm"))

    assert collected.had_values == {"name": None, "rx_dbm": None}


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
async def test_dark_onus_tell_nothing(clock, kind):
    collected = await run(FakeAgent(clock, WITHOUT_RX), make_node(kind, "rx_dbm"), onus=known(ONUS, "offline"))

    assert collected.had_values == {"rx_dbm": None}


async def test_a_get_of_onus_that_are_all_gone_tells_nothing(clock):
    collected = await run(FakeAgent(clock, make_mib([])), make_node(JobKind.GET, "name", "state"), onus=known(ONUS))

    assert collected.had_values == {"name": None, "state": None}


async def test_a_partial_run_tells_what_it_has_and_no_absence(clock):
    agent = FakeAgent(clock, WITHOUT_RX, Faults(dies_after=1))

    collected = await run(agent, make_node(JobKind.WALK, "name", "rx_dbm"), onus=known(ONUS))

    assert collected.had_values == {"name": True, "rx_dbm": None}


async def test_a_scalar_needs_no_onus(clock):
    collected = await run(FakeAgent(clock, make_mib([])), make_node(JobKind.GET, oids=(UPTIME, LOCATION)))

    assert collected.had_values == {"uptime": True, "location": False}
