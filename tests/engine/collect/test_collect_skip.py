"""Getting past rows that cannot be read: who knows the next row, what is guessed, and when a column is given up."""

from datetime import timedelta

import pytest
from collect_fakes import (
    BEHIND,
    COLUMNS,
    OPTICS,
    PLAIN,
    FakeAgent,
    FakeClock,
    Faults,
    all_of,
    at,
    encode_plain,
    known,
    make_mib,
    make_node,
    make_olt,
    oid_of,
    one_port,
    run,
    values_of,
)

from facho.engine.brand import OPAQUE, Manners
from facho.engine.collect.bad_rows import MAX_GAPS, Skipper
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.known_rows import Guide, find_ports, port_arcs, position, readable
from facho.engine.collect.learned import Learned
from facho.engine.collect.requester import Requester
from facho.engine.model import Completeness, JobKind
from facho.engine.oid import pack, text

NAME, SERIAL = COLUMNS["name"], COLUMNS["serial"]


def walk_to(onu, column=NAME, port=b""):
    """Return a walk that has read one row and stands behind it."""
    walk = ColumnWalk(column, port)
    if onu is not None:
        walk.absorb([(oid_of(column.field, onu), b"read")])
    return walk


def guide_of(*onus, poisoned=()):
    return Guide([encode_plain(onu) for onu in onus], Learned({"poisoned": [text(oid) for oid in poisoned]}))


def arcs_of(onu):
    return encode_plain(onu)


@pytest.mark.parametrize(
    ("inventory", "sibling", "row"),
    [
        pytest.param([at(0, 1, 7)], None, at(0, 1, 7), id="the inventory knows it"),
        pytest.param([], at(0, 1, 7), at(0, 1, 7), id="another column has it"),
        pytest.param([at(0, 1, 9)], at(0, 1, 7), at(0, 1, 7), id="another column has an earlier one"),
        pytest.param([at(0, 1, 7)], at(0, 1, 9), at(0, 1, 7), id="the inventory has an earlier one"),
        pytest.param([at(0, 1, 3), at(0, 1, 6)], at(0, 1, 2), None, id="all that is known lies before"),
        pytest.param([at(0, 2, 1)], None, at(0, 2, 1), id="the next port has the next row"),
        pytest.param([], None, None, id="nobody knows"),
    ],
)
def test_the_next_row_comes_from_the_inventory_or_another_column(inventory, sibling, row):
    walk = walk_to(at(0, 1, 6))
    siblings = [walk, walk_to(sibling, SERIAL)]

    index = guide_of(*inventory).next_row(walk, siblings)

    assert index == (None if row is None else pack(arcs_of(row)))


def test_a_walk_of_one_port_is_not_led_into_another():
    walk = walk_to(at(0, 1, 6), port=pack((1001,)))

    assert guide_of(at(0, 2, 1)).next_row(walk, [walk]) is None


@pytest.mark.parametrize(
    ("cursor", "pitfall", "rows"),
    [
        pytest.param((), (1001, 7), 6, id="from the start"),
        pytest.param((1001, 3), (1001, 7), 3, id="rows between"),
        pytest.param((1001, 6), (1001, 7), 0, id="right before it"),
        pytest.param((1001, 9), (1001, 7), 0, id="after it"),
        pytest.param((1001, 6), (1001, 99), 4, id="a pitfall that nobody knows"),
    ],
)
def test_rows_before_a_pitfall_are_counted_by_what_is_known(cursor, pitfall, rows):
    assert guide_of(*one_port(10)).rows_before(cursor, pitfall) == rows


def test_pitfalls_are_those_of_the_column_and_of_the_port_in_order():
    poisoned = [oid_of("name", at(0, 1, 130)), oid_of("name", at(0, 1, 7)), oid_of("name", at(0, 2, 7))]
    guide = guide_of(poisoned=[*poisoned, oid_of("serial", at(0, 1, 7))])

    assert guide.pitfalls(ColumnWalk(NAME)) == [(1001, 7), (1001, 130), (1002, 7)]
    assert guide.pitfalls(ColumnWalk(NAME, pack((1002,)))) == [(1002, 7)]


def test_an_index_that_is_cut_off_has_no_numbers():
    walk = ColumnWalk(NAME)
    walk.cursor = NAME.oid + b"\x87"

    assert readable(b"\x87") == position(walk) == ()


@pytest.mark.parametrize(
    ("space", "index", "port"),
    [
        pytest.param(PLAIN, (1001, 7), (1001,), id="an ONU"),
        pytest.param(PLAIN, (5, 1), (5,), id="a row that is no ONU has a port of its own making"),
        pytest.param(PLAIN, (1001,), (), id="a port itself"),
        pytest.param(OPAQUE, (12, 85, 66), (12, 85), id="an index that is only a name"),
        pytest.param(OPTICS, (1000, 7, 1), (1000, 7), id="a space that cannot number a port"),
    ],
)
def test_the_port_of_a_row_is_what_the_indexes_of_its_onus_begin_with(space, index, port):
    assert port_arcs(space, index) == port


def make_requester(agent):
    deadline = agent.clock.now() + timedelta(hours=1)
    return Requester(agent, make_olt(), Manners(), learned=Learned({}), clock=agent.clock, deadline=deadline)


PORTS = [*one_port(20), *one_port(1, port=2), *one_port(60, slot=3, port=9)]


async def test_ports_are_found_by_hopping_from_one_to_the_next():
    agent = FakeAgent(FakeClock(), make_mib(PORTS))

    found = await find_ports(NAME, make_requester(agent))

    assert found == {(1001,), (1002,), (1057,)}
    assert len(agent.log) == 4
    assert {request.repetitions for request in agent.log} == {1}


