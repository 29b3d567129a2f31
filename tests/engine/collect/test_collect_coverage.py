"""How much of which column was read on which port, and whose absence means something."""

from dataclasses import replace

import pytest
from collect_fakes import (
    COLUMNS,
    PLAIN,
    TABLE,
    FakeAgent,
    FakeClock,
    Faults,
    all_of,
    at,
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

from facho.engine.brand import IndexSpace, Manners, PortTable, Position
from facho.engine.collect.column import ColumnWalk
from facho.engine.collect.coverage import ColumnCoverage, missing_by_count
from facho.engine.collect.join import Harvest
from facho.engine.model import Completeness, Coverage, JobKind
from facho.engine.oid import Oid, pack, parse

ONUS = [*one_port(5), *one_port(4, port=2), *one_port(3, port=3)]
COMPLETE, PARTIAL, EMPTY = Completeness.COMPLETE, Completeness.PARTIAL, Completeness.EMPTY


def covered(collected, field="serial"):
    """Return how each port of a column was covered."""
    lines = [line for line in collected.coverage if line.field == field]
    return {(line.slot, line.port): (line.completeness, line.rows) for line in lines}


def discover(mib, faults=None, *, onus=(), brand=None, **olt):
    agent = FakeAgent(FakeClock(), mib, faults)
    return run(agent, make_node(JobKind.DISCOVERY), onus=known(onus), brand=brand, olt=make_olt(**olt), seconds=3600)


@pytest.mark.parametrize("limit", [1, 4])
async def test_every_port_of_every_column_is_accounted_for(limit):
    collected = await discover(make_mib(ONUS), onus=ONUS, max_in_flight=limit)

    ports = {(0, 1): (COMPLETE, 5), (0, 2): (COMPLETE, 4), (0, 3): (COMPLETE, 3)}
    assert covered(collected, "serial") == covered(collected, "state") == ports
    assert {line.reason for line in collected.coverage} == {""}


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.WALK, JobKind.GET])
@pytest.mark.parametrize("limit", [1, 4])
async def test_a_gap_makes_its_port_partial_in_its_column_and_nothing_else(kind, limit):
    faults = Faults(gen_err_at=frozenset({oid_of("name", at(0, 2, 2))}))
    agent = FakeAgent(FakeClock(), make_mib(ONUS), faults)

    collected = await run(
        agent, make_node(kind, "name", "state"), onus=known(ONUS), olt=make_olt(max_in_flight=limit), seconds=3600
    )

    assert covered(collected, "name") == {(0, 1): (COMPLETE, 5), (0, 2): (PARTIAL, 3), (0, 3): (COMPLETE, 3)}
    reasons = {line.reason for line in collected.coverage if line.completeness is PARTIAL and line.field == "name"}
    assert len(reasons) == 1
    assert reasons != {""}
    assert collected.failed_onus == ("ONU 0/2/2",)


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.WALK])
@pytest.mark.parametrize("limit", [1, 4])
async def test_a_gap_in_one_column_leaves_the_others_complete_when_they_are_walked(kind, limit):
    faults = Faults(gen_err_at=frozenset({oid_of("name", at(0, 2, 2))}))
    agent = FakeAgent(FakeClock(), make_mib(ONUS), faults)

    collected = await run(
        agent, make_node(kind, "name", "state"), onus=known(ONUS), olt=make_olt(max_in_flight=limit), seconds=3600
    )

    assert covered(collected, "state") == {(0, 1): (COMPLETE, 5), (0, 2): (COMPLETE, 4), (0, 3): (COMPLETE, 3)}


async def test_an_empty_table_is_empty_and_not_partial():
    collected = await discover(make_mib([]))

    assert collected.coverage == (Coverage("serial", None, None, EMPTY), Coverage("state", None, None, EMPTY))


async def test_a_column_that_the_run_did_not_come_to_is_partial():
    agent = FakeAgent(FakeClock(), make_mib(ONUS), latency=10.0)

    collected = await run(agent, make_node(JobKind.WALK, "name", "state"), seconds=15)

    assert covered(collected, "state") == {(None, None): (PARTIAL, 0)}
    assert [line.reason for line in collected.coverage if line.field == "state"] == ["the time limit was reached"]


async def test_an_agent_that_dies_leaves_the_ports_behind_uncovered():
    onus = [*one_port(20), *one_port(20, port=2)]
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(dies_after=3))

    collected = await run(agent, make_node(JobKind.TABLE, "serial"), onus=known(onus))

    assert covered(collected) == {(0, 1): (COMPLETE, 20), (0, 2): (PARTIAL, 10), (None, None): (PARTIAL, 0)}


# Who is absent: only known ONUs of ports that were read to their ends.

GONE = [at(0, 1, 9), at(0, 2, 9), at(0, 3, 9)]


def absent(collected):
    return set(collected.absent)


