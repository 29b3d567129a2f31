"""Agents that repeat OIDs, go backwards or lead in a circle."""

import pytest
from collect_fakes import (
    BEHIND,
    COLUMNS,
    FakeAgent,
    FakeClock,
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
from facho.engine.collect.column import MAX_BARREN, ColumnWalk, is_behind
from facho.engine.model import Completeness, JobKind
from facho.engine.oid import Oid, parse
from facho.engine.snmp import Missing

ONUS = one_port(30)


def path_of(order):
    """Return the way of an agent that has the serials in this order, and something behind them."""
    return [*(oid_of("serial", ONUS[place]) for place in order), BEHIND]


def make_agent(order, **faults):
    return FakeAgent(FakeClock(), make_mib(ONUS, ["serial"]), Faults(**faults), path=path_of(order))


# What a recording of a C320 does: three rows come too early, then smaller ones, then the three again.
RECORDED = [*range(10), 20, 21, 22, *range(10, 20), 20, 21, 22, *range(23, 30)]


@pytest.mark.parametrize("repetitions", [4, 5, 7, 10, 25, 50])
async def test_one_regression_and_three_duplicates_do_not_end_a_walk(repetitions):
    brand = make_brand(manners=Manners(max_repetitions=repetitions))

    collected = await run(make_agent(RECORDED), make_node(JobKind.TABLE, "serial"), brand=brand)

    assert values_of(collected) == all_of(ONUS, "serial")
    assert collected.completeness is Completeness.COMPLETE
    assert collected.errors == ()


async def test_a_walk_that_cannot_get_past_its_duplicates_is_partial():
    # Answers of two rows: behind the repeated ones the agent leads back to where they were met first.
    agent = make_agent(RECORDED, most_variables=2)

    collected = await run(agent, make_node(JobKind.TABLE, "serial"))

    assert values_of(collected) == all_of(ONUS[:23], "serial")
    assert collected.completeness is Completeness.PARTIAL


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([*range(15, 30), *range(15)], id="the second half first"),
        pytest.param([*range(29, -1, -1)], id="all rows backwards"),
        pytest.param([*range(10), 4, 5, 6, *range(10, 30)], id="three rows again"),
    ],
)
async def test_rows_in_any_order_are_all_read(order):
    collected = await run(make_agent(order), make_node(JobKind.TABLE, "serial"))

    assert values_of(collected) == all_of(ONUS, "serial")
    assert collected.completeness is Completeness.COMPLETE


@pytest.mark.parametrize(
    "back_to",
    [pytest.param(0, id="the start"), pytest.param(12, id="a few rows back"), pytest.param(16, id="the same row")],
)
async def test_a_circle_is_left_with_what_was_read(back_to):
    agent = make_agent(range(30), jumps={16: back_to})

    collected = await run(agent, make_node(JobKind.TABLE, "serial"))

    assert values_of(collected) == all_of(ONUS[:17], "serial")
    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("serial: 6 answers in a row had no new rows after ONU 0/1/17, 17 rows kept",)
    assert len(agent.log) == 2 + MAX_BARREN


async def test_a_circle_in_one_column_does_not_stop_the_others():
    mib = make_mib(ONUS, ["serial", "name"])
    agent = FakeAgent(FakeClock(), mib)
    place = agent.path.index(oid_of("name", ONUS[9]))
    agent.faults = Faults(jumps={place: place - 4})

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "name"))

    assert collected.completeness is Completeness.PARTIAL
    assert values_of(collected) == all_of(ONUS[:10], "serial", "name") | all_of(ONUS[10:], "serial")


async def test_an_agent_that_leaves_the_column_backwards_has_not_ended_it():
    mib = make_mib(ONUS, ["serial", "name"])
    agent = FakeAgent(FakeClock(), mib)
    agent.faults = Faults(jumps={agent.path.index(oid_of("name", ONUS[9])): 0})

    collected = await run(agent, make_node(JobKind.TABLE, "name"))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("name: the agent returned a row before the column after ONU 0/1/10, 10 rows kept",)


async def test_rows_without_end_meet_a_limit():
    collected = await run(make_agent(range(30)), make_node(JobKind.TABLE, "serial"), most_onus=10)

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == (
        "serial: the limit of 20 rows was reached after ONU 0/1/20, 20 rows kept",
        "the OLT reports more than 10 ONUs; the others were left out",
    )


