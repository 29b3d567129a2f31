"""The values that travel through Facho. Frozen: who wants another one makes another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

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
    DATABASE_AWAY = "database_away"


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
    max_in_flight: int = 1
    max_pdus_per_second: float | None = None
    # What earlier runs found out about its agent: plain JSON, that only `engine/collect` understands.
    learned: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """How an enabled OLT stands: a number that grows with every change of what is polled, and its breaker."""

    revision: int
    # Since when it is not asked because it never answers; None: the breaker is closed.
    breaker_since: datetime | None = None


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
    poller_id: int
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
    """The right to ask an OLT. The token grows with each holder, so a late one can be told from the present one."""

    olt_id: int
    holder: str
    token: int


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
class Reading:
    """What was read of one ONU in one run. A value that the device does not have is None."""

    index: str
    slot: int | None
    port: int | None
    onu: int | None
    values: Mapping[str, Any]


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


@dataclass(frozen=True, slots=True)
class Collected:
    """The harvest of one link: rows by ONU, values of the OLT itself, how much of it there is, and at what cost."""

    completeness: Completeness
    readings: tuple[Reading, ...] = ()
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
    coverage: tuple[Coverage, ...] = ()
    failed_onus: tuple[str, ...] = ()
    # Whether the same try may succeed later.
    is_temporary: bool = True
    retry_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Return whether nobody works on the execution now: it has ended, or waits for another attempt."""
        return self.status not in (Status.PENDING, Status.RUNNING) or self.retry_at is not None

    def as_last(self) -> "Outcome":
        """Return how an execution that waits for another attempt ends if there is none: as its last one did."""
        status = Status.FAILED if self.error_class else Status.SKIPPED
        return replace(self, status=status, retry_at=None)
