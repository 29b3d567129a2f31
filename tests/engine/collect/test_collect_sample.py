"""A sample of a job: the first rows of each column and OID, raw and decoded, with what is wrong in plain words."""

from datetime import timedelta

import pytest
from collect_fakes import (
    TABLE,
    FakeAgent,
    Faults,
    known,
    make_brand,
    make_mib,
    make_node,
    make_olt,
    oid_of,
    one_port,
)

from facho.engine.collect.sample import NO_ONU, NO_VALUE, NOT_DECODED, ROWS, TYPES, take_sample
from facho.engine.errors import OltUnreachable, Refused
from facho.engine.model import JobKind, RawOid
from facho.engine.oid import parse
from facho.engine.snmp import Tag, Version

ONUS = one_port(9)
UPTIME = RawOid("uptime", parse("1.3.6.1.2.1.1.3.0"), "number", scalar=True)
LOCATION = RawOid("location", parse("1.3.6.1.2.1.1.6.0"), "text", scalar=True)
VLAN = RawOid("vlan", parse(f"{TABLE}.9"), "number")
SERIAL = RawOid("serial_as_number", parse(f"{TABLE}.1"), "number")
SYSTEM = RawOid("system", parse("1.3.6.1.2.1.1"), "number")
DECODERS = {"number": lambda value: value if isinstance(value, int) else None, "text": lambda value: value.decode()}


async def sample(agent, node, *, onus=(), olt=None, seconds=15):
    return await take_sample(
        node,
        olt or make_olt(),
        make_brand(),
        snmp=agent,
        clock=agent.clock,
        deadline=agent.clock.now() + timedelta(seconds=seconds),
        known=onus,
        raw_decoders=DECODERS,
    )


def shown(found):
    return {column.name: ([row.value for row in column.rows], column.remark) for column in found.columns}


@pytest.mark.parametrize("version", [Version.V2C, Version.V1], ids=["v2c", "v1"])
async def test_the_first_rows_of_each_column_are_read(clock, version):
    agent = FakeAgent(clock, make_mib(ONUS))

    found = await sample(agent, make_node(JobKind.TABLE, "name", "rx_dbm"), olt=make_olt(version))

    assert shown(found) == {"name": ([f"customer {n}" for n in range(1, 6)], ""), "rx_dbm": ([-21.53] * ROWS, "")}
    first = found.columns[1].rows[0]
    assert (first.onu, first.type, first.raw) == ("ONU 0/1/1", "INTEGER", "-2153")
    assert found.columns[0].oid == f"{TABLE}.2"
    assert found.requests == len(agent.log) == (2 if version is Version.V2C else 2 * ROWS)


async def test_a_get_job_asks_for_known_onus_with_light(clock):
    agent = FakeAgent(clock, make_mib(ONUS))
    onus = [*known(ONUS[:2], "offline"), *known(ONUS[2:])]

    found = await sample(agent, make_node(JobKind.GET, "name"), onus=onus)

    assert shown(found)["name"] == ([f"customer {n}" for n in range(3, 8)], "")
    assert [request.kind for request in agent.log] == ["get"]
    assert agent.log[0].oids[0] == oid_of("name", ONUS[2])


async def test_a_get_job_shows_the_table_where_no_onu_is_known(clock):
    found = await sample(FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.GET, "name"))

    assert len(found.columns[0].rows) == ROWS


@pytest.mark.parametrize("version", [Version.V2C, Version.V1], ids=["v2c", "v1"])
async def test_what_the_olt_does_not_have_is_said(clock, version):
    node = make_node(JobKind.TABLE, "name", oids=(UPTIME, LOCATION, VLAN))

    found = await sample(FakeAgent(clock, make_mib(ONUS)), node, olt=make_olt(version))

    assert shown(found) | {"name": None} == {
        "uptime": ([4711], ""),
        "location": ([None] if version is Version.V2C else [], NO_VALUE),
        "vlan": ([], NO_VALUE),
        "name": None,
    }


@pytest.mark.parametrize(
    ("raw", "remark"), [(SERIAL, NOT_DECODED), (SYSTEM, NO_ONU)], ids=["read in the wrong way", "no table of ONUs"]
)
async def test_a_wrong_oid_or_a_wrong_decoder_is_told_apart(clock, raw, remark):
    found = await sample(FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.TABLE, oids=(raw,)))

    [column] = found.columns
    assert (column.remark, column.decode, bool(column.rows)) == (remark, "number", True)


async def test_octets_that_are_no_text_are_shown_in_hexadecimal(clock):
    mib = make_mib(ONUS) | {oid_of("serial", ONUS[0]): b"HWTC\x01\x02\xfe\x00"}

    found = await sample(FakeAgent(clock, mib), make_node(JobKind.TABLE, oids=(SERIAL,)))

    row = found.columns[0].rows[0]
    assert (row.raw, row.type) == ("48 57 54 43 01 02 fe 00", "OCTET STRING")


async def test_an_error_of_the_agent_costs_one_column(clock):
    faults = Faults(gen_err_at=frozenset({oid_of("name", ONUS[1])}))

    found = await sample(FakeAgent(clock, make_mib(ONUS), faults), make_node(JobKind.TABLE, "name", "state"))

    assert found.columns[0].remark == "The agent answered genErr."
    assert shown(found)["state"] == (["online"] * ROWS, "")


async def test_a_column_without_time_left_reports_it(clock):
    agent = FakeAgent(clock, make_mib(ONUS), latency=8.0)
    olt = make_olt()

    found = await sample(agent, make_node(JobKind.TABLE, "name", "state", "serial"), olt=olt, seconds=10)

    assert [column.remark for column in found.columns][-1] == "Not read: the time limit was reached."


async def test_a_dead_olt_is_unreachable(clock):
    with pytest.raises(OltUnreachable, match=r"OLT-CENTRAL-01 did not answer within \d+ s\. Check the address"):
        await sample(FakeAgent(clock, make_mib(ONUS), Faults(dies_after=0)), make_node(JobKind.TABLE, "name"))


async def test_an_olt_that_does_not_accept_us_reports_it(clock):
    with pytest.raises(Refused):
        await sample(FakeAgent(clock, make_mib(ONUS), Faults(refuses_after=0)), make_node(JobKind.TABLE, "name"))


async def test_the_limits_of_the_olt_hold(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    await sample(agent, make_node(JobKind.TABLE, "name", "state"), olt=make_olt(max_pdus_per_second=2.0))

    assert agent.log[1].at - agent.log[0].at >= 0.5


async def test_an_agent_that_repeats_itself_is_not_followed(clock):
    rows = [oid_of("name", onu) for onu in ONUS[:2]]
    agent = FakeAgent(clock, make_mib(ONUS), Faults(jumps={1: 0}), path=rows)

    found = await sample(agent, make_node(JobKind.TABLE, "name"))

    assert len(found.columns[0].rows) == 2


def test_all_types_have_a_name():
    assert set(TYPES) == set(Tag)
