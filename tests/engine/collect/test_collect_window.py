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
from facho.engine.collect.crew import Crew
from facho.engine.collect.requester import Requester, RunOver
from facho.engine.errors import Refused
from facho.engine.model import Completeness, JobKind

ONUS = [onu for port in range(1, 9) for onu in one_port(60, port=port)]
SEVEN = at(0, 1, 7)


def collect_by(agent, kind, *columns, onus=ONUS, limit=8, seconds=3600, brand=None, **olt):
    inventory = [] if onus is None else known(onus)
    story = run(
        agent,
        make_node(kind, *columns),
        onus=inventory,
        olt=make_olt(max_in_flight=limit, **olt),
        seconds=seconds,
        brand=brand,
    )
    return virtually(story)


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


def test_an_olt_with_one_port_is_walked_whole():
    agent = VirtualAgent(make_mib(one_port(100)))

    collected = collect_by(agent, JobKind.TABLE, "serial", onus=one_port(100))

    assert agent.peak == 1
    assert len(collected.readings) == 100


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
    # Whoever was under way then repeats, and one of them asks whether the agent is there.
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
        clock=agent.clock,
        deadline=agent.clock.now() + timedelta(hours=1),
    )
    requester._lane.pace.window = window
    waiting = iter(work)
    return Crew(requester, lambda: next(waiting, None))


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


@pytest.mark.parametrize("error", [RunOver("the deadline passed"), Refused("unknown user")], ids=["over", "refused"])
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
