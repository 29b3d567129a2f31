"""Nodes, slots and runs in memory, for the virtual clock, where a day of polling takes seconds."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import IPv4Address

from facho.engine.errors import LeaseLost, OltBusy, OltGone
from facho.engine.maintenance import Window
from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    KnownOnu,
    Lease,
    LeftOver,
    Node,
    Olt,
    Outcome,
    Question,
    Recovery,
    Reply,
    RunResult,
    Skipped,
    Standing,
    Status,
    Trigger,
)
from facho.engine.scheduling.breaker import OPENS_AFTER, Heard, heard
from facho.engine.scheduling.changes import OltState, fingerprint
from facho.engine.scheduling.grid import missed_slots, next_check
from facho.engine.snmp import Agent, Community, Version


@dataclass(slots=True)
class AttemptRecord:
    """One attempt of an execution."""

    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome | None = None

    def end(self, outcome: Outcome, now: datetime) -> None:
        self.outcome, self.ended_at = outcome, now


@dataclass(slots=True)
class ExecutionRecord:
    """An execution."""

    id: int
    node: Node
    slot: datetime
    status: Status = Status.PENDING
    slots: int = 1
    cause: Cause | None = None
    trigger: Trigger = Trigger.SCHEDULE
    master_id: int | None = None
    poller_id: int | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    token: int | None = None
    outcome: Outcome | None = None
    waits: Mapping[Cause, float] = field(default_factory=dict)
    retry_at: datetime | None = None
    attempts: list[AttemptRecord] = field(default_factory=list)
    # Where it runs.
    device: str = ""

    def end_attempt(self, outcome: Outcome, now: datetime) -> None:
        """End the running attempt. The clock may have been set since its start."""
        self.move(outcome.clock_set)
        self.attempts[-1].end(outcome, now)

    def move(self, by: timedelta) -> None:
        """Shift the times of the attempts."""
        for attempt in self.attempts:
            attempt.started_at += by
            if attempt.ended_at is not None:
                attempt.ended_at += by
        if self.started_at is not None:
            self.started_at += by


class MemoryNodes:
    """A NodeSource that a program fills by hand."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self.rows: dict[int, Node] = {}
        self.enabled: dict[int, bool] = {}
        self.addresses: dict[int, str] = {}
        # Hosts of OLTs; an OLT without one has its own address.
        self.hosts: dict[int, str] = {}
        # Why nothing may be sent to an OLT.
        self.barred: dict[int, str] = {}
        # Start times of open breakers, and times of last answers; written by the slots.
        self.breakers: dict[int, datetime] = {}
        self.answers: dict[int, datetime] = {}
        self.windows: dict[int, tuple[Window, ...]] = {}
        self._disabled_nodes: set[int] = set()
        self._revisions: dict[int, int] = {}
        for node in nodes:
            self.put(node)

    def put(self, node: Node) -> None:
        self.rows[node.id] = node
        self.enabled.setdefault(node.olt_id, True)
        self._touch(node.olt_id)

    def remove(self, node_id: int) -> None:
        self._touch(self.rows.pop(node_id).olt_id)

    def disable_node(self, node_id: int) -> None:
        self._disabled_nodes.add(node_id)
        self._touch(self.rows[node_id].olt_id)

    def enable_node(self, node_id: int) -> None:
        self._disabled_nodes.discard(node_id)
        self._touch(self.rows[node_id].olt_id)

    def move(self, olt_id: int, address: str) -> None:
        self.addresses[olt_id] = address
        self._touch(olt_id)

    def enable(self, olt_id: int, enabled: bool = True) -> None:
        self.enabled[olt_id] = enabled
        self._touch(olt_id)

    def request_run(self, node_id: int, now: datetime) -> bool:
        """Request a run; False if one is already requested."""
        node = self.rows[node_id]
        if node.run_requested_at is not None:
            return False
        self.put(replace(node, run_requested_at=now))
        return True

    def _touch(self, olt_id: int) -> None:
        self._revisions[olt_id] = self._revisions.get(olt_id, 0) + 1

    async def standings(self) -> Mapping[int, Standing]:
        return {
            olt_id: Standing(
                revision,
                self.breakers.get(olt_id),
                self._device(olt_id),
                self.answers.get(olt_id),
                self.windows.get(olt_id, ()),
            )
            for olt_id, revision in self._revisions.items()
            if self.enabled[olt_id]
        }

    async def fingerprints(self) -> Mapping[int, str]:
        # All changes go through this object, so its revisions are enough.
        return {olt_id: fingerprint([revision]) for olt_id, revision in self._revisions.items() if self.enabled[olt_id]}

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        polled: dict[int, list[Node]] = {olt_id: [] for olt_id in olt_ids if self.enabled.get(olt_id)}
        for node in self.rows.values():
            if node.olt_id in polled and node.id not in self._disabled_nodes:
                polled[node.olt_id].append(node)
        return {
            olt_id: OltState(olt_id, f"OLT-{olt_id}", self.addresses.get(olt_id, ""), tuple(nodes))
            for olt_id, nodes in polled.items()
        }

    async def olt(self, olt_id: int) -> Olt:
        if not self.enabled.get(olt_id):
            raise OltGone(f"OLT {olt_id} was disabled before the run started")
        return Olt(olt_id, f"OLT-{olt_id}", "huawei", self._agent(olt_id))

    def _device(self, olt_id: int) -> str:
        return self._agent(olt_id).device if olt_id in self.hosts else ""

    def _agent(self, olt_id: int) -> Agent:
        host = self.hosts.get(olt_id) or str(IPv4Address("127.0.0.0") + olt_id)
        return Agent(host, 161, Version.V2C, Community("public"), barred=self.barred.get(olt_id, ""))


