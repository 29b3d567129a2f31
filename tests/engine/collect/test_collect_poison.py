"""From run to run: sizes that an agent can answer, and ONUs that cannot be asked together with others."""

import json

import pytest
from collect_fakes import (
    BEHIND,
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

from facho.engine.brand import Manners
from facho.engine.model import Completeness, JobKind
from facho.engine.snmp import Version

# 480 ONUs, and the one we look at.
ONUS = [at(slot, port, onu) for slot in range(2) for port in range(1, 5) for onu in range(1, 61)]
SEVEN = at(1, 3, 7)
FIELDS = ("serial", "name", "state")

POISON = [
    pytest.param({"gen_err_at": ("name",)}, id="genErr at one value"),
    pytest.param({"gen_err_at": ("name",), "accuses": "none"}, id="genErr at one value, nobody named"),
    pytest.param({"gen_err_at": FIELDS, "accuses": "none"}, id="genErr at all values"),
    pytest.param({"silent_at": ("name",)}, id="silence at one value"),
    pytest.param({"silent_at": FIELDS}, id="silence at all values"),
]


def faults_of(poison):
    fields = {key: value for key, value in poison.items() if key != "accuses"}
    places = {key: frozenset(oid_of(name, SEVEN) for name in names) for key, names in fields.items()}
    return Faults(accuses=poison.get("accuses", "right"), **places)


class Days:
    """An OLT that is read again and again by the same job, and remembers what was learned."""

    def __init__(self, kind, *columns, onus=ONUS):
        self.kind, self.columns, self.onus = kind, columns, onus
        self.learned = {}

    async def run(self, faults=None, inventory=None):
        """Return the harvest of one more run, and how many PDUs the agent saw."""
        agent = FakeAgent(FakeClock(), make_mib(self.onus), faults)
        collected = await run(
            agent,
            make_node(self.kind, *self.columns),
            onus=known(self.onus if inventory is None else inventory),
            olt=make_olt(learned=self.learned),
            seconds=36000,
        )
        self.learned = json.loads(json.dumps(collected.learned))
        return collected, len(agent.log)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
@pytest.mark.parametrize("poison", POISON)
async def test_a_poisoned_onu_costs_a_little_once_and_next_to_nothing_later(kind, poison):
    well, ill = Days(kind, *FIELDS), Days(kind, *FIELDS)
    extra = []

    for _ in range(4):
        _, usual = await well.run()
        _, pdus = await ill.run(faults_of(poison))
        extra.append(pdus - usual)

    assert extra[0] <= 30
    assert max(extra[1:]) <= (1 if kind is JobKind.GET else 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET, JobKind.WALK])
@pytest.mark.parametrize("poison", POISON)
async def test_everything_but_the_poisoned_values_is_read_in_every_run(kind, poison):
    days = Days(kind, *FIELDS)
    others = [onu for onu in ONUS if onu != SEVEN]

    for _ in range(3):
        collected, _ = await days.run(faults_of(poison))

        assert values_of(collected).items() >= all_of(others, *FIELDS).items()
        assert collected.failed_onus == ("ONU 1/3/7",)
        assert collected.completeness is Completeness.PARTIAL


@pytest.mark.slow
@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET, JobKind.WALK])
@pytest.mark.parametrize("poison", POISON)
async def test_an_onu_that_is_well_again_is_read_at_once_and_its_poison_forgotten(kind, poison):
    days = Days(kind, *FIELDS)
    await days.run(faults_of(poison))
    before = days.learned["poisoned"]

    collected, _ = await days.run()

    assert before
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, *FIELDS)
    assert days.learned["poisoned"] == []


async def test_what_a_walk_found_poisoned_a_get_does_not_ask_together_with_others():
    walk, get = Days(JobKind.TABLE, *FIELDS), Days(JobKind.GET, *FIELDS)
    faults = faults_of({"gen_err_at": ("name",), "accuses": "none"})
    await walk.run(faults)
    get.learned = walk.learned
    _, usual = await Days(JobKind.GET, *FIELDS).run()

    collected, pdus = await get.run(faults)

    assert pdus <= usual + 1
    assert collected.failed_onus == ("ONU 1/3/7",)


async def test_new_onus_before_a_poisoned_one_are_found():
    days = Days(JobKind.TABLE, *FIELDS)
    faults = faults_of({"gen_err_at": ("name",)})
    await days.run(faults)
    before = [onu for onu in ONUS if (onu.slot, onu.port) != (1, 3) or onu.onu > 5]

    collected, _pdus = await days.run(faults, inventory=before)

    others = [onu for onu in ONUS if onu != SEVEN]
    assert values_of(collected) == all_of(others, *FIELDS) | all_of([SEVEN], "serial", "state")


