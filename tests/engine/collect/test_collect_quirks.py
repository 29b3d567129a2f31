"""What breaks collectors on real OLTs, on simulated ones; counts come from the agent's own log.

| habit of real agents                                      | what holds it here                                     |
|-----------------------------------------------------------|--------------------------------------------------------|
| optics are read live from each ONU, one after the other   | columns together; only of ONUs that are lit            |
| a few in a hundred answers are dropped without a word     | retry per request, resume in place                     |
| several walks at once make an agent slower                | one at a time unless allowed; a crowd is not kept      |
| larger requests stop paying at 25 rows                    | sizes stay well within the longest wait                |
| GETBULK for 0 repetitions hangs                           | never sent                                             |
| large answers get lost on the way; no GETBULK at all      | smaller requests, then GETNEXT                         |
| a walk that dies looks like an empty table                | partial, what was read is kept, nobody is absent       |
| OIDs that repeat or go back; numbers compared as text     | read on while new rows come, leave circles             |
| an exhausted column spills into its neighbour             | dealt out by position, prefix checked                  |
| an answer without variables is no empty port              | asked again; empty ports are not asked for optics      |
| rows of ONUs that are off are missing                     | joined by index, never by their place in an answer     |
| equal numbers mean different ports; indexes beyond 2^31   | joined by place, index from the OID                    |
| some tables take 3 to 5 s                                 | waits grow, and makers have their own                  |
| tooBig, cut answers, garbage                              | halved, resumed, asked again                           |
| ONU ids with gaps; a table with one row for all           | rows are followed, never counted through               |
| a view hides the maker's tables                           | empty, and not an error                                |

Spilling and joining are in the tests of tables, loops in those of loops. What values mean, such as sentinels,
charsets and enums, is the business of the brands.
"""

import random
from dataclasses import replace

import pytest
from collect_fakes import (
    COLUMNS,
    FakeAgent,
    FakeClock,
    Faults,
    all_of,
    at,
    known,
    make_brand,
    make_mib,
    make_node,
    one_port,
    run,
    values_of,
)
from collect_olts import known_of, make_stage

from facho.engine.brand import Manners, Position
from facho.engine.collect.plan import DARK
from facho.engine.model import Completeness, JobKind
from facho.simulator.faults import Disorder, Spoiling

OPTICS = ("temperature_c", "tx_dbm", "rx_dbm", "voltage_v", "olt_rx_dbm")
COMPLETE, PARTIAL = Completeness.COMPLETE, Completeness.PARTIAL


def readings_of(collected):
    return {reading.index: reading.values for reading in collected.readings}


@pytest.fixture(scope="module")
def inventory():
    """The ONUs of OLT-CENTRAL-01, as a discovery leaves them."""
    return known_of(make_stage().run(JobKind.DISCOVERY, "serial", "state"))


def test_optics_cost_an_agent_much_less_when_their_columns_are_asked_for_together(inventory):
    one_by_one, together = make_stage(per_optical_row=0.1), make_stage(per_optical_row=0.1)

    walked = one_by_one.run(JobKind.WALK, *OPTICS)
    asked = together.run(JobKind.TABLE, *OPTICS, known=inventory)

    lit = {onu.index for onu in inventory if onu.state not in DARK}
    values = readings_of(asked)
    assert walked.completeness is asked.completeness is COMPLETE
    assert all(None not in values[index].values() and len(values[index]) == len(OPTICS) for index in lit)
    assert together.busy <= 0.4 * one_by_one.busy


def test_onus_that_are_off_are_not_asked_for_their_optics(inventory):
    stage = make_stage(per_optical_row=0.1)
    dark = [onu for onu in inventory if onu.state in DARK]

    collected = stage.run(JobKind.TABLE, "rx_dbm", known=inventory)

    assert 0 < len(dark) < len(inventory)
    assert collected.traffic.varbinds == len(inventory) - len(dark)
    assert all(readings_of(collected)[onu.index]["rx_dbm"] is None for onu in dark)


