"""What a run must not do: invent ONUs, forget that one is gone, keep a grudge, or ask on when nobody listens."""

from collections import Counter

import pytest
from collect_fakes import (
    COLUMNS,
    FakeAgent,
    FakeClock,
    Faults,
    all_of,
    at,
    index_of,
    known,
    make_mib,
    make_node,
    make_olt,
    oid_of,
    one_port,
    run,
    values_of,
)
from collect_olts import make_stage

from facho.engine.model import Completeness, JobKind
from facho.engine.oid import Oid

ONUS = one_port(30)
SEVEN = at(0, 1, 7)
PAIR = [oid_of("name", SEVEN), oid_of("state", SEVEN)]


def unlisted(collected, onus):
    """Return who was read and does not exist."""
    return set(values_of(collected)) - {index_of(onu) for onu in onus}


def make_agent(onus=ONUS, **faults):
    return FakeAgent(FakeClock(), make_mib(onus), Faults(**faults))


@pytest.mark.parametrize("kind", [JobKind.DISCOVERY, JobKind.TABLE, JobKind.WALK])
async def test_a_row_whose_number_was_only_guessed_is_no_onu(kind):
    # The agent looks at the first name to find that the serials have ended, and fails there.
    agent = make_agent(gen_err_at=frozenset({oid_of("name", ONUS[0])}))

    collected = await run(agent, make_node(kind, "serial", "state"))

    assert unlisted(collected, ONUS) == set()
    assert values_of(collected) == all_of(ONUS, "serial", "state")


async def test_a_guess_that_was_wrong_leaves_no_onu_behind():
    onus = [*one_port(5), at(0, 1, 80)]
    agent = make_agent(onus, gen_err_at=frozenset({oid_of("serial", onus[5])}))

    collected = await run(agent, make_node(JobKind.WALK, "serial", "state"))

    assert unlisted(collected, onus) == set()


@pytest.mark.parametrize("limit", [1, 4])
async def test_a_port_that_could_not_be_begun_gets_no_onu_of_its_own(limit):
    onus = [*one_port(9), at(0, 2, 5), at(0, 2, 6), *one_port(9, port=3)]
    poisoned = frozenset({oid_of("serial", onu) for onu in onus if onu.port == 2})
    agent = make_agent(onus, gen_err_at=poisoned)

    collected = await run(
        agent, make_node(JobKind.WALK, "serial", "state"), onus=known(onus), olt=make_olt(max_in_flight=limit)
    )

    assert unlisted(collected, onus) == set()


async def test_what_another_column_still_has_of_an_onu_does_not_make_it_exist_because_a_port_elsewhere_is_broken():
    stale = at(0, 1, 50)
    onus = [*one_port(5), *one_port(5, port=2)]
    mib = make_mib(onus, ["serial", "state"]) | {oid_of("state", stale): 2}
    agent = FakeAgent(FakeClock(), mib, Faults(gen_err_at=frozenset({oid_of("serial", at(0, 2, 3))})))

    collected = await run(agent, make_node(JobKind.DISCOVERY), onus=known(onus))

    assert unlisted(collected, onus) == set()


async def test_an_onu_of_which_only_another_column_has_something_left_is_absent():
    gone = at(0, 1, 50)
    mib = make_mib(ONUS, ["serial", "state"]) | {oid_of("state", gone): 2}

    collected = await run(FakeAgent(FakeClock(), mib), make_node(JobKind.DISCOVERY), onus=known([*ONUS, gone]))

    assert index_of(gone) not in values_of(collected)
    assert collected.absent == (index_of(gone),)


async def test_the_poison_of_an_onu_that_is_gone_is_forgotten():
    node = make_node(JobKind.TABLE, "name")
    first = await run(make_agent(gen_err_at=frozenset(PAIR)), node, onus=known(ONUS))
    left = [onu for onu in ONUS if onu != SEVEN]

    second = await run(make_agent(left), node, onus=known(ONUS), olt=make_olt(learned=first.learned))

    assert first.learned["poisoned"]
    assert second.completeness is Completeness.COMPLETE
    assert second.learned["poisoned"] == []


async def test_known_poison_does_not_make_a_walk_crawl_where_nobody_is_known():
    onus = one_port(600)
    faults = {"gen_err_at": frozenset({oid_of("name", onus[500])})}
    first, second = make_agent(onus, **faults), make_agent(onus, **faults)
    node = make_node(JobKind.TABLE, "name")
    collected = await run(first, node)

    await run(second, node, olt=make_olt(learned=collected.learned))

    assert len(second.log) <= len(first.log) + 30


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
async def test_a_value_that_is_well_again_is_read_although_another_of_its_onu_is_not(kind):
    node = make_node(kind, "name", "state")
    learned = (await run(make_agent(gen_err_at=frozenset(PAIR)), node, onus=known(ONUS))).learned

    for _ in PAIR:
        olt = make_olt(learned=learned)
        collected = await run(make_agent(gen_err_at=frozenset(PAIR[:1])), node, onus=known(ONUS), olt=olt)
        learned = collected.learned

    assert values_of(collected)[index_of(SEVEN)] == {"state": "online"}


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
async def test_an_agent_without_getbulk_may_have_a_poisoned_onu_too(fault):
    agent = make_agent(knows_no_bulk=True, **{fault: frozenset(PAIR)})

    collected = await run(agent, make_node(JobKind.TABLE, "name"), onus=known(ONUS), seconds=3600)

    assert values_of(collected) == all_of([onu for onu in ONUS if onu != SEVEN], "name")
    assert Counter(request.kind for request in agent.log)["get_bulk"] <= 12


@pytest.mark.parametrize("limit", [1, 4])
async def test_a_number_that_no_oid_can_have_is_survived(limit):
    invented = Oid(oid_of("name", SEVEN)[:-1] + b"\xff\xff\xff\xff\xff\x7f")
    mib = make_mib(ONUS, ["serial", "name"]) | {invented: b"nobody"}
    behind = frozenset(oid for oid in mib if not oid.startswith(COLUMNS["name"].oid))
    agent = FakeAgent(FakeClock(), mib, Faults(gen_err_at=behind))

    collected = await run(agent, make_node(JobKind.TABLE, "name"), olt=make_olt(max_in_flight=limit))

    assert collected.completeness is Completeness.PARTIAL
    assert values_of(collected).items() >= all_of(ONUS, "name").items()


def test_the_ports_of_a_dear_column_are_looked_for_with_the_patience_that_it_needs():
    stage = make_stage(onus=40, latency=6.0)

    collected = stage.run(JobKind.WALK, "rx_dbm", max_in_flight=2)

    assert collected.completeness is Completeness.COMPLETE
    assert stage.log.unanswered() == collected.traffic.retransmissions == 0
