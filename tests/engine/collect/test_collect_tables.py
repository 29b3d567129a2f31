"""Walking columns: side by side or one by one, joined by position, to their ends."""

import pytest
from collect_fakes import (
    BEHIND,
    COLUMNS,
    FakeAgent,
    Faults,
    all_of,
    at,
    expected,
    index_of,
    make_mib,
    make_node,
    make_olt,
    oid_of,
    one_port,
    run,
    values_of,
)

from facho.engine.model import Completeness, JobKind
from facho.engine.snmp import Version

ONUS = [*one_port(20), *one_port(15, port=2), at(3, 4, 7)]


async def test_columns_of_one_space_are_read_in_one_getbulk(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "name", "state"))

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "serial", "name", "state")
    assert agent.log[0].oids == [COLUMNS[name].oid for name in ("serial", "name", "state")]
    assert len(agent.log) == 4
    assert collected.errors == ()


async def test_a_walk_reads_one_column_after_the_other(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.WALK, "serial", "rx_dbm", "name"))

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "serial", "rx_dbm", "name")
    assert {len(request.oids) for request in agent.log} == {1}
    assert [request.timeout for request in agent.log] == [5] * 4 + [20] * 4 + [5] * 4


async def test_dear_columns_come_last_among_themselves_with_the_optical_timeout(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    await run(agent, make_node(JobKind.TABLE, "rx_dbm", "serial", "tx_dbm", "state"))

    first, dear = agent.log[0], agent.log[-1]
    assert (len(first.oids), first.timeout) == (2, 5)
    assert (len(dear.oids), dear.timeout) == (2, 20)
    assert [request.timeout for request in agent.log] == [5] * 4 + [20] * 4


async def test_rows_of_different_spaces_are_joined_by_position_although_their_numbers_are_equal(clock):
    seven, neighbour = at(0, 1, 7), at(0, 2, 7)
    mib = make_mib([seven, neighbour], ["serial"]) | {oid_of("rx_dbm", neighbour): -1900}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "serial", "rx_dbm"))

    values = values_of(collected)
    assert values[index_of(seven)]["rx_dbm"] is None
    assert values[index_of(neighbour)]["rx_dbm"] == -19.0
    assert (collected.readings[0].slot, collected.readings[0].port, collected.readings[0].onu) == (0, 1, 7)


async def test_an_exhausted_column_that_spills_into_its_neighbour_invents_no_row(clock):
    onus = one_port(12)
    mib = make_mib(onus, ["name", "state"]) | make_mib(onus[:3], ["serial"])

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "serial", "name", "state"))

    short = {index_of(onu): expected(onu, "serial", "name", "state") for onu in onus[:3]}
    rest = {index_of(onu): {"serial": None, **expected(onu, "name", "state")} for onu in onus[3:]}
    assert values_of(collected) == short | rest
    assert collected.completeness is Completeness.COMPLETE


async def test_sparse_columns_are_joined_by_index_and_never_by_their_place_in_an_answer(clock):
    onus = one_port(25)
    mib = make_mib(onus, ["serial"]) | make_mib(onus[::3], ["name"])

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "serial", "name"))

    for place, onu in enumerate(onus):
        name = f"customer {onu.onu}" if place % 3 == 0 else None
        assert values_of(collected)[index_of(onu)] == {**expected(onu, "serial"), "name": name}


async def test_an_index_that_is_not_an_onu_is_ignored(clock):
    port = oid_of("serial", at(0, 0, 1))[:-1]
    stranger = COLUMNS["serial"].oid + b"\x05\x01"
    mib = make_mib(one_port(2), ["serial"]) | {port: b"a port", stranger: b"a card"}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "serial"))

    assert values_of(collected) == all_of(one_port(2), "serial")
    assert collected.completeness is Completeness.COMPLETE


async def test_a_table_without_rows_is_empty(clock):
    collected = await run(FakeAgent(clock, make_mib([])), make_node(JobKind.TABLE, "serial", "state"))

    assert collected.completeness is Completeness.EMPTY
    assert collected.readings == ()
    assert collected.errors == ()


async def test_rows_of_which_none_is_an_onu_are_empty_with_a_remark(clock):
    mib = make_mib([]) | {COLUMNS["serial"].oid + b"\x05\x01": b"a card"}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "serial"))

    assert collected.completeness is Completeness.EMPTY
    assert collected.errors == ("serial: none of its 1 rows is an ONU of Acme",)


async def test_the_end_of_the_mib_ends_a_column(clock):
    mib = {oid_of("serial", onu): b"HWTC%08d" % onu.onu for onu in ONUS}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "serial"))

    assert collected.completeness is Completeness.COMPLETE
    assert len(collected.readings) == len(ONUS)


@pytest.mark.parametrize("accuses", ["right", "none", "first"])
async def test_snmpv1_walks_by_getnext_and_ends_at_no_such_name(clock, accuses):
    mib = make_mib(ONUS, ["serial", "state"])
    del mib[BEHIND]
    agent = FakeAgent(clock, mib, Faults(accuses=accuses))

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "state"), olt=make_olt(Version.V1))

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "serial", "state")
    assert {request.kind for request in agent.log} == {"get_next"}


@pytest.mark.parametrize("accuses", ["right", "none", "first"])
async def test_the_end_of_one_column_is_not_the_end_of_another(clock, accuses):
    onus = one_port(20)
    mib = make_mib(onus, ["serial"]) | make_mib(onus[:3], ["state"])
    del mib[BEHIND]
    agent = FakeAgent(clock, mib, Faults(accuses=accuses))

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "state"), olt=make_olt(Version.V1))

    assert collected.completeness is Completeness.COMPLETE
    assert len(collected.readings) == 20


async def test_no_such_name_is_not_an_end_where_getbulk_exists(clock):
    agent = FakeAgent(clock, make_mib(ONUS))
    agent._answer = lambda asked, found: agent._error(2, asked, 0)

    collected = await run(agent, make_node(JobKind.TABLE, "serial"))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("serial: the agent answered noSuchName before the first row",)


async def test_null_is_no_value(clock):
    mib = make_mib(ONUS) | {oid_of("name", ONUS[6]): None}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "name"))

    assert values_of(collected)[index_of(ONUS[6])] == {"name": None}


async def test_columns_of_one_or_two_bytes_are_told_apart_by_number(clock):
    # 300 has two bytes, and its first is larger than that of any number below 128.
    onus = one_port(5)

    collected = await run(FakeAgent(clock, make_mib(onus)), make_node(JobKind.TABLE, "distance_m", "state"))

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(onus, "distance_m", "state")