@pytest.mark.parametrize("seed", range(6))
def test_answers_that_are_dropped_without_a_word_cost_no_row(seed):
    stage = make_stage(seed=seed, loss=0.08)

    collected = stage.run(JobKind.DISCOVERY, "serial", "name", "state")

    assert collected.completeness is COMPLETE
    assert len(collected.readings) == stage.onus
    assert collected.traffic.pdus == stage.log.count()


@pytest.mark.long
async def test_one_lost_answer_in_a_hundred_costs_three_requests_in_a_hundred_at_most():
    onus = [at(slot, port, onu) for slot in range(5) for port in range(8) for onu in range(1, 51)]
    dice = random.Random(7)
    pdus = {}
    for loss in (0.0, 0.01):
        pdus[loss] = 0
        for _ in range(10):
            agent = FakeAgent(FakeClock(), make_mib(onus, ["serial"]), Faults(most_variables=2))
            honest = agent._arrive

            def arrive(request, honest=honest, agent=agent, loss=loss):
                honest(request)
                if dice.random() < loss:
                    agent._lose()

            agent._arrive = arrive

            collected = await run(agent, make_node(JobKind.TABLE, "serial"), seconds=10**6)

            assert collected.completeness is COMPLETE
            assert len(collected.readings) == len(onus)
            pdus[loss] += len(agent.log)

    assert pdus[0.0] >= 10_000
    assert pdus[0.01] <= 1.03 * pdus[0.0]


def test_an_olt_is_asked_for_one_thing_at_a_time_unless_somebody_allows_more():
    stage = make_stage(latency=0.05, per_pdu=0.01)

    stage.run(JobKind.DISCOVERY, "serial", "state")

    assert stage.log.peak_in_flight() == 1


def test_an_agent_that_suffers_from_a_crowd_is_not_given_one(inventory):
    alone, allowed = (make_stage(per_pdu=0.05, per_varbind=0.002, crowding=0.3) for _ in range(2))

    for stage, limit in ((alone, 1), (allowed, 8)):
        collected = stage.run(JobKind.TABLE, "serial", "state", known=inventory, max_in_flight=limit)
        assert collected.completeness is COMPLETE

    assert allowed.log.peak_in_flight() <= 8
    assert allowed.busy <= alone.busy / 0.7


@pytest.mark.parametrize("limit", [1, 8])
def test_an_agent_that_drops_what_it_cannot_hold_is_read_to_the_end(inventory, limit):
    stage = make_stage(per_pdu=0.05, queue_limit=2)

    collected = stage.run(JobKind.TABLE, "serial", "state", known=inventory, max_in_flight=limit)

    assert collected.completeness is COMPLETE
    assert len(collected.readings) == stage.onus


def test_requests_do_not_grow_into_the_longest_wait():
    stage = make_stage(per_optical_row=0.3)

    collected = stage.run(JobKind.WALK, "rx_dbm")

    slowest = max(pdu.answered - pdu.arrived for pdu in stage.log.pdus())
    assert collected.completeness is COMPLETE
    assert collected.traffic.retransmissions == 0
    assert slowest < stage.brand.manners.optical_timeout / 2


def test_zero_repetitions_are_never_asked_for_even_if_a_profile_asks_for_it():
    stage = make_stage("zte_c300", zero_repetitions_hang=45.0)
    brand = replace(stage.brand, manners=Manners(max_repetitions=0, rows_per_get=0))

    collected = stage.run(JobKind.DISCOVERY, brand=brand)

    assert collected.completeness is COMPLETE
    assert stage.busy < 45


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(lost_above=30), id="above thirty variables"),
        pytest.param(Faults(lost_above=4), id="above four"),
        pytest.param(Faults(knows_no_bulk=True), id="whatever GETBULK asks for"),
    ],
)
async def test_answers_that_get_lost_for_their_size_are_asked_for_in_smaller_ones(faults):
    onus = [*one_port(40), *one_port(40, port=2)]
    agent = FakeAgent(FakeClock(), make_mib(onus), faults)

    collected = await run(agent, make_node(JobKind.TABLE, "serial", "name", "state"), seconds=3600)

    assert collected.completeness is COMPLETE
    assert values_of(collected) == all_of(onus, "serial", "name", "state")


