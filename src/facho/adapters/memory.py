"""Nodes and ledger without a database: for the virtual clock, where a day of polling takes seconds."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from facho.engine.errors import OltBusy, OltGone
from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    Lease,
    Node,
    Olt,
    Outcome,
    Skipped,
    Status,
    Trigger,
)
from facho.engine.schedule import missed_slots, next_check
from facho.engine.snmp import Agent, Community, Version


@dataclass(slots=True)
class Row:
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


class MemoryNodes:
    """A NodeSource that a program fills by hand."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self.rows: dict[int, Node] = {}
        self.enabled: dict[int, bool] = {}
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

    def enable(self, olt_id: int, enabled: bool = True) -> None:
        self.enabled[olt_id] = enabled
        self._touch(olt_id)

    def request_run(self, node_id: int, now: datetime) -> bool:
        """Ask for a run; False if one was asked for already."""
        node = self.rows[node_id]
        if node.run_requested_at is not None:
            return False
        self.put(replace(node, run_requested_at=now))
        return True

    def _touch(self, olt_id: int) -> None:
        self._revisions[olt_id] = self._revisions.get(olt_id, 0) + 1

    async def revisions(self) -> Mapping[int, int]:
        return {olt_id: revision for olt_id, revision in self._revisions.items() if self.enabled[olt_id]}

    async def nodes(self, olt_ids: Collection[int]) -> Sequence[Node]:
        return [
            node
            for node in self.rows.values()
            if node.olt_id in olt_ids and self.enabled[node.olt_id] and node.id not in self._disabled_nodes
        ]

    async def olt(self, olt_id: int) -> Olt:
        if not self.enabled.get(olt_id):
            raise OltGone(f"OLT {olt_id} was disabled before its turn came")
        agent = Agent("127.0.0.1", 161, Version.V2C, Community("public"))
        return Olt(olt_id, f"OLT-{olt_id}", "huawei", agent)


class MemoryLedger:
    """A Ledger in a list, with the rules of the real one."""

    def __init__(self, nodes: MemoryNodes) -> None:
        self._nodes = nodes
        self._taken: set[tuple[int, datetime]] = set()
        self._running: dict[int, int] = {}
        self.rows: list[Row] = []

    async def schedule(self, checks: Mapping[int, datetime | None]) -> None:
        for node_id, check in checks.items():
            if node_id in self._nodes.rows and self._nodes.rows[node_id].master_id is None:
                self._schedule(node_id, check)

    async def skip(self, skipped: Sequence[Skipped]) -> None:
        for item in skipped:
            if item.slots > 0 and item.node.id in self._nodes.rows and (item.node.id, item.slot) not in self._taken:
                self._add(item.node, item.slot, slots=item.slots, status=Status.SKIPPED, cause=item.cause)

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
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
            await self.skip([Skipped(composite.master, composite.slot + composite.master.interval, missed, cause)])
            self._schedule(composite.id, check)
        elif master.run_requested_at != composite.slot:
            return None
        self._change(composite.id, lambda node: replace(node, run_requested_at=None))
        return Claim(composite, self._open(composite, poller_id, now, waits), poller_id, check)

    def _open(
        self, composite: CompositeNode, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> tuple[int, ...]:
        ids: list[int] = []
        for node in composite.links:
            row = self._add(node, composite.slot, trigger=composite.trigger)
            row.poller_id, row.claimed_at = poller_id, now
            row.master_id = ids[0] if ids else None
            row.waits = {} if ids else waits
            ids.append(row.id)
        return tuple(ids)

    async def start(self, execution_id: int, *, lease: Lease, now: datetime) -> bool:
        row = self.rows[execution_id]
        if row.status is not Status.PENDING:
            return False
        self._interrupt_older(lease, now)
        if row.node.olt_id in self._running:
            raise OltBusy(f"OLT {row.node.olt_id} has another execution running")
        self._running[row.node.olt_id] = row.id
        row.status, row.started_at, row.token = Status.RUNNING, now, lease.token
        return True

    def _interrupt_older(self, lease: Lease, now: datetime) -> None:
        """End what an earlier holder of the OLT left running."""
        left = self.rows[self._running[lease.olt_id]] if lease.olt_id in self._running else None
        if left is not None and left.token is not None and left.token < lease.token:
            self._end(left, Outcome(Status.INTERRUPTED, Cause.LEASE_LOST), now)

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        for row in (self.rows[execution_id] for execution_id in execution_ids):
            is_open = row.status in (Status.PENDING, Status.RUNNING)
            if is_open and (row.token is None or (lease is not None and row.token == lease.token)):
                self._end(row, outcome, now)

    async def recover(self, now: datetime) -> int:
        left = [row for row in self.rows if row.status in (Status.PENDING, Status.RUNNING)]
        for row in left:
            self._end(row, Outcome(Status.INTERRUPTED, Cause.ENGINE_DOWN), now)
        return len(left)

    def _end(self, row: Row, outcome: Outcome, now: datetime) -> None:
        row.status, row.cause, row.outcome, row.ended_at = outcome.status, outcome.cause, outcome, now
        if self._running.get(row.node.olt_id) == row.id:
            del self._running[row.node.olt_id]

    def _add(
        self,
        node: Node,
        slot: datetime,
        *,
        slots: int = 1,
        status: Status = Status.PENDING,
        cause: Cause | None = None,
        trigger: Trigger = Trigger.SCHEDULE,
    ) -> Row:
        row = Row(len(self.rows), node, slot, status, slots, cause, trigger)
        self.rows.append(row)
        self._taken.add((node.id, slot))
        return row

    def _schedule(self, node_id: int, check: datetime | None) -> None:
        self._change(node_id, lambda node: replace(node, next_check=check))

    def _change(self, node_id: int, change: Callable[[Node], Node]) -> None:
        """Change a node as the engine may: without a new revision."""
        node = self._nodes.rows.get(node_id)
        if node is not None:
            self._nodes.rows[node_id] = change(node)
