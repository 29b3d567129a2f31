"""The values that travel through Facho. Frozen: who wants another one makes another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from facho.engine.batch import Batch
from facho.engine.batch import Reading as Reading
from facho.engine.oid import Oid
from facho.engine.snmp import Agent


class Status(StrEnum):
    """How an execution stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    # Some rows were read, and kept.
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    # Stopped by us, or by a crash.
    INTERRUPTED = "INTERRUPTED"
    # A link of a chain, or a slot, that did not run.
    SKIPPED = "SKIPPED"


class Cause(StrEnum):
    """Why something did not run, was stopped, or had to wait."""

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


class Trigger(StrEnum):
    """Who wanted a run: its grid, or a person."""

    SCHEDULE = "schedule"
    MANUAL = "manual"


class JobKind(StrEnum):
    """How a job asks."""

    # Finds out which ONUs there are; the only one whose silence about an ONU means something.
    DISCOVERY = "discovery"
    # Columns of known ONUs, by GET.
    GET = "get"
    # Columns one after the other, by GETBULK.
    WALK = "walk"
    # Columns of one index side by side, by GETBULK.
    TABLE = "table"
    # Whose make an OLT is, where nobody has said so.
    IDENTIFY = "identify"


def default_priority(kind: JobKind) -> int:
    """Return the default priority of a job. Discoveries go first: other jobs need the ONUs that they find."""
    return 90 if kind is JobKind.DISCOVERY else 40


class Completeness(StrEnum):
    """What a reading covers. PARTIAL is not EMPTY, and EMPTY is not silence."""

    COMPLETE = "COMPLETE"
    PARTIAL = "PARTIAL"
    EMPTY = "EMPTY"