# Sizes.


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
async def test_sizes_are_where_the_last_run_left_them(kind):
    days = Days(kind, *FIELDS)

    first, pdus = await days.run()
    second, fewer = await days.run()

    assert fewer < pdus
    assert max(second.traffic.sizes.values()) >= max(first.traffic.sizes.values()) > 10


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
@pytest.mark.parametrize("fault", ["too_big_above", "lost_above", "most_variables"])
async def test_a_run_begins_near_what_fitted_in_the_one_before_and_not_where_the_maker_would(kind, fault):
    onus = one_port(60)
    days = Days(kind, *FIELDS, onus=onus)
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(**{fault: 12}))
    await days.run(Faults(**{fault: 12}))

    collected = await run(
        agent,
        make_node(kind, *FIELDS),
        onus=known(onus),
        olt=make_olt(learned=days.learned),
        brand=make_brand(manners=Manners(max_repetitions=40, rows_per_get=40)),
    )

    first = agent.log[0]
    assert 12 / 4 < len(first.oids) * first.repetitions < 12 * 2
    assert collected.completeness is Completeness.COMPLETE


async def test_the_sizes_of_a_run_are_told():
    collected, _ = await Days(JobKind.TABLE, "serial", "rx_dbm").run()

    assert set(collected.traffic.sizes) >= {"walk 1.3.6.1.4.1.99999.1", "get 1.3.6.1.4.1.99999.1.4"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "learned",
    [
        pytest.param({"sizes": {"walk 1.3.6.1.4.1.99999.1": -1}, "poisoned": ["garbage"]}, id="garbage"),
        pytest.param({"sizes": "many", "poisoned": 7, "unordered": {"a": "b"}}, id="other shapes"),
        pytest.param({"poisoned": ["1.3.6.1.4.1.99999.1.2"]}, id="a column itself"),
        pytest.param(
            {"poisoned": ["1.3.6.1.4.1.99999.1.2.1001.7", "1.3.6.1.4.1.99999.1.2.9.9"]}, id="rows that are well"
        ),
        pytest.param({"unordered": ["walk 1.3.6.1.4.1.99999.1"]}, id="a table out of order"),
    ],
)
@pytest.mark.parametrize("limit", [1, 4])
@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
async def test_whatever_is_stored_a_run_is_complete(learned, limit, kind):
    agent = FakeAgent(FakeClock(), make_mib(ONUS))
    olt = make_olt(learned=learned, max_in_flight=limit)

    collected = await run(agent, make_node(kind, *FIELDS), onus=known(ONUS), olt=olt)

    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, *FIELDS)


# Agents that should know GETBULK, and do not.


async def test_an_agent_that_does_not_answer_getbulk_is_walked_by_getnext():
    onus = one_port(30)
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(knows_no_bulk=True))

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "state"), seconds=3600)

    bulks = [request for request in agent.log if request.kind == "get_bulk"]
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(onus, "serial", "state")
    assert len(bulks) <= 12
    assert agent.log[-1].kind == "get_next"


async def test_a_first_row_that_cannot_be_read_is_not_mistaken_for_an_agent_without_getbulk():
    onus = one_port(60)
    faults = Faults(silent_at=frozenset({oid_of("name", onus[0])}))
    agent = FakeAgent(FakeClock(), make_mib(onus), faults)

    collected = await run(agent, make_node(JobKind.TABLE, "name"), onus=known(onus), seconds=3600)

    by_next = [request for request in agent.log if request.kind == "get_next"]
    assert values_of(collected) == all_of(onus[1:], "name")
    assert len(by_next) <= 4


async def test_an_agent_that_has_answered_getbulk_once_is_not_doubted():
    onus = one_port(60)
    agent = FakeAgent(FakeClock(), make_mib(onus), Faults(silent_at=frozenset({oid_of("name", onus[20])})))

    await run(agent, make_node(JobKind.TABLE, "name"), onus=known(onus), seconds=3600)

    assert {request.kind for request in agent.log} <= {"get_bulk", "get"}


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
async def test_snmpv1_passes_over_a_row_that_cannot_be_read_too(fault):
    onus = one_port(30)
    mib = make_mib(onus, ["serial", "name"])
    del mib[BEHIND]
    agent = FakeAgent(FakeClock(), mib, Faults(**{fault: frozenset({oid_of("serial", onus[6])})}))

    collected = await run(
        agent, make_node(JobKind.TABLE, "serial", "name"), olt=make_olt(Version.V1), onus=known(onus), seconds=3600
    )

    assert values_of(collected)[index_of(onus[6])] == {"name": "customer 7"}
    assert len([1 for values in values_of(collected).values() if len(values) == 2]) == 29
