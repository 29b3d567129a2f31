"""The four poller endpoints: what the engine last told, and asking for a run."""

from datetime import timedelta

import pytest
from builders import World, make_composite
from cast import T0
from clocks import HandClock
from django.utils import timezone

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import WorkflowNode
from facho.apps.polling import live
from facho.apps.polling.serializers import (
    PollerSerializer,
    PollersSerializer,
    QueuedSerializer,
    QueueSerializer,
    StatsSerializer,
)
from facho.engine.scheduling.snapshot import snapshot

POLLER = {
    "id": 3,
    "status": "BUSY",
    "olt_id": 1,
    "olt": "OLT-CENTRAL-01",
    "node_id": 7,
    "node": "Optical power",
    "link": 1,
    "links": 2,
    "busy_since": "2025-06-01T10:00:00+00:00",
    "seconds": 12.5,
    "busy_time": 100.0,
    "total_time": 400.0,
    "tasks_completed": 9,
    "tasks_delayed": 1,
    "worker": "noc-2/4711",
    "host": "noc-2.example.net",
    "current_execution_id": 71,
    "active_executions": [{"id": 71, "node_id": 7, "node": "Optical power", "status": "RUNNING"}],
    "created_at": "2025-06-01T08:00:00+00:00",
    "updated_at": "2025-06-01T10:00:12+00:00",
}

# Other names that the API has for the same values.
ALIASES = {"poller_id": 3, "current_node_id": 7, "current_node_name": "Optical power"}

WAITING = {
    "node_id": 7,
    "node": "Optical power",
    "olt_id": 1,
    "olt": "OLT-CENTRAL-01",
    "slot": "2025-06-01T10:00:00+00:00",
    "late": 3.5,
    "priority": 40,
    "trigger": "schedule",
    "links": 2,
    "attempt": 1,
    "waiting_for": "olt_busy",
}


class StubBus:
    """Remembers one snapshot."""

    def __init__(self, snapshot):
        self.snapshot = snapshot

    def latest(self, topic):
        return self.snapshot if topic == "snapshot" else None


@pytest.fixture
def publish():
    """Return a function that publishes what differs from an empty snapshot."""

    def publish(**news):
        live.attach(StubBus({**live.EMPTY, **news}))

    yield publish
    live.attach(None)


def test_pollers_are_shown_as_the_engine_told(reader_api, publish):
    publish(at=timezone.now().isoformat(), pollers=[POLLER])

    answer = reader_api.get("/api/v1/pollers/").json()

    assert answer["pollers"] == [{**POLLER, **ALIASES}]
    assert answer["stale"] is False


def test_old_news_says_that_it_is_stale(reader_api, publish):
    publish(at=(timezone.now() - timedelta(seconds=60)).isoformat(), pollers=[POLLER])

    answer = reader_api.get("/api/v1/pollers/").json()

    assert answer["stale"] is True
    assert answer["age"] >= 60


@pytest.mark.parametrize("path", ["pollers", "pollers/queue", "pollers/stats"])
def test_without_an_engine_nothing_is_guessed(reader_api, path):
    answer = reader_api.get(f"/api/v1/{path}/").json()

    assert (answer["at"], answer["age"], answer["stale"]) == (None, None, True)


def test_the_queue_is_shown_with_what_is_next(reader_api, publish):
    publish(at=timezone.now().isoformat(), queue={**live.EMPTY["queue"], "size": 1, "next": [WAITING]})

    answer = reader_api.get("/api/v1/pollers/queue/").json()

    assert (answer["size"], answer["delayed"], answer["next"]) == (1, 0, [WAITING])


def test_the_statistics_say_how_busy_the_pool_is(reader_api, publish):
    publish(at=timezone.now().isoformat(), stats={**live.EMPTY["stats"], "busy_percentage": 80.0, "is_saturated": True})

    answer = reader_api.get("/api/v1/pollers/stats/").json()

    assert (answer["busy_percentage"], answer["is_saturated"]) == (80.0, True)


@pytest.mark.parametrize(
    ("serializer", "told"),
    [
        pytest.param(
            PollersSerializer, {"pollers", "timestamp", *live.EMPTY["stats"]} - {"samples"}, id="pollers with totals"
        ),
        pytest.param(QueueSerializer, {"next_nodes", *live.EMPTY["queue"]}, id="queue"),
        pytest.param(StatsSerializer, {"timestamp", *live.EMPTY["stats"]}, id="statistics"),
    ],
)
def test_the_description_of_the_news_is_what_the_engine_tells(serializer, told):
    assert set(serializer().fields) == told | {"at", "age", "stale"}


def test_the_description_of_pollers_and_queue_is_what_the_engine_tells():
    manager = World(HandClock(T0), pollers=1).scheduler.manager
    manager.offer(make_composite())

    told = snapshot(manager, T0)

    assert set(PollerSerializer().fields) - set(ALIASES) == set(told["pollers"][0]) == set(POLLER)
    assert set(QueuedSerializer().fields) == set(told["queue"]["next"][0]) == set(WAITING)


def test_a_run_is_asked_for_and_the_engine_told(api, node):
    before = Olt.objects.get().revision

    answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    node.refresh_from_db()
    assert answer.status_code == 202
    assert (answer.data["node"], answer.data["already_requested"]) == (node.pk, False)
    assert answer.json()["run_requested_at"] == node.run_requested_at.isoformat().replace("+00:00", "Z")
    assert Olt.objects.get().revision == before + 1


def test_asking_twice_is_asking_once(api, node):
    WorkflowNode.objects.filter(pk=node.pk).update(run_requested_at=T0)

    answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    assert answer.status_code == 202
    assert answer.json() == {
        "node": node.pk,
        "run_requested_at": "2025-06-01T10:00:00Z",
        "already_requested": True,
    }


def test_a_chained_node_can_be_run_by_hand(api, chained):
    assert api.post(f"/api/v1/pollers/nodes/{chained.pk}/run/").status_code == 202


def test_a_node_of_a_disabled_olt_cannot_be_run(api, node):
    node.olt.disable()

    answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    node.refresh_from_db()
    assert answer.status_code == 409
    assert answer.data == {"detail": "OLT-CENTRAL-01 is disabled. Enable it first."}
    assert node.run_requested_at is None


def test_a_disabled_node_cannot_be_run(api, node):
    WorkflowNode.objects.filter(pk=node.pk).update(own_enabled=False)

    answer = api.post(f"/api/v1/pollers/nodes/{node.pk}/run/")

    assert answer.data == {"detail": "Optical power @ OLT-CENTRAL-01 is disabled. Enable it first."}


def test_an_unknown_node_is_404(api, db):
    assert api.post("/api/v1/pollers/nodes/99/run/").status_code == 404
