"""Sends runs from the outbox to a time series store, each until the store has surely kept it.

A store answers before it has written: VictoriaMetrics keeps what it accepted in memory for up to five seconds. So a run
stays in the outbox until a request that began ten seconds later succeeds on the same connection. If the connection
breaks in between, the store may have died, and everything unconfirmed is sent again: the same series, times and values,
which stores keep once.
"""

import logging
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from django.db import DatabaseError

from facho.engine.chunks import CorruptChunk, PackedColumn, RunColumns, kind_of
from facho.engine.errors import BatchRejected, StoreRefuses, StoreUnavailable
from facho.engine.events import Event, log_event
from facho.engine.observer import Observer
from facho.engine.ports import Clock
from facho.engine.remote_write import (
    ONU_METRICS,
    PORT_COUNTERS,
    PORT_ONUS,
    PORT_POWERS,
    PORT_STATES,
    SeriesLabels,
    doubles,
    encoded,
    request,
    samples,
)
from facho.store import outbox
from facho.store.database import DbThread
from facho.store.onu_labels import LabelLayout, OnuLabels, PortKey, port_key
from facho.store.outbox import Pending

logger = logging.getLogger(__name__)

# Runs per batch, and bytes of a request before a new one is begun.
MOST_RUNS = 64
LARGEST_REQUEST = 1_000_000
# Seconds between looks at an empty outbox. The first pause after a failure, and the longest one.
IDLE = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# Seconds after which the store has written what it accepted.
SETTLES_AFTER = 10.0
# Seconds between counts of the outbox, which also drop what is too old.
COUNT_EVERY = 15.0

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
# A request without samples: it only asks whether the store is there.
NOTHING = request([])


