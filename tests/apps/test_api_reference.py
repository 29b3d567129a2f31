"""The fields that docs/api.md promises are there, in both modes, also while a chain runs."""

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import T0, make_composite
from django.utils import timezone
from runner_stage import Stage

from facho.adapters.clock import VirtualClock, VirtualTimeLoop
from facho.apps.polling import live
from facho.engine.errors import BadAnswer
from facho.engine.scheduling.pollers import PollerManager
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.scheduling.snapshot import snapshot
from facho.engine.scheduling.workers import WorkerRegistry
from facho.runtime.roles.worker import WorkerPollers

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")

BROKEN = BadAnswer("OLT-01 answered with an error")


def promised():
    """Return (method, path, keys, fields) of each row of the table: keys lead from the answer to the fields."""
    table = re.search(r"^\| Endpoint \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    assert table
    for line in table[1].splitlines():
        where, fields = line.strip("|").split("|")
        endpoint, *keys = re.findall(r"`([^`]+)`", where)
        yield (*endpoint.split(), keys, set(re.findall(r"`([^`]+)`", fields)))


READ = [(path, keys, fields) for method, path, keys, fields in promised() if method == "GET"]


class Recorder(Stage):
    """A chain of three, which takes a snapshot each time a link asks its OLT."""

    def __init__(self, monkeypatch, **results):
        super().__init__(VirtualClock(T0), monkeypatch, retries=1, **results)
        self.snapshots = []
        self.take = None

    async def collect(self, node, olt, brand, **more):
        # What comes by way of Redis is JSON.
        self.snapshots.append(json.loads(json.dumps(self.take())))
        return await super().collect(node, olt, brand, **more)


async def embedded(stage):
    """Run the chain as `facho run` does."""
    scheduler = Scheduler(pollers=2, nodes=stage.nodes, slots=stage.slots, runner=stage.runner, clock=stage.clock)
    fill(scheduler.manager)
    stage.take = lambda: snapshot(scheduler.manager, stage.clock.now())
    scheduler.manager.offer(stage.composite)
    scheduler.manager.start_due()
    await asyncio.sleep(10)
    await scheduler.manager.stop()


async def scaled_out(stage):
    """Run the chain on a worker, and see it as the scheduler publishes it."""
    pool = WorkerPollers(name="noc-1/77", host="noc-1", numbers=[4, 9], runner=stage.runner, clock=stage.clock)
    manager = PollerManager(
        pollers=0, runner=None, slots=stage.slots, clock=stage.clock, scheduler=SimpleNamespace(next_due=None)
    )
    fill(manager)

    def take():
        workers = WorkerRegistry()
        workers.update(json.loads(json.dumps(pool.report())), stage.clock.now())
        return snapshot(manager, stage.clock.now(), workers.pollers)

    stage.take = take
    await pool.run(await stage.claim())


def fill(manager):
    """Let 60 nodes wait for an OLT that somebody else holds."""
    manager.hold(99)
    for number in range(20, 80):
        manager.offer(make_composite(number, olt_id=99))


@pytest.fixture(params=[embedded, scaled_out], ids=["embedded", "scale-out"])
def run_chain(request, monkeypatch):
    """Return a function that runs the chain and returns the snapshot of each of its links."""

    def run(**results):
        stage = Recorder(monkeypatch, **results)
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(request.param(stage))
        return stage.snapshots

    return run


class OneSnapshot:
    """A bus with a snapshot that has just been published."""

    def __init__(self, snapshot):
        self._snapshot = {**snapshot, "at": timezone.now().isoformat()}

    def latest(self, topic):
        return self._snapshot if topic == "snapshot" else None


@pytest.fixture
def read(reader_api):
    """Return a function that reads a path as it is while a snapshot is the last one."""

    def read(path, snapshot, **query):
        live.attach(OneSnapshot(snapshot))
        answer = reader_api.get(path, query)
        assert answer.status_code == 200
        return answer.json()

    yield read
    live.attach(None)


def at(answer, keys):
    """Return the objects that keys lead to."""
    found = [answer]
    for key in keys:
        found = [inner for outer in found for inner in outer[key]]
    return found


@pytest.mark.parametrize(("path", "keys", "fields"), READ, ids=["/".join([path, *keys]) for path, keys, _ in READ])
def test_every_promised_field_is_there_while_a_chain_runs(run_chain, read, path, keys, fields):
    for snapshot_ in run_chain():
        found = at(read(path, snapshot_), keys)

        assert found
        assert all(fields <= set(each) for each in found)


def test_the_answer_to_a_run_has_every_promised_field(api, node):
    [fields] = [fields for method, *_, fields in promised() if method == "POST"]

    answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    assert answer.status_code == 202
    assert fields <= set(answer.json())


def busy(answer):
    [poller] = [poller for poller in answer["pollers"] if poller["status"] == "BUSY"]
    return poller


def active(poller):
    return [(each["node_id"], each["status"]) for each in poller["active_executions"]]


def test_active_executions_are_the_master_and_its_chain_in_order(run_chain, read):
    pollers = [busy(read("/api/v1/pollers/", each)) for each in run_chain()]

    assert [active(poller) for poller in pollers] == [
        [(1, "RUNNING"), (2, "PENDING"), (3, "PENDING")],
        [(2, "RUNNING"), (3, "PENDING")],
        [(3, "RUNNING")],
    ]
    assert [(poller["current_node_id"], poller["current_node_name"]) for poller in pollers] == [
        (1, "node 1"),
        (2, "node 2"),
        (3, "node 3"),
    ]
    assert [poller["current_execution_id"] for poller in pollers] == [
        poller["active_executions"][0]["id"] for poller in pollers
    ]


def test_an_execution_that_is_tried_again_stays_active(run_chain, read):
    first_attempt = run_chain(results={1: BROKEN})[:3]

    assert [active(busy(read("/api/v1/pollers/", each))) for each in first_attempt] == [
        [(1, "RUNNING"), (2, "PENDING"), (3, "PENDING")],
        [(1, "PENDING"), (2, "RUNNING"), (3, "PENDING")],
        [(1, "PENDING"), (3, "RUNNING")],
    ]


def test_a_free_poller_has_no_executions(run_chain, read):
    answer = read("/api/v1/pollers/", run_chain()[0])

    [poller] = [poller for poller in answer["pollers"] if poller["status"] == "FREE"]
    assert (poller["current_execution_id"], poller["current_node_id"], poller["active_executions"]) == (None, None, [])


def test_the_totals_beside_the_pollers_are_those_of_the_statistics(run_chain, read):
    snapshot_ = run_chain()[0]

    pollers, stats = (read(f"/api/v1/pollers/{path}", snapshot_) for path in ("", "stats/"))

    assert {name: value for name, value in pollers.items() if name != "pollers"} == {
        name: value for name, value in stats.items() if name != "samples"
    }
    assert (stats["total_pollers"], stats["free_pollers"], stats["busy_pollers"], stats["queue_size"]) == (2, 1, 1, 60)
    assert stats["timestamp"] == stats["at"]


@pytest.mark.parametrize(("query", "length"), [({}, 10), ({"limit": 1}, 1), ({"limit": 50}, 50)])
def test_the_queue_shows_as_many_nodes_as_were_asked_for(run_chain, read, query, length):
    queue = read("/api/v1/pollers/queue/", run_chain()[0], **query)

    assert len(queue["next_nodes"]) == length
    assert queue["next_nodes"] == queue["next"][:length]
    assert queue["size"] == 60


@pytest.mark.parametrize("limit", ["0", "51", "many"])
def test_a_limit_that_makes_no_sense_is_refused(reader_api, limit):
    answer = reader_api.get("/api/v1/pollers/queue/", {"limit": limit})

    assert answer.status_code == 400
    assert set(answer.json()) == {"limit"}


@pytest.mark.parametrize(("seconds", "is_overload"), [(5, False), (6, True)])
def test_the_queue_is_overloaded_when_more_nodes_are_delayed_than_there_are_pollers(seconds, is_overload):
    async def queue():
        clock = VirtualClock(T0)
        manager = PollerManager(
            pollers=2, runner=None, slots=None, clock=clock, scheduler=SimpleNamespace(next_due=None)
        )
        fill(manager)
        await clock.sleep(seconds)
        return snapshot(manager, clock.now())["queue"]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(queue())["is_overload"] is is_overload
