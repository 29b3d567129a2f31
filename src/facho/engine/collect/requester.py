"""Asks one OLT in one run: repeats what got lost, keeps to the OLT's limits and the deadline, and counts."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from facho.engine.brand import Manners
from facho.engine.errors import BadAnswer, NoAnswer, SnmpError
from facho.engine.model import Olt, Traffic
from facho.engine.oid import Oid, parse
from facho.engine.ports import Clock, Snmp
from facho.engine.snmp import Answer, Version

# Whatever a view hides, an agent has something to say to this: a value, or that there is none.
SYS_UP_TIME = parse("1.3.6.1.2.1.1.3.0")

# No run of any size needs this many; an agent that invents rows for ever would.
MAX_PDUS = 250_000

# How often the question whether the agent is there at all is repeated.
ALIVE_RETRIES = 1

Send = Callable[[float], Awaitable[Answer]]


class RunOver(Exception):
    """Ends a run wherever it is; what was read stays. `str()` of it is the reason, as half a sentence."""


class Requester:
    """The only way of a run to its OLT.

    A request that brings nothing usable is sent again, as it was. When that
    does not help, the agent is asked for its uptime: if it answers, the request
    was the trouble and `NoAnswer` or `BadAnswer` says so; if not, the run is
    over, because asking a dead agent for less only takes longer.
    """

    def __init__(self, snmp: Snmp, olt: Olt, manners: Manners, *, clock: Clock, deadline: datetime) -> None:
        self._snmp = snmp
        self._olt = olt
        self._manners = manners
        self._clock = clock
        # Counted on the monotonic clock: a step of the wall clock must neither cut a run nor let it go on.
        self._started = clock.monotonic()
        self._ends = self._started + (deadline - clock.now()).total_seconds()
        self._window = asyncio.Semaphore(max(1, olt.max_in_flight))
        self._spacing = 1 / olt.max_pdus_per_second if olt.max_pdus_per_second else 0.0
        self._next_send = self._started
        self._round_trips: list[float] = []
        self._pdus = self._retransmissions = self._varbinds = 0
        self._bytes_sent = self._bytes_received = 0

    @property
    def pdus(self) -> int:
        return self._pdus

    @property
    def answers(self) -> int:
        return len(self._round_trips)

    @property
    def seconds(self) -> float:
        """Return how long the run has taken so far."""
        return self._clock.monotonic() - self._started

    @property
    def has_bulk(self) -> bool:
        """SNMPv1 knows no GETBULK: there a walk is GETNEXT, one row a request."""
        return self._olt.agent.version is not Version.V1

    async def get(self, oids: Sequence[Oid], *, optical: bool = False, retries: int | None = None) -> Answer:
        """Return the values of these OIDs, or the agent's error."""
        agent = self._olt.agent
        return await self._ask(lambda timeout: self._snmp.get(agent, oids, timeout=timeout), optical, retries)

    async def rows_after(
        self, oids: Sequence[Oid], repetitions: int, *, optical: bool = False, retries: int | None = None
    ) -> Answer:
        """Return up to `repetitions` successors of each OID, or the agent's error."""
        agent, snmp = self._olt.agent, self._snmp
        # Asked for 0 repetitions some agents hang.
        wanted = max(1, repetitions)
        if not self.has_bulk:
            return await self._ask(lambda timeout: snmp.get_next(agent, oids, timeout=timeout), optical, retries)
        return await self._ask(
            lambda timeout: snmp.get_bulk(agent, oids, max_repetitions=wanted, timeout=timeout), optical, retries
        )

    def traffic(self) -> Traffic:
        """Return what the run has cost so far."""
        trips = sorted(self._round_trips)
        return Traffic(
            pdus=self._pdus,
            retransmissions=self._retransmissions,
            varbinds=self._varbinds,
            bytes_sent=self._bytes_sent,
            bytes_received=self._bytes_received,
            rtt_p50=percentile(trips, 0.50),
            rtt_p95=percentile(trips, 0.95),
        )

    async def _ask(self, send: Send, optical: bool, retries: int | None) -> Answer:
        timeout = self._manners.optical_timeout if optical else self._manners.timeout
        attempts = range((self._manners.retries if retries is None else retries) + 1)
        if not self.answers:
            # Nobody has answered in this run yet: a dead OLT is told by asking for little, not for much again.
            try:
                return await self._try(send, timeout, attempts[:1])
            except BadAnswer as error:
                failure: SnmpError = error
            except NoAnswer as error:
                failure = error
                await self._check_alive()
            attempts = attempts[1:]
            if not attempts:
                raise failure
        return await self._repeat(send, timeout, attempts)

    async def _repeat(self, send: Send, timeout: float, attempts: range) -> Answer:
        answers_before = self.answers
        try:
            return await self._try(send, timeout, attempts)
        except (NoAnswer, BadAnswer):
            if self.answers == answers_before:
                await self._check_alive()
            raise

    async def _check_alive(self) -> None:
        try:
            await self._try(self._ask_uptime, self._manners.timeout, range(ALIVE_RETRIES + 1))
        except NoAnswer:
            raise RunOver("the OLT stopped answering") from None
        except BadAnswer:
            # Something that cannot be read is a sign of life too.
            return

    async def _ask_uptime(self, timeout: float) -> Answer:
        return await self._snmp.get(self._olt.agent, [SYS_UP_TIME], timeout=timeout)

    async def _try(self, send: Send, timeout: float, attempts: range) -> Answer:
        failure: NoAnswer | BadAnswer = NoAnswer("no answer")
        for attempt in attempts:
            try:
                answer = await self._send(send, timeout, attempt)
            except (NoAnswer, BadAnswer) as error:
                failure = error
                continue
            # An answer without variables says nothing: neither a value nor the end of a table.
            if answer.oids or answer.error_status:
                return answer
            failure = BadAnswer("an answer without variables")
        raise failure

    async def _send(self, send: Send, timeout: float, attempt: int) -> Answer:
        async with self._window:
            await self._wait_for_turn()
            allowed = min(timeout, self._time_left())
            self._pdus += 1
            self._retransmissions += attempt > 0
            sent = self._clock.monotonic()
            answer = await send(allowed)
            self._count(answer, self._clock.monotonic() - sent, attempt)
        return answer

    async def _wait_for_turn(self) -> None:
        if self._pdus >= MAX_PDUS:
            raise RunOver(f"the limit of {MAX_PDUS:,} requests was reached")
        if not self._spacing:
            return
        now = self._clock.monotonic()
        turn = max(now, self._next_send)
        if turn - now >= self._time_left():
            raise RunOver("the deadline passed")
        self._next_send = turn + self._spacing
        if turn > now:
            await self._clock.sleep(turn - now)

    def _time_left(self) -> float:
        left = self._ends - self._clock.monotonic()
        if left <= 0:
            raise RunOver("the deadline passed")
        return left

    def _count(self, answer: Answer, round_trip: float, attempt: int) -> None:
        self._round_trips.append(round_trip)
        self._varbinds += len(answer)
        # What was lost before had the same size; only an answer tells it.
        self._bytes_sent += answer.bytes_sent * (attempt + 1)
        self._bytes_received += answer.bytes_received


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest of these that is not below the given share of them."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
