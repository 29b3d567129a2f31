"""A whole run: what is harvested, how complete it is, what it cost, and how it fails."""

import gc
import logging
import weakref
from itertools import pairwise

import pytest
from collect_fakes import (
    COLUMNS,
    TABLE,
    FakeAgent,
    FakeClock,
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

from facho.engine.errors import OltUnreachable, Refused
from facho.engine.model import Completeness, JobKind, RawOid
from facho.engine.oid import Oid, pack, parse

ONUS = one_port(25)
SEVEN = at(0, 1, 7)
UPTIME = RawOid("uptime", parse("1.3.6.1.2.1.1.3.0"), "number", scalar=True)
LOCATION = RawOid("location", parse("1.3.6.1.2.1.1.6.0"), "text", scalar=True)
VLAN = RawOid("vlan", parse(f"{TABLE}.9"), "number")


async def test_a_discovery_finds_what_the_first_column_lists(clock):
    stale = at(0, 9, 1)
    mib = make_mib(ONUS, ["serial", "state"]) | {oid_of("state", stale): 2}
    del mib[oid_of("state", SEVEN)]

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.DISCOVERY))

    assert collected.completeness is Completeness.COMPLETE
    assert index_of(stale) not in values_of(collected)
    assert values_of(collected)[index_of(SEVEN)] == {"serial": "HWTC00000007", "state": None}
    assert len(collected.readings) == len(ONUS)


async def test_a_discovery_whose_first_column_has_a_gap_keeps_what_the_others_have(clock):
    mib = make_mib(ONUS, ["serial", "state"])
    agent = FakeAgent(clock, mib, Faults(gen_err_at=frozenset({oid_of("serial", SEVEN)})))

    collected = await run(agent, make_node(JobKind.DISCOVERY))

    others = [onu for onu in ONUS if onu != SEVEN]
    assert collected.completeness is Completeness.PARTIAL
    assert collected.failed_onus == ("ONU 0/1/7",)
    assert values_of(collected) == all_of(others, "serial", "state") | all_of([SEVEN], "state")


async def test_a_discovery_whose_first_column_was_cut_keeps_what_the_others_have(clock):
    mib = make_mib(ONUS, ["serial", "state"])
    agent = FakeAgent(clock, mib)
    place = agent.path.index(oid_of("serial", SEVEN))
    agent.faults = Faults(jumps={place: place - 2})

    collected = await run(agent, make_node(JobKind.DISCOVERY))

    assert collected.completeness is Completeness.PARTIAL
    assert values_of(collected) == all_of(ONUS[:7], "serial", "state") | all_of(ONUS[7:], "state")


async def test_scalars_and_raw_columns_are_read_beside_the_brands(clock):
    mib = make_mib(ONUS) | {Oid(VLAN.oid + pack((1001, 7))): 200}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "name", oids=(UPTIME, VLAN, LOCATION)))

    assert collected.scalars == {"uptime": 4711, "location": None}
    assert values_of(collected)[index_of(SEVEN)] == {"name": "customer 7", "vlan": 200}
    assert values_of(collected)[index_of(at(0, 1, 8))]["vlan"] is None
    assert collected.completeness is Completeness.COMPLETE


async def test_raw_columns_are_read_by_get_too(clock):
    mib = make_mib(ONUS) | {Oid(VLAN.oid + pack((1001, 7))): 200}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.GET, oids=(VLAN,)), onus=known([SEVEN]))

    assert values_of(collected) == {index_of(SEVEN): {"vlan": 200}}


async def test_a_run_of_scalars_alone_is_complete(clock):
    collected = await run(FakeAgent(clock, make_mib([])), make_node(JobKind.GET, oids=(UPTIME,)))

    assert collected.completeness is Completeness.COMPLETE
    assert collected.scalars == {"uptime": 4711}
    assert collected.readings == ()


async def test_a_scalar_that_cannot_be_read_is_left_out(clock):
    mib = make_mib(ONUS) | {LOCATION.oid: b"attic"}
    agent = FakeAgent(clock, mib, Faults(gen_err_at=frozenset({LOCATION.oid})))

    collected = await run(agent, make_node(JobKind.TABLE, "name", oids=(UPTIME, LOCATION)))

    assert collected.scalars == {"uptime": 4711}
    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("location: the agent answered genErr",)
    assert values_of(collected) == all_of(ONUS, "name")