@pytest.mark.parametrize("row", [1, 30, 119])
@pytest.mark.parametrize("limit", [1, 4])
def test_a_walk_that_dies_midway_is_partial_and_proves_nobodys_absence(inventory, row, limit):
    stage = make_stage(dies_at_row=row)

    collected = stage.run(JobKind.DISCOVERY, "serial", "state", known=inventory, max_in_flight=limit)

    assert collected.completeness is PARTIAL
    assert len(collected.readings) >= min(row, 30) - 25
    assert collected.absent == ()


def test_what_a_dying_walk_did_not_read_is_not_called_none():
    stage = make_stage(dies_at_row=30)

    collected = stage.run(JobKind.TABLE, "serial", "name")

    assert collected.readings
    assert all(values["serial"] is not None for values in readings_of(collected).values() if "serial" in values)
    assert None not in [values.get("name", "unread") for values in readings_of(collected).values()]


@pytest.mark.parametrize("disorder", [Disorder.SWAP, Disorder.REPEAT])
@pytest.mark.parametrize("row", [1, 17, 60])
def test_rows_that_come_twice_or_in_the_wrong_order_are_all_read_or_missed_honestly(disorder, row):
    stage = make_stage(disorder=disorder, disorder_at_row=row)

    collected = stage.run(JobKind.TABLE, "serial", "state")

    assert (collected.completeness is COMPLETE) == (len(collected.readings) == stage.onus and not collected.errors)
    assert len(collected.readings) >= row
    if disorder is Disorder.SWAP:
        assert len(collected.readings) == stage.onus


def test_a_circle_is_left_and_not_called_complete():
    stage = make_stage(disorder=Disorder.LOOP, disorder_at_row=50)

    collected = stage.run(JobKind.TABLE, "serial", "state")

    assert collected.completeness is PARTIAL
    assert len(collected.readings) >= 50
    assert stage.log.count() < 60


async def test_numbers_are_compared_as_numbers(clock):
    onus = [at(0, 1, onu) for onu in (3, 8, 23, 127, 128, 200, 300)]

    collected = await run(FakeAgent(clock, make_mib(onus)), make_node(JobKind.TABLE, "serial", "name"))

    assert collected.completeness is COMPLETE
    assert values_of(collected) == all_of(onus, "serial", "name")


@pytest.mark.parametrize("spoiling", list(Spoiling))
@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
def test_spoiled_answers_are_asked_for_again(inventory, spoiling, kind):
    stage = make_stage(spoiled=0.1, spoiling=spoiling)

    collected = stage.run(kind, "serial", "name", "state", known=inventory)

    assert collected.completeness is COMPLETE
    assert len(collected.readings) == stage.onus
    assert collected.traffic.pdus == stage.log.count()


async def test_an_answer_without_variables_is_no_proof_of_an_empty_port(clock):
    agent = FakeAgent(clock, make_mib(one_port(5)), Faults(empty_every=1))

    collected = await run(agent, make_node(JobKind.DISCOVERY), onus=known(one_port(5)))

    assert collected.completeness is PARTIAL
    assert collected.absent == ()


def test_ports_without_onus_cost_no_optical_request():
    stage = make_stage(onus=12, per_optical_row=1.0)

    collected = stage.run(JobKind.DISCOVERY, "serial", "state", "rx_dbm")

    lit = [values for values in readings_of(collected).values() if values["state"] not in DARK]
    assert stage.log.count(kind="get") <= 3
    assert collected.traffic.varbinds >= len(lit)
    assert stage.busy < 1.2 * len(lit) + 1


def test_indexes_beyond_two_to_the_31_are_taken_from_the_oid():
    stage = make_stage(onus=40)

    collected = stage.run(JobKind.DISCOVERY)

    assert len(collected.readings) == 40
    for one in collected.readings:
        assert one.index == f"{125 << 25 | one.slot << 13 | one.port << 8}.{one.onu}"


