"""The same small world for every adapter of nodes, slots and runs: one OLT, its nodes and their executions."""

import itertools
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest
from builders import MIN, SEC, T0
from django.db import transaction

from facho.engine.maintenance import Window
from facho.engine.model import (
    Cause,
    Collected,
    Completeness,
    CompositeNode,
    JobKind,
    KnownOnu,
    Lease,
    Node,
    Outcome,
    Reading,
    RunResult,
    Status,
    Trigger,
)
from facho.engine.ports import NodeSource, Runs, Slots
from facho.engine.presence import USUAL_RULES, Rules
from in_memory import MemoryNodes, MemoryRuns, MemorySlots

T = TypeVar("T")

OLD, PRESENT = 100, 200

SUCCESS = Outcome(Status.SUCCESS, readings=1)

# Of the one OLT.
DEVICE = "127.0.0.1:161"


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine gives that never has to wait, without a loop: Django is used as in its own thread."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it had to wait")


class Inline:
    """Stands in for a `DbThread`: does the work at once, in the transaction of the test."""

    async def run(self, work):
        return work()


class InSavepoint:
    """The same for work that is a transaction of its own."""

    async def run(self, work):
        with transaction.atomic():
            return work()


@dataclass(frozen=True)
class Seen:
    """An execution as it is stored."""

    id: int
    node_id: int
    slot: datetime
    slots: int
    status: Status
    cause: Cause | None
    trigger: Trigger
    master_id: int | None
    poller_id: int | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    token: int | None
    waits: Mapping[str, float]
    retry_at: datetime | None
    # How each attempt ended, and when it began and ended.
    attempts: list[tuple[Status, datetime, datetime | None]]


class World:
    """Slots and runs, and what the contract needs around them."""

    nodes: NodeSource
    slots: Slots
    runs: Runs
    olt_id: int

    def add(self, name: str, *, interval: timedelta = 5 * MIN, olt_id: int | None = None, **more: Any) -> Node:
        raise NotImplementedError

    def add_olt(self, name: str, *, host: str) -> int:
        """Set up another OLT, and return its id."""
        raise NotImplementedError

    def wish(self, node: Node, at: datetime) -> None:
        raise NotImplementedError

    def maintain(self, start: datetime, end: datetime, *, polling: bool) -> None:
        """Plan a maintenance of the OLT."""
        raise NotImplementedError

    def disable(self) -> None:
        raise NotImplementedError

    def enable(self) -> None:
        raise NotImplementedError

    def disable_node(self, node: Node) -> None:
        raise NotImplementedError

    def recovers_by_hand(self) -> None:
        """Let breakers wait for a person, from now on."""
        raise NotImplementedError

    def held_elsewhere(self) -> None:
        """Let another process hold the OLT."""
        raise NotImplementedError

    def taken_over(self) -> None:
        """Let another process have got the lease of the OLT after ours was over."""
        raise NotImplementedError

    def delete(self, node: Node) -> None:
        raise NotImplementedError

    def now_of(self, node: Node) -> tuple[datetime | None, datetime | None]:
        """Return when a node is due and when somebody asked for it."""
        raise NotImplementedError

    def rows(self) -> list[Seen]:
        raise NotImplementedError

    def claim(self, composite: CompositeNode, now: datetime | None = None, waits: Mapping[Cause, float] | None = None):
        asked = self.slots.claim(composite, poller_id=3, now=now or composite.slot, waits=waits or {})
        return done(asked)

    def start(self, execution_id: int, *, token: int = PRESENT, now: datetime = T0) -> bool:
        return done(self.runs.start(execution_id, lease=self.lease(token), now=now))

    def close(
        self, ids, outcome, *, token: int | None = PRESENT, now: datetime = T0, collected: Collected | None = None
    ) -> None:
        lease = None if token is None else self.lease(token)
        node = Node(0, self.olt_id, "test", JobKind.TABLE, 5 * MIN) if collected else None
        done(self.runs.finish(RunResult(tuple(ids), outcome, lease, now, node, collected)))

    def put_off(self, ids, outcome, *, retry_at: datetime, token: int = PRESENT, now: datetime = T0) -> None:
        done(self.runs.finish(RunResult(tuple(ids), replace(outcome, retry_at=retry_at), self.lease(token), now)))

    def reclaim(self, claim, *, poller_id: int = 5, now: datetime = T0) -> bool:
        return done(self.slots.reclaim(claim, poller_id=poller_id, now=now))

    def reschedule(self, checks, *skipped, now: datetime = T0) -> None:
        done(self.slots.reschedule(checks, skipped, now=now))

    def abort(self, *, olts=(), nodes=(), now: datetime = T0) -> int:
        return done(self.slots.abort(olt_ids=olts, node_ids=[node.id for node in nodes], now=now))

    def breaker(self) -> datetime | None:
        """Return since when the OLT is not asked any more."""
        return done(self.nodes.standings())[self.olt_id].breaker_since

    def polled(self, olt_id: int | None = None) -> list[Node]:
        """Return the nodes of an OLT, oldest first."""
        olt_id = olt_id or self.olt_id
        state = done(self.nodes.states([olt_id])).get(olt_id)
        return sorted(state.nodes, key=lambda node: node.id) if state else []

    def lease(self, token: int = PRESENT) -> Lease:
        return Lease(self.olt_id, "test/3", token, DEVICE)

    def row(self, execution_id: int) -> Seen:
        return next(row for row in self.rows() if row.id == execution_id)


