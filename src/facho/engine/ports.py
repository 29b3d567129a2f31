"""What the engine needs from the world. Adapters in `adapters/` and `store/` fulfil these."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from facho.engine.alerts import Message
from facho.engine.changes import OltState
from facho.engine.model import (
    Cause,
    Claim,
    Collected,
    CompositeNode,
    KnownOnu,
    Lease,
    Node,
    Olt,
    Outcome,
    Recovery,
    Skipped,
    Standing,
)
from facho.engine.oid import Oid
from facho.engine.snmp import Agent, Answer


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


class Ledger(Protocol):
    """Who ran what, when, and how it ended. Each step is one transaction, and the quotas of the hour follow in it."""

    async def reschedule(
        self, checks: Mapping[int, datetime | None], skipped: Sequence[Skipped], *, now: datetime
    ) -> None:
        """Set when these masters are due next, None taking a node off the grid, and account for slots lost by it.

        What a node still owes to the hour of `now` follows from when it is due.
        """

    async def claim(
        self, composite: CompositeNode, *, poller_id: int, now: datetime, waits: Mapping[Cause, float]
    ) -> Claim | None:
        """Take a composite's slot for ourselves and fix the next one, or return None if it is not there to be taken.

        Slots that passed while it waited are accounted for as skipped, by the cause it waited for longest.
        """

    async def reclaim(self, claim: Claim, *, poller_id: int, now: datetime) -> bool:
        """Take executions up again that wait for a further attempt; False if one of them was ended meanwhile."""

    async def start(self, execution_id: int, *, lease: Lease, now: datetime, poller_id: int | None = None) -> bool:
        """Begin an attempt at a claimed execution. False if it was begun, ended, interrupted or put off meanwhile.

        True also for who has begun it under this very lease, and did not hear of it. What an earlier holder left
        running on the OLT is interrupted; `OltBusy` if it is not an earlier one.
        `poller_id` says who runs it, where that is not who it was claimed for.
        """

    async def put_off(
        self, execution_ids: Sequence[int], outcome: Outcome, *, retry_at: datetime, lease: Lease, now: datetime
    ) -> None:
        """End the running attempt, and leave these executions PENDING for another one."""

    async def close(
        self, execution_ids: Sequence[int], outcome: Outcome, *, lease: Lease | None, now: datetime
    ) -> None:
        """End executions. What a holder of an older lease says is not written.

        Silence counts towards the breaker of the OLT, and any answer closes it.
        """

    async def abort(self, *, olt_ids: Collection[int] = (), node_ids: Collection[int] = (), now: datetime) -> int:
        """Interrupt what a person no longer wants, and return how much that was.

        Of an OLT everything that is open, its quotas of the hour with it; of a
        node, and the chain behind it, only what has not begun.
        """

    async def answered(self, olt_id: int, *, now: datetime) -> bool:
        """Note that an OLT answered a probe. True if its breaker is closed now."""

    async def probed(self, olt_id: int, *, now: datetime) -> None:
        """Note that an OLT whose breaker is open was probed, and said nothing."""

    async def forgive(self, olt_ids: Collection[int], *, now: datetime) -> None:
        """Close the breakers of OLTs that have another address or credentials now: the silence was another's."""

    async def progress(self, execution_ids: Collection[int]) -> Mapping[int, Outcome]:
        """Return how executions stand: with a status that is not final yet, unless they are over.

        One that waits for a further attempt is PENDING with a `retry_at`, and has the error of its last one.
        """

    async def recover(self, now: datetime) -> Recovery:
        """End what a dead engine was running as INTERRUPTED, and return what is left of its work.

        What somebody else still holds the OLT for goes on. What nobody had
        begun, or had put off, waits for an attempt; what a person asked for is
        not begun behind their back, and ends.
        """


class ReadingSink(Protocol):
    """Where readings go, and what is known from earlier ones."""

    async def known(self, olt_id: int) -> Sequence[KnownOnu]: ...

    async def write(self, node: Node, execution_id: int, collected: Collected, *, lease: Lease, now: datetime) -> None:
        """Keep a harvest in one transaction; `LeaseLost` if the lease is not the present one.

        A discovery also decides who is there: see `engine/census.py`.
        """

    async def identified(
        self, node: Node, execution_id: int, brand: str, seen: Mapping[str, Any], *, lease: Lease
    ) -> None:
        """Keep what an OLT said of itself and whose make it is, and put it to work; `LeaseLost` as above.

        Without a brand only what was seen is kept, and the question stays open.
        """


class OltLeases(Protocol):
    """At most one holder an OLT, whoever and wherever it is."""

    def hold(self, olt_id: int, holder: str) -> AbstractAsyncContextManager[Lease]:
        """Hold the OLT inside a `with`; `OltBusy` if somebody else does."""

    def is_valid(self, lease: Lease) -> bool:
        """Return whether a lease is still ours for certain, told without asking anybody. Asked before every PDU."""


class PollerWatch(Protocol):
    """Told by a runner how far its composite is."""

    def link_started(self, position: int, node: Node) -> None: ...


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


class Notifier(Protocol):
    """Takes messages to one channel. Blocks, for some seconds at most: it is called in a thread of its own."""

    def send(self, message: Message) -> int | None:
        """Send a message once, and return what the channel answered; `DeliveryFailed` if it did not take it."""