class Client(Protocol):
    """Connection to a time series store. `connection` is another number after each new connection."""

    connection: int

    async def send(self, body: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PushBatch:
    """Runs with their requests."""

    runs: Sequence[Pending] = ()
    bodies: Sequence[Sequence[bytes]] = ()
    values: int = 0


class Sent(NamedTuple):
    """When a run was sent, and over which connection."""

    at: float
    connection: int


class Encoder:
    """Turns runs into requests. Used in one database thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._labels = OnuLabels()

    def read(self, but: Collection[int]) -> PushBatch:
        """Return the next runs of the outbox."""
        return self.encode(outbox.pending(MOST_RUNS, but))

    def encode(self, runs: Sequence[Pending]) -> PushBatch:
        now = self._clock.now()
        self._labels.prepare([(run.olt_id, run.at) for run in runs], now)
        work = _Requests()
        for run in runs:
            # Empty: the OLT was deleted in the meantime.
            if olt := self._labels.olt(run.olt_id):
                self._add(work, run, olt, now)
        return PushBatch(runs, work.bodies(), work.values)

    def olt(self, olt_id: int) -> str:
        """Return the name of an OLT of the last batch."""
        return self._labels.olt(olt_id)

    def _add(self, work: "_Requests", run: Pending, olt: str, now: datetime) -> None:
        at = (run.at - EPOCH) // MILLISECOND
        ports = tuple(port_key(row[0], row[1]) for row in run.ports)
        for data in (run.data, run.more):
            if not data:
                continue
            try:
                columns = RunColumns(data)
            except CorruptChunk as error:
                logger.error("run %d of the outbox is damaged and is not sent: %s", run.id, error)
                continue
            layout = self._labels.layout(run.olt_id, run.at, columns, now)
            # Raw OIDs have no metric.
            for name in filter(ONU_METRICS.__contains__, columns.forms):
                column = columns.column(name)
                values, mask = doubles(kind_of(name), column), _mask(column, layout)
                work.add(samples(ONU_METRICS[name], layout.series, values, at, mask), _present(values, mask))
                if name in PORT_POWERS:
                    self._add_powers(work, olt, at, PORT_POWERS[name], layout, values, mask, ports)
        counted = [row for row in run.ports if len(row) > 2]
        if counted:
            for part, count in _counters(olt, run.counters, counted, at):
                work.add(part, count)

    def _add_powers(
        self,
        work: "_Requests",
        olt: str,
        at: int,
        metrics: tuple[str, str],
        layout: LabelLayout,
        values: "array[float]",
        mask: bytes,
        ports: Sequence[PortKey],
    ) -> None:
        """Add lowest and mean power of each port that the run read."""
        cells = values.tolist()
        found, lowest, means = [], array("d"), array("d")
        for port in ports:
            places = layout.places_of.get(port, ())
            powers = [cells[place] for place in places if not mask[place]] if mask else [cells[each] for each in places]
            if powers:
                found.append(port)
                lowest.append(min(powers))
                means.append(round(sum(powers) / len(powers), 3))
        labels = _labels_of_ports(olt, tuple(found))
        for metric, column in zip(metrics, (lowest, means), strict=True):
            work.add(samples(metric, labels, column, at), len(column))


@dataclass(slots=True)
class _Requests:
    """Samples, and how many they are."""

    parts: list[bytes] = field(default_factory=list)
    values: int = 0

    def add(self, part: bytes, values: int) -> None:
        self.parts.append(part)
        self.values += values

    def bodies(self) -> list[Sequence[bytes]]:
        return [request(parts) for parts in _groups(self.parts)]


def _groups(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield parts in groups of at most the size of a request. A larger part is a group of its own."""
    group: list[bytes] = []
    size = 0
    for part in filter(None, parts):
        if group and size + len(part) > LARGEST_REQUEST:
            yield group
            group, size = [], 0
        group.append(part)
        size += len(part)
    if group:
        yield group


def _mask(column: PackedColumn, layout: LabelLayout) -> bytes:
    """Return the mask of a column, with the ONUs that were deleted in the meantime."""
    if not layout.gone or not column.mask:
        return column.mask or layout.gone
    return bytes(map(max, column.mask, layout.gone))


def _present(values: "array[float]", mask: bytes) -> int:
    return mask.count(0) if mask else len(values)


def _counters(
    olt: str, names: Sequence[str], rows: Sequence[Sequence[int | None]], at: int
) -> Iterator[tuple[bytes, int]]:
    """Yield samples of counters of ports, given as slot, port and one number for each name; and how many they are."""
    ports = tuple(port_key(row[0], row[1]) for row in rows)
    states = tuple(name for name in names if name in PORT_STATES)
    for metric, chosen, labels in (
        (PORT_ONUS, states, _labels_of_states(olt, ports, states)),
        *((metric, (name,), _labels_of_ports(olt, ports)) for name, metric in PORT_COUNTERS.items() if name in names),
    ):
        places = [names.index(name) + 2 for name in chosen]
        values = array("d", [row[place] or 0 for row in rows for place in places])
        yield samples(metric, labels, values, at), len(values)


@lru_cache(maxsize=10_000)
def _labels_of_states(olt: str, ports: Sequence[PortKey], states: Sequence[str]) -> SeriesLabels:
    return SeriesLabels([_port_labels(olt, port, state) for port in ports for state in states])


@lru_cache(maxsize=10_000)
def _labels_of_ports(olt: str, ports: Sequence[PortKey]) -> SeriesLabels:
    return SeriesLabels([_port_labels(olt, port) for port in ports])


def _port_labels(olt: str, port: PortKey, state: str = "") -> bytes:
    return encoded({"olt": olt, "slot": port[0], "port": port[1], "state": state})


class Push:
    """Sends what is in the outbox, and waits while the store is unavailable.

    Only one process of an installation sends; if two do after a takeover, the store gets some samples twice.
    """

    def __init__(
        self, *, client: Client, thread: DbThread, clock: Clock, hours: int, observer: Observer | None = None
    ) -> None:
        self._client = client
        self._thread = thread
        self._clock = clock
        self._hours = hours
        self._observer = observer or Observer()
        self._encoder = Encoder(clock)
        # Runs that were sent and are still in the outbox.
        self._sent: dict[int, Sent] = {}
        self._failures = 0
        # What was reported last, until the store accepts something.
        self._trouble = ""
        # Rejected runs since the last report.
        self._rejected: list[tuple[Pending, str]] = []
        self._counted_at: float | None = None

    async def run(self) -> None:
        """Send forever."""
        while True:
            await self._clock.sleep(await self.step())

    async def step(self) -> float:
        """Send the next batch, and return the seconds until the next step."""
        try:
            await self._count()
            batch = await self._thread.run(partial(self._encoder.read, self._unconfirmed()))
            if batch.runs:
                await self._send(batch)
            elif self._settled_before(self._clock.monotonic() - SETTLES_AFTER):
                # Nothing else shows whether the store is still the same.
                await self._ask()
        except StoreUnavailable as error:
            return self._failed("unavailable", error)
        except StoreRefuses as error:
            return self._failed("refused", error)
        except DatabaseError as error:
            logger.warning("runs are not pushed while the database is unavailable: %s", error)
            return self._pause()
        except Exception:
            # The engine must not stop because of the store.
            logger.exception("runs could not be pushed")
            return self._pause()
        if batch.runs or self._sent:
            self._worked()
        return 0.0 if len(batch.runs) == MOST_RUNS else IDLE

    def close(self) -> None:
        self._client.close()

    def _unconfirmed(self) -> list[int]:
        """Return the runs that were sent over the current connection; the others are sent again."""
        current = self._client.connection
        self._sent = {id_: sent for id_, sent in self._sent.items() if sent.connection == current}
        return list(self._sent)

    def _settled_before(self, time: float) -> list[int]:
        current = self._client.connection
        return [id_ for id_, sent in self._sent.items() if sent.at <= time and sent.connection == current]

    async def _send(self, batch: PushBatch) -> None:
        """Send a batch. If the store rejects it, its halves are sent, down to the run that is the reason."""
        if not batch.bodies:
            # Without a value, or of a deleted OLT.
            await self._thread.run(partial(outbox.delete, [run.id for run in batch.runs]))
            return
        began = self._clock.monotonic()
        try:
            connections = [await self._post(body) for body in batch.bodies]
        except BatchRejected as error:
            self._observer.push_failed("rejected")
            await self._send_parts(batch, error)
            return
        self._observer.values_pushed(batch.values, self._clock.monotonic() - began)
        # What went over an earlier connection may be lost; the whole batch is sent again.
        sent = Sent(self._clock.monotonic(), min(connections))
        self._sent |= dict.fromkeys([run.id for run in batch.runs], sent)
        await self._settle(began)

    async def _post(self, body: Sequence[bytes]) -> int:
        await self._client.send(body)
        return self._client.connection

    async def _send_parts(self, batch: PushBatch, error: BatchRejected) -> None:
        runs = batch.runs
        if len(runs) > 1:
            for half in (runs[: len(runs) // 2], runs[len(runs) // 2 :]):
                await self._send(await self._thread.run(partial(self._encoder.encode, half)))
            return
        try:
            await self._client.send(NOTHING)
        except BatchRejected as refusal:
            # It would reject every run, so it is no such store.
            raise StoreRefuses(f"it accepts no remote write: {refusal}") from refusal
        for run in runs:
            await self._thread.run(partial(outbox.delete, [run.id]))
            self._observer.push_dropped("rejected", 1)
            self._rejected.append((run, str(error)))

    async def _ask(self) -> None:
        began = self._clock.monotonic()
        try:
            await self._client.send(NOTHING)
        except BatchRejected as error:
            raise StoreRefuses(f"it accepts no remote write: {error}") from error
        await self._settle(began)

    async def _settle(self, began: float) -> None:
        """Delete the runs that the store has kept, after a request that began at this time."""
        settled = self._settled_before(began - SETTLES_AFTER)
        if settled:
            await self._thread.run(partial(outbox.delete, settled))
            for id_ in settled:
                del self._sent[id_]

    async def _count(self) -> None:
        """Count the outbox once in a while, and drop what is too old."""
        now = self._clock.monotonic()
        if self._counted_at is not None and now - self._counted_at < COUNT_EVERY:
            return
        self._counted_at = now
        expired = await self._thread.run(
            partial(outbox.drop_before, self._clock.now() - timedelta(hours=self._hours), but=self._unconfirmed())
        )
        if expired:
            self._observer.push_dropped("expired", expired)
            log_event(logger, Event.PUSH_EXPIRED, runs=expired, hours=self._hours)
        if self._rejected:
            run, reason = self._rejected[-1]
            log_event(
                logger,
                Event.PUSH_REJECTED,
                runs=len(self._rejected),
                olt_id=run.olt_id,
                olt=self._encoder.olt(run.olt_id),
                at=run.at.isoformat(timespec="seconds"),
                error=reason,
            )
            self._rejected.clear()
        waiting = await self._thread.run(partial(outbox.backlog, self._unconfirmed()))
        lag = (self._clock.now() - waiting.oldest).total_seconds() if waiting.oldest else 0.0
        self._observer.push_waits(waiting.runs, max(lag, 0.0))

    def _failed(self, reason: str, error: Exception) -> float:
        """Report the first of several failures of a kind, and return the pause."""
        self._observer.push_failed(reason)
        if self._trouble != reason:
            self._trouble = reason
            event = Event.PUSH_REFUSED if reason == "refused" else Event.PUSH_INTERRUPTED
            log_event(logger, event, error=str(error))
        self._sent.clear()
        return self._pause()

    def _pause(self) -> float:
        self._failures += 1
        pause: float = min(FIRST_PAUSE * 2 ** min(self._failures - 1, 10), LONGEST_PAUSE)
        return pause

    def _worked(self) -> None:
        if self._trouble:
            self._trouble = ""
            log_event(logger, Event.PUSH_RESUMED)
        self._failures = 0
