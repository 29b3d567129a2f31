"""Requests of one run to one OLT: retries, limits, deadline and counters."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from facho.engine.brand import Manners
from facho.engine.collect.flow import Pace, Timer
from facho.engine.collect.learned import Learned
from facho.engine.errors import BadAnswer, LeaseLost, NoAnswer
from facho.engine.model import Olt, Traffic
from facho.engine.oid import Oid, parse
from facho.engine.ports import Clock, Snmp
from facho.engine.snmp import Answer, Asked, Cancellable, ErrorStatus, Operation, Version

# Uptime. Every agent answers this, even with a restrictive view: a value, or "no such object".
SYS_UP_TIME = parse("1.3.6.1.2.1.1.3.0")

# More than any run needs. Stops an agent that invents rows forever.
MAX_PDUS = 250_000

# Retries of the check whether the agent is alive.
ALIVE_RETRIES = 1


# Sends one request once; its only argument is `timeout`.
Send = Callable[..., Awaitable[Answer]]
# Reads an answer and returns the number of its variables; `BadAnswer` if it is unusable.
Read = Callable[[Answer], int]


@dataclass(slots=True, eq=False)
class Repeatable:
    """A request of an earlier run."""

    operation: Operation
    asked: Asked
    repetitions: int
    optical: bool


RequestT = TypeVar("RequestT", bound=Repeatable)


class Exchange(NamedTuple):
    """A request of a run, and its answer."""

    operation: Operation
    oids: Sequence[Oid]
    repetitions: int
    optical: bool
    answer: Answer


def request_key(operation: Operation, oids: Sequence[Oid], repetitions: int) -> tuple[str, int, bytes]:
    """Return a key that is equal only for equal requests; ValueError for OIDs of absurd length."""
    return operation, repetitions, oids.variables if isinstance(oids, Asked) else Asked(oids).variables


class RunOver(Exception):
    """Ends a run at any point; values read so far are kept. `str()` is the reason, as half a sentence."""


class Lane:
    """One kind of request: cheap, or read live from the ONUs. Each has its own timer and window."""

    def __init__(self, timer: Timer, pace: Pace) -> None:
        self.timer = timer
        self.pace = pace

    @property
    def window(self) -> int:
        """How many requests may be in flight. The first goes alone: only its answer tells how long to wait."""
        return self.pace.window if self.timer.mean is not None else 1


class Requester:
    """The only sender of a run, shared by all its tasks.

    A request without a usable answer is repeated unchanged. If that fails, the uptime is requested. If the agent
    answers, the request was the problem: `NoAnswer` or `BadAnswer`. If not, the run is over, because smaller requests
    to a dead agent only take longer. Before the first answer of a run all of this happens within one time-out, so an
    unreachable agent blocks a poller no longer.

    Cheap and optical requests share the OLT: all in flight never exceed the window of the kind that is sent.
    """

    def __init__(
        self, snmp: Snmp, olt: Olt, manners: Manners, *, learned: Learned, clock: Clock, deadline: datetime
    ) -> None:
        self._snmp = snmp
        self._olt = olt
        self.manners = manners
        self.learned = learned
        self._clock = clock
        # Monotonic: a step of the wall clock must neither cut nor extend a run.
        self._started = clock.monotonic()
        self._ends = self._started + (deadline - clock.now()).total_seconds()
        # An admin's number is a hard limit; the default is the brand's.
        limit = olt.max_in_flight or manners.max_in_flight
        self._lanes = {
            False: Lane(Timer(manners.min_timeout, manners.timeout), learned.pace("cheap", limit)),
            True: Lane(Timer(manners.min_timeout, manners.optical_timeout), learned.pace("optical", limit)),
        }
        self._lane = self._lanes[False]
        # Answers received in advance, by the key of their request. Each is returned once.
        self.early: dict[tuple[str, int, bytes], Answer] = {}
        # Requests and answers so far, in order; None: not recorded. Errors are left out: they affect request sizes, not
        # the content.
        self.trace: list[Exchange] | None = None
        # An error had a meaning: SNMPv1 ends a table with noSuchName.
        self.has_telling_errors = False
        # Whether more requests are pending than the window holds; updated by `Parallel`.
        self.is_busy = False
        # Called when the window grew.
        self.on_wider: Callable[[], None] | None = None
        self.on_answer: Callable[[], None] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._under_way = 0
        self._spacing = 1 / olt.max_pdus_per_second if olt.max_pdus_per_second else 0.0
        # One interval after the start, because the previous run may have sent a request just now.
        self._next_send = self._started + self._spacing
        self._over = ""
        # The lease was lost.
        self.is_disowned = False
        # Number of answers when the last request was given up.
        self._answers_at_silence = -1
        # Whether a task requests the uptime while the first request waits.
        self._is_insisting = False
        # Whether the agent has answered a GETBULK; None before the first.
        self._knows_bulk: bool | None = None
        self._has_doubted_bulk = False
        # OIDs without a GETBULK answer. GETNEXT shows whether the row or GETBULK is the cause.
        self._doubted: list[Oid] = []
        self._round_trips: list[float] = []
        self.pdus = self._retransmissions = self._varbinds = self._peak = 0
        self._bytes_sent = self._bytes_received = 0

    @property
    def answers(self) -> int:
        return len(self._round_trips)

    @property
    def window(self) -> int:
        """Return the current maximum number of requests in flight."""
        return self._lane.window

    def pace(self, *, optical: bool) -> Pace:
        """Return the window control of one kind of request."""
        return self._lanes[optical].pace

    @property
    def seconds(self) -> float:
        """Return the duration of the run so far."""
        return self._clock.monotonic() - self._started

    @property
    def has_bulk(self) -> bool:
        """Return whether GETBULK works. SNMPv1 and some newer agents have only GETNEXT, one row per request."""
        return self._olt.agent.version is not Version.V1 and self._knows_bulk is not False

    def doubt_bulk(self, oids: Sequence[Oid]) -> bool:
        """Use GETNEXT next if no GETBULK was answered in this run; False if GETBULK is not the cause."""
        if not self.has_bulk or self._knows_bulk or self._has_doubted_bulk:
            return False
        self._has_doubted_bulk = True
        self._doubted = list(oids)
        return True

    def has_room(self) -> bool:
        """Return whether requests may become larger without coming near the maximum time-out."""
        return not self._round_trips or self._lane.timer.has_room(self._round_trips[-1])

    async def get(
        self, oids: Sequence[Oid], *, optical: bool = False, retries: int | None = None, checks: bool = True
    ) -> Answer:
        """Return the values of these OIDs, or the agent's error. Without `checks`, a time-out has no consequences."""
        return await self._answer(Operation.GET, oids, 1, optical, retries, checks)

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
        if self.has_bulk and self._doubted != oids:
            # Some agents hang when asked for 0 repetitions.
            answer = await self._answer(Operation.BULK, oids, max(1, repetitions), optical, retries, checks)
            if not answer.error_status:
                self._knows_bulk = True
            return answer
        is_doubted, self._doubted = self._doubted == oids, []
        answer = await self._answer(Operation.NEXT, oids, 1, optical, retries, checks)
        if is_doubted and not answer.error_status:
            # Only now GETBULK is the cause, and not the row.
            self._knows_bulk = False
        return answer

    async def repeat(
        self, requests: deque[RequestT], *, optical: bool, read: Callable[[RequestT, Answer], int]
    ) -> None:
        """Send all requests of an earlier run. `read` is called with each answer."""
        self._lane = self._lanes[optical]
        if requests and self._lane.timer.mean is None:
            # The first one goes alone.
            await self._repeat(requests.popleft(), optical, read)
        await Repetition(self, requests, optical, read).run()

    async def _repeat(
        self, request: RequestT, optical: bool, read: Callable[[RequestT, Answer], int], *, is_lost: bool = False
    ) -> None:
        """Send one request of an earlier run, with retries; `is_lost`: it was sent once already."""
        send = partial(self._resend, request)
        await self._ask(send, optical, None, read=partial(read, request), first=1 if is_lost else 0)

    async def _resend(self, request: Repeatable, *, timeout: float) -> Answer:
        future: asyncio.Future[Answer | BaseException] = asyncio.get_running_loop().create_future()
        line = self._snmp.line(self._olt.agent)
        sent = line.send(request.operation, request.asked, request.repetitions, timeout, future.set_result)
        try:
            answer = await future
        finally:
            sent.cancel()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def _answer(
        self,
        operation: Operation,
        oids: Sequence[Oid],
        repetitions: int,
        optical: bool,
        retries: int | None,
        checks: bool,
    ) -> Answer:
        answer = self.early.pop(request_key(operation, oids, repetitions), None) if self.early else None
        if answer is None:
            agent, snmp = self._olt.agent, self._snmp
            if operation is Operation.BULK:
                send = partial(snmp.get_bulk, agent, oids, max_repetitions=repetitions)
            else:
                send = partial(snmp.get if operation is Operation.GET else snmp.get_next, agent, oids)
            answer = await self._ask(send, optical, retries, checks)
        if answer.error_status == ErrorStatus.NO_SUCH_NAME:
            self.has_telling_errors = True
        if self.trace is not None and not answer.error_status:
            self.trace.append(Exchange(operation, oids, repetitions, optical, answer))
        return answer

    def traffic(self) -> Traffic:
        """Return the traffic of the run so far."""
        trips = sorted(self._round_trips)
        return Traffic(
            pdus=self.pdus,
            retransmissions=self._retransmissions,
            varbinds=self._varbinds,
            bytes_sent=self._bytes_sent,
            bytes_received=self._bytes_received,
            rtt_p50=percentile(trips, 0.50),
            rtt_p95=percentile(trips, 0.95),
            rtt_p99=percentile(trips, 0.99),
            peak_in_flight=self._peak,
            answers_decoded=len(trips),
        )

    async def _ask(
        self, send: Send, optical: bool, retries: int | None, checks: bool = True, read: Read = len, first: int = 0
    ) -> Answer:
        """Send until an answer arrives. A time-out after all retries, or two in a row, triggers the alive check.

        `first` is the number of the first attempt.
        """
        self._lane = lane = self._lanes[optical]
        attempts = range((self.manners.retries if retries is None else retries) + 1)[first:]
        if not self._round_trips:
            try:
                return await self._first(send, lane, read)
            except (NoAnswer, BadAnswer):
                attempts = attempts[1:]
                if not attempts:
                    raise
        answers_before = self.answers
        try:
            return await self._try(send, lane, attempts, read)
        except (NoAnswer, BadAnswer):
            if self.answers == answers_before:
                was_silent, self._answers_at_silence = self._answers_at_silence == self.answers, self.answers
                if checks and (was_silent or first + len(attempts) > 2):
                    await self.check_alive()
            raise

    async def _first(self, send: Send, lane: Lane, read: Read = len) -> Answer:
        """Send the first request of a run; `RunOver` if its time-out passes without any answer.

        It keeps its whole time-out, because an agent may be slow. The uptime is requested in the meantime. That
        separates an unreachable agent from a lost request and from one that the agent cannot answer.
        """
        if self._is_insisting:
            # Another task of this run requests the uptime already.
            return await self._try(send, lane, range(1), read)
        self._is_insisting = True
        insisting = asyncio.ensure_future(self._insist(min(lane.timer.timeout, self._time_left())))
        try:
            return await self._try(send, lane, range(1), read)
        except NoAnswer:
            if not await insisting:
                raise self._end("the OLT stopped answering") from None
            raise
        finally:
            self._is_insisting = False
            insisting.cancel()
            await asyncio.gather(insisting, return_exceptions=True)

    async def _insist(self, patience: float) -> bool:
        """Request the uptime in the second half of a time-out, at most twice; return whether the agent is alive."""
        await self._clock.sleep(patience / 2)
        for attempt in range(2):
            if self.answers:
                break
            await self._wait_for_turn()
            try:
                # Outside the window: the request that it replaces is probably lost.
                await self._exchange(self._ask_uptime, self._lanes[False], patience / 4, attempt)
            except NoAnswer:
                continue
            except BadAnswer:
                # An unreadable answer also proves that the agent is alive.
                return True
        return bool(self.answers)

    async def check_alive(self) -> None:
        """Request the uptime; `RunOver` without an answer."""
        # An unreadable answer also proves that the agent is alive.
        with suppress(BadAnswer):
            if not self.answers:
                with suppress(NoAnswer):
                    await self._first(self._ask_uptime, self._lanes[False])
                return
            try:
                await self._try(self._ask_uptime, self._lanes[False], range(ALIVE_RETRIES + 1))
            except NoAnswer:
                raise self._end("the OLT stopped answering") from None

    async def _ask_uptime(self, *, timeout: float) -> Answer:
        return await self._snmp.get(self._olt.agent, [SYS_UP_TIME], timeout=timeout)

    async def _try(self, send: Send, lane: Lane, attempts: range, read: Read = len) -> Answer:
        failure: NoAnswer | BadAnswer = NoAnswer("no answer")
        for attempt in attempts:
            while self._under_way >= lane.window:
                turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
                await turn
            self._enter()
            try:
                await self._wait_for_turn()
                return await self._exchange(send, lane, lane.timer.timeout, attempt, read)
            except NoAnswer as error:
                self._note_loss(lane)
                failure = error
            except BadAnswer as error:
                failure = error
            finally:
                self._leave(lane)
        raise failure

    async def _exchange(self, send: Send, lane: Lane, timeout: float, attempt: int, read: Read = len) -> Answer:
        """Send a request now and return its answer; `BadAnswer` for one without variables and without an error."""
        sent = self._clock.monotonic()
        allowed = min(timeout, self._time_left(sent))
        self.pdus += 1
        self._retransmissions += attempt > 0
        try:
            answer = await send(timeout=allowed)
        except LeaseLost:
            # Nothing was sent.
            self.pdus -= 1
            raise self._disowned() from None
        self._take(answer, read(answer), lane, sent, attempt)
        return answer

    def _disowned(self) -> RunOver:
        # What has been read is still worth keeping, if nobody else was there meanwhile.
        self.is_disowned = True
        return self._end("the lease of the OLT expired")

    def _note_loss(self, lane: Lane) -> None:
        lane.timer.expired()
        lane.pace.lost(self._clock.monotonic(), self._under_way - 1)

    def _enter(self) -> None:
        self._under_way += 1
        if self._under_way > self._peak:
            self._peak = self._under_way

    def _leave(self, lane: Lane) -> None:
        self._under_way -= 1
        free = lane.window - self._under_way
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
        if free > 0 and self.on_wider is not None:
            self.on_wider()

    async def _wait_for_turn(self) -> None:
        wait = self._turn()
        if wait:
            await self._clock.sleep(wait)

    def _turn(self) -> float:
        """Return the seconds until the next request may be sent; `RunOver` if it may not."""
        if self._over:
            raise RunOver(self._over)
        if self.pdus >= MAX_PDUS:
            raise self._end(f"the limit of {MAX_PDUS:,} requests was reached")
        if not self._spacing:
            return 0.0
        now = self._clock.monotonic()
        turn = max(now, self._next_send)
        if turn - now >= self._time_left():
            raise self._end("the time limit was reached")
        self._next_send = turn + self._spacing
        return turn - now

    def _time_left(self, now: float | None = None) -> float:
        left = self._ends - (self._clock.monotonic() if now is None else now)
        if left <= 0:
            raise self._end("the time limit was reached")
        return left

    def _end(self, reason: str) -> RunOver:
        """Stop all other tasks of the run."""
        self._over = self._over or reason
        return RunOver(reason)

    def _take(self, answer: Answer, variables: int, lane: Lane, sent: float, attempt: int) -> None:
        """Count an answer; `BadAnswer` for one without variables and without an error."""
        now = self._clock.monotonic()
        self._round_trips.append(now - sent)
        lane.timer.measured(now - sent)
        lane.pace.answered(now, now - sent, variables, self._under_way - 1, is_full=self.is_busy)
        self._varbinds += variables
        # Lost requests had the same size; only an answer tells it.
        self._bytes_sent += answer.bytes_sent * (attempt + 1)
        self._bytes_received += answer.bytes_received
        if self.on_answer is not None:
            self.on_answer()
        if not variables and not answer.error_status:
            # Neither a value nor the end of a table.
            raise BadAnswer("an answer without variables")


