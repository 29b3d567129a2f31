"""Log of requests as seen by the agents, to verify the claims of a collector."""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

# About two hours of a busy fleet; older ones are dropped but still counted.
KEPT_PDUS = 200_000


class Pdu(NamedTuple):
    """One request. Times are seconds since 1970; `answered` is None without an answer."""

    arrived: float
    answered: float | None
    agent: str
    source: int
    kind: str
    asked: int
    answered_variables: int

    @property
    def ended(self) -> float:
        """Return the end of the request's work. A request without an answer took no time."""
        return self.arrived if self.answered is None else self.answered


class PduLog:
    """Keeps the last PDUs of any number of agents, and optionally writes them to a file."""

    def __init__(self, path: Path | None = None, kept: int = KEPT_PDUS) -> None:
        self._pdus: deque[Pdu] = deque(maxlen=kept)
        self._counts: Counter[tuple[str, str]] = Counter()
        # Line-buffered, so that the file is complete even after a kill.
        self._file: IO[str] | None = path.open("a", buffering=1, encoding="utf-8") if path else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def add(self, pdu: Pdu) -> None:
        self._pdus.append(pdu)
        self._counts[pdu.agent, pdu.kind] += 1
        if self._file:
            self._file.write(json.dumps(pdu._asdict()) + "\n")

    def clear(self, agent: str | None = None) -> None:
        """Clear everything, or one agent, including the counters. The file is not changed."""
        kept = [] if agent is None else [pdu for pdu in self._pdus if pdu.agent != agent]
        self._pdus = deque(kept, maxlen=self._pdus.maxlen)
        for its_agent, its_kind in list(self._counts):
            if agent in (None, its_agent):
                del self._counts[its_agent, its_kind]

    def pdus(self, agent: str | None = None) -> list[Pdu]:
        """Return the stored PDUs in order of arrival."""
        return [pdu for pdu in self._pdus if agent in (None, pdu.agent)]

    def count(self, agent: str | None = None, kind: str | None = None) -> int:
        """Return the total number of PDUs."""
        return sum(
            number
            for (its_agent, its_kind), number in self._counts.items()
            if agent in (None, its_agent) and kind in (None, its_kind)
        )

    def kinds(self, agent: str | None = None) -> dict[str, int]:
        """Return the total number of PDUs per kind."""
        counts: Counter[str] = Counter()
        for (its_agent, its_kind), number in self._counts.items():
            if agent in (None, its_agent):
                counts[its_kind] += number
        return dict(counts)

    def sources(self, agent: str | None = None) -> set[int]:
        """Return the source ports: each client socket has its own."""
        return {pdu.source for pdu in self.pdus(agent)}

    def unanswered(self, agent: str | None = None) -> int:
        """Return the number of stored PDUs without an answer."""
        return sum(pdu.answered is None for pdu in self.pdus(agent))

    def rate(self, agent: str | None = None) -> float:
        """Return the PDUs per second from the first to the last stored one."""
        arrivals = [pdu.arrived for pdu in self.pdus(agent)]
        seconds = max(arrivals) - min(arrivals) if arrivals else 0.0
        return (len(arrivals) - 1) / seconds if seconds else 0.0

    def report(self, agent: str | None = None) -> dict[str, Any]:
        """Return all figures as plain values."""
        return {
            "pdus": self.count(agent),
            "kinds": self.kinds(agent),
            "unanswered": self.unanswered(agent),
            "variables": sum(pdu.answered_variables for pdu in self.pdus(agent)),
            "sources": len(self.sources(agent)),
            "overlaps": len(self.overlaps(agent)),
            "peak_in_flight": self.peak_in_flight(agent),
            "peak_rate": self.peak_rate(agent),
            "rate": round(self.rate(agent), 3),
        }

    def overlaps(
        self, agent: str | None = None, by: Callable[[Pdu], Any] = attrgetter("source")
    ) -> list[tuple[Pdu, Pdu]]:
        """Return the pairs that one agent served at once for different clients. `by` identifies a client."""
        return [
            (earlier, pdu) for pdu, others in self._in_flight(agent) for earlier in others if by(earlier) != by(pdu)
        ]

    def peak_in_flight(self, agent: str | None = None) -> int:
        """Return the maximum number of requests in flight of one agent."""
        return max((len(others) + 1 for _, others in self._in_flight(agent)), default=0)

    def peak_rate(self, agent: str | None = None, window: float = 1.0) -> float:
        """Return the maximum PDUs per second of one agent within any window of this many seconds."""
        peak = 0
        for pdus in self._by_agent(agent):
            recent: deque[float] = deque()
            for pdu in pdus:
                recent.append(pdu.arrived)
                while recent[0] <= pdu.arrived - window:
                    recent.popleft()
                peak = max(peak, len(recent))
        return peak / window

    def _in_flight(self, agent: str | None) -> Iterator[tuple[Pdu, list[Pdu]]]:
        """Yield each PDU with those still in progress at its agent."""
        for pdus in self._by_agent(agent):
            busy: list[Pdu] = []
            for pdu in pdus:
                busy = [other for other in busy if other.ended > pdu.arrived]
                yield pdu, busy
                busy.append(pdu)

    def _by_agent(self, agent: str | None) -> Iterable[list[Pdu]]:
        groups: dict[str, list[Pdu]] = defaultdict(list)
        for pdu in self.pdus(agent):
            groups[pdu.agent].append(pdu)
        return groups.values()


def read_log(path: Path) -> PduLog:
    """Return a log from a file."""
    log = PduLog()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            log.add(Pdu(**json.loads(line)))
    return log