class MemoryWorld(World):
    def __init__(self) -> None:
        self.nodes = MemoryNodes()
        self.slots = MemorySlots(self.nodes)
        self.runs = MemoryRuns(self.slots)
        self.olt_id = 1

    def add(self, name, *, interval=5 * MIN, olt_id=None, **more):
        node = Node(
            id=len(self.nodes.rows) + 1,
            olt_id=olt_id or self.olt_id,
            name=name,
            kind=JobKind.TABLE,
            interval=interval,
            olt_name="OLT-CENTRAL-01",
            **more,
        )
        self.nodes.put(node)
        return node

    def add_olt(self, name, *, host):
        olt_id = max([self.olt_id, *self.nodes.hosts]) + 1
        self.nodes.hosts[olt_id] = host
        return olt_id

    def wish(self, node, at):
        self.nodes.request_run(node.id, at)

    def maintain(self, start, end, *, polling):
        self.nodes.windows[self.olt_id] = (Window(start, end, polling),)

    def disable(self):
        self.nodes.enable(self.olt_id, False)

    def enable(self):
        self.nodes.enable(self.olt_id)

    def disable_node(self, node):
        self.nodes.disable_node(node.id)

    def recovers_by_hand(self):
        self.slots = MemorySlots(self.nodes, auto_recover=False)
        self.runs = MemoryRuns(self.slots)

    def held_elsewhere(self):
        self.slots.held.add(self.olt_id)

    def taken_over(self):
        self.slots.tokens[self.olt_id] = PRESENT + 1

    def delete(self, node):
        self.nodes.remove(node.id)

    def now_of(self, node):
        row = self.nodes.rows[node.id]
        return row.next_check, row.run_requested_at

    def rows(self):
        return [
            Seen(
                row.id,
                row.node.id,
                row.slot,
                row.slots,
                row.status,
                row.cause,
                row.trigger,
                row.master_id,
                row.poller_id,
                row.claimed_at,
                row.started_at,
                row.ended_at,
                row.token,
                {cause.value: seconds for cause, seconds in row.waits.items()},
                row.retry_at,
                [
                    (each.outcome.status if each.outcome else Status.RUNNING, each.started_at, each.ended_at)
                    for each in row.attempts
                ],
            )
            for row in self.slots.rows
        ]


