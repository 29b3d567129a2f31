"""What a handful of requests tells of an OLT: which tables answer, what a row costs, and how often it can be read."""

from datetime import timedelta

import pytest
from probe_fakes import ACME, CENTRAL, CENTRAL_V1, SYSTEM, MemoryAgent, garbled, make_brand, onu_rows, silent

from facho.engine.detect.cost import COUNTING, measure, usual_interval
from facho.engine.errors import NoAnswer
from facho.engine.oid import parse
from facho.engine.snmp import ErrorStatus

BRAND = make_brand()
FACTS, OPTICS, PORTS = f"{ACME}.2.1", f"{ACME}.3.1", f"{ACME}.1.1"


async def run(agent, brand=BRAND, whom=CENTRAL, seconds=600):
    deadline = agent.clock.now() + timedelta(seconds=seconds)
    return await measure(whom, brand, snmp=agent, clock=agent.clock, deadline=deadline)


def within(prefix, oids):
    return all(oid.startswith(parse(prefix)) for oid in oids)


async def test_a_row_of_facts_and_a_row_of_optics_are_timed_apart():
    agent = MemoryAgent(SYSTEM | onu_rows(64), row_seconds={FACTS: 0.01, OPTICS: 0.2})

    measured = await run(agent)

    facts, optics = measured.tables
    assert (facts.oid, facts.fields, facts.rows, facts.missing) == (FACTS, ("serial", "state"), 10, ())
    assert (optics.fields, optics.optical) == (("rx_dbm",), True)
    assert measured.seconds_a_row(optical=False) == pytest.approx(0.01)
    assert measured.seconds_a_row(optical=True) == pytest.approx(0.2)


async def test_it_takes_a_handful_of_requests():
    agent = MemoryAgent(SYSTEM | onu_rows(64))

    measured = await run(agent)

    assert [(oids, rows) for _, oids, rows in agent.asked] == [
        ((f"{FACTS}.1", f"{FACTS}.2"), 10),
        ((f"{OPTICS}.1",), 10),
        ((PORTS,), 20),
    ]
    assert measured.traffic.pdus == 3
    assert measured.traffic.peak_in_flight == 1


async def test_a_port_table_that_counts_says_how_many_onus_there_are():
    measured = await run(MemoryAgent(SYSTEM | onu_rows(817)))

    assert (measured.onus, measured.onus_are_more) == (817, False)


async def test_without_a_port_table_a_small_olt_is_counted_row_by_row():
    measured = await run(MemoryAgent(SYSTEM | onu_rows(50)), make_brand(ports=None))

    assert (measured.onus, measured.onus_are_more) == (50, False)


async def test_a_large_olt_without_a_port_table_is_not_counted_to_its_end():
    agent = MemoryAgent(SYSTEM | onu_rows(20 * COUNTING + 1))

    measured = await run(agent, make_brand(ports=None))

    assert (measured.onus, measured.onus_are_more) == (20 * COUNTING, True)
    assert len([oids for _, oids, _ in agent.asked if oids[0].startswith(f"{FACTS}.1") and len(oids) == 1]) == COUNTING


async def test_where_the_column_that_lists_all_onus_is_empty_another_one_counts_them():
    rows = {name: value for name, value in onu_rows(50).items() if not name.startswith(f"{FACTS}.1.")}

    measured = await run(MemoryAgent(SYSTEM | rows), make_brand(ports=None))

    assert (measured.onus, measured.onus_are_more) == (50, False)


async def test_what_takes_long_allows_only_long_intervals():
    agent = MemoryAgent(SYSTEM | onu_rows(817), row_seconds={OPTICS: 1.0})

    discovery, optics = (await run(agent)).allowed

    assert (discovery.name, discovery.interval, discovery.floor) == ("Discovery", timedelta(minutes=1), None)
    assert optics.seconds == pytest.approx(817)
    assert optics.interval == timedelta(hours=1)


async def test_no_interval_is_below_the_floor_of_the_maker():
    _, optics = (await run(MemoryAgent(SYSTEM | onu_rows(7)))).allowed

    assert (optics.interval, optics.floor) == (timedelta(minutes=15), timedelta(minutes=15))