def test_on_a_zte_the_three_ways_of_counting_ports_are_joined_by_place():
    stage = make_stage("zte_c300", onus=80)

    collected = stage.run(JobKind.DISCOVERY, "serial", "state", "olt_rx_dbm", "in_octets")

    lit = [values for values in readings_of(collected).values() if values["state"] == "online"]
    assert collected.completeness is COMPLETE
    assert len(collected.readings) == 80
    assert lit
    assert all(values["olt_rx_dbm"] is not None for values in lit)


@pytest.mark.parametrize("takes", [0.9, 3.0, 4.8])
async def test_a_table_that_takes_seconds_is_waited_for_even_after_fast_ones(takes):
    onus = one_port(30)
    agent = FakeAgent(FakeClock(), make_mib(onus))
    honest = agent._arrive

    def arrive(request):
        agent.latency = takes if request.oids[0].startswith(COLUMNS["state"].oid) else 0.01
        if agent.latency > request.timeout:
            agent.log.append(request)
            agent._lose()
        honest(request)

    agent._arrive = arrive

    collected = await run(agent, make_node(JobKind.WALK, "serial", "name", "state"))

    assert collected.completeness is COMPLETE
    assert values_of(collected) == all_of(onus, "serial", "name", "state")
    # The first slow answer teaches how long to wait; after that nothing is asked twice.
    assert collected.traffic.retransmissions <= 3


def test_a_maker_whose_tables_are_slow_is_waited_for_from_the_start():
    stage = make_stage("nokia_isam", onus=40, latency=4.5)

    collected = stage.run(JobKind.DISCOVERY)

    assert collected.completeness is COMPLETE
    assert collected.traffic.retransmissions == 0


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"too_big_above": 20}, id="tooBig above twenty variables"),
        pytest.param({"too_big_above": 1}, id="tooBig above one"),
        pytest.param({"bulk_rows": 3}, id="three rows at most"),
        pytest.param({"bulk_bytes": 300}, id="300 bytes at most"),
    ],
)
@pytest.mark.parametrize("limit", [1, 4])
def test_an_agent_with_little_room_in_its_answers_is_read_to_the_end(inventory, faults, limit):
    stage = make_stage(**faults)

    collected = stage.run(JobKind.TABLE, "serial", "name", "state", known=inventory, max_in_flight=limit)

    assert collected.completeness is COMPLETE
    assert len(collected.readings) == stage.onus


@pytest.mark.parametrize("fault", ["gen_err_at", "silent_at"])
@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
def test_an_onu_that_cannot_be_read_costs_itself_and_nobody_else(inventory, fault, kind):
    seven = next(onu for onu in inventory if onu.onu == 7)
    stage = make_stage(**{fault: Position(0, seven.slot, seven.port, 7)})

    collected = stage.run(kind, "serial", "name", "state", known=inventory)

    whole = [index for index, values in readings_of(collected).items() if {"serial", "name", "state"} <= set(values)]
    assert collected.completeness is PARTIAL
    assert set(whole) == {onu.index for onu in inventory} - {seven.index}
    assert collected.failed_onus == (f"ONU {seven.slot}/{seven.port}/7",)


async def test_ids_with_gaps_are_followed_and_not_counted_through(clock):
    onus = [at(0, 1, onu) for onu in (*range(1, 16), 80, 81, 87)] + [at(0, 2, 97)]
    agent = FakeAgent(clock, make_mib(onus))

    collected = await run(agent, make_node(JobKind.DISCOVERY))

    assert values_of(collected) == all_of(onus, "serial", "state")
    assert len(agent.log) <= 4


async def test_a_table_with_one_row_for_all_loses_no_onu(clock):
    onus = one_port(31)
    mib = make_mib(onus, ["serial"]) | make_mib(onus[:1], ["state"])

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.DISCOVERY))

    assert collected.completeness is COMPLETE
    assert [values["state"] for values in values_of(collected).values()] == ["online", *[None] * 30]


async def test_tables_that_a_view_hides_are_empty_and_no_error(clock):
    agent = FakeAgent(clock, make_mib([]))

    collected = await run(agent, make_node(JobKind.DISCOVERY), brand=make_brand())

    assert collected.completeness is Completeness.EMPTY
    assert collected.errors == ()
    assert len(agent.log) == 1