@pytest.mark.parametrize(
    ("faults", "found"),
    [
        pytest.param({"gen_err_at": frozenset({oid_of("name", at(3, 9, 1))})}, {(1001,), (1002,)}, id="genErr"),
        pytest.param({"silent_at": frozenset({oid_of("name", at(3, 9, 1))})}, {(1001,), (1002,)}, id="silence"),
        pytest.param({"garbage_every": 1}, set(), id="garbage"),
        pytest.param({"empty_every": 1}, set(), id="no variables"),
        pytest.param({"jumps": {0: 0}}, {(1001,), (1002,), (1057,)}, id="a circle elsewhere"),
    ],
)
async def test_ports_that_cannot_be_found_are_left_to_the_walks(faults, found):
    agent = FakeAgent(FakeClock(), make_mib(PORTS), Faults(**faults))

    assert await find_ports(NAME, make_requester(agent)) == found


async def test_an_agent_that_answers_the_same_row_forever_has_one_port():
    agent = FakeAgent(FakeClock(), make_mib(PORTS))
    agent._after = lambda oid: iter([(oid_of("name", at(0, 1, 1)), b"again")])

    assert await find_ports(NAME, make_requester(agent)) == {(1001,)}
    assert len(agent.log) == 2


def lead(walk, *, siblings=(), guide=None):
    learned = Learned({})
    skipper = Skipper(learned, PLAIN)
    walk.park("no answer")
    skipper.lead_on([walk, *siblings], guide or Guide([], learned))
    return learned


def test_a_parked_column_waits_while_its_siblings_may_still_tell():
    walk = walk_to(at(0, 1, 6))

    learned = lead(walk, siblings=[walk_to(at(0, 1, 6), SERIAL)])

    assert walk.parked == "no answer"
    assert list(learned.poisoned) == []


def test_a_column_goes_on_behind_the_row_that_its_sibling_tells_and_the_row_is_remembered():
    walk = walk_to(at(0, 1, 6))
    sibling = walk_to(at(0, 1, 7), SERIAL)

    learned = lead(walk, siblings=[sibling])

    assert walk.is_open
    assert walk.cursor == oid_of("name", at(0, 1, 7))
    assert walk.gaps == {pack((1001, 7)): "no answer"}
    assert list(learned.poisoned) == [oid_of("name", at(0, 1, 7))]


def test_where_nobody_knows_the_next_number_is_guessed():
    walk = walk_to(at(0, 1, 6))

    lead(walk)

    assert walk.cursor == oid_of("name", at(0, 1, 7))


def test_a_column_that_has_read_nothing_is_not_led_blindly():
    walk = walk_to(None)

    lead(walk)

    assert walk.stopped == "no answer"


async def read_name(onus, poisoned, mib=None):
    """Read one column of an OLT of which nothing is known."""
    agent = FakeAgent(FakeClock(), mib or make_mib(onus), Faults(gen_err_at=frozenset({poisoned})))
    return await run(agent, make_node(JobKind.TABLE, "name")), agent


async def test_a_row_that_cannot_be_read_and_whose_number_was_guessed_costs_only_itself():
    onus = one_port(30)
    poisoned = oid_of("name", at(0, 1, 7))

    collected, agent = await read_name(onus, poisoned)

    assert values_of(collected) == all_of([onu for onu in onus if onu.onu != 7], "name")
    assert collected.failed_onus == ("ONU 0/1/7",)
    assert len(agent.log) <= 30


async def test_a_number_that_was_guessed_wrongly_costs_the_rest_of_its_port_and_no_other():
    onus = [*one_port(6), at(0, 1, 80), at(0, 1, 81), *one_port(9, port=2)]
    poisoned = oid_of("name", at(0, 1, 80))

    collected, agent = await read_name(onus, poisoned)

    assert collected.completeness is Completeness.PARTIAL
    assert values_of(collected).items() >= all_of([*onus[:6], *onus[8:]], "name").items()
    assert len(agent.log) <= 30


async def test_when_leaving_the_port_does_not_help_the_column_is_stopped_with_what_it_has():
    onus = one_port(30)

    collected, agent = await read_name(onus, BEHIND, mib=make_mib(onus, ["name"]))

    assert values_of(collected).items() >= all_of(onus, "name").items()
    assert collected.completeness is Completeness.PARTIAL
    assert "30 rows kept" in collected.errors[0]
    assert len(agent.log) <= 30


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
async def test_every_second_row_is_too_much_and_the_column_is_called_broken(fault):
    onus = one_port(300)
    poisoned = frozenset(oid_of("name", onu) for onu in onus[::2])
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(**{fault: poisoned}))

    collected = await run(agent, make_node(JobKind.TABLE, "name"), onus=known(onus), seconds=10**6)

    assert collected.completeness is Completeness.PARTIAL
    assert len(collected.readings) == MAX_GAPS
    assert len(collected.failed_onus) == MAX_GAPS


async def test_rows_that_are_poisoned_one_behind_the_other_are_all_passed_over():
    onus = one_port(30)
    bad = onus[6:8]
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(gen_err_at=frozenset(oid_of("name", onu) for onu in bad)))

    collected = await run(agent, make_node(JobKind.TABLE, "name", "serial"), onus=known(onus))

    assert collected.failed_onus == ("ONU 0/1/7", "ONU 0/1/8")
    others = [onu for onu in onus if onu not in bad]
    assert values_of(collected) == all_of(others, "name", "serial") | all_of(bad, "serial")
