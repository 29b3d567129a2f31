"""How far a run is, told after each answer."""

import pytest
from collect_fakes import FakeAgent, FakeClock, known, make_mib, make_node, make_olt, one_port, run

from facho.engine.model import JobKind

ONUS = [onu for port in (1, 2, 3, 4) for onu in one_port(20, port=port)]


async def watch(kind, *columns, limit=1, onus=ONUS):
    seen = []
    agent = FakeAgent(FakeClock(), make_mib(ONUS))
    node, olt = make_node(kind, *columns), make_olt(max_in_flight=limit)
    collected = await run(agent, node, olt=olt, onus=known(onus), watch=seen.append)
    return seen, collected


@pytest.mark.parametrize("kind", [JobKind.TABLE, JobKind.GET, JobKind.WALK, JobKind.DISCOVERY])
@pytest.mark.parametrize("limit", [1, 4])
async def test_it_is_told_after_each_answer_and_only_grows(kind, limit):
    seen, collected = await watch(kind, "serial", "state", "rx_dbm", limit=limit)

    assert len(seen) == collected.traffic.pdus
    assert [each.pdus for each in seen] == list(range(1, len(seen) + 1))
    assert [each.rows for each in seen] == sorted(each.rows for each in seen)
    assert all(each.ports is None or each.ports_done <= each.ports for each in seen)


async def test_a_table_that_is_read_whole_cannot_say_how_much_is_left():
    seen, _ = await watch(JobKind.TABLE, "serial")

    assert {each.ports for each in seen} == {None}
    assert seen[-1].rows == len(ONUS)


async def test_ports_that_are_walked_side_by_side_are_counted():
    seen, _ = await watch(JobKind.TABLE, "serial", limit=4)

    assert {each.ports for each in seen} == {4}
    assert seen[-1].ports_done >= 3
    assert seen[-1].rows == len(ONUS)


async def test_onus_that_are_asked_by_index_are_counted():
    seen, _ = await watch(JobKind.GET, "serial")

    assert {each.ports for each in seen} == {len(ONUS)}
    assert seen[-1].ports_done == len(ONUS)


async def test_rows_that_are_asked_by_index_are_rows_that_were_read():
    seen, _ = await watch(JobKind.GET, "serial")

    assert seen[-1].rows == len(ONUS)
