"""The coordinator as an operator meets it: a real process, simulated OLTs, the API, and the OLT's own log of PDUs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installation import Installation, embedded
from scaled import scaled
from webhook_inbox import SECRET, Mailbox, open_mailbox

from facho.simulator.pdulog import read_log

# Whole installations are started, perhaps on a machine that does other things, too.
pytestmark = pytest.mark.timeout(300)

# An attempt at a mute OLT ends with the time limit, and the next one comes soon.
IMPATIENT = {"timeout_seconds": 2, "retries": 1, "retry_delay_seconds": 2}
SETTINGS = {"FACHO_BREAKER_AFTER": "2"}

# Enough of them that a run takes longer than a test needs to stop it.
MANY = ["serial", "name", "state", "distance_m", "rx_dbm", "tx_dbm", "olt_rx_dbm"]


def unbalanced(facho: Installation) -> list[tuple[Any, ...]]:
    """Return the quotas whose sum does not hold."""
    return facho.rows(
        "SELECT * FROM quota_tracker WHERE quota_required"
        " <> quota_completed + quota_failed + quota_skipped + quota_pending"
    )


def executions(facho: Installation, node: dict[str, Any], *status: str) -> list[dict[str, Any]]:
    return facho.get("executions/", node=node["id"], status=status)["results"]


def quota(facho: Installation, execution: dict[str, Any]) -> dict[str, Any]:
    """Return the quota of the hour that the execution's slot belongs to: another may have begun since."""
    quotas = facho.get("quotas/", node=execution["node"])["results"]
    return next(row for row in quotas if row["period_start"][:13] == execution["slot"][:13])


@pytest.fixture(params=["embedded", "scale"])
def facho(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An empty installation with a user, in one process and in roles: it must not matter which."""
    if request.param == "embedded":
        running = embedded(request.getfixturevalue("blank"), tmp_path / "data", SETTINGS)
    else:
        running = scaled(request.getfixturevalue("servers"), tmp_path / "data", SETTINGS)
    with running as installation:
        yield installation


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with open_mailbox() as mailbox:
        yield mailbox


def set_up(facho: Installation, fleet, name: str, **job: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let one job poll an OLT of the fleet; return the OLT and the node."""
    found = next(olt for olt in fleet.olts if olt["name"] == name)
    values = {key: found[key] for key in ("name", "brand", "host", "port", "community")}
    olt = facho.post("olts/", values | {"max_in_flight": 1})
    wanted = {"name": "States", "brand": olt["brand"], "kind": "table", "columns": ["state"], "interval_seconds": 600}
    made = facho.post("jobs/", {**wanted, **IMPATIENT, **job})
    facho.post(f"jobs/{made['id']}/apply/", {"olts": [olt["id"]]})
    (node,) = facho.get("nodes/", olt=olt["id"])["results"]
    return olt, node


def watch_over(facho: Installation, mailbox: Mailbox) -> None:
    channel = {"name": "NOC", "kind": "webhook", "url": mailbox.url, "signing_secret": SECRET}
    rule = {"name": "Silence", "kind": "olt_unreachable", "recover_after_seconds": 0}
    facho.post("alert-rules/", {**rule, "channels": [facho.post("channels/", channel)["id"]]})


# Alerts, breakers and retries are the scheduler's in both modes; in scale-out it takes a minute.
@pytest.mark.parametrize("facho", ["embedded", pytest.param("scale", marks=pytest.mark.long)], indirect=True)
def test_a_mute_olt_is_tried_again_given_up_told_of_and_taken_back(facho: Installation, fleet, mailbox: Mailbox):
    olt, node = set_up(facho, fleet, "OLT-CENTRAL-01")
    watch_over(facho, mailbox)
    fleet.say("OLT-CENTRAL-01 mute")

    facho.due_soon()
    (failed,) = facho.wait_for(lambda: executions(facho, node, "FAILED"))
    facho.wait_for(lambda: mailbox.messages)
    explained = facho.get(f"nodes/{node['id']}/explain/")
    fleet.say("OLT-CENTRAL-01 well")
    facho.post(f"pollers/nodes/{node['id']}/run/")
    facho.wait_for(lambda: not facho.get(f"olts/{olt['id']}/")["breaker"]["is_open"])
    facho.wait_for(lambda: len(mailbox.messages) == 2)

    attempts = facho.get(f"executions/{failed['id']}/")["attempts"]
    assert [attempt["status"] for attempt in attempts] == ["FAILED", "FAILED"]
    assert failed["cause"] == "unreachable"
    assert "breaker of OLT-CENTRAL-01" in explained["answer"]
    assert mailbox.messages == [
        ("raised", "[warning] OLT-CENTRAL-01 does not answer"),
        ("recovered", "[resolved] OLT-CENTRAL-01 answers again"),
    ]
    assert mailbox.forged == 0
    assert quota(facho, failed)["causes"] == {"unreachable": 1}
    assert unbalanced(facho) == []


def test_disabling_an_olt_ends_its_run_and_not_one_more_request_leaves(facho: Installation, fleet):
    olt, node = set_up(facho, fleet, "OLT-CENTRAL-01", timeout_seconds=300, columns=MANY)
    # Longer than it may take a worker to hear of it.
    fleet.say("OLT-CENTRAL-01 latency=1.5")

    facho.due_soon()
    facho.wait_for(lambda: executions(facho, node, "RUNNING"))
    facho.call("PATCH", f"olts/{olt['id']}/", {"enabled": False})
    (ended,) = facho.wait_for(lambda: executions(facho, node, "INTERRUPTED"))
    asked = read_log(fleet.log).count("OLT-CENTRAL-01")
    seconds = iter([False, False, False, False, True])
    facho.wait_for(lambda: next(seconds))
    still_asked = read_log(fleet.log).count("OLT-CENTRAL-01")

    assert ended["cause"] == "disabled"
    # The request that was under way is noted when its answer is due.
    assert still_asked <= asked + 1
    # Events are written every few seconds.
    facho.wait_for(lambda: facho.get("logs/", olt=olt["id"], event="OLT_DISABLED")["results"])
    owed = quota(facho, ended)
    assert (owed["status"], owed["quota_pending"], owed["causes"]) == ("INTERRUPTED", 0, {"disabled": 1})
    assert unbalanced(facho) == []


@pytest.mark.parametrize("facho", ["embedded"], indirect=True)
def test_kill_9_between_two_attempts_costs_neither_of_them(facho: Installation, fleet):
    _, node = set_up(facho, fleet, "OLT-CENTRAL-01", retry_delay_seconds=15)
    fleet.say("OLT-CENTRAL-01 mute")

    facho.due_soon()
    (waiting,) = facho.wait_for(lambda: facho.get("executions/", node=node["id"], is_retrying="true")["results"])
    facho.kill()
    fleet.say("OLT-CENTRAL-01 well")
    facho.start()
    (ended,) = facho.wait_for(lambda: executions(facho, node, "SUCCESS"))

    assert (ended["id"], ended["retry_at"]) == (waiting["id"], None)
    attempts = facho.get(f"executions/{ended['id']}/")["attempts"]
    assert [attempt["status"] for attempt in attempts] == ["FAILED", "SUCCESS"]
    assert executions(facho, node, "PENDING", "RUNNING") == []
    assert quota(facho, ended)["quota_completed"] == 1
    assert unbalanced(facho) == []
    assert read_log(fleet.log).peak_in_flight("OLT-CENTRAL-01") == 1
