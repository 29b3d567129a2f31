"""Asks one OLT in one run: repeats what got lost, keeps to the OLT's limits and the deadline, and counts."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from facho.engine.brand import Manners
from facho.engine.collect.pace import Pace
from facho.engine.collect.timer import Timer
from facho.engine.errors import BadAnswer, LeaseLost, NoAnswer, SnmpError
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


class Lane:
    """One kind of request: cheap, or read by the OLT from its ONUs. Each has its own times and its own pace."""

    def __init__(self, manners: Manners, longest: float, limit: int) -> None:
        self.timer = Timer(manners.min_timeout, longest)
        self.pace = Pace(limit)


class Requester:
    """The only way of a run to its OLT, for everybody who works on it at once.

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
        self.limit = max(1, olt.max_in_flight)
        cheap = Lane(manners, manners.timeout, self.limit)
        self._lanes = {False: cheap, True: Lane(manners, manners.optical_timeout, self.limit)}
        self._lane = cheap
        # Called when more may be under way than before.
        self.on_wider: Callable[[], None] | None = None
        self.on_answer: Callable[[], None] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._under_way = 0
        self._spacing = 1 / olt.max_pdus_per_second if olt.max_pdus_per_second else 0.0
        # One step after the start: the run before this one may have asked just now.
        self._next_send = self._started + self._spacing
        self._over = ""
        # The OLT is no longer ours to ask.
        self.is_disowned = False
        # How many answers there were when the last request was given up.
        self._answers_at_silence = -1
        # Whether an agent that should know GETBULK has answered one; None before the first.
        self._knows_bulk: bool | None = None
        self._has_doubted_bulk = False
        # What GETBULK brought nothing for: asked by GETNEXT, it tells which of the two is to blame.
        self._doubted: list[Oid] = []
        self._round_trips: list[float] = []
        self._pdus = self._retransmissions = self._varbinds = self._peak = 0
        self._bytes_sent = self._bytes_received = 0

    @property
    def pdus(self) -> int:
        return self._pdus

    @property
    def answers(self) -> int:
        return len(self._round_trips)

    @property
    def window(self) -> int:
        """How many requests may be under way now."""
        return self._lane.pace.window

    @property
    def seconds(self) -> float:
        """Return how long the run has taken so far."""
        return self._clock.monotonic() - self._started

    @property
    def has_bulk(self) -> bool:
        """SNMPv1 knows no GETBULK: there a walk is GETNEXT, one row a request. Some newer agents do not either."""
        return self._olt.agent.version is not Version.V1 and self._knows_bulk is not False

    def doubt_bulk(self, oids: Sequence[Oid]) -> bool:
        """Ask for these by GETNEXT next if no GETBULK was answered in this run; False if that is not the trouble."""
        if not self.has_bulk or self._knows_bulk or self._has_doubted_bulk:
            return False
        self._has_doubted_bulk = True
        self._doubted = list(oids)
        return True

    def has_room(self) -> bool:
        """Say whether requests may become larger without coming near to what the OLT may take for an answer."""
        return not self._round_trips or self._lane.timer.has_room(self._round_trips[-1])

    async def get(
        self, oids: Sequence[Oid], *, optical: bool = False, retries: int | None = None, checks: bool = True
    ) -> Answer:
        """Return the values of these OIDs, or the agent's error. `checks` off: silence means nothing more."""
        agent = self._olt.agent
        return await self._ask(lambda timeout: self._snmp.get(agent, oids, timeout=timeout), optical, retries, checks)

    async def rows_after(
        self,
        oids: Sequence[Oid],
        repetitions: int,
        *,
        optical: bool = False,
        retries: int | None = None,
        checks: bool = True,
    ) -> Answer:
        """Return up to `repetitions` successors of each OID, or the agent's error."""
        agent, snmp = self._olt.agent, self._snmp
        # Asked for 0 repetitions some agents hang.
        wanted = max(1, repetitions)
        if not self.has_bulk or self._doubted == oids:
            return await self._next(oids, optical, retries, checks)
        answer = await self._ask(
            lambda timeout: snmp.get_bulk(agent, oids, max_repetitions=wanted, timeout=timeout),
            optical,
            retries,
            checks,
        )
        if not answer.error_status:
            self._knows_bulk = True
        return answer

    async def _next(self, oids: Sequence[Oid], optical: bool, retries: int | None, checks: bool) -> Answer:
        agent, snmp = self._olt.agent, self._snmp
        is_doubted, self._doubted = self._doubted == oids, []
        answer = await self._ask(lambda timeout: snmp.get_next(agent, oids, timeout=timeout), optical, retries, checks)
        if is_doubted and not answer.error_status:
            # Only now GETBULK is to blame, and not the row.
            self._knows_bulk = False
        return answer

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
            rtt_p99=percentile(trips, 0.99),
            peak_in_flight=self._peak,
        )

    async def _ask(self, send: Send, optical: bool, retries: int | None, checks: bool = True) -> Answer:
        self._lane = lane = self._lanes[optical]
        attempts = range((self._manners.retries if retries is None else retries) + 1)
        if not self.answers:
            # Nobody has answered in this run yet: a dead OLT is told by asking for little, not for much again.
            try:
                return await self._try(send, lane, attempts[:1])
            except BadAnswer as error:
                failure: SnmpError = error
            except NoAnswer as error:
                failure = error
                await self.check_alive()
            attempts = attempts[1:]
            if not attempts:
                raise failure
        return await self._repeat(send, lane, attempts, checks)

    async def _repeat(self, send: Send, lane: Lane, attempts: range, checks: bool) -> Answer:
        """Send until an answer comes. Silence after insisting, or twice in a row, asks whether anybody is there."""
        answers_before = self.answers
        try:
            return await self._try(send, lane, attempts)
        except (NoAnswer, BadAnswer):
            if self.answers == answers_before:
                was_silent, self._answers_at_silence = self._answers_at_silence == self.answers, self.answers
                if checks and (was_silent or len(attempts) > 2):
                    await self.check_alive()
            raise

    async def check_alive(self) -> None:
        """Ask for the least there is; `RunOver` if nobody answers that either."""
        try:
            await self._try(self._ask_uptime, self._lanes[False], range(ALIVE_RETRIES + 1))
        except NoAnswer:
            raise self._end("the OLT stopped answering") from None
        except BadAnswer:
            # Something that cannot be read is a sign of life too.
            return

    async def _ask_uptime(self, timeout: float) -> Answer:
        return await self._snmp.get(self._olt.agent, [SYS_UP_TIME], timeout=timeout)

    async def _try(self, send: Send, lane: Lane, attempts: range) -> Answer:
        failure: NoAnswer | BadAnswer = NoAnswer("no answer")
        for attempt in attempts:
            try:
                answer = await self._send(send, lane, attempt)
            except (NoAnswer, BadAnswer) as error:
                failure = error
                continue
            # An answer without variables says nothing: neither a value nor the end of a table.
            if answer.oids or answer.error_status:
                return answer
            failure = BadAnswer("an answer without variables")
        raise failure

    async def _send(self, send: Send, lane: Lane, attempt: int) -> Answer:
        await self._enter(lane)
        try:
            await self._wait_for_turn()
            allowed = min(lane.timer.timeout, self._time_left())
            self._pdus += 1
            self._retransmissions += attempt > 0
            sent = self._clock.monotonic()
            try:
                answer = await send(allowed)
            except NoAnswer:
                lane.timer.expired()
                lane.pace.lost(self._clock.monotonic(), self._under_way - 1)
                raise
            except LeaseLost:
                # Nothing was sent. What has been read is still worth keeping, if nobody else was there meanwhile.
                self._pdus -= 1
                self.is_disowned = True
                raise self._end("the lease of the OLT was over") from None
            self._count(answer, lane, sent, attempt)
        finally:
            self._leave(lane)
        return answer

    async def _enter(self, lane: Lane) -> None:
        """Wait until one more may be under way."""
        while self._under_way >= lane.pace.window:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._under_way += 1
        self._peak = max(self._peak, self._under_way)

    def _leave(self, lane: Lane) -> None:
        self._under_way -= 1
        free = lane.pace.window - self._under_way
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
        if free > 0 and self.on_wider is not None:
            self.on_wider()

    async def _wait_for_turn(self) -> None:
        if self._over:
            raise RunOver(self._over)
        if self._pdus >= MAX_PDUS:
            raise self._end(f"the limit of {MAX_PDUS:,} requests was reached")
        if not self._spacing:
            return
        now = self._clock.monotonic()
        turn = max(now, self._next_send)
        if turn - now >= self._time_left():
            raise self._end("the deadline passed")
        self._next_send = turn + self._spacing
        if turn > now:
            await self._clock.sleep(turn - now)

    def _time_left(self) -> float:
        left = self._ends - self._clock.monotonic()
        if left <= 0:
            raise self._end("the deadline passed")
        return left

    def _end(self, reason: str) -> RunOver:
        """Let everybody else who works on the run stop too."""
        self._over = self._over or reason
        return RunOver(reason)

    def _count(self, answer: Answer, lane: Lane, sent: float, attempt: int) -> None:
        now = self._clock.monotonic()
        self._round_trips.append(now - sent)
        lane.timer.measured(now - sent)
        lane.pace.answered(now, now - sent, len(answer), self._under_way - 1)
        self._varbinds += len(answer)
        # What was lost before had the same size; only an answer tells it.
        self._bytes_sent += answer.bytes_sent * (attempt + 1)
        self._bytes_received += answer.bytes_received
        if self.on_answer is not None:
            self.on_answer()


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest of these that is not below the given share of them."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
