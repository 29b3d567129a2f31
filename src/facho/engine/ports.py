"""Ports of the engine. Adapters are in `adapters/` and `store/`."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from facho.engine.model import (
    Cause,
    Claim,
    CompositeNode,
    KnownOnu,
    Lease,
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
)
from facho.engine.oid import Oid
from facho.engine.scheduling.changes import OltState
from facho.engine.snmp import Agent, Answer, Line


class Clock(Protocol):
    """Time, real or virtual."""

    def now(self) -> datetime:
        """Return the time in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never decrease."""

    async def sleep(self, seconds: float) -> None: ...


class Snmp(Protocol):
    """Sends one request to an agent: no retry, no interpretation.

    Answers are by position and include the agent's error status. Raises `NoAnswer` after `timeout` seconds,
    `BadAnswer` for an unreadable answer, and `Refused` if an SNMPv3 agent denies access.
    """

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer: ...

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer: ...

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer: ...

    def line(self, agent: Agent) -> Line:
        """Return the way to an agent for requests of earlier runs."""

    async def close(self) -> None: ...


class NodeSource(Protocol):
    """Source of the nodes to poll. It reads the intent in the database, and only changes."""

    async def standings(self) -> Mapping[int, Standing]:
        """Return the state of each enabled OLT. Cheap, because it is called once a tick."""

    async def fingerprints(self) -> Mapping[int, str]:
        """Return a digest of the configuration of each enabled OLT, for changes of any origin."""

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        """Return the enabled nodes of these OLTs, including chained ones, if the OLT is enabled."""

    async def olt(self, olt_id: int) -> Olt:
        """Return the current configuration of an OLT; `OltGone` if it may not be polled."""


class Slots(Protocol):
    """The schedule as rows: claimed slots and their results.

    Each step is one transaction, which also updates the quotas of the hour.
    """

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        """Set the due times of masters (None removes a node from the grid), and record the lost slots.

        The pending quota of the hour of `now` follows from the due time.
        """

    async def taken(self, node_ids: Collection[int], *, after: datetime) -> Mapping[int, Collection[datetime]]:
        """Return slots of nodes after this time that already have an execution, after the clock was set back."""

    async def move(self, execution_ids: Collection[int], by: timedelta) -> None:
        """Shift the times of pending retries after the clock was set. Their slots are not shifted."""

    async def claim(
        self, composite: CompositeNode, *, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        """Claim the slot of a composite and set the next one; None if it is taken or not due.

        Slots that passed while it waited are recorded as skipped, with the main cause of the wait.
        """

    async def reclaim(self, claim: Claim, *, poller_id: int | None, now: datetime) -> bool:
        """Claim pending retries; False if one of them has ended in the meantime."""

    async def close(self, execution_ids: Sequence[int], outcome: Outcome, *, now: datetime) -> None:
        """End pending executions. A started one is left to its runner."""

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        """Interrupt executions and return their number.

        For an OLT: all open executions and their quotas of the hour. For a node and its chain: only unstarted
        executions.
        """

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        """Record that an OLT answered a probe or a check, and reset its failures. True if its breaker is closed now."""

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        """Record a probe of an open breaker without an answer."""

    async def reset_breakers(self, olt_ids: Collection[int], *, now: datetime) -> None:
        """Close the breakers of OLTs whose address or credentials changed."""

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        """Return the current status of executions.

        A pending retry is PENDING with a `retry_at` and the error of its last attempt.
        """

    async def recover(self, now: datetime) -> Recovery:
        """End running executions of a dead engine as INTERRUPTED, and return the rest of its work.

        Executions whose OLT another process holds continue. Scheduled ones that are unstarted or wait for a retry are
        returned; manual ones end.
        """


class Runs(Protocol):
    """Runs of claimed executions: known ONUs, start, result."""

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        """Return the ONUs of an OLT that can be polled."""

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        """Start an attempt at a claimed execution. False if it was started, ended or postponed in the meantime.

        True also if it was started under this lease before. Executions that an earlier holder left running on the
        OLT, or on its device, are interrupted. Raises `OltBusy` if the holder is not an earlier one. `poller_id` is
        the poller that runs it, if another one claimed it.
        """

    async def finish(self, result: RunResult) -> None:
        """Store a result in one transaction: readings, outcome, attempt, quotas and breaker.

        With `outcome.retry_at` the executions stay PENDING for another attempt. Storing a result again changes
        nothing. Raises `LeaseLost` if there is data to store and the lease is no longer held. Without data, such
        executions are left unchanged.
        """


class Questions(Protocol):
    """Users' questions to OLTs. Each is answered once."""

    async def take(self, *, limit: int, now: datetime) -> Sequence[Question]:
        """Return open, unexpired questions, oldest first. No other process gets them."""

    async def recover(self) -> None:
        """Open the questions again that an earlier engine took and did not answer."""

    async def wait(self, question_id: int, run: Node | None) -> None:
        """Record the run for whose end a question waits; None: it does not wait any more."""

    async def reply(self, question_id: int, reply: Reply, *, now: datetime) -> None:
        """Store the reply to a question that has none yet, and the values that were read, in one transaction.

        Raises `LeaseLost` if there are values, and another holder had the device since.
        """


class OltLeases(Protocol):
    """At most one holder per device across processes. OLTs with the same device share its lease."""

    def hold(self, olt_id: int, holder: str, *, device: str) -> AbstractAsyncContextManager[Lease]:
        """Hold the device of an OLT inside a `with`; `OltBusy` if another holder has it."""

    def is_valid(self, lease: Lease) -> bool:
        """Return whether a lease is certainly still held, without I/O. Called before every PDU."""


class PollerWatch(Protocol):
    """Receives the progress of a composite from its runner."""

    def link_started(self, position: int, node: Node) -> None: ...

    def link_changed(self, position: int, status: Status) -> None:
        """The execution of a link has another status now; PENDING if it is tried again later."""


class NodeRunner(Protocol):
    """Runs one claimed composite, here or elsewhere, and returns the outcomes of its links."""

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]: ...


class EventBus(Protocol):
    """Carries notifications, never intent: a lost one only makes a page stale."""

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None: ...

    def subscribe(self, topics: Iterable[str]) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield notifications, starting with the last snapshot. Ends when the bus is closed."""

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        """Return the last notification of a topic."""

    def close(self) -> None: ...
