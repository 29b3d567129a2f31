"""Walking columns: side by side or one by one, joined by position, to their ends."""

from dataclasses import replace

import pytest
from collect_fakes import (
    BEHIND,
    COLUMNS,
    OPTICS,
    FakeAgent,
    Faults,
    all_of,
    at,
    expected,
    index_of,
    known,
    make_brand,
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


def columns_asked(agent):
    """Return the columns in the order of their turns."""
    names = [
        name for request in agent.log for name, column in COLUMNS.items() if request.oids[0].startswith(column.oid)
    ]
    return list(dict.fromkeys(names))


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
    assert columns_asked(agent) == ["serial", "rx_dbm", "name"]


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.DISCOVERY])
async def test_dear_columns_come_last_and_are_asked_of_the_onus_that_are_lit(clock, kind):
    dark = ONUS[6]
    agent = FakeAgent(clock, make_mib(ONUS) | {oid_of("state", dark): 2})

    collected = await run(agent, make_node(kind, "serial", "rx_dbm", "state", "tx_dbm"))

    walked = [request for request in agent.log if request.kind == "get_bulk"]
    asked = agent.log[len(walked) :]
    assert agent.log[: len(walked)] == walked
    assert {request.kind for request in asked} == {"get"}
    lit = [onu for onu in ONUS if onu != dark]
    names = [oid_of(name, onu) for onu in lit for name in ("rx_dbm", "tx_dbm")]
    assert [oid for request in asked for oid in request.oids] == names
    assert asked[0].timeout == 20
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(lit, "serial", "state", "rx_dbm", "tx_dbm") | {
        index_of(dark): {**expected(dark, "serial"), "state": "offline", "rx_dbm": None, "tx_dbm": None}
    }


async def test_whether_an_onu_is_lit_is_recalled_where_a_run_does_not_read_it(clock):
    agent = FakeAgent(clock, make_mib(ONUS))
    inventory = [*known(ONUS[:6]), *known(ONUS[6:7], "los")]

    collected = await run(agent, make_node(JobKind.TABLE, "rx_dbm", "serial"), onus=inventory)

    asked = {oid for request in agent.log for oid in request.oids if request.kind == "get"}
    assert asked == {oid_of("rx_dbm", onu) for onu in ONUS if onu != ONUS[6]}
    assert values_of(collected)[index_of(ONUS[6])] == {**expected(ONUS[6], "serial"), "rx_dbm": None}


async def test_dear_columns_alone_are_asked_of_the_onus_that_are_known(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.TABLE, "rx_dbm"), onus=[*known(ONUS[:6]), *known(ONUS[6:7], "los")])

    assert {request.kind for request in agent.log} == {"get"}
    assert values_of(collected) == all_of(ONUS[:6], "rx_dbm") | {index_of(ONUS[6]): {"rx_dbm": None}}


@pytest.mark.parametrize(
    ("kind", "inventory"),
    [
        pytest.param(JobKind.TABLE, [], id="nobody is known"),
        pytest.param(JobKind.WALK, known(ONUS, "offline"), id="a walk walks"),
    ],
)
async def test_expensive_columns_are_walked_without_known_onus_or_if_the_job_asks_for_it(clock, kind, inventory):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(kind, "rx_dbm"), onus=inventory)

    assert {request.kind for request in agent.log} == {"get_bulk"}
    assert values_of(collected) == all_of(ONUS, "rx_dbm")


async def test_dear_columns_that_cannot_be_asked_by_index_are_walked(clock):
    whole = replace(COLUMNS["rx_dbm"], space=replace(OPTICS, by_index=False))
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(
        agent, make_node(JobKind.TABLE, "serial", "rx_dbm"), brand=make_brand(columns=COLUMNS | {"rx_dbm": whole})
    )

    assert {request.kind for request in agent.log} == {"get_bulk"}
    assert values_of(collected) == all_of(ONUS, "serial", "rx_dbm")


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
    assert collected.errors == ("serial: none of its 1 rows belongs to a known ONU",)


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
