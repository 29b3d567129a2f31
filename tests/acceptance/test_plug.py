"""Pulling the plug in the middle: nothing stays running, nothing runs twice, nothing is lost."""

from collections import Counter
from typing import Any

import pytest
from installation import Installation

from facho.simulator.pdulog import read_log

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)


def add_slow_olt(facho: Installation, fleet) -> tuple[dict, dict]:
    """Set up OLT-NORTE-02, whose walks take seconds, with one job; return the OLT and the node."""
    olt = next(olt for olt in fleet.olts if olt["name"] == "OLT-NORTE-02")
    values = {name: olt[name] for name in ("name", "brand", "host", "port", "community")}
    olt = facho.post("olts/", values | {"max_in_flight": 1})
    columns = ["serial", "name", "state", "distance_m", "rx_dbm", "tx_dbm", "olt_rx_dbm"]
    job = facho.post(
        "jobs/",
        {"name": "Everything", "brand": olt["brand"], "kind": "table", "columns": columns, "interval_seconds": 3600},
    )
    facho.post(f"jobs/{job['id']}/apply/", {"olts": [olt["id"]]})
    (node,) = facho.get("nodes/", olt=olt["id"])["results"]
    return olt, node


def by_hand(facho: Installation, node: dict, **which: Any) -> list[dict]:
    """Return the runs that a person asked for: the first of the grid comes after a minute, which a test may take."""
    return facho.get("executions/", node=node["id"], trigger="manual", **which)["results"]


def run_and_wait_until_busy(facho: Installation, node: dict) -> None:
    facho.post(f"pollers/nodes/{node['id']}/run/")
    facho.wait_for(lambda: by_hand(facho, node, status="RUNNING"))


def test_after_kill_9_no_execution_stays_running_and_no_slot_runs_twice(facho: Installation, fleet):
    _, node = add_slow_olt(facho, fleet)
    run_and_wait_until_busy(facho, node)
    before = facho.get(f"nodes/{node['id']}/")

    facho.kill()
    facho.start()

    facho.wait_for(lambda: not facho.get("pollers/")["stale"])
    (execution,) = by_hand(facho, node)
    after = facho.get(f"nodes/{node['id']}/")
    assert (execution["status"], execution["cause"]) == ("INTERRUPTED", "engine_down")
    assert after["next_run_at"] == before["next_run_at"]
    assert after["run_requested_at"] is None


def test_a_stop_ends_what_runs_as_interrupted_and_a_new_start_goes_on(facho: Installation, fleet):
    _, node = add_slow_olt(facho, fleet)
    run_and_wait_until_busy(facho, node)

    status = facho.stop()
    facho.start()
    facho.post(f"pollers/nodes/{node['id']}/run/")
    (done,) = facho.wait_for(lambda: by_hand(facho, node, status="SUCCESS"))

    assert status == 0
    assert done["readings"] > 0
    statuses = Counter(row["status"] for row in by_hand(facho, node))
    assert statuses == {"SUCCESS": 1, "INTERRUPTED": 1}


def test_the_olt_saw_one_request_at_a_time_and_as_many_as_we_say(facho: Installation, fleet):
    _, node = add_slow_olt(facho, fleet)

    facho.post(f"pollers/nodes/{node['id']}/run/")
    (execution,) = facho.wait_for(lambda: by_hand(facho, node, status="SUCCESS"))
    facho.stop()
    fleet.close()

    log = read_log(fleet.log)
    assert log.peak_in_flight("OLT-NORTE-02") == 1
    # An OLT that was just added is checked with one request before its first run.
    assert log.count("OLT-NORTE-02") == 1 + execution["pdus"]


def test_a_wrong_community_is_silence_and_the_sentence_says_what_to_look_at(facho: Installation, fleet):
    olt, node = add_slow_olt(facho, fleet)
    status, _ = facho.call("PATCH", f"olts/{olt['id']}/", {"community": "wrong"})

    facho.post(f"pollers/nodes/{node['id']}/run/")
    (execution,) = facho.wait_for(lambda: by_hand(facho, node, status="FAILED"))

    assert status == 200
    assert execution["cause"] == "unreachable"
    assert "community" in execution["error"]
