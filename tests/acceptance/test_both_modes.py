"""What a person sees and asks for is the same in one process and in roles: one suite, run over both."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from installation import Installation, embedded
from scaled import scaled
from simulated import Fleet

from facho.apps.coordinator.serializers import ExplanationSerializer
from facho.apps.polling.serializers import PollerSerializer, PollersSerializer, QueueSerializer, StatsSerializer

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)

COLUMNS = ["serial", "name", "state", "distance_m", "rx_dbm"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A Facho that knows one OLT of a fleet, and a job on it that nobody has run yet."""

    facho: Installation
    fleet: Fleet
    onus: int
    olt: dict[str, Any]
    node: dict[str, Any]

    def run_now(self) -> dict[str, Any]:
        """Run the job by hand, and return its execution when it has ended."""
        before = len(self._ended())
        self.facho.post(f"pollers/nodes/{self.node['id']}/run/")
        return self.facho.wait_for(lambda: len(self._ended()) > before and self._ended())[0]

    def _ended(self) -> list[dict[str, Any]]:
        return self.facho.get("executions/", node=self.node["id"], status=["SUCCESS", "PARTIAL", "FAILED"])["results"]


@pytest.fixture(scope="module", params=["embedded", "scale"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("scene")
    if request.param == "embedded":
        running = embedded(request.getfixturevalue("blank"), folder / "data")
    else:
        running = scaled(request.getfixturevalue("servers"), folder / "data")
    fleet = Fleet(folder / "pdus.jsonl")
    with running as facho:
        yield set_up(facho, fleet)
    fleet.close()


def set_up(facho: Installation, fleet: Fleet) -> Scene:
    found = next(olt for olt in fleet.olts if olt["name"] == "OLT-CENTRAL-01")
    olt = facho.post("olts/", {key: found[key] for key in ("name", "brand", "host", "port", "community")})
    wanted = {"name": "Everybody", "brand": olt["brand"], "kind": "discovery", "interval_seconds": 3600}
    job = facho.post("jobs/", {**wanted, "columns": COLUMNS})
    facho.post(f"jobs/{job['id']}/apply/", {"olts": [olt["id"]]})
    (node,) = facho.get("nodes/", olt=olt["id"])["results"]
    return Scene(facho, fleet, found["onus"], olt, node)


def test_run_now_reads_the_olt_and_the_api_shows_its_onus(scene: Scene):
    run = scene.run_now()

    onus = scene.facho.get("onus/", olt=scene.olt["id"], page_size=200)
    assert (run["status"], run["trigger"], run["readings"]) == ("SUCCESS", "manual", scene.onus)
    assert onus["count"] == scene.onus
    assert all(onu["serial"] for onu in onus["results"])
    assert any(onu["rx_dbm"] for onu in onus["results"])
    assert scene.facho.get(f"olts/{scene.olt['id']}/")["state"] == "reachable"


def test_the_stream_brings_snapshots_and_tells_of_readings(scene: Scene):
    heard = {}
    with scene.facho.stream() as events:
        scene.facho.post(f"pollers/nodes/{scene.node['id']}/run/")
        for topic, news in events:
            heard.setdefault(topic, news)
            if {"snapshot", "execution", "readings"} <= set(heard):
                break

    assert set(heard["snapshot"]) >= {"at", "pollers", "queue", "stats"}
    assert heard["execution"]["node_id"] == scene.node["id"]
    assert heard["readings"] == {"olt_id": scene.olt["id"], "node_id": scene.node["id"], "count": scene.onus}


def test_pollers_queue_and_statistics_are_fresh_and_have_the_same_shape(scene: Scene):
    facho = scene.facho
    # A scheduler has no pollers until it has heard of a worker.
    pollers = facho.wait_for(lambda: (answer := facho.get("pollers/"))["pollers"] and not answer["stale"] and answer)
    queue, stats = facho.get("pollers/queue/"), facho.get("pollers/stats/")

    assert set(pollers) == set(PollersSerializer().fields)
    assert all(set(poller) == set(PollerSerializer().fields) for poller in pollers["pollers"])
    assert set(queue) == set(QueueSerializer().fields)
    assert set(stats) == set(StatsSerializer().fields)
    assert len(pollers["pollers"]) == stats["total_pollers"] == stats["free_pollers"] + stats["busy_pollers"]


def test_a_chain_is_seen_in_order_while_it_runs(scene: Scene):
    """What is seen depends on the moment; whatever it is, it is a rest of the chain with one of them running."""
    facho, olt = scene.facho, scene.olt
    for name in ("Names", "Power"):
        wanted = {"name": name, "brand": olt["brand"], "kind": "table", "columns": ["name", "rx_dbm"]}
        facho.post("jobs/", {**wanted, "follows": scene.node["job"]})
    order = sorted(node["id"] for node in facho.get("nodes/", olt=olt["id"])["results"])
    scene.fleet.say(f"{olt['name']} latency=0.3")
    facho.post(f"pollers/nodes/{scene.node['id']}/run/")

    def seen() -> Any:
        pollers = facho.get("pollers/")["pollers"]
        return [poller["active_executions"] for poller in pollers if poller["active_executions"]]

    [active] = facho.wait_for(seen)
    scene.fleet.say(f"{olt['name']} well")
    nodes = [each["node_id"] for each in active]
    assert nodes == order[-len(nodes) :]
    assert [each["status"] for each in active[1:]] == ["PENDING"] * (len(active) - 1)


def test_why_a_node_is_late_is_answered_in_the_same_shape(scene: Scene):
    scene.facho.wait_for(lambda: not scene.facho.get("pollers/")["stale"])

    explained = scene.facho.get(f"nodes/{scene.node['id']}/explain/")

    assert set(explained) == set(ExplanationSerializer().fields)
    assert explained["answer"]


def test_a_poller_that_ran_is_a_row_that_reports_it(scene: Scene):
    run = scene.run_now()

    def row() -> Any:
        found = scene.facho.rows("SELECT tasks_completed FROM pollers WHERE poller_id = %s", run["poller_id"])
        return found and found[0][0]

    assert scene.facho.wait_for(row) >= 1


def test_a_job_is_tried_before_it_is_saved(scene: Scene):
    facho, olt = scene.facho, scene.olt
    unknown = {"name": "vlan", "oid": "1.3.6.1.4.1.99999.1.1", "decode": "number"}
    body = {"olt": olt["id"], "brand": olt["brand"], "kind": "table", "columns": ["serial"], "oids": [unknown]}
    jobs = facho.get("jobs/")["count"]

    question = facho.post("jobs/try/", body)
    # A machine that does ten other things may take longer than the request waits.
    shown = facho.wait_for(lambda: (now := facho.get(f"questions/{question['id']}/"))["answered_at"] and now)

    assert (shown["state"], shown["error"]) == ("answered", "")
    serial, vlan = shown["answer"]["columns"]
    assert (serial["name"], len(serial["rows"]), serial["remark"]) == ("serial", 5, "")
    assert all(row["type"] == "OCTET STRING" and row["value"] for row in serial["rows"])
    assert (vlan["name"], vlan["remark"]) == ("vlan", "The OLT has no value for this OID.")
    assert facho.get("jobs/")["count"] == jobs


def test_an_onu_that_another_one_replaced_is_missing_at_once(scene: Scene):
    facho, olt = scene.facho, scene.olt["id"]
    scene.run_now()
    old = facho.get("onus/", olt=olt, onu=0)["results"][0]
    scene.fleet.say(f"{scene.olt['name']} go {old['slot']}/{old['port']}/0")
    # New ONUs get the first number that is free.
    scene.fleet.say(f"{scene.olt['name']} come {old['slot']}/{old['port']}")

    scene.run_now()

    gone = facho.get(f"onus/{old['id']}/")
    new = facho.get(f"onus/{gone['replaced_by']['id']}/")
    assert (gone["is_missing"], gone["missing_cause"]) == (True, f"replaced by {new['serial']}")
    assert (gone["serial"], gone["index"]) == (old["serial"], new["index"])
    assert (new["is_missing"], [each["id"] for each in new["replaces"]]) == (False, [old["id"]])
    here = {"olt": olt, "slot": old["slot"], "port": old["port"], "onu": 0, "is_missing": "false"}
    assert [each["id"] for each in facho.get("onus/", **here)["results"]] == [new["id"]]


def test_one_onu_is_read_now_even_if_the_engine_is_killed_meanwhile(scene: Scene):
    facho, name = scene.facho, scene.olt["name"]
    ran = scene.run_now()
    first, second = facho.get("onus/", olt=scene.olt["id"], state="online", page_size=2)["results"]

    def answer_of(question: Any) -> Any:
        now = facho.get(f"questions/{question['id']}/")
        return now["answered_at"] and now

    asked = facho.post(f"onus/{first['id']}/read/")
    read = facho.wait_for(lambda: answer_of(asked))
    assert (read["state"], read["answer"]["onu"], read["answer"]["values"]["serial"]) == (
        "answered",
        first["id"],
        first["serial"],
    )
    assert facho.get(f"onus/{first['id']}/")["power_at"] > ran["ended_at"]
    # Last read by the run, or by the job that follows it.
    assert facho.get(f"onus/{second['id']}/")["power_at"] < facho.get(f"onus/{first['id']}/")["power_at"]

    scene.fleet.say(f"{name} latency=3")
    asked = facho.post(f"onus/{second['id']}/read/?wait=0")
    facho.wait_for(lambda: facho.get(f"questions/{asked['id']}/")["progress"] == "Asking the OLT.")
    facho.kill()
    scene.fleet.say(f"{name} well")
    facho.start()

    # The next engine takes it over, as soon as the lease of the dead one has ended.
    assert facho.wait_for(lambda: answer_of(asked))["state"] == "answered"
    # A slot may be due now, so some of them run. None stays open.
    facho.wait_for(lambda: facho.get("executions/", status=["PENDING", "RUNNING"])["count"] == 0)
    assert scene.run_now()["status"] == "SUCCESS"