class MemorySlots:
    """Slots in a list, with the rules of the real ones but without quotas, which can be counted from the rows."""

    def __init__(self, nodes: MemoryNodes, *, breaker_after: int = OPENS_AFTER, auto_recover: bool = True) -> None:
        self._nodes = nodes
        self._breaker_after = breaker_after
        self._auto_recover = auto_recover
        self._taken: set[tuple[int, datetime]] = set()
        self._open: dict[int, ExecutionRecord] = {}
        # Running executions.
        self._running: set[int] = set()
        self._failures: dict[int, int] = {}
        self.rows: list[ExecutionRecord] = []
        # OLTs held by another process.
        self.held: set[int] = set()
        # Last token of each OLT that another holder got.
        self.tokens: dict[int, int] = {}

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        for node_id, check in checks.items():
            if node_id in self._nodes.rows and self._nodes.rows[node_id].master_id is None:
                self._schedule(node_id, check)
        self._skip(skipped)

    async def taken(self, node_ids: Collection[int], *, after: datetime) -> Mapping[int, Collection[datetime]]:
        slots: defaultdict[int, set[datetime]] = defaultdict(set)
        for node_id, slot in self._taken:
            if node_id in node_ids and slot > after:
                slots[node_id].add(slot)
        return slots

    async def move(self, execution_ids: Collection[int], by: timedelta) -> None:
        for row in (self._open[id_] for id_ in execution_ids if id_ in self._open):
            if row.status is Status.PENDING and row.retry_at is not None:
                row.retry_at += by
                row.move(by)

    def _skip(self, skipped: Sequence[Skipped]) -> None:
        for item in skipped:
            if item.slots > 0 and item.node.id in self._nodes.rows and (item.node.id, item.slot) not in self._taken:
                self._add(item.node, item.slot, slots=item.slots, status=Status.SKIPPED, cause=item.cause)

    async def claim(
        self, composite: CompositeNode, *, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        master = self._nodes.rows.get(composite.id)
        if master is None or not self._nodes.enabled[composite.olt_id]:
            return None
        if any((node.id, composite.slot) in self._taken for node in composite.links):
            return None
        check = None
        if composite.trigger is Trigger.SCHEDULE:
            if master.next_check != composite.slot:
                return None
            check = next_check(composite.slot, composite.master.interval, now)
            cause = max(waits, key=lambda key: waits[key], default=Cause.SCHEDULER_LATE)
            missed = missed_slots(composite.slot, composite.master.interval, now)
            self._skip([Skipped(composite.master, composite.slot + composite.master.interval, missed, cause)])
            self._schedule(composite.id, check)
        elif master.run_requested_at != composite.slot:
            return None
        self._change(composite.id, lambda node: replace(node, run_requested_at=None))
        return Claim(composite, self._open_all(composite, poller_id, now, waits), poller_id, check)

    def _open_all(
        self, composite: CompositeNode, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
    ) -> tuple[int, ...]:
        ids: list[int] = []
        for node in composite.links:
            row = self._add(node, composite.slot, trigger=composite.trigger)
            row.poller_id, row.claimed_at = poller_id, now
            row.master_id = ids[0] if ids else None
            row.waits = {} if ids else waits
            ids.append(row.id)
        return tuple(ids)

    async def reclaim(self, claim: Claim, *, poller_id: int | None, now: datetime) -> bool:
        rows = [self.rows[execution_id] for execution_id in claim.execution_ids]
        if any(row.status is not Status.PENDING or row.retry_at is None for row in rows):
            return False
        for row in rows:
            row.poller_id, row.retry_at = poller_id, None
        return True

    async def close(self, execution_ids: Sequence[int], outcome: Outcome, *, now: datetime) -> None:
        self.end(self.ours(execution_ids, None), outcome, now)

    def end(self, rows: Iterable[ExecutionRecord], outcome: Outcome, now: datetime) -> None:
        """End executions; with `retry_at`, only their running attempts. An attempt that ran counts for the breaker."""
        for row in rows:
            was_running = row.status is Status.RUNNING
            if outcome.retry_at is None:
                self._end(row, outcome, now)
            else:
                if was_running:
                    row.end_attempt(outcome, now)
                    self._running.discard(row.id)
                row.status, row.retry_at, row.token, row.outcome = Status.PENDING, outcome.retry_at, None, outcome
            if was_running:
                self._hear(row.node.olt_id, outcome, now)

    def start(self, execution_id: int, lease: Lease, now: datetime, poller_id: int | None) -> bool:
        """Start an attempt, as `Runs.start` does."""
        row = self.rows[execution_id]
        if row.status is not Status.PENDING or row.retry_at is not None:
            return row.status is Status.RUNNING and row.token == lease.token
        for left in self._running_with(lease):
            if left.token is not None and left.token < lease.token:
                self._end(left, Outcome(Status.INTERRUPTED, Cause.LEASE_LOST), now)
        if self._running_with(lease):
            raise OltBusy(f"{lease.device or lease.olt_id} has another execution running")
        self._running.add(row.id)
        row.status, row.started_at, row.token = Status.RUNNING, row.started_at or now, lease.token
        row.device = lease.device
        row.poller_id = row.poller_id if poller_id is None else poller_id
        row.attempts.append(AttemptRecord(now))
        return True

    def _running_with(self, lease: Lease) -> list[ExecutionRecord]:
        """Return the executions running on the OLT of a lease, or on its device."""
        rows = [self.rows[execution_id] for execution_id in self._running]
        return [row for row in rows if row.node.olt_id == lease.olt_id or (row.device and row.device == lease.device)]

    def ours(self, execution_ids: Sequence[int], lease: Lease | None) -> list[ExecutionRecord]:
        """Return the open executions that a holder of this lease may end."""
        if lease is not None and self.tokens.get(lease.olt_id, 0) > lease.token:
            return []
        rows = [self._open[execution_id] for execution_id in execution_ids if execution_id in self._open]
        return [row for row in rows if row.token is None or (lease is not None and row.token == lease.token)]

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        unwanted = [
            row
            for row in self._open.values()
            if row.node.olt_id in olt_ids
            or (row.status is Status.PENDING and (row.node.id in node_ids or row.node.master_id in node_ids))
        ]
        for row in unwanted:
            self._end(row, Outcome(Status.INTERRUPTED, Cause.DISABLED), now)
        return len(unwanted)

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        self._failures.pop(olt_id, None)
        self._nodes.answers[olt_id] = now
        if self._auto_recover:
            self._nodes.breakers.pop(olt_id, None)
        return self._auto_recover

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        return None

    async def reset_breakers(self, olt_ids: Collection[int], *, now: datetime) -> None:
        for olt_id in olt_ids:
            self._failures.pop(olt_id, None)
            self._nodes.breakers.pop(olt_id, None)
            self._nodes.answers.pop(olt_id, None)

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        return {id_: _standing(self.rows[id_]) for id_ in execution_ids if id_ < len(self.rows)}

    async def recover(self, now: datetime) -> Recovery:
        composites: defaultdict[int, list[ExecutionRecord]] = defaultdict(list)
        for row in self._open.values():
            composites[row.id if row.master_id is None else row.master_id].append(row)
        interrupted, left = 0, []
        for rows in composites.values():
            is_held = rows[0].node.olt_id in self.held and not all(row.retry_at for row in rows)
            if is_held or _can_wait(rows):
                left.append(_left_over(rows, now, is_running=is_held))
                continue
            for row in rows:
                self._end(row, Outcome(Status.INTERRUPTED, Cause.ENGINE_DOWN), now)
            interrupted += len(rows)
        return Recovery(interrupted, tuple(left))

    def _hear(self, olt_id: int, outcome: Outcome, now: datetime) -> None:
        """Count an attempt for the breaker of its OLT."""
        said = heard(outcome)
        if said is Heard.ANSWER:
            self._failures.pop(olt_id, None)
            self._nodes.answers[olt_id] = now
            if self._auto_recover:
                self._nodes.breakers.pop(olt_id, None)
        elif said is Heard.SILENCE:
            self._nodes.answers.pop(olt_id, None)
            self._failures[olt_id] = self._failures.get(olt_id, 0) + 1
            if self._failures[olt_id] >= self._breaker_after:
                self._nodes.breakers.setdefault(olt_id, now)

    def _end(self, row: ExecutionRecord, outcome: Outcome, now: datetime) -> None:
        if row.status is Status.RUNNING:
            row.end_attempt(outcome, now)
        row.status, row.cause, row.outcome, row.ended_at = outcome.status, outcome.cause, outcome, now
        row.retry_at = None
        del self._open[row.id]
        self._running.discard(row.id)

    def _add(
        self,
        node: Node,
        slot: datetime,
        *,
        slots: int = 1,
        status: Status = Status.PENDING,
        cause: Cause | None = None,
        trigger: Trigger = Trigger.SCHEDULE,
    ) -> ExecutionRecord:
        row = ExecutionRecord(len(self.rows), node, slot, status, slots, cause, trigger)
        self.rows.append(row)
        if status is Status.PENDING:
            self._open[row.id] = row
        self._taken.add((node.id, slot))
        return row

    def _schedule(self, node_id: int, check: datetime | None) -> None:
        self._change(node_id, lambda node: replace(node, next_check=check))

    def _change(self, node_id: int, change: Callable[[Node], Node]) -> None:
        """Change a node as the engine does: without a new revision."""
        node = self._nodes.rows.get(node_id)
        if node is not None:
            self._nodes.rows[node_id] = change(node)


def _standing(row: ExecutionRecord) -> Outcome:
    """Return the status of an execution; for a pending retry, the result of its last attempt."""
    last = row.outcome or Outcome(row.status)
    return replace(last, status=row.status, retry_at=row.retry_at)


def _can_wait(rows: Sequence[ExecutionRecord]) -> bool:
    """Return whether an unstarted composite can be started later."""
    return all(row.status is Status.PENDING and row.trigger is Trigger.SCHEDULE for row in rows)


def _left_over(rows: Sequence[ExecutionRecord], now: datetime, *, is_running: bool) -> LeftOver:
    for row in rows:
        if not is_running and row.retry_at is None:
            row.retry_at, row.outcome = now, row.outcome or Outcome(Status.PENDING, Cause.ENGINE_DOWN)
    first = rows[0]
    attempts = max(len(row.attempts) for row in rows)
    links = tuple((row.id, row.node.id) for row in rows)
    return LeftOver(first.node.olt_id, first.slot, first.claimed_at or now, links, attempts, is_running)


class MemoryRuns:
    """Runs of executions in `MemorySlots`. Their readings are not kept."""

    def __init__(self, slots: MemorySlots, known: Callable[[int], Sequence[KnownOnu]] = lambda olt_id: ()) -> None:
        self._slots = slots
        self._known = known
        self._stored: set[tuple[tuple[int, ...], Lease | None]] = set()

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        return self._known(olt_id)

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        return self._slots.start(execution_id, lease, now, poller_id)

    async def finish(self, result: RunResult) -> None:
        rows = self._slots.ours(result.execution_ids, result.lease)
        if result.has_data and not any(row.status is Status.RUNNING for row in rows):
            if (result.execution_ids, result.lease) in self._stored:
                return
            raise LeaseLost(
                f"execution {result.execution_ids[0]} belongs to another process now; its readings were not stored"
            )
        self._slots.end(rows, result.outcome, result.at)
        self._stored.add((result.execution_ids, result.lease))


class MemoryQuestions:
    """Questions of one process."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Question, datetime]] = {}
        self._taken: dict[int, tuple[Question, datetime]] = {}
        self.replies: dict[int, Reply] = {}
        # What each question waited for, in order.
        self.waits: dict[int, list[tuple[str, float | None] | None]] = {}

    def ask(self, question: Question, *, expires_at: datetime) -> None:
        self._open[question.id] = question, expires_at

    async def take(self, *, limit: int, now: datetime) -> Sequence[Question]:
        open_ = sorted(id_ for id_, (_, expires_at) in self._open.items() if expires_at > now)[:limit]
        self._taken.update({id_: self._open.pop(id_) for id_ in open_})
        return [self._taken[id_][0] for id_ in open_]

    async def recover(self) -> None:
        self._open.update(self._taken)
        self._taken.clear()

    async def wait(self, question_id: int, run: Node | None) -> None:
        self.waits.setdefault(question_id, []).append(run and (run.name, run.expected))

    async def reply(self, question_id: int, reply: Reply, *, now: datetime) -> None:
        if self._taken.pop(question_id, None) is not None:
            self.replies[question_id] = reply