@pytest.mark.parametrize("limit", [1, 4])
async def test_known_onus_that_a_complete_discovery_does_not_find_are_absent(limit):
    collected = await discover(make_mib(ONUS), onus=[*ONUS, *GONE], max_in_flight=limit)

    assert absent(collected) == {index_of(onu) for onu in GONE}


@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
async def test_a_gap_hides_nobody_but_the_onu_that_could_not_be_read(limit, fault):
    poisoned = at(0, 2, 2)
    faults = Faults(**{fault: frozenset({oid_of("serial", poisoned), oid_of("state", poisoned)})})

    collected = await discover(make_mib(ONUS), faults, onus=[*ONUS, *GONE], max_in_flight=limit)

    assert index_of(poisoned) not in values_of(collected)
    assert absent(collected) == {index_of(onu) for onu in GONE}


async def test_onus_that_answer_are_not_absent_from_an_empty_table_of_serials():
    """The OLT reads serials from the ONUs, in a table that can only be walked. It has none now, but their powers."""
    walked = IndexSpace(PLAIN.decode, PLAIN.encode, by_index=False)
    serial = replace(COLUMNS["serial"], space=walked, optical=True)
    agent = FakeAgent(FakeClock(), make_mib(ONUS, ["rx_dbm"]))
    node = make_node(JobKind.DISCOVERY, "serial", "rx_dbm")

    collected = await run(agent, node, onus=known(ONUS), brand=make_brand(columns=COLUMNS | {"serial": serial}))

    assert {request.kind for request in agent.log} == {"get_bulk", "get"}
    assert collected.absent == ()
    assert values_of(collected) == {index_of(onu): {"serial": None, "rx_dbm": -21.53} for onu in ONUS}


async def test_nobody_is_absent_from_a_port_whose_rest_was_given_up():
    onus = [*one_port(5), *one_port(9, port=2), *one_port(3, port=3)]
    gone = [at(0, 1, 90), at(0, 2, 90), at(0, 3, 90)]
    poisoned = frozenset(oid_of("serial", at(0, 2, onu)) for onu in range(4, 10))
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(gen_err_at=poisoned))

    collected = await run(agent, make_node(JobKind.DISCOVERY, "serial"), onus=known([*onus, *gone]))

    assert absent(collected) == {index_of(gone[0]), index_of(gone[2])}


@pytest.mark.parametrize("limit", [1, 4])
async def test_a_poisoned_onu_itself_is_never_absent(limit):
    seven = one_port(5, port=4)[2]
    mib = make_mib([*ONUS, *one_port(5, port=4)])
    faults = Faults(gen_err_at=frozenset({oid_of("serial", seven), oid_of("state", seven)}))

    collected = await discover(mib, faults, onus=[*ONUS, seven], max_in_flight=limit)

    assert collected.absent == ()


async def test_an_agent_that_dies_leaves_nobody_absent():
    onus = [*one_port(20), *one_port(20, port=2), *one_port(20, port=3)]
    gone = [at(0, 1, 90), at(0, 2, 90), at(0, 3, 90)]
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(dies_after=3))

    collected = await run(agent, make_node(JobKind.DISCOVERY), onus=known([*onus, *gone]))

    assert collected.completeness is PARTIAL
    # Ports that the walk had passed may have more rows, where the agent keeps them out of order.
    assert collected.absent == ()


async def test_an_onu_behind_an_unreadable_row_of_an_unordered_agent_is_not_absent():
    onus = [at(0, 0, 1), at(0, 0, 2), at(0, 0, 3), at(0, 1, 1)]
    mib = make_mib(onus)
    serials = [oid_of("serial", onu) for onu in onus]
    # The row behind ONU 3 is ONU 1. It cannot be read, and the walk takes it for 0/1/1, the next one that is known.
    order = [serials[1], serials[2], serials[0], serials[3]]
    rest = sorted(mib.keys() - set(order))
    path = [*(oid for oid in rest if oid < order[0]), *order, *(oid for oid in rest if oid > order[0])]
    agent = FakeAgent(FakeClock(), mib, Faults(empty_every=2, garbage_every=5, most_variables=1), path=path)
    brand = make_brand(manners=Manners(max_repetitions=1, rows_per_get=4, retries=2))
    node = make_node(JobKind.DISCOVERY, "serial", "state", "name")

    collected = await run(agent, node, brand=brand, onus=known([onus[3], onus[0]]), seconds=600)

    assert collected.failed_onus == ("ONU 0/1/1", "ONU 0/0/3")
    assert collected.absent == ()


async def test_an_agent_that_dies_at_row_1200_of_4000_leaves_1200_rows_and_nobody_absent():
    onus = [at(slot, port, onu) for slot in range(5) for port in range(8) for onu in range(1, 101)]
    last = {oid_of(name, onus[1199]) for name in ("serial", "state")}
    agent = FakeAgent(FakeClock(), make_mib(onus, ["serial", "state"]))
    honest = agent._answer

    def answer(asked, found):
        end = max((place for place, (oid, _) in enumerate(found) if oid in last), default=None)
        if end is not None:
            agent.faults = Faults(dies_after=0)
        return honest(asked, found if end is None else found[: end + 1])

    agent._answer = answer
    collected = await run(agent, make_node(JobKind.DISCOVERY), onus=known(onus), seconds=3600)

    assert collected.completeness is PARTIAL
    assert values_of(collected) == all_of(onus[:1200], "serial", "state")
    assert collected.absent == ()


