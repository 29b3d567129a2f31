"""Reading columns of known ONUs by GET, and what becomes of a batch with a bad one in it."""

from dataclasses import replace

import pytest
from collect_fakes import (
    COLUMNS,
    PLAIN,
    FakeAgent,
    Faults,
    all_of,
    at,
    encode_plain,
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

from facho.engine.brand import Manners
from facho.engine.collect.requester import SYS_UP_TIME
from facho.engine.errors import OltUnreachable
from facho.engine.model import Completeness, JobKind, KnownOnu
from facho.engine.snmp import Version

ONUS = [*one_port(9), *one_port(9, slot=3, port=2)]
SEVEN = at(0, 1, 7)


async def test_known_onus_are_asked_by_index_so_many_rows_at_a_time(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS))

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "name", "state")
    assert [len(request.oids) for request in agent.log[:4]] == [8, 8, 8, 8]
    assert agent.log[0].oids[:2] == [oid_of("name", ONUS[0]), oid_of("state", ONUS[0])]


async def test_an_onu_that_is_missing_is_not_asked_for_and_keeps_what_was_last_read_of_it(clock):
    agent = FakeAgent(clock, make_mib(ONUS))
    onus = [replace(onu, is_missing=onu.index == index_of(SEVEN)) for onu in known(ONUS)]

    collected = await run(agent, make_node(JobKind.GET, "name", "rx_dbm"), onus=onus)

    assert collected.completeness is Completeness.COMPLETE
    assert index_of(SEVEN) not in values_of(collected)
    assert len(collected.readings) == len(ONUS) - 1
    assert not any(oid_of("name", SEVEN) in request.oids for request in agent.log)


@pytest.mark.parametrize("kind", [JobKind.GET, JobKind.TABLE, JobKind.WALK])
async def test_values_at_the_place_of_an_onu_that_the_last_discovery_missed_are_not_given_to_it(clock, kind):
    onus = [replace(onu, misses=int(onu.index == index_of(SEVEN))) for onu in known(ONUS)]

    collected = await run(FakeAgent(clock, make_mib(ONUS)), make_node(kind, "name", "state"), onus=onus)

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected).keys() == {index_of(onu) for onu in ONUS if onu != SEVEN}


async def test_a_serial_tells_which_onu_is_at_a_place_where_the_last_discovery_missed_one(clock):
    onus = [replace(onu, misses=1) for onu in known(ONUS)]

    collected = await run(FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.TABLE, "serial", "state"), onus=onus)

    assert values_of(collected) == all_of(ONUS, "serial", "state")


async def test_each_space_is_asked_by_its_own_numbers(clock):
    collected = await run(
        FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.GET, "name", "rx_dbm"), onus=known([SEVEN])
    )

    assert values_of(collected) == all_of([SEVEN], "name", "rx_dbm")


@pytest.mark.parametrize("state", ["offline", "los", "dying_gasp", "disabled"])
async def test_a_dark_onu_is_not_asked_for_its_power(clock, state):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(
        agent, make_node(JobKind.GET, "name", "rx_dbm"), onus=[*known([SEVEN], state), *known([at(0, 1, 8)])]
    )

    assert oid_of("rx_dbm", SEVEN) not in [oid for request in agent.log for oid in request.oids]
    assert values_of(collected)[index_of(SEVEN)] == {"name": "customer 7", "rx_dbm": None}
    assert values_of(collected)[index_of(at(0, 1, 8))]["rx_dbm"] == -21.53
    assert collected.completeness is Completeness.COMPLETE


async def test_a_state_that_is_read_counts_more_than_the_one_of_the_inventory(clock):
    dark, lit = ONUS[:2]
    agent = FakeAgent(clock, make_mib(ONUS) | {oid_of("state", dark): 2})

    collected = await run(
        agent, make_node(JobKind.GET, "state", "rx_dbm"), onus=[*known([dark]), *known([lit], "offline")]
    )

    assert oid_of("rx_dbm", dark) not in [oid for request in agent.log for oid in request.oids]
    assert values_of(collected) == {
        index_of(dark): {"state": "offline", "rx_dbm": None},
        index_of(lit): {"state": "online", "rx_dbm": -21.53},
    }


