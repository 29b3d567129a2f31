"""Values of the engine. All are frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from facho.engine.batch import Batch
from facho.engine.batch import Reading as Reading
from facho.engine.maintenance import Window
from facho.engine.oid import Oid
from facho.engine.snmp import Agent


class Status(StrEnum):
    """Status of an execution."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    # Some rows were read and kept.
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    # Stopped by Facho, or by a crash.
    INTERRUPTED = "INTERRUPTED"
    # A slot or a link that did not run.
    SKIPPED = "SKIPPED"


class Cause(StrEnum):
    """Causes for which a run waited, was stopped or did not start."""

    OLT_BUSY = "olt_busy"
    NO_FREE_POLLER = "no_free_poller"
    BREAKER_OPEN = "breaker_open"
    SCHEDULER_LATE = "scheduler_late"
    ENGINE_DOWN = "engine_down"
    STOPPED = "stopped"
    DISABLED = "disabled"
    UNREACHABLE = "unreachable"
    LEASE_LOST = "lease_lost"
    DATABASE_UNAVAILABLE = "database_unavailable"
    BROKER_UNAVAILABLE = "broker_unavailable"
    CLOCK_SET = "clock_set"
    MAINTENANCE = "maintenance"


class Trigger(StrEnum):
    """Origin of a run: the grid or a user."""

    SCHEDULE = "schedule"
    MANUAL = "manual"


class JobKind(StrEnum):
    """Kinds of jobs."""

    # Finds the ONUs; the only kind in which absence counts.
    DISCOVERY = "discovery"
    # Columns of known ONUs, by GET.
    GET = "get"
    # Columns one after the other, by GETBULK.
    WALK = "walk"
    # Columns of one index side by side, by GETBULK.
    TABLE = "table"
    # Detects the brand of an OLT.
    IDENTIFY = "identify"


def default_priority(kind: JobKind) -> int:
    """Return the default priority of a job. Discoveries go first: other jobs need the ONUs that they find."""
    return 90 if kind is JobKind.DISCOVERY else 40


class Completeness(StrEnum):
    """Completeness of a reading. PARTIAL is not EMPTY, and EMPTY is not a time-out."""

    COMPLETE = "COMPLETE"
    PARTIAL = "PARTIAL"
    EMPTY = "EMPTY"


