"""Values of problems: input, output, and their words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

# A port whose state was not read for so long is unknown: longer than the usual intervals of state jobs, with retries.
STATE_LASTS = timedelta(hours=3)


class ProblemKind(StrEnum):
    """Kinds of problems."""

    OLT_DOWN = "olt_down"
    # The OLT answers, and its ONUs are down.
    ONUS_DOWN = "onus_down"
    CARD_DOWN = "card_down"
    PORT_DOWN = "port_down"
    PORT_DEGRADED = "port_degraded"
    POWER_CUT = "power_cut"
    LOW_POWER = "low_power"
    POWER_DROP = "power_drop"
    FLAPPING = "flapping"
    QUOTA_VIOLATED = "quota_violated"
    JOB_LATE = "job_late"
    OLT_SUSPECT = "olt_suspect"


# Kinds that follow from values of ONUs: while the OLT does not answer, they neither appear nor end.
OF_ONUS = frozenset(
    {
        ProblemKind.ONUS_DOWN,
        ProblemKind.CARD_DOWN,
        ProblemKind.PORT_DOWN,
        ProblemKind.PORT_DEGRADED,
        ProblemKind.POWER_CUT,
        ProblemKind.LOW_POWER,
        ProblemKind.POWER_DROP,
        ProblemKind.FLAPPING,
    }
)


class ProblemSeverity(StrEnum):
    """Severities of ITU-T X.733. Their alphabetical order is their order, so the database can sort by them."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class ProbableCause(StrEnum):
    """Probable causes."""

    OLT_OR_UPLINK = "olt_or_uplink"
    SITE = "site"
    OLT_RESTART = "olt_restart"
    CARD = "card"
    FIBRE_CUT = "fibre_cut"
    CABLE_CUT = "cable_cut"
    # Parts of several ports at the same time.
    AREA = "area"
    SPLITTER = "splitter"
    FEEDER = "feeder"
    POWER_CUT = "power_cut"
    ADMIN = "admin"
    DROP_CABLE = "drop_cable"
    # The ONUs went down together, and their OLT does not report why.
    NOT_REPORTED = "not_reported"
    # The OLT does not authorise them.
    NOT_AUTHORISED = "not_authorised"
    # The OLT does not list them any more: fibre, power, or removed from its configuration.
    DISAPPEARED = "disappeared"
    # Slowly, as when customers switch off.
    ONE_BY_ONE = "one_by_one"
    MASS_DISAPPEARANCE = "mass_disappearance"
    TOO_MANY_ONUS = "too_many_onus"
    POOL_BUSY = "pool_busy"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure a cause is."""

    PROBABLE = "probable"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FoundProblem:
    """One problem. `key` is the same as long as it lasts; `evidence` has plain values for JSON."""

    kind: ProblemKind
    key: str
    severity: ProblemSeverity
    since: datetime
    cause: ProbableCause
    confidence: Confidence
    # Number of customers.
    affected: int = 0
    evidence: Mapping[str, Any] = field(default_factory=dict)
    olt: int | None = None
    slot: int | None = None
    port: int | None = None
    # Id of the ONU, if the problem is of one.
    onu: int | None = None
    # Ids of the ONUs concerned.
    onus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenProblem:
    """An open problem: it needs less to last than it needed to begin."""

    key: str
    since: datetime
    # Largest number of customers so far.
    peak: int = 0
    kind: ProblemKind = ProblemKind.PORT_DOWN
    cause: ProbableCause = ProbableCause.UNKNOWN
    confidence: Confidence = Confidence.UNKNOWN


@dataclass(frozen=True, slots=True)
class DownOnu:
    """An ONU that was up, went down and still is, as a run of Facho saw."""

    id: int
    # los, dying_gasp, offline, auth_failed, or missing: up when it was last listed by the OLT.
    state: str
    since: datetime
    # Whether the OLT reports the time. Otherwise it is that of the reading that noticed it.
    is_exact: bool = True
    down_cause: str = ""


@dataclass(frozen=True, slots=True)
class PortState:
    """A PON port. The numbers are of its present ONUs that are not disabled."""

    slot: int
    port: int
    total: int
    # All that are down, also those that never were up.
    down: int = 0
    # With light, below the limit.
    weak: int = 0
    state_at: datetime | None = None
    down_onus: tuple[DownOnu, ...] = ()

    @property
    def up(self) -> int:
        return max(self.total - self.down, 0)

    @property
    def name(self) -> str:
        return f"{self.slot}/{self.port}"

    def is_current(self, now: datetime) -> bool:
        """Return whether its states were read recently."""
        return self.state_at is not None and now - self.state_at <= STATE_LASTS


@dataclass(frozen=True, slots=True)
class PowerDrop:
    """A fall of the received power of an ONU between two readings."""

    onu: int
    slot: int
    port: int
    at: datetime
    before: float
    after: float
    # At the last reading; None if the ONU is down.
    now: float | None

    @property
    def step(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class PortOnu:
    """An ONU of a port with a problem."""

    id: int
    # Along the fibre in metres; the last known one of an ONU that is down.
    distance: float | None = None
    # None without light.
    power: float | None = None


@dataclass(frozen=True, slots=True)
class Falls:
    """Times at which an ONU went down recently."""

    onu: int
    slot: int
    port: int
    times: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class OltState:
    """An OLT and what is known of its ONUs."""

    id: int
    name: str = ""
    site: str = ""
    is_enabled: bool = True
    # Open breaker: the OLT does not answer.
    down_since: datetime | None = None
    error: str = ""
    suspect_since: datetime | None = None
    suspect_reason: str = ""
    ports: tuple[PortState, ...] = ()
    drops: tuple[PowerDrop, ...] = ()
    falls: tuple[Falls, ...] = ()
    # Interval of the job that reads states.
    state_interval: timedelta | None = None

    @property
    def is_known(self) -> bool:
        """Return whether its readings are current."""
        return self.is_enabled and self.down_since is None

    @property
    def onus(self) -> int:
        return sum(port.total for port in self.ports)

    def knows(self, slot: int | None, port: int | None, now: datetime) -> bool:
        """Return whether the states of a place are current: a port, a card or all of it."""
        return self.is_known and any(
            each.is_current(now) for each in self.ports if slot in (None, each.slot) and port in (None, each.port)
        )


@dataclass(frozen=True, slots=True)
class ViolatedQuota:
    """The last judged hour of a job on an OLT, below its quota."""

    olt: int
    task: str
    since: datetime
    is_critical: bool
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LateNode:
    """A job of an OLT that is due and does not start."""

    node: int
    olt: int
    task: str
    due: datetime
    interval: timedelta