@dataclass(frozen=True, slots=True)
class RawOid:
    """An OID that an admin wrote into a job: `decode` names how to read its value."""

    name: str
    oid: Oid
    decode: str
    # A scalar belongs to the OLT; anything else is a column, indexed like the brand's ONUs.
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One job on one OLT: what to ask, and when. A chained node has a master and no schedule of its own."""

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
    # A run ends at this age with what it has.
    timeout: timedelta = timedelta(minutes=5)
    # Further attempts after one that failed, and the time between them. A retry never outlives its slot.
    retries: int = 2
    retry_delay: timedelta = timedelta(seconds=120)
    # How long a run is expected to take, in seconds, from those before it; None: nobody knows yet.
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Olt:
    """An OLT as a run needs it."""

    id: int
    name: str
    brand: str
    agent: Agent
    # Hard limits that an admin set. None: the engine decides.
    max_in_flight: int | None = None
    max_pdus_per_second: float | None = None
    # What earlier runs found out about its agent: plain JSON, that only `engine/collect` understands.
    learned: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """How an enabled OLT stands: a number that grows with every change of it, whether it answers, its device."""

    revision: int
    # Since when it is not asked because it never answers; None: the breaker is closed.
    breaker_since: datetime | None = None
    # OLTs with the same device are asked in turns. Empty: it has one of its own.
    device: str = ""
    # When it last answered. None: never, or its last attempt met silence.
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CompositeNode:
    """A master and its chain: one unit of work, in one poller, under one lease of the OLT.

    `slot` is the time it was due, or the time a person asked for it.
    """

    master: Node
    chain: tuple[Node, ...]
    slot: datetime
    trigger: Trigger = Trigger.SCHEDULE
    # Somebody is waiting for it.
    urgent: bool = False
    # Set where its executions are claimed already, and wait for a further attempt since this time.
    retry_at: datetime | None = None

    @property
    def id(self) -> int:
        return self.master.id

    @property
    def slot_end(self) -> datetime:
        """Return when the next slot comes, and with it the end of this one: what has not begun by then is lost."""
        return self.slot + self.master.interval

    @property
    def olt_id(self) -> int:
        return self.master.olt_id

    @property
    def links(self) -> tuple[Node, ...]:
        return (self.master, *self.chain)


@dataclass(frozen=True, slots=True)
class Claim:
    """A composite that is ours to run: one execution for each link, in order, and the slot that comes next."""

    composite: CompositeNode
    execution_ids: tuple[int, ...]
    # None: no poller, as for an attempt that ended with a check.
    poller_id: int | None
    # The next slot, and with it the end of this one. None for a run by hand, which is in no slot.
    next_check: datetime | None
    # The how-manieth try this is.
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Skipped:
    """Slots of a master, one behind the other, that will not run, and so neither will those of its chain."""

    node: Node
    slot: datetime
    slots: int
    cause: Cause
    chain: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to ask a device. The token grows with each holder, so an earlier holder is recognised.

    `olt_id` is the OLT for which the device is held. Another OLT may have the same device.
    """

    olt_id: int
    holder: str
    token: int
    # Empty only in results that an earlier version spooled.
    device: str = ""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A composite that an earlier engine claimed, and that is not over: as its rows tell it."""

    olt_id: int
    slot: datetime
    claimed_at: datetime
    # Its open executions in order, each with its node; None where that was deleted.
    links: tuple[tuple[int, int | None], ...]
    # How often it was tried, the try that goes on included.
    attempts: int = 0
    # Whether somebody else is at work on it. Otherwise it waits for a further attempt.
    is_running: bool = False

    @property
    def execution_ids(self) -> tuple[int, ...]:
        return tuple(execution_id for execution_id, _ in self.links)


@dataclass(frozen=True, slots=True)
class Recovery:
    """What an engine finds at its start: how many executions it had to end, and what is left of earlier ones."""

    interrupted: int = 0
    left: tuple[LeftOver, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownOnu:
    """An ONU of the inventory, as far as planning a run needs it."""

    index: str
    state: str
    slot: int | None = None
    port: int | None = None
    onu: int | None = None
    serial: str | None = None
    mac: str | None = None
    # Discoveries in a row that read its port to the end and did not find it.
    misses: int = 0
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of one column was read on one port; `slot` and `port` None: of the table as a whole."""

    field: str
    slot: int | None
    port: int | None
    completeness: Completeness
    rows: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a run cost its OLT."""

    pdus: int = 0
    retransmissions: int = 0
    varbinds: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    rtt_p50: float | None = None
    rtt_p95: float | None = None
    rtt_p99: float | None = None
    # The most requests that the OLT had to answer at once.
    peak_in_flight: int = 0
    # The sizes that requests ended up with, by table: repetitions of a walk, or rows of a GET.
    sizes: Mapping[str, int] = field(default_factory=dict)
    # Answers by how they were read: the same as in the last run, with the same names, or variable by variable.
    answers_unchanged: int = 0
    answers_parsed: int = 0
    answers_decoded: int = 0


@dataclass(frozen=True, slots=True)
class Collected:
    """The harvest of one link: rows by ONU, values of the OLT itself, how much of it there is, and at what cost."""

    completeness: Completeness
    # A `Batch` if it comes from `collect`.
    readings: Sequence[Reading] = ()
    scalars: Mapping[str, Any] = field(default_factory=dict)
    traffic: Traffic = field(default_factory=Traffic)
    # What went wrong, as sentences. Not empty whenever completeness is PARTIAL.
    errors: tuple[str, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    # Names of the ONUs of which something could not be read.
    failed_onus: tuple[str, ...] = ()
    # Indexes of known ONUs that a discovery would have seen if they were there, and did not.
    absent: tuple[str, ...] = ()
    # For the next run on this OLT, as `Olt.learned`.
    learned: Mapping[str, Any] = field(default_factory=dict)
    # Whether each column or OID of the job had a value for any ONU; None where the run cannot tell.
    had_values: Mapping[str, bool | None] = field(default_factory=dict)

    @property
    def batch(self) -> Batch:
        """Return the readings as columns."""
        return self.readings if isinstance(self.readings, Batch) else Batch.of(self.readings)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an execution ended; with `retry_at`, how an attempt ended that is not the last."""

    status: Status
    cause: Cause | None = None
    error: str = ""
    error_class: str = ""
    readings: int = 0
    completeness: Completeness | None = None
    traffic: Traffic = field(default_factory=Traffic)
    # Whether the same try may succeed later.
    is_temporary: bool = True
    retry_at: datetime | None = None
    # How long the attempt took by a monotonic clock, where the runner measured it.
    seconds: float | None = None
    # How far the wall clock was set during the attempt. The start was stored by the clock before that.
    clock_set: timedelta = timedelta(0)

    @property
    def is_over(self) -> bool:
        """Return whether nobody works on the execution now: it has ended, or waits for another attempt."""
        return self.status not in (Status.PENDING, Status.RUNNING) or self.retry_at is not None

    def as_last(self) -> "Outcome":
        """Return how an execution that waits for another attempt ends if there is none: as its last one did."""
        status = Status.FAILED if self.error_class else Status.SKIPPED
        return replace(self, status=status, retry_at=None)


@dataclass(frozen=True, slots=True)
class Identification:
    """What an OLT reported about itself. `brand` is empty where no known brand fits."""

    brand: str
    seen: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunResult:
    """How an attempt ended and what it read. It is stored in one transaction, or not at all.

    It may be delivered any number of times: what is stored already changes nothing.
    """

    execution_ids: tuple[int, ...]
    outcome: Outcome
    # None: the executions were never started.
    lease: Lease | None
    at: datetime
    # The node that was run, where there is something to store besides the outcome.
    node: Node | None = None
    collected: Collected | None = None
    identification: Identification | None = None

    @property
    def has_data(self) -> bool:
        return self.collected is not None or self.identification is not None

    def without_data(self, error: str, error_class: str) -> "RunResult":
        """Return the result of the same attempt if what it read cannot be stored: it failed."""
        outcome = replace(self.outcome, error=error, error_class=error_class, readings=0, completeness=None)
        if outcome.status in (Status.SUCCESS, Status.PARTIAL):
            outcome = replace(outcome, status=Status.FAILED)
        return replace(self, outcome=outcome, collected=None, identification=None)


class QuestionKind(StrEnum):
    """What a person can ask of an OLT on demand."""

    # What would this job read on this OLT?
    TRY_JOB = "try_job"


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a person to an OLT. `body` is plain JSON without secrets."""

    id: int
    olt_id: int
    kind: QuestionKind
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question as plain JSON; or the reason why there is none, as a sentence."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