@dataclass(frozen=True, slots=True)
class RawOid:
    """An OID that an admin added to a job; `decode` names its decoding."""

    name: str
    oid: Oid
    decode: str
    # A scalar belongs to the OLT. Any other OID is a column, indexed like the brand's ONUs.
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One job on one OLT with its schedule. A chained node has a master and no schedule."""

    id: int
    olt_id: int
    name: str
    kind: JobKind
    interval: timedelta
    olt_name: str = ""
    priority: int = 40
    master_id: int | None = None
    next_check: datetime | None = None
    run_requested_at: datetime | None = None
    columns: tuple[str, ...] = ()
    oids: tuple[RawOid, ...] = ()
    # Time limit of a run; values read so far are kept.
    timeout: timedelta = timedelta(minutes=5)
    # Retries after a failure, and the delay between them. A retry never outlives its slot.
    retries: int = 2
    retry_delay: timedelta = timedelta(seconds=120)
    # Expected duration in seconds, from earlier runs; None: unknown.
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Olt:
    """Configuration of an OLT for a run."""

    id: int
    name: str
    brand: str
    agent: Agent
    # Hard limits set by an admin. None: automatic.
    max_in_flight: int | None = None
    max_pdus_per_second: float | None = None
    # Facts about the agent from earlier runs: plain JSON, used only by `engine/collect`.
    learned: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """State of an enabled OLT: revision, breaker, device."""

    revision: int
    # Time at which the breaker opened; None: closed.
    breaker_since: datetime | None = None
    # OLTs with the same device are polled in turns. Empty: it has its own.
    device: str = ""
    # Time of the last answer. None: never, or its last attempt got no answer.
    answered_at: datetime | None = None
    # Its maintenance, as far as it concerns slots that are not accounted for.
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class CompositeNode:
    """A master and its chain: one unit of work, in one poller, under one lease.

    `slot` is the due time, or the time of a manual request.
    """

    master: Node
    chain: tuple[Node, ...]
    slot: datetime
    trigger: Trigger = Trigger.SCHEDULE
    # Requested by a user.
    urgent: bool = False
    # Set if its executions are already claimed and wait for another attempt since this time.
    retry_at: datetime | None = None

    @property
    def id(self) -> int:
        return self.master.id

    @property
    def slot_end(self) -> datetime:
        """Return the start of the next slot. If the run has not started by then, this slot is lost."""
        return self.slot + self.master.interval

    @property
    def olt_id(self) -> int:
        return self.master.olt_id

    @property
    def links(self) -> tuple[Node, ...]:
        return (self.master, *self.chain)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed composite: one execution per link, in order, and the next slot."""

    composite: CompositeNode
    execution_ids: tuple[int, ...]
    # None: no poller, as for an attempt that was only a check.
    poller_id: int | None
    # Next slot, which ends this one. None for a manual run, which has no slot.
    next_check: datetime | None
    # Number of this attempt.
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Skipped:
    """Consecutive slots of a master, and of its chain, that will not run."""

    node: Node
    slot: datetime
    slots: int
    cause: Cause
    chain: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to poll a device. The token grows with each holder, so an earlier holder is recognised.

    `olt_id` is the OLT for which the device is held. Another OLT may have the same device.
    """

    olt_id: int
    holder: str
    token: int
    # Empty only in results spooled by an earlier version.
    device: str = ""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """An unfinished composite of an earlier engine, from its rows."""

    olt_id: int
    slot: datetime
    claimed_at: datetime
    # Open executions in order, each with its node; None if the node was deleted.
    links: tuple[tuple[int, int | None], ...]
    # Number of attempts, including the current one.
    attempts: int = 0
    # Whether another process runs it. Otherwise it waits for another attempt.
    is_running: bool = False

    @property
    def execution_ids(self) -> tuple[int, ...]:
        return tuple(execution_id for execution_id, _ in self.links)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Result of recovery: number of executions that were ended, and unfinished composites."""

    interrupted: int = 0
    left: tuple[LeftOver, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownOnu:
    """An ONU of the inventory, with the fields that planning needs."""

    index: str
    state: str
    slot: int | None = None
    port: int | None = None
    onu: int | None = None
    serial: str | None = None
    mac: str | None = None
    # Consecutive discoveries that read its port to the end and did not find it.
    misses: int = 0
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of one column on one port; `slot` and `port` None: of the whole table."""

    field: str
    slot: int | None
    port: int | None
    completeness: Completeness
    rows: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Cost of a run for its OLT."""

    pdus: int = 0
    retransmissions: int = 0
    varbinds: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    rtt_p50: float | None = None
    rtt_p95: float | None = None
    rtt_p99: float | None = None
    # Maximum number of requests in flight.
    peak_in_flight: int = 0
    # Final request sizes, by table: repetitions of a walk, or rows of a GET.
    sizes: Mapping[str, int] = field(default_factory=dict)
    # Answers by path: identical to the last run, with identical names, or fully decoded.
    answers_unchanged: int = 0
    answers_parsed: int = 0
    answers_decoded: int = 0


@dataclass(frozen=True, slots=True)
class Collected:
    """Result of one link: readings, values of the OLT itself, coverage and cost."""

    completeness: Completeness
    # A `Batch` if it comes from `collect`.
    readings: Batch | tuple[Reading, ...] = ()
    scalars: Mapping[str, Any] = field(default_factory=dict)
    traffic: Traffic = field(default_factory=Traffic)
    # Error messages. Not empty if completeness is PARTIAL.
    errors: tuple[str, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    # Names of ONUs with values that could not be read.
    failed_onus: tuple[str, ...] = ()
    # Indexes of known ONUs that a discovery should have found and did not.
    absent: tuple[str, ...] = ()
    # Whether a discovery read its list of ONUs to the end, and there was at least one.
    is_whole: bool = False
    # Number of new ONUs beyond the limit; they are not in the readings.
    excess: int = 0
    # For the next run on this OLT, as `Olt.learned`.
    learned: Mapping[str, Any] = field(default_factory=dict)
    # Whether each column or OID of the job had a value for any ONU; None if unknown.
    had_values: Mapping[str, bool | None] = field(default_factory=dict)

    @property
    def batch(self) -> Batch:
        """Return the readings as columns."""
        return self.readings if isinstance(self.readings, Batch) else Batch.of(self.readings)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an execution; with `retry_at`, result of an attempt that is not the last."""

    status: Status
    cause: Cause | None = None
    error: str = ""
    error_class: str = ""
    readings: int = 0
    completeness: Completeness | None = None
    traffic: Traffic = field(default_factory=Traffic)
    # Whether the same attempt may succeed later.
    is_temporary: bool = True
    retry_at: datetime | None = None
    # Duration of the attempt by the monotonic clock, if measured.
    seconds: float | None = None
    # Step of the wall clock during the attempt. The start was stored before the step.
    clock_set: timedelta = timedelta(0)

    @property
    def is_over(self) -> bool:
        """Return whether the execution is not running: it has ended or waits for another attempt."""
        return self.status not in (Status.PENDING, Status.RUNNING) or self.retry_at is not None

    def as_last(self) -> "Outcome":
        """Return the outcome of an execution without another attempt: that of its last one."""
        status = Status.FAILED if self.error_class else Status.SKIPPED
        return replace(self, status=status, retry_at=None)


@dataclass(frozen=True, slots=True)
class Identification:
    """Self-description of an OLT. `brand` is empty if no known brand matches."""

    brand: str
    seen: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of an attempt with its readings, stored in one transaction or not at all.

    It may be delivered any number of times; a stored result changes nothing.
    """

    execution_ids: tuple[int, ...]
    outcome: Outcome
    # None: the executions were never started.
    lease: Lease | None
    at: datetime
    # The node of the run, if there is data to store besides the outcome.
    node: Node | None = None
    collected: Collected | None = None
    identification: Identification | None = None

    @property
    def has_data(self) -> bool:
        return self.collected is not None or self.identification is not None

    def without_data(self, error: str, error_class: str) -> "RunResult":
        """Return the result of the same attempt as failed, if its data cannot be stored."""
        outcome = replace(self.outcome, error=error, error_class=error_class, readings=0, completeness=None)
        if outcome.status in (Status.SUCCESS, Status.PARTIAL):
            outcome = replace(outcome, status=Status.FAILED)
        return replace(self, outcome=outcome, collected=None, identification=None)


class QuestionKind(StrEnum):
    """Kinds of questions to an OLT."""

    # Which values does this job read on this OLT?
    TRY_JOB = "try_job"
    # Which values does this ONU have now? They are stored.
    READ_ONU = "read_onu"


@dataclass(frozen=True, slots=True)
class Question:
    """A user's question to an OLT. `body` is plain JSON without secrets."""

    id: int
    olt_id: int
    kind: QuestionKind
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer to a question as plain JSON, or the reason for no answer as a message."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    # Values to store with the answer.
    read: "OnuRead | None" = None


@dataclass(frozen=True, slots=True)
class OnuRead:
    """Values of one ONU, read for a user under this lease."""

    index: str
    node: Node
    collected: Collected
    lease: Lease
