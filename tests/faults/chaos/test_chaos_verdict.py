"""The judge of the chaos suite sees what it is there to see: an innocent story, and each crime alone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import SEC, T0
from chaos_verdict import Evidence, left_open, wrongs

from facho.simulator.pdulog import Pdu

HOUR = T0.replace(minute=0, second=0, microsecond=0)
WORKER_1, WORKER_2, SCHEDULER = 40001, 40002, 40003


def execution(id_, slot, status="SUCCESS", *, slots=1, master=None, node=1, name="Optical power", claimed=True):
    return {
        "id": id_,
        "olt_id": 1,
        "node_id": node,
        "node_name": name,
        "master_execution_id": master,
        "trigger": "schedule",
        "slot": T0 + slot * SEC,
        "slots": slots,
        "status": status,
        "cause": "",
        "claimed_at": T0 + slot * SEC if claimed else None,
        "retry_at": None,
    }


def link(id_, slot, master, status="SUCCESS"):
    return execution(id_, slot, status, master=master, node=2, name="State")


def attempt(execution_id, begin, end):
    times = {"started_at": T0 + begin * SEC, "ended_at": None if end is None else T0 + end * SEC}
    return {"execution_id": execution_id, "olt_id": 1, "olt": "OLT-CENTRAL-01", **times}


def pdu(second, source=WORKER_1, kind="getbulk"):
    at = (T0 + timedelta(seconds=second)).timestamp()
    return Pdu(at, at + 0.01, "OLT-CENTRAL-01", source, kind, 1, 1)


def quota(task, **counts):
    known = {"completed": 0, "failed": 0, "skipped": 0, "pending": 7} | counts
    return {"olt_id": 1, "task_type": task, "period_start": HOUR, "required": sum(known.values()), **known}


INNOCENT = Evidence(
    taken_at=T0 + 60 * SEC,
    pdus=[pdu(1), pdu(2), pdu(4), pdu(8, SCHEDULER), pdu(31, WORKER_2), pdu(33, WORKER_2)],
    executions=[
        execution(1, 0),
        link(2, 0, 1),
        execution(3, 10, "SKIPPED", slots=2, claimed=False),
        execution(4, 30, "RUNNING"),
        link(5, 30, 4, "PENDING"),
    ],
    attempts=[attempt(1, 0.5, 3), attempt(2, 3.2, 5), attempt(4, 30.5, None)],
    nodes=[
        {"id": 1, "olt_id": 1, "master_id": None, "next_run_at": T0 + 40 * SEC, "job": "Optical power", "interval": 10},
        {"id": 2, "olt_id": 1, "master_id": 1, "next_run_at": None, "job": "State", "interval": 300},
    ],
    quotas=[quota("Optical power", completed=1, skipped=2), quota("State", completed=1, skipped=2)],
    doubled=[],
)


def without(id_):
    return [row for row in INNOCENT.executions if row["id"] != id_]


def test_an_innocent_story_is_innocent():
    assert wrongs(INNOCENT) == []


def test_a_process_that_runs_executions_may_check_an_olt_before_one():
    checked = [pdu(second, kind="get") for second in (15, 17.5, 22)]

    assert wrongs(replace(INNOCENT, pdus=[*INNOCENT.pdus, *checked])) == []


@pytest.mark.parametrize(
    ("guilty", "said"),
    [
        pytest.param({"pdus": [*INNOCENT.pdus, pdu(32, WORKER_1)]}, "was asked from ports", id="two workers at once"),
        pytest.param({"pdus": [*INNOCENT.pdus, pdu(32, SCHEDULER)]}, "was asked from ports", id="a probe in a run"),
        pytest.param({"pdus": [*INNOCENT.pdus, pdu(20)]}, "outside of any execution", id="a worker that goes on"),
        pytest.param(
            {"pdus": [*INNOCENT.pdus, *(pdu(second, kind="get") for second in (20, 21, 22))]},
            "was asked 1 times from port 40001 outside",
            id="more than a check and its repetition",
        ),
        pytest.param({"executions": without(3)}, "follows where", id="a slot that nobody knows of"),
        pytest.param(
            {"executions": [*INNOCENT.executions, execution(6, 20, "SKIPPED", claimed=False)]},
            "follows where",
            id="a slot twice",
        ),
        pytest.param(
            {"nodes": [INNOCENT.nodes[0] | {"next_run_at": T0 + 50 * SEC}, INNOCENT.nodes[1]]},
            "accounted for by nobody",
            id="a slot that was jumped over",
        ),
        pytest.param({"executions": without(5)}, "has not the links", id="a link without an execution"),
        pytest.param(
            {"quotas": [INNOCENT.quotas[0] | {"required": 11}, INNOCENT.quotas[1]]}, "does not balance", id="a sum"
        ),
        pytest.param(
            {"quotas": [quota("Optical power", completed=2, skipped=1), INNOCENT.quotas[1]]},
            "and the executions say",
            id="a slot that is counted as what it was not",
        ),
        pytest.param({"doubled": [{"olt_id": 7, "at": T0, "times": 2}]}, "OLT 7 has", id="a reading twice"),
    ],
)
def test_each_crime_is_seen(guilty, said):
    assert said in " ".join(wrongs(replace(INNOCENT, **guilty)))


RETRY = link(5, 30, 4, "PENDING") | {"retry_at": T0 + 37 * SEC}


@pytest.mark.parametrize(
    ("row", "taken_at", "count"),
    [
        pytest.param(execution(4, 30, "RUNNING"), 31, 1, id="running"),
        pytest.param(execution(4, 30, "PENDING"), 31, 1, id="claimed and never started"),
        pytest.param(RETRY, 39, 0, id="retry in its slot"),
        pytest.param(RETRY, 44, 0, id="retry whose check began in its slot"),
        pytest.param(RETRY, 46, 1, id="retry after its slot"),
        pytest.param(RETRY | {"status": "RUNNING"}, 39, 1, id="retry that runs"),
    ],
)
def test_a_stopped_engine_leaves_open_only_pending_retries(row, taken_at, count):
    evidence = replace(INNOCENT, executions=[row], taken_at=T0 + taken_at * SEC)

    assert len(left_open(evidence)) == count
