"""Several connections at once: one winner, nobody locked out, and what was begun is there for all to see."""

import asyncio
import threading

import pytest
from builders import MIN, T0
from django.db import connection

from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.apps.telemetry.models import Onu
from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Collected, Completeness, CompositeNode, Lease, Outcome, Reading, RunResult, Status
from facho.store.nodes import DbNodeSource
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots

LEASE_TOKEN = 7


def make_rows():
    """Make OLT-CENTRAL-01 with a master, a link behind it, and a second master."""
    olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
    power = SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"])
    SnmpJob.objects.create(name="Names", brand="huawei", kind="table", columns=["name"], follows=power)
    software = SnmpJob.objects.create(name="Software", brand="huawei", kind="table", columns=["rx_dbm"])
    for job in (power, software):
        job.apply_to([olt])
    WorkflowNode.objects.filter(master=None).update(next_run_at=T0)
    return olt.pk


@pytest.fixture
def two(make_thread):
    return make_thread("first"), make_thread("second")


async def nodes_by_name(thread):
    olt_id = await thread.run(make_rows)
    states = await DbNodeSource(thread).states([olt_id])
    return {node.name: node for node in states[olt_id].nodes}


def runs(thread):
    return DbRuns(thread, thread, DbResults(thread))


async def claim(thread, *links):
    return await DbSlots(thread).claim(CompositeNode(links[0], links[1:], T0), poller_id=1, now=T0, waits={})


async def test_of_many_who_claim_a_slot_at_once_one_has_it(two, make_thread):
    nodes = await nodes_by_name(two[0])
    threads = [*two, make_thread("third"), make_thread("fourth")]

    claims = await asyncio.gather(*(claim(thread, nodes["Optical power"], nodes["Names"]) for thread in threads * 3))

    assert len([each for each in claims if each is not None]) == 1
    assert await two[0].run(Execution.objects.count) == 2
    assert await two[0].run(lambda: WorkflowNode.objects.get(job__name="Optical power").next_run_at) == T0 + 5 * MIN


async def test_of_two_who_start_at_once_on_one_olt_one_runs(two):
    nodes = await nodes_by_name(two[0])
    claims = [await claim(two[0], nodes[name]) for name in ("Optical power", "Software")]
    lease = Lease(claims[0].composite.olt_id, "test", LEASE_TOKEN)

    results = await asyncio.gather(
        *(
            runs(thread).start(each.execution_ids[0], lease=lease, now=T0)
            for thread, each in zip(two, claims, strict=True)
        ),
        return_exceptions=True,
    )

    assert sorted(type(result).__name__ for result in results) == ["OltBusy", "bool"]
    assert await two[0].run(Execution.objects.filter(status="RUNNING").count) == 1


async def test_of_many_who_end_an_execution_at_once_one_is_counted(two, make_thread):
    nodes = await nodes_by_name(two[0])
    (id_,) = (await claim(two[0], nodes["Optical power"])).execution_ids
    lease = Lease(nodes["Optical power"].olt_id, "test", LEASE_TOKEN)
    await runs(two[0]).start(id_, lease=lease, now=T0)
    threads = [*two, make_thread("third")]

    await asyncio.gather(
        *(runs(thread).finish(RunResult((id_,), Outcome(Status.SUCCESS), lease, T0)) for thread in threads),
        *(DbSlots(thread).recover(T0) for thread in threads),
    )

    row = await two[0].run(QuotaTracker.objects.get)
    assert (row.quota_required, row.quota_completed + row.quota_failed, row.quota_pending) == (1, 1, 0)


async def test_slots_that_end_at_once_are_all_counted(two, make_thread):
    nodes = await nodes_by_name(two[0])
    power = nodes["Optical power"]
    threads = [*two, make_thread("third"), make_thread("fourth")]
    ids = []
    for number in range(8):
        composite = CompositeNode(power, (), T0 + number * 5 * MIN)
        ids += (await DbSlots(two[0]).claim(composite, poller_id=1, now=composite.slot, waits={})).execution_ids

    await asyncio.gather(
        *(
            DbSlots(thread).close([id_], Outcome(Status.SKIPPED, Cause.OLT_BUSY), now=T0)
            for thread, id_ in zip(threads * 2, ids, strict=True)
        )
    )

    row = await two[0].run(QuotaTracker.objects.get)
    assert (row.quota_required, row.quota_skipped, row.causes) == (8, 8, {"olt_busy": 8})


async def test_a_claim_whose_link_was_just_deleted_takes_nothing(two):
    nodes = await nodes_by_name(two[0])
    await two[1].run(WorkflowNode.objects.filter(pk=nodes["Names"].id).delete)

    refused = await claim(two[0], nodes["Optical power"], nodes["Names"])
    taken = await claim(two[0], nodes["Optical power"])

    assert refused is None
    assert taken is not None
    assert await two[0].run(Execution.objects.count) == 1


async def test_a_writer_and_people_who_change_things_wait_for_each_other(two):
    nodes = await nodes_by_name(two[0])
    power = nodes["Optical power"]
    (execution_id,) = (await claim(two[0], power)).execution_ids
    lease = Lease(power.olt_id, "test", LEASE_TOKEN)
    await runs(two[0]).start(execution_id, lease=lease, now=T0)
    rows = tuple(Reading(f"1.{n}", 0, 1, n, {"rx_dbm": -21.53, "vlan": n}) for n in range(200))
    collected = Collected(Completeness.COMPLETE, rows, {"uptime": 1})
    result = RunResult((execution_id,), Outcome(Status.SUCCESS), lease, T0, power, collected)

    def change():
        olt = Olt.objects.get()
        olt.location = "Centro"
        olt.save()

    await asyncio.gather(
        *(runs(two[0]).finish(result) for _ in range(5)),
        *(two[1].run(change) for _ in range(20)),
    )

    assert await two[1].run(Onu.objects.count) == 200
    assert await two[1].run(lambda: Olt.objects.get().location) == "Centro"


async def test_a_thread_is_one_thread_with_one_connection(two):
    async def who():
        return await two[0].run(lambda: (threading.current_thread().name, id(connection.connection)))

    await two[0].run(Olt.objects.count)
    seen = {await who() for _ in range(3)}

    ((name, _),) = seen
    assert name.startswith("first")


async def test_what_goes_wrong_in_a_thread_comes_out_of_it(two):
    def broken():
        raise OltBusy("OLT 1 is held by noc/1")

    with pytest.raises(OltBusy, match="noc/1"):
        await two[0].run(broken)

    assert await two[0].run(lambda: 7) == 7


async def test_a_connection_that_the_server_dropped_is_made_again(two):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no server")
    await two[0].run(Olt.objects.count)
    pid = await two[0].run(lambda: connection.connection.info.backend_pid)

    def drop():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    await two[1].run(drop)

    assert await two[0].run(Olt.objects.count) == 0