async def test_rows_out_of_order_prove_nobodys_absence_when_the_walk_was_stopped():
    onus = [*one_port(5), *one_port(5, port=2), *one_port(5, port=3)]
    serials = [oid_of("serial", onu) for onu in onus]
    agent = FakeAgent(FakeClock(), make_mib(onus, ["serial"]), path=[*serials[10:], *serials[5:10], serials[0]])
    agent.faults = Faults(jumps={10: 9})

    collected = await run(agent, make_node(JobKind.DISCOVERY, "serial"), onus=known(onus))

    assert collected.completeness is PARTIAL
    assert collected.absent == ()


async def test_an_agent_that_goes_to_and_fro_has_not_come_past_a_port_because_it_has_seen_a_later_one():
    onus = [*one_port(5), *one_port(5, port=2), *one_port(5, port=3)]
    serials = [oid_of("serial", onu) for onu in onus]
    path = [*serials[5:10], *serials[:2], serials[10], *serials[2:5], *serials[11:]]
    agent = FakeAgent(FakeClock(), make_mib(onus, ["serial"]), Faults(jumps={7: 6}), path=path)

    collected = await run(agent, make_node(JobKind.DISCOVERY, "serial"), onus=known(onus))

    assert collected.completeness is PARTIAL
    assert index_of(onus[10]) in values_of(collected)
    assert collected.absent == ()


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.WALK, JobKind.GET])
async def test_only_a_discovery_says_who_is_absent(kind):
    agent = FakeAgent(FakeClock(), make_mib(ONUS))

    collected = await run(agent, make_node(kind, "serial", "state"), onus=known([*ONUS, *GONE]))

    assert collected.absent == ()


# Ports that count their ONUs.

COUNTS = parse(f"{TABLE}.900")


def count_decode(arcs):
    place = PLAIN.decode((*arcs, 1))
    return None if place is None else Position(0, place.slot, place.port)


COUNTING = make_brand(ports=PortTable(COUNTS, count_decode, counts=True))


def counting_mib(onus, counts):
    return make_mib(onus) | {Oid(COUNTS + pack((1000 + port,))): count for port, count in counts.items()}


async def test_a_port_that_counts_more_onus_than_it_lists_is_not_complete():
    collected = await discover(counting_mib(ONUS, {1: 5, 2: 6, 3: 3, 4: 0}), onus=[*ONUS, *GONE], brand=COUNTING)

    assert collected.completeness is PARTIAL
    assert collected.errors == ("serial of port 0/2: port counts 6 ONUs and lists 4",)
    assert covered(collected)[0, 2] == (PARTIAL, 4)
    assert absent(collected) == {index_of(GONE[0]), index_of(GONE[2])}


async def test_a_table_that_ends_too_early_is_found_out_by_the_counts():
    collected = await discover(counting_mib(ONUS[:9], {1: 5, 2: 4, 3: 3}), onus=ONUS, brand=COUNTING)

    assert collected.completeness is PARTIAL
    assert collected.absent == ()


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param({1: 5, 2: 4, 3: 3}, id="they agree"),
        pytest.param({1: 1, 2: 0, 3: -1}, id="more are listed than counted"),
        pytest.param({}, id="no port counts"),
        pytest.param({1: b"five"}, id="what is counted is no number"),
    ],
)
async def test_counts_that_do_not_contradict_the_list_change_nothing(counts):
    collected = await discover(counting_mib(ONUS, counts), onus=[*ONUS, *GONE], brand=COUNTING)

    assert collected.completeness is COMPLETE
    assert absent(collected) == {index_of(onu) for onu in GONE}


async def test_only_a_discovery_reads_the_counts():
    agent = FakeAgent(FakeClock(), counting_mib(ONUS, {1: 50}))

    collected = await run(agent, make_node(JobKind.TABLE, "serial"), brand=COUNTING)

    assert collected.completeness is COMPLETE
    assert not [request for request in agent.log if request.oids[0].startswith(COUNTS)]


def test_a_port_that_is_broken_already_is_not_told_of_twice():
    walk = ColumnWalk(COLUMNS["serial"])
    walk.absorb([(oid_of("serial", at(0, 1, 7)), b"HWTC00000007")])
    walk.stop("no answer")
    anchor = ColumnCoverage(COLUMNS["serial"], [walk], Harvest(make_brand()))
    anchor.store()

    assert missing_by_count(anchor, {Position(0, 0, 1): 60}) == []
    assert anchor.broken[0, 1] == "no answer"