@pytest.mark.parametrize("state", ["online", "unknown", "auth_failed", "degraded", "logging", "syncing"])
async def test_an_onu_in_any_other_state_is_asked_with_the_optical_timeout(clock, state):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.GET, "rx_dbm", "name"), onus=known([SEVEN], state))

    assert values_of(collected) == all_of([SEVEN], "name", "rx_dbm")
    assert [(request.oids, request.timeout) for request in agent.log] == [
        ([oid_of("name", SEVEN)], 5),
        ([oid_of("rx_dbm", SEVEN)], 20),
    ]


async def test_dark_onus_alone_cost_no_request_but_whether_the_olt_is_there(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.GET, "rx_dbm"), onus=known(ONUS, "offline"))

    assert [request.oids for request in agent.log] == [[SYS_UP_TIME]]
    assert collected.completeness is Completeness.COMPLETE
    assert all(values == {"rx_dbm": None} for values in values_of(collected).values())


async def test_an_inventory_without_onus_is_empty_and_says_what_has_to_come_first(clock):
    collected = await run(FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.GET, "name"), onus=[])

    assert collected.completeness is Completeness.EMPTY
    assert collected.traffic.pdus == 1
    assert "discovery" in collected.errors[0]


@pytest.mark.parametrize(
    "onus", [pytest.param([], id="nobody is known"), pytest.param(known(ONUS, "offline"), id="all are dark")]
)
async def test_a_mute_olt_is_unreachable_even_where_there_is_nothing_to_ask(clock, onus):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(dies_after=0))

    with pytest.raises(OltUnreachable):
        await run(agent, make_node(JobKind.GET, "rx_dbm"), onus=onus)


@pytest.mark.parametrize("accuses", ["right", "none", "first"])
@pytest.mark.parametrize("version", [Version.V1, Version.V2C])
async def test_what_the_device_does_not_have_is_none(clock, version, accuses):
    mib = make_mib(ONUS)
    del mib[oid_of("name", SEVEN)]
    agent = FakeAgent(clock, mib, Faults(accuses=accuses))

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS), olt=make_olt(version))

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "name", "state") | {
        index_of(SEVEN): {"name": None, "state": "online"},
    }


async def test_an_onu_of_which_the_olt_has_no_row_any_more_keeps_what_is_known_of_it(clock):
    agent = FakeAgent(clock, make_mib([onu for onu in ONUS if onu != SEVEN]))

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS))

    assert collected.completeness is Completeness.COMPLETE
    assert index_of(SEVEN) not in values_of(collected)
    assert collected.errors == ("name, state: the OLT has no row for 1 known ONUs",)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(("rx_dbm", "tx_dbm"), id="optics are missing while an ONU is off"),
        pytest.param(("name",), id="one column is no table"),
    ],
)
async def test_an_onu_without_these_values_is_not_thought_to_be_gone(clock, columns):
    agent = FakeAgent(clock, make_mib([onu for onu in ONUS if onu != SEVEN]))

    collected = await run(agent, make_node(JobKind.GET, *columns), onus=known(ONUS))

    assert values_of(collected)[index_of(SEVEN)] == dict.fromkeys(columns)
    assert collected.errors == ()


@pytest.mark.parametrize("accuses", ["right", "none", "first"])
async def test_a_value_that_cannot_be_read_is_left_out_and_the_rest_is_kept(clock, accuses):
    faults = Faults(gen_err_at=frozenset({oid_of("name", SEVEN)}), accuses=accuses)
    agent = FakeAgent(clock, make_mib(ONUS), faults)

    collected = await run(agent, make_node(JobKind.GET, "name", "state", "serial"), onus=known(ONUS))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("name of ONU 0/1/7: the agent answered genErr",)
    rest = [onu for onu in ONUS if onu != SEVEN]
    assert values_of(collected) == all_of(rest, "name", "state", "serial") | all_of([SEVEN], "state", "serial")