async def test_an_empty_plan_is_a_sentence_and_no_request(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.GET), onus=known(ONUS))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("Optical power: the job has no columns and no OIDs, so there is nothing to read",)
    assert agent.log == []


async def test_an_unknown_column_leaves_a_partial_run_with_the_others(clock):
    collected = await run(FakeAgent(clock, make_mib(ONUS)), make_node(JobKind.TABLE, "colour", "name"))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("colour: Acme has no column of that name",)
    assert values_of(collected) == all_of(ONUS, "name")


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
async def test_the_brands_rule_sees_each_row_whole(clock, kind):
    def darken(values):
        return values | {"rx_dbm": None} if values["state"] == "offline" else values

    mib = make_mib(ONUS, ["state", "rx_dbm"]) | {oid_of("state", SEVEN): 2}

    collected = await run(
        FakeAgent(clock, mib),
        make_node(kind, "rx_dbm", "state"),
        brand=make_brand(finish=darken),
        onus=known(ONUS),
    )

    others = [onu for onu in ONUS if onu != SEVEN]
    assert values_of(collected) == all_of(others, "state", "rx_dbm") | {
        index_of(SEVEN): {"state": "offline", "rx_dbm": None},
    }


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET, JobKind.DISCOVERY])
async def test_a_value_that_cannot_be_decoded_is_absent_and_not_none(clock, kind, caplog):
    mib = make_mib(ONUS, ["serial", "state"]) | {oid_of("state", SEVEN): b"\xff"}

    collected = await run(FakeAgent(clock, mib), make_node(kind, "serial", "state"), onus=known(ONUS))

    assert values_of(collected)[index_of(SEVEN)] == expected(SEVEN, "serial")
    assert values_of(collected)[index_of(at(0, 1, 8))] == expected(at(0, 1, 8), "serial", "state")
    assert collected.completeness is Completeness.COMPLETE
    assert collected.errors == ("state: could not be decoded for 1 ONUs",)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_an_onu_whose_only_value_cannot_be_decoded_still_exists(clock):
    mib = make_mib(ONUS, ["serial"]) | {oid_of("serial", SEVEN): 5}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.DISCOVERY, "serial"))

    assert values_of(collected)[index_of(SEVEN)] == {}
    assert len(collected.readings) == len(ONUS)


async def test_a_rule_that_fails_leaves_the_row_as_it_was_read(clock):
    collected = await run(
        FakeAgent(clock, make_mib(ONUS)),
        make_node(JobKind.TABLE, "name"),
        brand=make_brand(finish=lambda values: {"state": values["state"]}),
    )

    assert values_of(collected) == all_of(ONUS, "name")
    assert collected.errors == ("row: could not be decoded for 25 ONUs",)


async def test_a_scalar_that_cannot_be_decoded_is_absent(clock):
    mib = make_mib(ONUS) | {LOCATION.oid: 5}

    collected = await run(FakeAgent(clock, mib), make_node(JobKind.TABLE, "name", oids=(LOCATION,)))

    assert collected.scalars == {}
    assert collected.errors == ("location: could not be decoded",)


@pytest.mark.parametrize("kind", list(JobKind))
async def test_a_mute_olt_is_unreachable(kind):
    agent = FakeAgent(FakeClock(), {}, Faults(dies_after=0))

    with pytest.raises(
        OltUnreachable, match=r"^OLT-SUR-03 did not answer 3 requests in \d+\.0 s\. Check the address"
    ) as caught:
        await run(agent, make_node(kind, "name"), olt=make_olt(name="OLT-SUR-03"), onus=known(ONUS))

    assert caught.value.traffic.pdus == len(agent.log) == 3


async def test_a_mute_olt_is_unreachable_when_the_deadline_comes_first():
    agent = FakeAgent(FakeClock(), {}, Faults(dies_after=0))

    with pytest.raises(OltUnreachable, match=r"^OLT-SUR-03 did not answer 1 request in \d\.\d s\."):
        await run(agent, make_node(JobKind.TABLE, "name"), olt=make_olt(name="OLT-SUR-03"), seconds=3)