async def test_onus_beyond_the_limit_are_left_out():
    collected = await run(make_agent(range(15)), make_node(JobKind.DISCOVERY, "serial"), most_onus=10)

    assert (len(collected.readings), collected.excess, collected.absent) == (10, 5, ())
    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("the OLT reports more than 10 ONUs; the others were left out",)


async def test_a_long_text_is_cut_with_a_remark():
    mib = make_mib(ONUS[:2], ["serial", "name"]) | {oid_of("name", ONUS[0]): b"n" * 10_000}

    collected = await run(FakeAgent(FakeClock(), mib), make_node(JobKind.TABLE, "name"))

    assert collected.readings[0].values["name"] == "n" * 254 + "…"
    assert collected.errors == ("name: cut to 255 characters for 1 ONUs",)
    assert collected.completeness is Completeness.COMPLETE


def test_a_name_without_a_value_is_no_row_and_no_end():
    walk = ColumnWalk(COLUMNS["serial"])

    walk.absorb(
        [
            (COLUMNS["serial"].oid, Missing.NO_SUCH_OBJECT),
            (COLUMNS["serial"].oid, b"the column itself"),
            (oid_of("serial", at(0, 1, 6)), Missing.NO_SUCH_INSTANCE),
            (oid_of("serial", at(0, 1, 7)), b"HWTC00000007"),
        ]
    )

    assert list(walk.rows.values()) == [b"HWTC00000007"]
    assert walk.is_open
    assert walk.cursor == oid_of("serial", at(0, 1, 7))


def test_a_walk_goes_on_behind_its_last_new_row_and_not_behind_a_repeated_one():
    walk = ColumnWalk(COLUMNS["serial"])
    rows = [(oid_of("serial", onu), b"") for onu in ONUS]

    walk.absorb([*rows[5:8], *rows[:3]])
    walk.absorb([*rows[3:5], *rows[5:7]])

    assert walk.cursor == rows[4][0]


def test_a_walk_without_a_new_row_asks_once_more_and_then_follows_the_agent():
    walk = ColumnWalk(COLUMNS["serial"])
    rows = [(oid_of("serial", onu), b"") for onu in ONUS]
    cursors = []

    for answer in (rows[:8], rows[2:5], rows[3:6]):
        walk.absorb(answer)
        cursors.append(walk.cursor)

    assert cursors == [rows[7][0], rows[7][0], rows[5][0]]


async def test_an_agent_that_goes_back_once_in_a_while_is_read_to_the_end():
    agent = make_agent(range(30))
    honest = agent._after

    def forgetful(oid):
        is_lost = len(agent.log) % 3 == 0
        return honest(COLUMNS["serial"].oid if is_lost else oid)

    agent._after = forgetful

    collected = await run(agent, make_node(JobKind.TABLE, "serial"), brand=make_brand(manners=Manners()))

    assert values_of(collected) == all_of(ONUS, "serial")
    assert collected.completeness is Completeness.COMPLETE


def test_what_stands_behind_the_end_of_a_column_is_not_read():
    walk = ColumnWalk(COLUMNS["serial"])

    walk.absorb([(oid_of("name", at(0, 1, 7)), b"spilled"), (oid_of("serial", at(0, 1, 7)), b"too late")])

    assert walk.is_complete
    assert walk.rows == {}


@pytest.mark.parametrize(
    ("oid", "other", "expected"),
    [
        pytest.param(parse("1.3.6.1.23"), parse("1.3.6.1.8"), True, id="23 comes after 8, as text it does not"),
        pytest.param(parse("1.3.6.1.127"), parse("1.3.6.1.128"), False, id="127 comes before 128"),
        pytest.param(parse("1.3.6.1.16384"), parse("1.3.6.1.16383.5"), True, id="three bytes come after two"),
        pytest.param(parse("1.3.6.1"), parse("1.3.6.1.1"), False, id="a parent comes before its child"),
        pytest.param(parse("1.3.6.1"), parse("1.3.6.1"), False, id="the same is not behind itself"),
        pytest.param(Oid(parse("1.3.6.1") + b"\x81"), parse("1.3.6.1"), False, id="a broken one comes nowhere"),
    ],
)
def test_oids_are_compared_as_numbers(oid, other, expected):
    assert is_behind(oid, other) is expected