@pytest.mark.parametrize(
    ("accuses", "most"),
    [
        pytest.param("right", 2, id="named: asked alone, and the rest without it"),
        pytest.param("none", 9, id="not named: halved"),
        pytest.param("first", 11, id="another one named: not believed twice"),
    ],
)
async def test_a_poisoned_value_costs_few_requests(clock, accuses, most):
    onus = one_port(200)
    faults = Faults(gen_err_at=frozenset({oid_of("name", onus[6])}), accuses=accuses)
    well, agent = FakeAgent(clock, make_mib(onus)), FakeAgent(clock, make_mib(onus), faults)
    node = make_node(JobKind.GET, "state", "name", "serial")

    await run(well, node, onus=known(onus))
    await run(agent, node, onus=known(onus))

    assert len(well.log) < len(agent.log) <= len(well.log) + most


async def test_an_onu_that_never_answers_costs_its_batch_a_few_requests_and_nothing_else(clock):
    silent = frozenset(oid_of(name, SEVEN) for name in ("name", "state"))
    agent = FakeAgent(clock, make_mib(ONUS), Faults(silent_at=silent))

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("name, state of ONU 0/1/7: no answer",)
    assert values_of(collected) == all_of([onu for onu in ONUS if onu != SEVEN], "name", "state")
    assert len(agent.log) <= 5 + 20


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(drop_every=3), id="every third request is lost"),
        pytest.param(Faults(garbage_every=3), id="every third answer is garbage"),
        pytest.param(Faults(empty_every=3), id="every third answer has no variables"),
        pytest.param(Faults(most_variables=3), id="answers are cut short"),
        pytest.param(Faults(too_big_above=5), id="tooBig above five variables"),
        pytest.param(Faults(too_big_above=1), id="tooBig above one variable"),
        pytest.param(Faults(lost_above=3), id="large answers are lost on the way"),
    ],
)
async def test_an_agent_with_bad_habits_gives_everything_in_the_end(clock, faults):
    agent = FakeAgent(clock, make_mib(ONUS), faults)

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS), seconds=3600)

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "name", "state")


async def test_what_was_too_big_is_not_asked_for_again_and_again(clock):
    onus = one_port(200)
    agent = FakeAgent(clock, make_mib(onus), Faults(too_big_above=5))

    await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(onus))

    too_big = [len(request.oids) for request in agent.log if len(request.oids) > 5]
    assert agent.log[1].oids == agent.log[0].oids[:4]
    assert len(too_big) <= len(agent.log) // 10


async def test_one_that_is_too_big_alone_is_left_out(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(too_big_above=0))

    collected = await run(agent, make_node(JobKind.GET, "name"), onus=known([SEVEN]))

    assert collected.readings == ()
    assert collected.errors == ("name of ONU 0/1/7: the agent answered tooBig",)
    assert collected.completeness is Completeness.PARTIAL


async def test_values_of_other_oids_than_were_asked_for_are_not_taken(clock):
    agent = FakeAgent(clock, make_mib(ONUS))
    stranger = oid_of("name", at(0, 1, 8))
    honest = agent._answer
    agent._answer = lambda asked, found: honest(asked, [(stranger, b"somebody else")] * len(found))

    collected = await run(agent, make_node(JobKind.GET, "name"), onus=known([SEVEN]))

    assert collected.readings == ()
    assert collected.errors == ("name of ONU 0/1/7: the agent answered a different request",)


async def test_a_batch_may_be_answered_in_another_order(clock):
    agent = FakeAgent(clock, make_mib(ONUS))
    honest = agent._answer
    agent._answer = lambda asked, found: honest(asked, found[::-1])

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS))

    assert values_of(collected) == all_of(ONUS, "name", "state")


async def test_an_index_of_another_make_is_named_and_the_others_are_asked(clock):
    strangers = [KnownOnu("5.1", "online"), KnownOnu("gpon 0/1", "online")]

    collected = await run(
        FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.GET, "name"), onus=[*strangers, *known([SEVEN])]
    )

    assert values_of(collected) == all_of([SEVEN], "name")
    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == (
        "5.1 is not a valid ONU index of Acme; it was not read",
        "gpon 0/1 is not a valid ONU index of Acme; it was not read",
    )


