"""Three OLTs that are one device are asked in turns, in one process and in roles. Its own log is the judge."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from installation import Installation, embedded
from scaled import scaled
from simulated import Fleet

from facho.simulator.pdulog import read_log

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)

SPELLINGS = ["127.0.0.1", "localhost", "::ffff:127.0.0.1"]
ROUNDS = 2


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path / "pdus.jsonl")
    yield fleet
    fleet.close()


@pytest.fixture(params=["embedded", "scale"])
def facho(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    start, base = {"embedded": (embedded, "blank"), "scale": (scaled, "servers")}[request.param]
    with start(request.getfixturevalue(base), tmp_path / "data") as facho:
        yield facho


def ended(facho: Installation) -> list[dict[str, Any]]:
    return facho.get("executions/", status=["SUCCESS", "PARTIAL", "FAILED", "SKIPPED", "INTERRUPTED"])["results"]


def test_three_olts_that_are_one_device_are_never_asked_at_once(facho: Installation, fleet: Fleet):
    device = next(olt for olt in fleet.olts if olt["name"] == "OLT-CENTRAL-01")
    body = {key: device[key] for key in ("brand", "host", "community")} | {"max_in_flight": 1}
    olts = [
        facho.post("olts/", {**body, "name": f"OLT-{number}", "port": 1 + number}) for number in range(len(SPELLINGS))
    ]
    job = facho.post("jobs/", {"name": "Everybody", "brand": device["brand"], "kind": "discovery"})
    facho.post(f"jobs/{job['id']}/apply/", {"olts": [olt["id"] for olt in olts]})
    nodes = facho.get("nodes/")["results"]
    # By API and admin this cannot be done.
    for olt, host in zip(olts, SPELLINGS, strict=True):
        facho.rows("UPDATE olts SET host = %s, port = %s WHERE id = %s", host, device["port"], olt["id"])
    fleet.say(f"{device['name']} latency=0.1")

    facho.wait_for(lambda: len(facho.get(f"olts/{olts[0]['id']}/")["shares_device_with"]) == len(olts) - 1)
    for done in range(len(nodes), len(nodes) * (ROUNDS + 1), len(nodes)):
        for node in nodes:
            facho.post(f"pollers/nodes/{node['id']}/run/")
        facho.wait_for(lambda done=done: len(ended(facho)) >= done)

    runs, log = ended(facho), read_log(fleet.log)
    assert {run["status"] for run in runs} == {"SUCCESS"}
    assert {run["olt"] for run in runs} == {olt["id"] for olt in olts}
    assert log.count() > 0
    assert log.peak_in_flight() == 1
    spans = sorted((run["started_at"], run["ended_at"]) for run in runs)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))

    status, refused = facho.call(
        "POST", "olts/", {**body, "name": "OLT-4", "host": "LOCALHOST.", "port": device["port"]}
    )
    assert status == 400
    assert "OLT-0 already has this device" in refused["host"][0]
