"""What must be true whatever happened, told from what the OLTs were asked and from the database, and what is not."""

import json
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from facho.engine.scheduling import prober
from facho.simulator.pdulog import Pdu, read_log

Row = Mapping[str, Any]
OPEN = ("PENDING", "RUNNING")
# Where the quota of the hour counts how an execution ended.
SHARES = {"SUCCESS": "completed", "PARTIAL": "completed", "FAILED": "failed", "INTERRUPTED": "failed"}
# An OLT counts its time from its own start, so its clock may be a little off those of the others, in seconds.
CLOCKS_DIFFER = 0.05

QUESTIONS = {
    "executions": "SELECT id, olt_id, node_id, node_name, master_execution_id, trigger, slot, slots, status, cause,"
    " claimed_at, started_at, ended_at, retry_at FROM snmp_executions ORDER BY id",
    "attempts": "SELECT a.execution_id, a.started_at, a.ended_at, e.olt_id, o.name AS olt FROM execution_attempts a"
    " JOIN snmp_executions e ON e.id = a.execution_id JOIN olts o ON o.id = e.olt_id ORDER BY a.started_at",
    "nodes": "SELECT n.id, n.olt_id, n.master_id, n.next_run_at, j.name AS job,"
    " COALESCE(n.own_interval_seconds, j.interval_seconds) AS interval FROM snmp_job_hosts n"
    " JOIN snmp_jobs j ON j.id = n.job_id",
    "quotas": "SELECT olt_id, task_type, period_start, quota_required AS required, quota_completed AS completed,"
    " quota_failed AS failed, quota_skipped AS skipped, quota_pending AS pending FROM quota_tracker",
    "doubled": "SELECT olt_id, at, count(*) AS times FROM onu_history_runs GROUP BY olt_id, at HAVING count(*) > 1",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The database as it stood in one moment, and what the OLTs had been asked until then."""

    taken_at: datetime
    pdus: list[Pdu]
    executions: list[Row]
    attempts: list[Row]
    nodes: list[Row]
    quotas: list[Row]
    doubled: list[Row]


def from_postgres(url: str, log: Path) -> Evidence:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        taken_at = connection.execute("SELECT clock_timestamp() AS at").fetchall()[0]["at"]
        return _evidence(taken_at, log, lambda question: connection.execute(question).fetchall())


def from_sqlite(path: Path, log: Path) -> Evidence:
    """Nobody may run on it."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        return _evidence(datetime.now(UTC), log, lambda question: map(_read, connection.execute(question).fetchall()))
    finally:
        connection.close()


def _evidence(taken_at: datetime, log: Path, ask: Callable[[str], Iterable[Row]]) -> Evidence:
    answers = {name: list(ask(question)) for name, question in QUESTIONS.items()}
    until = taken_at.timestamp()
    return Evidence(taken_at, [pdu for pdu in read_log(log).pdus() if pdu.arrived < until], **answers)


def _read(row: sqlite3.Row) -> Row:
    return {name: _time(row[name]) if name in TIMES and row[name] else row[name] for name in row.keys()}  # noqa: SIM118 - a row is no mapping


TIMES = {"slot", "at", "claimed_at", "started_at", "ended_at", "retry_at", "next_run_at", "period_start"}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wrongs(evidence: Evidence) -> list[str]:
    """Return everything that is wrong."""
    checks = (asked_by_two, asked_for_nothing, slots_off_the_grid, links_without_master, quotas_off, doubled_readings)
    return [sentence for check in checks for sentence in check(evidence)]


def _windows(evidence: Evidence) -> dict[str, list[tuple[float, float, int]]]:
    """Return when each OLT was being asked for which execution, in order."""
    windows: defaultdict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for attempt in evidence.attempts:
        ended = (attempt["ended_at"] or evidence.taken_at).timestamp()
        windows[attempt["olt"]].append((attempt["started_at"].timestamp(), ended, attempt["execution_id"]))
    return windows


def _assigned(evidence: Evidence) -> list[tuple[Pdu, tuple[float, float, int] | None]]:
    """Return each request with the attempt in whose time it came."""
    windows = _windows(evidence)
    found = []
    for pdu in evidence.pdus:
        its = windows[pdu.agent]
        place = bisect_right(its, (pdu.arrived + CLOCKS_DIFFER, float("inf"), 0)) - 1
        # Attempts may lie so close together that clocks cannot tell them apart.
        near = [window for window in its[max(place - 1, 0) : place + 1] if pdu.arrived <= window[1] + CLOCKS_DIFFER]
        found.append((pdu, near[-1] if near else None))
    return found


def asked_by_two(evidence: Evidence) -> list[str]:
    """At most one process asks an OLT at a time: each has its own socket, and so its own port."""
    sources: defaultdict[tuple[str, tuple[float, float, int]], list[Pdu]] = defaultdict(list)
    for pdu, window in _assigned(evidence):
        if window is not None:
            sources[pdu.agent, window].append(pdu)
    found = []
    for (olt, (began, ended, execution)), pdus in sources.items():
        inside = [pdu for pdu in pdus if began + CLOCKS_DIFFER < pdu.arrived < ended - CLOCKS_DIFFER]
        ports = Counter(pdu.source for pdu in inside)
        if len(ports) > 1:
            found.append(f"{olt} was asked from ports {dict(ports)} in the time of execution {execution}")
    return found


def asked_for_nothing(evidence: Evidence) -> list[str]:
    """Who runs executions asks for nothing else, but for checks and probes: small, and few at a time."""
    assigned = _assigned(evidence)
    runners = {pdu.source for pdu, window in assigned if window is not None and _is_well_inside(pdu, window)}
    outside: defaultdict[tuple[str, int], list[Pdu]] = defaultdict(list)
    for pdu, window in assigned:
        if window is None and pdu.source in runners:
            outside[pdu.agent, pdu.source].append(pdu)
    stray = {key: len(pdus) - _checks(pdus) for key, pdus in outside.items()}
    return [
        f"{olt} was asked {count} times from port {port} outside of any execution"
        for (olt, port), count in stray.items()
        if count
    ]


def _checks(pdus: list[Pdu]) -> int:
    """Return how many requests of one process can be checks: one variable by GET, sent again once at most."""
    checks: list[float] = []
    for pdu in pdus:
        recent = [at for at in checks if pdu.arrived - at < prober.TIMEOUT - CLOCKS_DIFFER]
        if (pdu.kind, pdu.asked) == ("get", 1) and len(recent) < 2:
            checks.append(pdu.arrived)
    return len(checks)


def _is_well_inside(pdu: Pdu, window: tuple[float, float, int]) -> bool:
    return window[0] + CLOCKS_DIFFER < pdu.arrived < window[1] - CLOCKS_DIFFER


def slots_off_the_grid(evidence: Evidence) -> list[str]:
    """Every slot from the first to the next one is there once: as an execution, or as one of several skipped."""
    by_node: defaultdict[int, list[Row]] = defaultdict(list)
    for execution in evidence.executions:
        if execution["trigger"] == "schedule" and execution["master_execution_id"] is None:
            by_node[execution["node_id"]].append(execution)
    found = []
    for node in evidence.nodes:
        expected = None
        for execution in sorted(by_node[node["id"]], key=lambda row: row["slot"]):
            if expected not in (None, execution["slot"]):
                found.append(f"{_called(node)}: slot {execution['slot']} follows where {expected} is due")
            expected = execution["slot"] + execution["slots"] * timedelta(seconds=node["interval"])
        if node["master_id"] is None and expected not in (None, node["next_run_at"]):
            found.append(f"{_called(node)}: {expected} is accounted for by nobody, {node['next_run_at']} comes next")
    return found


def _called(node: Row) -> str:
    return f"{node['job']} of OLT {node['olt_id']}"


def links_without_master(evidence: Evidence) -> list[str]:
    """A master that was claimed has an execution for each link of its chain, for the same slot."""
    chains: defaultdict[int, set[int]] = defaultdict(set)
    for node in evidence.nodes:
        if node["master_id"] is not None:
            chains[node["master_id"]].add(node["id"])
    links: defaultdict[int, set[tuple[int, datetime]]] = defaultdict(set)
    for execution in evidence.executions:
        if execution["master_execution_id"] is not None:
            links[execution["master_execution_id"]].add((execution["node_id"], execution["slot"]))
    return [
        f"execution {execution['id']} has not the links of its chain"
        for execution in evidence.executions
        if execution["claimed_at"] is not None
        and execution["master_execution_id"] is None
        and links[execution["id"]] != {(id_, execution["slot"]) for id_ in chains[execution["node_id"]]}
    ]


def quotas_off(evidence: Evidence) -> list[str]:
    """The sum holds in every row, and what is over is counted as it ended."""
    counted = _counted(evidence)
    found = []
    for quota in evidence.quotas:
        key = quota["olt_id"], quota["task_type"], quota["period_start"]
        if quota["required"] != sum(quota[name] for name in ("completed", "failed", "skipped", "pending")):
            found.append(f"the quota of {key} does not balance: {dict(quota)}")
        said = {name: quota[name] for name in ("completed", "failed", "skipped") if quota[name]}
        if said != dict(counted[key]):
            found.append(f"the quota of {key} says {said}, and the executions say {dict(counted[key])}")
    return found


def _counted(evidence: Evidence) -> dict[tuple[int, str, datetime], Counter[str]]:
    intervals = {node["id"]: node["interval"] for node in evidence.nodes}
    chains: defaultdict[int, list[Row]] = defaultdict(list)
    for node in evidence.nodes:
        if node["master_id"] is not None:
            chains[node["master_id"]].append(node)
    counted: defaultdict[tuple[int, str, datetime], Counter[str]] = defaultdict(Counter)
    for row in evidence.executions:
        if row["status"] in OPEN or row["trigger"] != "schedule":
            continue
        # What was skipped before it was claimed has no rows for its chain.
        chain = chains[row["node_id"]] if row["claimed_at"] is None else []
        for number in range(row["slots"]):
            slot = row["slot"] + number * timedelta(seconds=intervals[row["node_id"]])
            for name in (row["node_name"], *(link["job"] for link in chain)):
                hour = slot.replace(minute=0, second=0, microsecond=0)
                counted[row["olt_id"], name, hour][SHARES.get(row["status"], "skipped")] += 1
    return counted


def doubled_readings(evidence: Evidence) -> list[str]:
    return [f"OLT {row['olt_id']} has the readings of {row['at']} {row['times']} times" for row in evidence.doubled]


def left_open(evidence: Evidence) -> list[str]:
    """Return the executions that an engine left open when it stopped.

    Pending retries stay open for the next engine. Each must belong to a slot that is not over, or was not when the
    check before its last attempt began.
    """
    nodes = {node["id"]: node for node in evidence.nodes}

    def is_kept(row: Row) -> bool:
        node = nodes[row["node_id"]]
        interval = timedelta(seconds=nodes[node["master_id"] or node["id"]]["interval"])
        ends = row["slot"] + interval + timedelta(seconds=prober.TIMEOUT + CLOCKS_DIFFER)
        return row["status"] == "PENDING" and row["retry_at"] is not None and evidence.taken_at <= ends

    return [
        f"execution {row['id']} of {row['node_name']} is {row['status']}, claimed at {row['claimed_at']}"
        for row in evidence.executions
        if row["status"] in OPEN and not is_kept(row)
    ]


def summary(evidence: Evidence) -> str:
    """Return how much there was to judge."""
    ended = Counter(f"{row['status']} {row['cause']}".strip() for row in evidence.executions)
    return json.dumps({"pdus": len(evidence.pdus), "attempts": len(evidence.attempts), **ended})
