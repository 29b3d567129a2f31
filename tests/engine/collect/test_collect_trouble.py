"""Walking agents that lose, refuse, cut short or cannot read; what is asked instead, and what is left."""

from collections import Counter

import pytest
from collect_fakes import (
    TABLE,
    FakeAgent,
    Faults,
    all_of,
    at,
    make_brand,
    make_mib,
    make_node,
    oid_of,
    one_port,
    run,
    values_of,
)

from facho.engine.brand import Manners
from facho.engine.collect.bad_rows import MAX_GAPS
from facho.engine.model import Completeness, JobKind, RawOid
from facho.engine.oid import Oid, pack, parse

# A job may name more columns than any brand has.
MANY = tuple(RawOid(f"raw{number}", parse(f"{TABLE}.{number}"), "number") for number in range(20, 36))

ONUS = [*one_port(20), *one_port(15, port=2), at(3, 4, 7)]
SEVEN = at(0, 1, 7)
POISONED = frozenset({oid_of("name", SEVEN)})


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(drop_every=3), id="every third request is lost"),
        pytest.param(Faults(garbage_every=4), id="every fourth answer is garbage"),
        pytest.param(Faults(empty_every=3), id="every third answer has no variables"),
        pytest.param(Faults(most_variables=7), id="answers are cut in the middle of a row"),
        pytest.param(Faults(most_variables=1), id="one variable an answer"),
        pytest.param(Faults(too_big_above=12), id="tooBig above four rows"),
        pytest.param(Faults(too_big_above=1), id="tooBig above one variable"),
        pytest.param(Faults(lost_above=7), id="large answers are lost on the way"),
    ],
)
async def test_an_agent_with_bad_habits_is_read_to_the_end(clock, faults):
    agent = FakeAgent(clock, make_mib(ONUS), faults)

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "name", "state"), seconds=3600)

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "serial", "name", "state")


async def test_too_big_halves_the_repetitions_and_then_the_columns(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(too_big_above=2))

    await run(agent, make_node(JobKind.TABLE, "serial", "name", "state", "distance_m"))

    asked = [(request.repetitions, len(request.oids)) for request in agent.log]
    assert asked[:5] == [(10, 4), (5, 4), (2, 4), (1, 4), (1, 2)]


async def test_a_column_that_is_too_big_for_any_request_stops_alone(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(too_big_above=0))

    collected = await run(agent, make_node(JobKind.TABLE, "serial"))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("serial: the agent answered tooBig before the first row",)


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        pytest.param({"gen_err_at": POISONED}, "the agent answered genErr", id="genErr"),
        pytest.param({"gen_err_at": POISONED, "accuses": "none"}, "the agent answered genErr", id="genErr of nobody"),
        pytest.param({"gen_err_at": POISONED, "accuses": "first"}, "the agent answered genErr", id="genErr of another"),
        pytest.param({"silent_at": POISONED}, "no answer", id="silence"),
    ],
)
async def test_a_value_that_cannot_be_read_is_passed_over_and_everything_else_is_read(clock, faults, reason):
    onus = one_port(30)
    agent = FakeAgent(clock, make_mib(onus), Faults(**faults))

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "name", "state"), seconds=3600)

    others = [onu for onu in onus if onu != SEVEN]
    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == (f"name of ONU 0/1/7: {reason}",)
    assert collected.failed_onus == ("ONU 0/1/7",)
    assert values_of(collected) == all_of(others, "serial", "name", "state") | all_of([SEVEN], "serial", "state")


async def test_sizes_on_the_way_to_the_smallest_are_tried_once_and_the_smallest_is_insisted_on(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(silent_at=frozenset({oid_of("serial", ONUS[0])})))

    await run(agent, make_node(JobKind.TABLE, "serial"))

    bulks = [request.repetitions for request in agent.log if request.kind == "get_bulk"]
    assert bulks == [10] * 4 + [5, 2] + [1] * 2


async def test_a_row_that_never_answers_is_closed_in_on_without_patience(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(silent_at=frozenset({oid_of("serial", ONUS[7])})))

    await run(agent, make_node(JobKind.TABLE, "serial"))

    bulks = [request.repetitions for request in agent.log if request.kind == "get_bulk"]
    assert bulks[:10] == [10] * 4 + [5, 5, 2, 2] + [1] * 2
    # Behind the row, once it is found, requests are as large as before.
    assert bulks[10:12] == [1, 10]


async def test_after_a_while_without_loss_a_lost_request_is_repeated_again(clock):
    onus = one_port(90)
    silent = frozenset({oid_of("name", onus[0]), oid_of("distance_m", onus[80])})
    agent = FakeAgent(clock, make_mib(onus), Faults(silent_at=silent))

    await run(agent, make_node(JobKind.TABLE, "name", "distance_m"), seconds=3600)

    times_sent = Counter((*request.oids, request.repetitions) for request in agent.log if request.kind == "get_bulk")
    assert list(times_sent.values()).count(4) == 2


async def test_an_agent_that_accuses_the_wrong_column_is_not_believed_twice(clock):
    onus = one_port(60)
    poisoned = frozenset(oid_of("state", onu) for onu in onus[4::9])
    node = make_node(JobKind.TABLE, "serial", "name", "distance_m", "state")
    honest, liar = (
        FakeAgent(clock, make_mib(onus), Faults(gen_err_at=poisoned, accuses=who)) for who in ("none", "first")
    )
    await run(honest, node)

    collected = await run(liar, node)

    assert collected.errors == ("state of 7 ONUs, the first ONU 0/1/5: the agent answered genErr",)
    assert len(collected.failed_onus) == len(poisoned)
    assert len(liar.log) <= len(honest.log) + 3