class Repetition(Generic[RequestT]):
    """Requests of an earlier run in flight, as many as the window allows.

    They are sent and read in callbacks, because a task per request would cost more than the request. A request
    without a usable answer is repeated by a task, as in `Requester`. No new request is sent until another answer
    arrives, because the agent may be unreachable.
    """

    def __init__(
        self,
        requester: Requester,
        requests: deque[RequestT],
        optical: bool,
        read: Callable[[RequestT, Answer], int],
    ) -> None:
        self._requester = requester
        self._requests = requests
        self._optical = optical
        self._lane = requester._lanes[optical]
        try:
            self._line = requester._snmp.line(requester._olt.agent)
        except LeaseLost:
            raise requester._disowned() from None
        self._read = read
        self._sent: dict[RequestT, Cancellable] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Number of answers when a request was lost.
        self._answers_at_loss = -1
        self._failure: BaseException | None = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Send all requests. After the first failure no more are sent, and those in flight finish."""
        requester = self._requester
        requester.on_wider = self._fill
        try:
            self._fill()
            await self._done
        finally:
            requester.on_wider = None
            requester.is_busy = False
            requester._under_way -= len(self._sent)
            for under_way in (*self._sent.values(), *self._tasks):
                under_way.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    def _fill(self) -> None:
        """Send as many as the window allows."""
        if self._done.done():
            return
        requester, lane = self._requester, self._lane
        while (
            self._requests
            and self._failure is None
            and requester._under_way < lane.window
            and requester.answers != self._answers_at_loss
        ):
            try:
                wait = requester._turn()
            except RunOver as over:
                self._failure = over
                break
            requester._enter()
            if wait:
                self._begin(self._send_later(self._requests.popleft(), wait))
            else:
                self._send(self._requests.popleft())
        requester.is_busy = bool(self._requests)
        if not self._sent and not self._tasks and (self._failure is not None or not self._requests):
            self._done.set_result(None)

    def _send(self, request: RequestT) -> None:
        requester, now = self._requester, self._requester._clock.monotonic()
        try:
            timeout = min(self._lane.timer.timeout, requester._time_left(now))
            self._sent[request] = self._line.send(
                request.operation, request.asked, request.repetitions, timeout, partial(self._ended, request, now)
            )
        except LeaseLost:
            self._fail(requester._disowned())
        except Exception as error:
            self._fail(error)
        else:
            requester.pdus += 1

    async def _send_later(self, request: RequestT, wait: float) -> None:
        try:
            await self._requester._clock.sleep(wait)
        except asyncio.CancelledError:
            self._requester._under_way -= 1
            raise
        self._send(request)

    def _ended(self, request: RequestT, sent: float, answer: Answer | BaseException) -> None:
        del self._sent[request]
        requester, lane = self._requester, self._lane
        try:
            if isinstance(answer, BaseException):
                raise answer
            requester._take(answer, self._read(request, answer), lane, sent, 0)
        except NoAnswer:
            requester._note_loss(lane)
            self._ask_again(request)
        except BadAnswer:
            self._ask_again(request)
        except Exception as error:
            self._fail(error)
        else:
            # This calls `_fill`.
            requester._leave(lane)
            return
        self._fill()

    def _ask_again(self, request: RequestT) -> None:
        """Start a task that repeats a lost request."""
        requester = self._requester
        self._answers_at_loss = requester.answers
        requester._under_way -= 1
        self._begin(requester._repeat(request, self._optical, self._read, is_lost=True))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._fill()

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._requester._under_way -= 1


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest value that is not below the given share of the values."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