class DbWorld(World):
    def __init__(self) -> None:
        from facho.apps.inventory.models import Olt
        from facho.store.breakers import BreakerPolicy
        from facho.store.nodes import DbNodeSource

        self.nodes = DbNodeSource(Inline())
        self.follow(BreakerPolicy())
        olt = Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")
        self.olt_id = olt.pk

    def add(self, name, *, interval=5 * MIN, olt_id=None, master_id=None, next_check=None, priority=40):
        from facho.apps.jobs.models import SnmpJob, WorkflowNode

        job = SnmpJob.objects.create(
            name=name,
            brand="huawei",
            kind="table",
            columns=["rx_dbm"],
            interval_seconds=interval.total_seconds(),
            priority=priority,
        )
        row = WorkflowNode.objects.create(
            olt_id=olt_id or self.olt_id, job=job, master_id=master_id, next_run_at=next_check
        )
        return next(node for node in self.polled(row.olt_id) if node.id == row.pk)

    def follow(self, policy, rules=USUAL_RULES):
        """Make slots and runs that follow a policy of breakers and rules of presence."""
        from facho.store.inventory import Inventories
        from facho.store.runs import DbResults, DbRuns
        from facho.store.slots import DbSlots

        self.slots = DbSlots(InSavepoint(), policy=policy)
        inventories = Inventories()
        results = DbResults(InSavepoint(), policy=policy, rules=rules, inventories=inventories)
        self.runs = DbRuns(Inline(), InSavepoint(), results, inventories)

    def add_olt(self, name, *, host):
        from facho.apps.inventory.models import Olt

        return Olt.objects.create(name=name, brand="huawei", host=host, community="public").pk

    def held_elsewhere(self):
        from facho.store import leases

        assert leases.acquire(leases.key_of(DEVICE), "noc-2/1", timedelta(minutes=5)) is not None

    def taken_over(self):
        # Tokens are counted from the time, which is far behind those of the tests.
        self.held_elsewhere()

    def wish(self, node, at):
        self._row(node).request_run(at)

    def maintain(self, start, end, *, polling):
        from facho.apps.maintenance.models import Maintenance

        Maintenance.objects.create(olt_id=self.olt_id, starts_at=start, ends_at=end, polling=polling).settle(start)

    def disable(self):
        from facho.apps.inventory.models import Olt

        Olt.objects.get(pk=self.olt_id).disable()

    def enable(self):
        from facho.apps.inventory.models import Olt

        Olt.objects.get(pk=self.olt_id).enable()

    def disable_node(self, node):
        row = self._row(node)
        row.own_enabled = False
        row.save()

    def recovers_by_hand(self):
        from facho.store.breakers import BreakerPolicy

        self.follow(BreakerPolicy(auto_recover=False))

    def delete(self, node):
        self._row(node).delete()

    def now_of(self, node):
        row = self._row(node)
        return row.next_run_at, row.run_requested_at

    def rows(self):
        from facho.apps.polling.models import Execution

        return [
            Seen(
                row.pk,
                row.node_id,
                row.slot,
                row.slots,
                Status(row.status),
                Cause(row.cause) if row.cause else None,
                Trigger(row.trigger),
                row.master_execution_id,
                row.poller_id,
                row.claimed_at,
                row.started_at,
                row.ended_at,
                row.lease_token,
                row.waits,
                row.retry_at,
                [(Status(each.status), each.started_at, each.ended_at) for each in row.attempts.all()],
            )
            for row in Execution.objects.order_by("pk")
        ]

    def _row(self, node):
        from facho.apps.jobs.models import WorkflowNode

        return WorkflowNode.objects.get(pk=node.id)


class RunDesk:
    """Runs of one job on OLT-CENTRAL-01, one execution each, whose results a test writes."""

    def __init__(self, name: str = "Optical power", kind: JobKind = JobKind.TABLE, rules: Rules = USUAL_RULES) -> None:
        from facho.store.breakers import BreakerPolicy

        self.world = DbWorld()
        self.world.follow(BreakerPolicy(), rules)
        self.node = replace(self.world.add(name, next_check=T0), kind=kind)
        self._slots = itertools.count()
        self.start()

    def start(self) -> None:
        """Start an execution whose result can be written."""
        slot = T0 - timedelta(days=1) + next(self._slots) * SEC
        self.world.wish(self.node, slot)
        (self.execution_id,) = self.world.claim(by_hand(self.node, slot=slot)).execution_ids
        self.world.start(self.execution_id)

    def write(self, *readings: Reading, **more: Any) -> None:
        """Store a result, and start the next execution."""
        self.deliver(self.result(*readings, **more))
        self.start()

    def deliver(self, result: RunResult) -> None:
        done(self.world.runs.finish(result))

    def result(
        self,
        *readings: Reading,
        token: int = PRESENT,
        now: datetime = T0,
        outcome: Outcome = SUCCESS,
        kind: JobKind | None = None,
        completeness: Completeness = Completeness.COMPLETE,
        **more: Any,
    ) -> RunResult:
        collected = Collected(completeness, readings, **more)
        node = replace(self.node, kind=kind or self.node.kind)
        return RunResult((self.execution_id,), outcome, self.world.lease(token), now, node, collected)

    def status(self) -> Status:
        return self.world.row(self.execution_id).status

    def known(self) -> Sequence[KnownOnu]:
        return done(self.world.runs.known(self.world.olt_id))


def scheduled(master: Node, *chain: Node, slot: datetime = T0) -> CompositeNode:
    return CompositeNode(master, chain, slot)


def by_hand(master: Node, *chain: Node, slot: datetime = T0) -> CompositeNode:
    return CompositeNode(replace(master, run_requested_at=slot), chain, slot, Trigger.MANUAL, urgent=True)


# Only the second one needs a database.
WORLDS = [pytest.param(MemoryWorld, id="memory"), pytest.param(DbWorld, id="database", marks=pytest.mark.django_db)]