async def test_a_column_whose_end_lies_before_a_broken_row_is_kept_whole_but_not_called_complete(clock):
    # The agent looks at the next table to find that this one has ended, and fails there.
    agent = FakeAgent(clock, make_mib(ONUS), Faults(gen_err_at=frozenset({oid_of("name", ONUS[0])})))

    collected = await run(agent, make_node(JobKind.TABLE, "serial"))

    assert values_of(collected) == all_of(ONUS, "serial")
    assert collected.completeness is Completeness.PARTIAL
    assert len(agent.log) <= 30


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"gen_err_at": POISONED, "accuses": "none"}, id="genErr"),
        pytest.param({"silent_at": POISONED}, id="silence"),
    ],
)
async def test_a_poisoned_value_that_nobody_names_costs_few_requests(clock, faults):
    onus = one_port(400)
    node = make_node(JobKind.TABLE, "serial", "name", "distance_m", "state")
    well, agent = FakeAgent(clock, make_mib(onus)), FakeAgent(clock, make_mib(onus), Faults(**faults))
    await run(well, node)

    collected = await run(agent, node, seconds=3600)

    assert len(collected.errors) == 1
    assert len(well.log) < len(agent.log) <= len(well.log) + 30


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
async def test_a_column_that_is_broken_from_its_first_row_on_is_given_up_and_the_others_do_not_crawl(clock, fault):
    onus = one_port(400)
    broken = frozenset(oid_of("name", onu) for onu in onus)
    node = make_node(JobKind.TABLE, "serial", "name", "state")
    well, agent = FakeAgent(clock, make_mib(onus)), FakeAgent(clock, make_mib(onus), Faults(**{fault: broken}))
    await run(well, node)

    collected = await run(agent, node, seconds=36000)

    assert collected.completeness is Completeness.PARTIAL
    assert values_of(collected) == all_of(onus, "serial", "state")
    # A few for each row that it is led past, until it is called broken.
    assert len(agent.log) <= len(well.log) + 30 + 9 * MAX_GAPS


async def test_too_many_columns_are_told_from_a_broken_one(clock):
    agent = FakeAgent(clock, make_mib(one_port(30)), Faults(lost_above=2))

    await run(agent, make_node(JobKind.TABLE, "serial", "name", "distance_m", "state"), seconds=3600)

    bulks = [(len(request.oids), request.repetitions) for request in agent.log if request.kind == "get_bulk"]
    assert bulks[:12] == [(4, 10)] * 4 + [(4, 5), (4, 2), (4, 1)] + [(2, 1)] * 5


def make_wide_mib(columns, onus):
    rows = {Oid(raw.oid + pack((1001, onu))): onu for raw in columns for onu in range(1, onus + 1)}
    return make_mib([]) | rows


async def test_many_columns_that_are_too_many_are_narrowed_at_once(clock):
    agent = FakeAgent(clock, make_wide_mib(MANY[:8], 5), Faults(lost_above=2))

    collected = await run(agent, make_node(JobKind.TABLE, oids=MANY[:8]), seconds=3600)

    bulks = [(len(request.oids), request.repetitions) for request in agent.log if request.kind == "get_bulk"]
    assert collected.completeness is Completeness.COMPLETE
    assert bulks[:14] == [(8, 10)] * 4 + [(8, 5), (8, 2), (8, 1), (4, 1), (2, 1), (2, 1), (4, 1)] + [(2, 1)] * 3


async def test_one_bad_column_among_many_leaves_the_others_together(clock):
    silent = frozenset({Oid(MANY[-1].oid + pack((1001, 15)))})
    agent = FakeAgent(clock, make_wide_mib(MANY, 50), Faults(silent_at=silent))

    collected = await run(agent, make_node(JobKind.TABLE, oids=MANY), seconds=3600)

    assert collected.errors == ("raw35 of ONU 0/1/15: no answer",)
    assert collected.readings[14].values == {f"raw{number}": 15 for number in range(20, 35)}
    assert len(agent.log[-1].oids) == 16
    assert len(agent.log) <= 45


async def test_an_agent_that_dies_midway_leaves_its_rows_and_is_not_asked_for_long(clock):
    onus = one_port(40)
    agent = FakeAgent(clock, make_mib(onus), Faults(dies_after=2))

    collected = await run(agent, make_node(JobKind.WALK, "serial", "name", "state"))

    assert collected.completeness is Completeness.PARTIAL
    assert values_of(collected) == all_of(onus[:20], "serial")
    assert collected.errors == ("serial, name, state: the OLT stopped answering after ONU 0/1/20",)
    assert len(agent.log) == 2 + 4 + 2


async def test_answers_without_variables_are_not_the_end_of_a_table(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(empty_every=1))

    collected = await run(agent, make_node(JobKind.TABLE, "serial"))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.readings == ()
    assert collected.errors == ("serial: no usable answer before the first row",)


async def test_after_trouble_requests_grow_again(clock):
    onus = one_port(200)
    agent = FakeAgent(clock, make_mib(onus), Faults(gen_err_at=frozenset({oid_of("distance_m", onus[2])})))

    await run(agent, make_node(JobKind.TABLE, "name", "distance_m"))

    assert min(request.repetitions for request in agent.log) == 1
    assert agent.log[-1].repetitions > 10


async def test_repetitions_are_never_zero_even_if_a_profile_asks_for_it(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(
        agent, make_node(JobKind.TABLE, "serial"), brand=make_brand(manners=Manners(max_repetitions=0))
    )

    assert collected.completeness is Completeness.COMPLETE
    assert agent.log[0].repetitions == 1