@pytest.mark.parametrize(
    ("seconds", "floor", "expected"),
    [
        pytest.param(0.0, None, timedelta(minutes=1), id="nothing to read: a minute all the same"),
        pytest.param(20.0, None, timedelta(minutes=1), id="a third of a minute"),
        pytest.param(20.1, None, timedelta(minutes=5), id="a little more"),
        pytest.param(273.0, None, timedelta(minutes=15), id="an MA5608T with 817 ONTs, columns together"),
        pytest.param(774.0, None, timedelta(hours=1), id="the same, column by column"),
        pytest.param(1.0, timedelta(hours=1), timedelta(hours=1), id="fast, but its maker asks for an hour"),
        pytest.param(1.0, timedelta(minutes=20), timedelta(minutes=30), id="a floor that is no usual interval"),
        pytest.param(8 * 3600.0, None, timedelta(days=1), id="just daily"),
        pytest.param(9 * 3600.0, None, None, id="not even daily"),
    ],
)
def test_an_interval_leaves_an_olt_in_peace_for_two_thirds_of_it(seconds, floor, expected):
    assert usual_interval(seconds, floor) == expected


async def test_a_column_that_the_device_does_not_have_is_named():
    rows = {name: value for name, value in onu_rows(16).items() if not name.startswith(f"{FACTS}.2.")}

    facts, _ = (await run(MemoryAgent(SYSTEM | rows))).tables

    assert (facts.rows, facts.missing, facts.problem) == (10, ("state",), "")


async def test_a_table_that_the_device_does_not_have_is_no_trouble():
    rows = {name: value for name, value in onu_rows(16).items() if not name.startswith(OPTICS)}

    measured = await run(MemoryAgent(SYSTEM | rows))

    assert (measured.tables[1].rows, measured.tables[1].missing, measured.tables[1].problem) == (0, ("rx_dbm",), "")
    assert measured.seconds_a_row(optical=True) is None
    assert [job.name for job in measured.allowed] == ["Discovery"]


async def test_an_agent_that_trips_over_one_column_is_asked_for_each():
    def trouble(oids, times):
        return ErrorStatus.GEN_ERR if parse(f"{FACTS}.2") in oids else None

    facts, _ = (await run(MemoryAgent(SYSTEM | onu_rows(16), trouble=trouble))).tables

    assert (facts.rows, facts.missing) == (1, ("state",))
    assert facts.problem == "the agent answered genErr"


async def test_an_answer_that_would_be_too_big_is_asked_for_one_row():
    def trouble(oids, times):
        return ErrorStatus.TOO_BIG if len(oids) == 2 and times == 1 else None

    facts, _ = (await run(MemoryAgent(SYSTEM | onu_rows(16), trouble=trouble))).tables

    assert (facts.rows, facts.missing, facts.problem) == (1, (), "")


@pytest.mark.parametrize(
    ("trouble", "problem"),
    [pytest.param(silent, "no answer", id="silence"), pytest.param(garbled, "no usable answer", id="garbage")],
)
async def test_a_table_without_a_usable_answer_is_trouble(trouble, problem):
    def only_optics(oids, times):
        return trouble(oids, times) if within(OPTICS, oids) else None

    measured = await run(MemoryAgent(SYSTEM | onu_rows(16), trouble=only_optics))

    facts, optics = measured.tables
    assert (facts.problem, optics.problem) == ("", problem)
    assert measured.onus == 16


async def test_of_an_agent_that_falls_silent_nothing_is_claimed():
    measured = await run(MemoryAgent(SYSTEM | onu_rows(16), trouble=silent))

    assert measured.onus is None
    assert measured.allowed == ()
    assert [table.problem for table in measured.tables] == ["no answer", "no answer"]


async def test_optics_are_waited_for_longer():
    waits = []

    def trouble(oids, times):
        waits.append(within(OPTICS, oids))
        return NoAnswer("lost")

    agent = MemoryAgent(SYSTEM | onu_rows(16), trouble=trouble)

    await run(agent)

    assert agent.clock.elapsed == pytest.approx(5.0 * waits.count(False) + 20.0 * waits.count(True))
    assert waits.count(True) > 0


async def test_it_ends_at_its_deadline():
    agent = MemoryAgent(SYSTEM | onu_rows(16), trouble=silent)

    await run(agent, seconds=12)

    assert agent.clock.elapsed == pytest.approx(12)


async def test_an_agent_that_goes_round_in_circles_is_not_counted_forever():
    class Circling(MemoryAgent):
        def _after(self, oid):
            first = parse(f"{FACTS}.1")
            return super()._after(first) if oid.startswith(first) and len(oid) > len(first) else super()._after(oid)

    agent = Circling(SYSTEM | onu_rows(16))

    measured = await run(agent, make_brand(ports=None))

    assert (measured.onus, measured.onus_are_more) == (1, True)
    assert len(agent.asked) == 3


async def test_an_agent_of_snmp_1_is_asked_row_by_row():
    agent = MemoryAgent(SYSTEM | onu_rows(7))

    measured = await run(agent, make_brand(ports=None), CENTRAL_V1)

    assert {kind for kind, _, _ in agent.asked} == {"get_next"}
    assert (measured.onus, measured.tables[0].rows) == (7, 1)
