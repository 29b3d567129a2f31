"""SNMP of all versions: each agent is queried by the adapter of its version."""

from collections.abc import Awaitable, Sequence
from functools import partial
from time import monotonic

from facho.adapters.snmp.community import CommunitySnmp
from facho.engine.errors import BadAnswer, NoAnswer, Refused, SnmpError
from facho.engine.observer import Observer
from facho.engine.oid import Oid
from facho.engine.ports import Snmp
from facho.engine.snmp import Agent, Answer, Asked, Cancellable, Done, Line, Operation, Version

# Result of a request without an answer, by error.
RESULTS: dict[type[BaseException], str] = {NoAnswer: "no_answer", BadAnswer: "bad_answer", Refused: "refused"}


class SnmpByVersion:
    """Queries v1 and v2c agents with a community, v3 agents as a user. Reports every request to the observer."""

    def __init__(
        self, community: Snmp | None = None, usm: Snmp | None = None, observer: Observer | None = None
    ) -> None:
        self._community = community or CommunitySnmp()
        self._usm = usm
        self._observer = observer or Observer()
        self._closed = False

    async def get(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._observed("get", self._for(agent).get(agent, oids, timeout=timeout))

    async def get_next(self, agent: Agent, oids: Sequence[Oid], *, timeout: float) -> Answer:
        return await self._observed("get_next", self._for(agent).get_next(agent, oids, timeout=timeout))

    async def get_bulk(
        self, agent: Agent, oids: Sequence[Oid], *, non_repeaters: int = 0, max_repetitions: int, timeout: float
    ) -> Answer:
        asked = self._for(agent).get_bulk(
            agent, oids, non_repeaters=non_repeaters, max_repetitions=max_repetitions, timeout=timeout
        )
        return await self._observed("get_bulk", asked)

    async def _observed(self, operation: str, asked: Awaitable[Answer]) -> Answer:
        began = monotonic()
        answer, result = None, "given_up"
        try:
            answer = await asked
            result = "agent_error" if answer.error_status else "answered"
        except SnmpError as error:
            result = RESULTS.get(type(error), result)
            raise
        finally:
            self._observer.request_ended(operation, result, monotonic() - began, answer)
        return answer

    def line(self, agent: Agent) -> Line:
        return ObservedLine(self._for(agent).line(agent), self._observer)

    async def close(self) -> None:
        self._closed = True
        await self._community.close()
        if self._usm is not None:
            await self._usm.close()

    def _for(self, agent: Agent) -> Snmp:
        if agent.version != Version.V3:
            return self._community
        if self._usm is None:
            if self._closed:
                raise NoAnswer(f"Facho stopped before it sent the request to {agent.host}")
            # The library is only loaded where an OLT speaks v3: most installations never need it.
            from facho.adapters.snmp.usm import UsmSnmp

            self._usm = UsmSnmp()
        return self._usm


class ObservedLine:
    """A line whose requests are reported to the observer."""

    def __init__(self, line: Line, observer: Observer) -> None:
        self._line = line
        self._observer = observer

    def send(self, operation: Operation, asked: Asked, repetitions: int, timeout: float, done: Done) -> Cancellable:
        ended = partial(self._ended, operation, monotonic(), done)
        return self._line.send(operation, asked, repetitions, timeout, ended)

    def _ended(self, operation: Operation, began: float, done: Done, answer: Answer | BaseException) -> None:
        seconds = monotonic() - began
        if isinstance(answer, Answer):
            result = "agent_error" if answer.error_status else "answered"
            self._observer.request_ended(operation, result, seconds, answer)
        else:
            self._observer.request_ended(operation, RESULTS.get(type(answer), "given_up"), seconds, None)
        done(answer)
