"""Several requests under way at once: within the limit, by port, and with nobody left behind."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from collect_fakes import (
    COLUMNS,
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
from collect_virtual import VirtualAgent, busiest_second, virtually

from facho.engine.brand import Manners
from facho.engine.collect.learned import Learned
from facho.engine.collect.parallel import Parallel
from facho.engine.collect.requester import Requester, RunOver
from facho.engine.errors import Refused
from facho.engine.model import Completeness, JobKind
from facho.engine.snmp import Version

ONUS = [onu for port in range(1, 9) for onu in one_port(60, port=port)]
SEVEN = at(0, 1, 7)


def collect_by(agent, kind, *columns, onus=ONUS, limit=8, seconds=3600, brand=None, **olt):
    inventory = [] if onus is None else known(onus)
    version = olt.pop("version", Version.V2C)
    story = run(
        agent,
        make_node(kind, *columns),
        onus=inventory,
        olt=make_olt(version, max_in_flight=limit, **olt),
        seconds=seconds,
        brand=brand,
    )
    return virtually(story)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "inventory"),
    [
        pytest.param(JobKind.GET, ONUS, id="GET"),
        *(
            pytest.param(kind, inventory, id=f"{kind} with {who} known")
            for kind in (JobKind.TABLE, JobKind.WALK, JobKind.DISCOVERY)
            for who, inventory in (("everybody", ONUS), ("one", ONUS[:1]), ("nobody", None))
        ),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_limit_is_never_exceeded_and_everything_is_read(kind, inventory, limit):
    agent = VirtualAgent(make_mib(ONUS))

    collected = collect_by(agent, kind, "serial", "name", "state", onus=inventory, limit=limit)

    assert agent.peak == collected.traffic.peak_in_flight <= limit
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(ONUS, "serial", "name", "state")
    assert collected.traffic.pdus == len(agent.log)


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
def test_an_agent_that_can_do_more_at_once_is_read_faster(kind):
    one, eight = VirtualAgent(make_mib(ONUS)), VirtualAgent(make_mib(ONUS))
    brand = make_brand(manners=Manners(max_repetitions=2, rows_per_get=2))

    for agent, limit in ((one, 1), (eight, 8)):
        collect_by(agent, kind, "serial", "name", limit=limit, brand=brand)

    assert eight.peak == 8
    assert eight.log[-1].at < one.log[-1].at / 2


def test_a_serial_agent_is_not_made_slower_by_being_allowed_more():
    times = {}
    for limit in (1, 8):
        agent = VirtualAgent(make_mib(ONUS), per_variable=0.002, workers=1)
        collect_by(agent, JobKind.TABLE, "serial", "name", "state", limit=limit)
        times[limit] = agent.log[-1].at

    assert times[8] <= times[1] / 0.85


def test_each_lane_keeps_to_the_limit_of_the_olt():
    agent = VirtualAgent(make_mib(ONUS))

    collected = collect_by(agent, JobKind.TABLE, "serial", "state", "rx_dbm", limit=3)

    assert agent.peak == 3
    assert values_of(collected) == all_of(ONUS, "serial", "state", "rx_dbm")


@pytest.mark.parametrize("limit", [1, 4])
def test_requests_a_second_are_kept_to_however_many_are_under_way(limit):
    agent = VirtualAgent(make_mib(ONUS))

    collected = collect_by(agent, JobKind.TABLE, "serial", limit=limit, max_pdus_per_second=5.0)

    times = [request.at for request in agent.log]
    assert collected.completeness is Completeness.COMPLETE
    assert times[0] == pytest.approx(0.2)
    assert busiest_second(times) <= 6


def test_ports_are_walked_side_by_side_and_one_that_nobody_knew_is_found():
    stranger = at(5, 5, 7)
    between = at(0, 3, 64)
    onus = [onu for onu in ONUS if onu.port != 3]
    agent = VirtualAgent(make_mib([*onus, between, stranger]))

    collected = collect_by(agent, JobKind.DISCOVERY, "serial", onus=onus)

    starts = {
        COLUMNS["serial"].oid + oid_of("serial", at(0, port, 1))[len(COLUMNS["serial"].oid) : -1] for port in (2, 8)
    }
    assert starts <= {request.oids[0] for request in agent.log}
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of([*onus, between, stranger], "serial")


def test_a_port_before_all_known_ones_is_found_too():
    first = at(0, 0, 3)
    agent = VirtualAgent(make_mib([first, *ONUS]))

    collected = collect_by(agent, JobKind.DISCOVERY, "serial", "state")

    assert values_of(collected) == all_of([first, *ONUS], "serial", "state")
    assert collected.completeness is Completeness.COMPLETE


WIDE = {"pace": {"cheap": {"window": 8, "rate": 500.0, "round_trip": 0.1}}}
FEW = make_brand(manners=Manners(max_repetitions=5))


@pytest.mark.parametrize("ports", [1, 2, 3, 4])
def test_a_table_with_fewer_ports_than_the_window_is_divided_by_known_rows(ports):
    onus = [onu for port in range(1, ports + 1) for onu in one_port(100, port=port)]
    agent = VirtualAgent(make_mib(onus))

    collected = collect_by(agent, JobKind.TABLE, "serial", "state", onus=onus, learned=WIDE, brand=FEW)

    assert agent.peak == 8
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(onus, "serial", "state")


def test_a_part_asks_for_no_rows_of_the_next_one():
    agent = VirtualAgent(make_mib(one_port(80)))

    collected = collect_by(agent, JobKind.TABLE, "serial", onus=one_port(80), learned=WIDE, brand=FEW)

    # Only the last part looks for what comes behind the port.
    assert collected.traffic.varbinds <= 80 + 20


def test_a_port_of_few_rows_is_not_divided():
    agent = VirtualAgent(make_mib(one_port(9)))

    collect_by(agent, JobKind.TABLE, "serial", onus=one_port(9), learned=WIDE, brand=FEW)

    assert agent.peak == 1


@pytest.mark.parametrize("version", [Version.V1, Version.V2C])
@pytest.mark.parametrize("columns", [("serial",), ("serial", "name", "state")])
@pytest.mark.parametrize(
    "there",
    [
        pytest.param([onu for onu in range(1, 101) if onu % 2], id="every second one is gone"),
        pytest.param([*range(1, 30), *range(70, 101)], id="parts without a row"),
        pytest.param(range(1, 30), id="all behind are gone"),
        pytest.param(range(71, 101), id="all before are gone"),
        pytest.param([*range(101), 120, 128, 200, 300], id="new ones before and behind"),
    ],
)
def test_nothing_is_missed_between_the_parts_of_a_port(version, columns, there):
    # The inventory has gaps, and rows that the agent has not: the parts begin behind such rows too.
    inventory = [at(0, 1, onu) for onu in range(2, 101) if onu % 3]
    onus = [at(0, 1, onu) for onu in there]
    agent = VirtualAgent(make_mib(onus))

    collected = collect_by(agent, JobKind.DISCOVERY, *columns, onus=inventory, learned=WIDE, brand=FEW, version=version)

    assert agent.peak > 1
    assert collected.completeness is Completeness.COMPLETE
    assert values_of(collected) == all_of(onus, *columns)
    assert set(collected.absent) == {index_of(onu) for onu in inventory} - {index_of(onu) for onu in onus}


def test_rows_out_of_order_inside_a_port_are_found_though_no_part_goes_back():
    onus = one_port(40)
    serials = [oid_of("serial", onu) for onu in onus]
    # The first part meets 36 and believes to be at its end; no part comes to 4 to 10.
    path = [*serials[:3], serials[35], *serials[3:35], *serials[36:]]
    agent = VirtualAgent(dict.fromkeys(serials, b"HWTC00000007"), path=path)

    first = collect_by(agent, JobKind.DISCOVERY, "serial", onus=onus, learned=WIDE, brand=FEW)
    again = VirtualAgent(dict.fromkeys(serials, b"HWTC00000007"), path=path)
    collect_by(again, JobKind.DISCOVERY, "serial", onus=onus, learned=first.learned, brand=FEW)

    assert len(first.readings) == 40
    assert first.absent == ()
    assert again.peak == 1


@pytest.mark.slow
@pytest.mark.parametrize("poisoned", range(1, 41))
def test_a_poisoned_row_anywhere_costs_only_itself_in_a_divided_port(poisoned):
    onus = one_port(40)
    bad = at(0, 1, poisoned)
    agent = VirtualAgent(make_mib(onus), Faults(gen_err_at=frozenset({oid_of("serial", bad)})))

    collected = collect_by(agent, JobKind.DISCOVERY, "serial", "state", onus=onus, learned=WIDE, brand=FEW)

    others = [onu for onu in onus if onu != bad]
    assert values_of(collected) == all_of(others, "serial", "state") | all_of([bad], "state")
    assert collected.failed_onus == (f"ONU 0/1/{poisoned}",)
    assert collected.absent == ()


def test_the_first_request_of_a_run_goes_alone():
    agent = VirtualAgent(make_mib(ONUS))

    collect_by(agent, JobKind.GET, "serial", learned=WIDE)

    assert [request.at for request in agent.log[:2]] == [0.0, pytest.approx(0.1)]


def test_an_automatic_window_goes_up_to_the_limit_of_the_brand():
    for limit in (3, 8):
        agent = VirtualAgent(make_mib(ONUS))
        brand = make_brand(manners=Manners(max_repetitions=2, rows_per_get=2, max_in_flight=limit))

        collect_by(agent, JobKind.TABLE, "serial", "rx_dbm", limit=None, brand=brand)

        assert agent.peak == limit


def test_a_table_out_of_order_is_read_again_from_end_to_end_and_not_shared_out_any_more():
    onus = [*one_port(20), *one_port(20, port=2), *one_port(20, port=3)]
    serials = [oid_of("serial", onu) for onu in onus]
    path = [*serials[:10], *serials[45:], *serials[10:45]]
    agent = VirtualAgent(dict.fromkeys(serials, b"HWTC00000007"), path=path)

    first = collect_by(agent, JobKind.TABLE, "serial", onus=onus)
    again = VirtualAgent(dict.fromkeys(serials, b"HWTC00000007"), path=path)
    second = collect_by(again, JobKind.TABLE, "serial", onus=onus, learned=first.learned)

    assert first.completeness is second.completeness is Completeness.COMPLETE
    assert len(first.readings) == len(second.readings) == 60
    assert again.peak == 1
    assert len(again.log) < len(agent.log)


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
def test_a_poisoned_onu_among_many_under_way_costs_only_itself(kind):
    poisoned = frozenset(oid_of(name, SEVEN) for name in ("serial", "name"))
    agent = VirtualAgent(make_mib(ONUS), Faults(gen_err_at=poisoned))

    collected = collect_by(agent, kind, "serial", "name", "state")

    others = [onu for onu in ONUS if onu != SEVEN]
    assert collected.failed_onus == ("ONU 0/1/7",)
    assert values_of(collected) == all_of(others, "serial", "name", "state") | all_of([SEVEN], "state")


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
def test_an_agent_that_dies_is_left_by_everybody(kind):
    agent = VirtualAgent(make_mib(ONUS), Faults(dies_after=30, too_big_above=8))

    collected = collect_by(agent, kind, "serial", "name")

    assert collected.completeness is Completeness.PARTIAL
    assert len(collected.readings) > 20
    assert "stopped answering" in collected.errors[0]
    # Requests in flight are repeated, and one of them probes the agent.
    assert len(agent.log) <= 30 + 8 * 4 + 2 * 8
    assert agent.in_flight == 0


def test_a_deadline_stops_everybody():
    agent = VirtualAgent(make_mib(ONUS), Faults(too_big_above=4), service=1.0)

    collected = collect_by(agent, JobKind.TABLE, "serial", seconds=20)

    assert collected.completeness is Completeness.PARTIAL
    assert agent.peak > 1
    assert max(request.at for request in agent.log) < 20
    assert agent.in_flight == 0


def make_crew(work, *, window=4, limit=4):
    agent = VirtualAgent(make_mib(ONUS))
    requester = Requester(
        agent,
        make_olt(max_in_flight=limit),
        Manners(),
        learned=Learned({}),
        clock=agent.clock,
        deadline=agent.clock.now() + timedelta(hours=1),
    )
    requester._lane.pace.window = window
    requester._lane.timer.measured(0.1)
    waiting = iter(work)
    return Parallel(requester, lambda: next(waiting, None))


def test_a_crew_begins_parts_in_their_order_and_no_more_than_the_window():
    begun, busy = [], Counter()

    async def part(number):
        begun.append(number)
        busy["now"] += 1
        busy["most"] = max(busy["most"], busy["now"])
        await asyncio.sleep(10 - number)
        busy["now"] -= 1

    async def story():
        await make_crew(part(number) for number in range(10)).run()

    virtually(story())

    assert begun == list(range(10))
    assert busy == {"now": 0, "most": 4}


def test_a_crew_without_work_is_done_at_once():
    async def story():
        await make_crew([]).run()

    virtually(story())


@pytest.mark.parametrize(
    "error", [RunOver("the time limit was reached"), Refused("unknown user")], ids=["over", "refused"]
)
def test_the_first_failure_begins_nothing_more_and_lets_the_others_end(error):
    begun, ended = [], []

    async def part(number):
        begun.append(number)
        await asyncio.sleep(number)
        if number == 1:
            raise error
        ended.append(number)

    async def story():
        parts = [part(number) for number in range(1, 9)]
        with pytest.raises(type(error)):
            await make_crew(parts).run()
        for never_begun in parts[4:]:
            never_begun.close()

    virtually(story())

    assert begun == [1, 2, 3, 4]
    assert ended == [2, 3, 4]


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET])
@pytest.mark.parametrize("after", [0.05, 0.25, 0.45, 0.75])
def test_a_run_that_is_cancelled_asks_nothing_more(kind, after):
    agent = VirtualAgent(make_mib(ONUS))
    brand = make_brand(manners=Manners(max_repetitions=4, rows_per_get=4))

    async def story():
        node, olt = make_node(kind, "serial", "name"), make_olt(max_in_flight=4)
        task = asyncio.ensure_future(run(agent, node, olt=olt, onus=known(ONUS), brand=brand))
        await asyncio.sleep(after)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        asked = len(agent.log)
        await asyncio.sleep(60)
        return asked

    asked = virtually(story())

    assert 0 < asked == len(agent.log)
    assert agent.in_flight == 0
