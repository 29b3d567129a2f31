"""What the engine needs from the world. Adapters in `adapters/` and `store/` fulfil these."""

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
from facho.engine.snmp import Agent, Answer, Asked, Cancellable, Done, Operation


class Clock(Protocol):
    """Time, real or virtual."""

    def now(self) -> datetime:
        """Return the time in UTC."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    async def sleep(self, seconds: float) -> None: ...


class Snmp(Protocol):
    """Asks an agent once: no retry, no interpretation.

    Answers are by position, with the agent's error status in them. `NoAnswer`
    after `timeout` seconds, `BadAnswer` for what cannot be read, `Refused`
    where an SNMPv3 agent does not accept us.
    """

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer: ...

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer: ...

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer: ...

    def send(
        self, agent: Agent, operation: Operation, asked: Asked, repetitions: int, *, timeout: float, done: Done
    ) -> Cancellable:
        """Send a request of an earlier run again. `done` is called once, later, unless the request is cancelled.

        It gets the answer or the error. The answer may not have been read yet: then `BadAnswer` comes from the first
        look at its variables.
        """

    async def close(self) -> None: ...


class NodeSource(Protocol):
    """What an operator wants polled. The database carries intent: this reads it, and only what changed."""

    async def standings(self) -> Mapping[int, Standing]:
        """Return how each enabled OLT stands. Cheap: asked once a tick."""

    async def fingerprints(self) -> Mapping[int, str]:
        """Return a digest of all that is set up for each enabled OLT, whoever changed it and however."""

    async def states(self, olt_ids: Collection[int]) -> Mapping[int, OltState]:
        """Return what is polled on these OLTs, as far as they are enabled: their enabled nodes, chained ones too."""

    async def olt(self, olt_id: int) -> Olt:
        """Return the OLT as it is set up now; `OltGone` if it may not be asked any more."""


class Slots(Protocol):
    """The schedule as rows: which slots are claimed, and what became of them.

    Each step is one transaction, which also updates the quotas of the hour.
    """

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        """Set when these masters are due next, None taking a node off the grid, and record slots lost by it.

        What a node still owes to the hour of `now` follows from when it is due.
        """

    async def taken(self, node_ids: Collection[int], *, after: datetime) -> Mapping[int, Collection[datetime]]:
        """Return the slots of nodes after this time that have an execution already: the clock was set back."""

    async def move(self, execution_ids: Collection[int], by: timedelta) -> None:
        """Move the times of executions that wait for another attempt, because the clock was set by so much.

        Their slots stay where they are.
        """

    async def claim(
        self, composite: CompositeNode, *, poller_id: int | None, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        """Take a composite's slot and fix the next one; None if another process has it or it is not due any more.

        Slots that passed while it waited are recorded as skipped, with the cause it waited for longest.
        """

    async def reclaim(self, claim: Claim, *, poller_id: int | None, now: datetime) -> bool:
        """Take up executions that wait for another attempt; False if one of them was ended meanwhile."""

    async def close(self, execution_ids: Sequence[int], outcome: Outcome, *, now: datetime) -> None:
        """End executions that are pending. One that has started is left to its runner."""

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        """Interrupt executions that a person no longer wants, and return their number.

        Of an OLT everything that is open, its quotas of the hour with it; of a
        node, and the chain behind it, only executions that have not started.
        """

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        """Note that an OLT answered a probe or a check: its silence is forgotten. True if its breaker is closed now."""

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        """Note that an OLT whose breaker is open was probed and did not answer."""

    async def reset_breakers(self, olt_ids: Collection[int], *, now: datetime) -> None:
        """Close the breakers of OLTs that have another address or other credentials now."""

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        """Return the present status of executions, final or not.

        One that waits for another attempt is PENDING with a `retry_at`, and has the error of its last one.
        """

    async def recover(self, now: datetime) -> Recovery:
        """End executions that a dead engine was running as INTERRUPTED, and return the rest of its work.

        Executions whose OLT another process holds go on. Scheduled ones that had
        not started, or wait for a retry, are returned; manual ones end.
        """


class Runs(Protocol):
    """The runs of claimed executions: what one needs to know, how it starts, and its result."""

    async def known(self, olt_id: int) -> Sequence[KnownOnu]:
        """Return the ONUs of an OLT that can be polled."""

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        """Start an attempt at a claimed execution. False if it was started, ended or put off meanwhile.

        True also if it was started under this very lease before. Executions that an earlier holder left
        running on the OLT, or on its device, are interrupted; `OltBusy` if the holder is not an earlier one.
        `poller_id` is the poller that runs it, where another one claimed it.
        """

    async def finish(self, result: RunResult) -> None:
        """Store a result in one transaction: what was read, the outcome, the attempt, quotas and breaker.

        With `outcome.retry_at` the executions stay PENDING for another attempt. Storing a result again
        changes nothing. `LeaseLost` if there is something to store besides the outcome and the run is not
        ours any more. Without data, executions that are not ours any more are left as they are.
        """


class Questions(Protocol):
    """Questions that people ask of OLTs on demand. The database carries them; each is answered once."""

    async def take(self, *, limit: int, now: datetime) -> Sequence[Question]:
        """Return open questions that have not expired, oldest first. No other process gets them."""

    async def reply(self, question_id: int, reply: Reply, *, now: datetime) -> None:
        """Store the reply to a question that was taken and has no reply yet."""


class OltLeases(Protocol):
    """At most one holder per device, in whichever process it runs. OLTs with the same device share its lease."""

    def hold(self, olt_id: int, holder: str, *, device: str) -> AbstractAsyncContextManager[Lease]:
        """Hold the device of an OLT inside a `with`; `OltBusy` if another holder has it."""

    def is_valid(self, lease: Lease) -> bool:
        """Return whether a lease is still ours for certain, told without asking anybody. Asked before every PDU."""


class PollerWatch(Protocol):
    """Told by a runner how far its composite is."""

    def link_started(self, position: int, node: Node) -> None: ...

    def link_changed(self, position: int, status: Status) -> None:
        """The execution of a link has another status now; PENDING if it is tried again later."""


class NodeRunner(Protocol):
    """Runs one claimed composite, here or elsewhere, and returns how its links ended."""

    async def run(self, claim: Claim, watch: PollerWatch) -> Sequence[Outcome]: ...


class EventBus(Protocol):
    """Carries news, never intent: losing one costs a page its freshness and nothing else."""

    def publish(self, topic: str, payload: Mapping[str, Any]) -> None: ...

    def subscribe(self, topics: Iterable[str]) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Yield news as it comes, beginning with the last snapshot. Ends when the bus is closed."""

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        """Return the last news of a topic."""

    def close(self) -> None: ...