async def test_a_run_that_comes_after_its_deadline_asks_nothing_and_blames_nobody(clock):
    agent = FakeAgent(clock, make_mib(ONUS))

    collected = await run(agent, make_node(JobKind.TABLE, "name", oids=(UPTIME,)), seconds=-1)

    assert agent.log == []
    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == (
        "uptime: the time limit was reached",
        "name: the time limit was reached before the first row",
    )


async def test_an_agent_that_refuses_us_is_not_called_unreachable(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(refuses_after=0))

    with pytest.raises(Refused):
        await run(agent, make_node(JobKind.TABLE, "name"))


async def test_being_refused_midway_loses_no_row(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(refuses_after=1))

    collected = await run(agent, make_node(JobKind.TABLE, "name"))

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("name: the OLT started to refuse access after ONU 0/1/10, 10 rows kept",)
    assert values_of(collected) == all_of(ONUS[:10], "name")


async def test_a_run_ends_at_its_deadline_with_what_it_has(clock):
    agent = FakeAgent(clock, make_mib(ONUS), latency=2.0)

    collected = await run(agent, make_node(JobKind.TABLE, "name", "rx_dbm"), seconds=3)

    assert collected.completeness is Completeness.PARTIAL
    assert collected.errors == ("name, rx_dbm: the time limit was reached after ONU 0/1/20",)
    assert values_of(collected) == all_of(ONUS[:20], "name")


async def test_a_long_column_is_counted_with_commas(clock):
    onus = [at(slot, port, onu) for slot in range(4) for port in range(1, 6) for onu in range(1, 61)]
    agent = FakeAgent(clock, make_mib(onus, ["name"]))
    agent.faults = Faults(jumps={agent.path.index(oid_of("name", onus[1099])): 0})

    collected = await run(agent, make_node(JobKind.TABLE, "name"))

    assert collected.errors == ("name: the agent returned a row before the column after ONU 3/4/20, 1,100 rows kept",)


async def test_the_cost_is_what_the_olt_saw(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(drop_every=3, too_big_above=15))

    collected = await run(agent, make_node(JobKind.TABLE, "name", "state", "rx_dbm", oids=(UPTIME,)))

    asked = [(request.kind, request.oids, request.repetitions) for request in agent.log]
    repeated = sum(earlier == later for earlier, later in pairwise(asked))
    assert collected.traffic.pdus == len(agent.log)
    assert collected.traffic.retransmissions == repeated == len(agent.log) // 3
    assert collected.traffic.varbinds >= 25 * 3 + 1


async def test_a_request_that_would_outlast_the_deadline_is_cut_to_it(clock):
    agent = FakeAgent(clock, make_mib(ONUS), Faults(dies_after=1), latency=6.0)

    collected = await run(agent, make_node(JobKind.TABLE, "rx_dbm"), seconds=33)

    # 6 s for an answer, 18 s for one that did not come, and then not the 20 s that a third may take.
    assert [request.timeout for request in agent.log] == [20, 18, 9]
    assert clock.elapsed == pytest.approx(33)
    assert len(collected.readings) == 10


async def test_rows_are_read_once_each_from_columns_of_any_width():
    columns = [column for column in COLUMNS if not COLUMNS[column].optical]

    collected = await run(FakeAgent(FakeClock(), make_mib(ONUS)), make_node(JobKind.TABLE, *columns))

    assert values_of(collected) == all_of(ONUS, *columns)
    assert [reading.index for reading in collected.readings] == [index_of(onu) for onu in ONUS]


async def test_a_run_leaves_no_cycle_behind():
    onus = [*one_port(30), *one_port(40, port=2)]
    agent = FakeAgent(FakeClock(), make_mib(onus))
    is_alive = weakref.ref(agent)
    gc.disable()
    try:
        await run(agent, make_node(JobKind.TABLE, "serial", "state", "rx_dbm"), onus=known(onus))
        del agent
        assert is_alive() is None
    finally:
        gc.enable()
