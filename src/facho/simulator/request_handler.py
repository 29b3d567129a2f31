"""Times of answers: the queue of a serial agent, and the network delay."""

from collections import deque
from dataclasses import dataclass
from random import Random

from facho.simulator.agent import SimulatedAgent
from facho.simulator.pdulog import Pdu, PduLog


@dataclass(frozen=True, slots=True)
class Departure:
    """An answer and its departure time."""

    at: float
    payload: bytes


class Queue:
    """Requests that wait or are served, one after the other."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque()

    def waiting(self, now: float) -> int:
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        return len(self._ends)

    def serve(self, now: float, work: float) -> float:
        """Append a request, and return its completion time."""
        end = max(now, self._ends[-1] if self._ends else now) + work
        if end > now:
            self._ends.append(end)
        return end


class RequestHandler:
    """Handles requests to an agent, applies faults and logs them. The socket only sends."""

    def __init__(self, agent: SimulatedAgent, log: PduLog, seed: int = 0) -> None:
        self.agent = agent
        self._log = log
        self._queue = Queue()
        self._random = Random(f"desk {seed}")

    def take(self, datagram: bytes, source: int, now: float) -> Departure | None:
        """Return the datagram and its time, or None. `source` is the port of the sender."""
        limit = self.agent.faults.queue_limit
        is_full = limit is not None and self._queue.waiting(now) >= limit
        reply = self.agent.serve(datagram, now)
        departure = None
        if not is_full:
            faults = self.agent.faults
            work = reply.work * (1 + faults.crowding * self._queue.waiting(now)) if faults.crowding else reply.work
            done = self._queue.serve(now, work)
            if reply.payload is not None and self._random.random() >= faults.loss:
                leaves = done + faults.latency + self._random.uniform(0, faults.jitter)
                departure = Departure(leaves, reply.payload)
        self._log.add(
            Pdu(
                arrived=now,
                answered=departure.at if departure else None,
                agent=self.agent.device.name,
                source=source,
                kind=reply.kind,
                asked=reply.asked,
                answered_variables=reply.answered if departure else 0,
            )
        )
        return departure