WHOLE = replace(COLUMNS["distance_m"], space=replace(PLAIN, by_port=False, by_index=False))


async def test_a_column_that_cannot_be_asked_by_index_is_walked(clock):
    onus = one_port(12)
    mib = make_mib(onus)
    del mib[oid_of("distance_m", SEVEN)]
    agent = FakeAgent(clock, mib)

    collected = await run(
        agent,
        make_node(JobKind.GET, "name", "distance_m"),
        onus=known([SEVEN, at(0, 1, 8)]),
        brand=make_brand(columns=COLUMNS | {"distance_m": WHOLE}),
    )

    assert [request.kind for request in agent.log] == ["get", "get_bulk", "get_bulk"]
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == {
        index_of(SEVEN): {"name": "customer 7", "distance_m": None},
        index_of(at(0, 1, 8)): {"name": "customer 8", "distance_m": 700},
    }


async def test_an_onu_that_is_only_missing_from_a_walked_column_is_still_told_of(clock):
    collected = await run(
        FakeAgent(clock, make_mib([])),
        make_node(JobKind.GET, "distance_m"),
        onus=known([SEVEN]),
        brand=make_brand(columns=COLUMNS | {"distance_m": WHOLE}),
    )

    assert values_of(collected) == {index_of(SEVEN): {"distance_m": None}}


async def test_an_onu_that_a_table_cannot_number_is_named_and_the_rest_is_asked(clock):
    def encode(position):
        if position == SEVEN:
            raise ValueError("no such card")
        return encode_plain(position)

    column = replace(COLUMNS["distance_m"], space=replace(PLAIN, encode=encode))

    collected = await run(
        FakeAgent(clock, make_mib(ONUS)),
        make_node(JobKind.GET, "name", "distance_m"),
        onus=known(ONUS),
        brand=make_brand(columns=COLUMNS | {"distance_m": column}),
    )

    assert collected.errors == ("distance_m of ONU 0/1/7: the table has no index for it",)
    others = [onu for onu in ONUS if onu != SEVEN]
    assert values_of(collected) == all_of(others, "name", "distance_m") | all_of([SEVEN], "name")


async def test_the_deadline_leaves_what_was_read_and_says_how_many_are_missing(clock):
    agent = FakeAgent(clock, make_mib(ONUS), latency=1.0)

    collected = await run(agent, make_node(JobKind.GET, "name", "state"), onus=known(ONUS), seconds=2.5)

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("name, state: the time limit was reached with 6 of 18 ONUs not read yet",)
    assert values_of(collected) == all_of(ONUS[:12], "name", "state")


async def test_an_agent_that_dies_midway_leaves_what_was_read(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(dies_after=2))

    collected = await run(agent, make_node(JobKind.GET, "name", "rx_dbm"), onus=known(ONUS))

    assert values_of(collected) == all_of(ONUS[:8], "name")
    assert collected.errors == (
        "name: the OLT stopped answering with 10 of 18 ONUs not read yet",
        "rx_dbm: the OLT stopped answering before the first row",
    )
    assert len(agent.log) == 2 + 4 + 2


async def test_failures_of_a_kind_are_told_in_one_sentence(clock):
    onus = one_port(100)
    faults = Faults(gen_err_at=frozenset(oid_of("name", onu) for onu in onus))

    collected = await run(FakeAgent(clock, make_mib(onus), faults), make_node(JobKind.GET, "name"), onus=known(onus))

    assert collected.errors == ("name of 100 ONUs, the first ONU 0/1/1: the agent answered genErr",)
    assert len(collected.failed_onus) == 100


async def test_one_row_a_request_is_the_least(clock):
    brand = make_brand(manners=Manners(rows_per_get=0))

    collected = await run(
        FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.GET, "name"), onus=known(ONUS), brand=brand
    )

    assert values_of(collected) == all_of(ONUS, "name")
