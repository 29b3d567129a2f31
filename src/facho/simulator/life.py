"""Behaviour of an ONU: up and down times, optics and counters.

Everything is a function of time, so a restarted simulator continues, and two in parallel agree.
"""

from dataclasses import dataclass
from enum import Enum
from math import pi, sin
from typing import NamedTuple

from facho.engine.brand import Position

DAY = 86400.0

# Drift of an ONU's power in dB, and its period.
DRIFT_DB = 0.3
DRIFT_SECONDS = 420.0
# Share of the traffic that varies with the hour of the day.
DAILY_SWING = 0.6
# Seconds of ranging and configuration after an ONU came back.
SYNC_SECONDS = 12.0


class Down(Enum):
    """Reasons for an ONU being down."""

    LOS = "los"
    DYING_GASP = "dying_gasp"
    OFFLINE = "offline"
    # An admin switched it off.
    DEACTIVATED = "deactivated"


@dataclass(frozen=True, slots=True)
class Cycle:
    """An ONU goes down for `down` seconds in each `period`; healthy ones rarely, broken ones nearly always."""

    period: float
    down: float
    phase: float

    def at(self, now: float) -> tuple[bool, float, float]:
        """Return whether it is up, and the last times up and down."""
        since_down = (now + self.phase) % self.period
        last_down = now - since_down
        if since_down < self.down:
            return False, last_down - (self.period - self.down), last_down
        return True, last_down + self.down, last_down


@dataclass(frozen=True, slots=True)
class Incident:
    """A failure of the plant at an ONU, besides the outages of its cycle."""

    start: float
    end: float
    # Reason for being down; None: it stays up.
    cause: Down | None = None
    # Power that is lost.
    loss_db: float = 0.0


@dataclass(frozen=True, slots=True)
class Onu:
    """An ONU as installed. Powers are averages."""

    position: Position
    serial: bytes
    mac: bytes
    name: str
    description: str
    # Charset of the operator's old tool.
    charset: str
    model: str
    software: str
    line_profile: str
    service_profile: str
    distance_m: int
    enabled: bool
    cycle: Cycle
    cause: Down
    rx_dbm: float
    tx_dbm: float
    olt_rx_dbm: float
    temperature_c: float
    voltage_v: float
    # Octets a second, from the ONU and to it.
    in_rate: float
    out_rate: float
    # Phase of its drift, from 0 to 1, so that not all move together.
    phase: float
    # Registration number, never reused. Some vendors use it as an index.
    number: int = 0
    # Change of its power in dB per hour, from a time on.
    fade_per_hour: float = 0.0
    fade_from: float = 0.0
    # The earliest first. Those with a cause do not overlap.
    incidents: tuple[Incident, ...] = ()


class Optics(NamedTuple):
    """Optical values of an ONU that is up."""

    rx_dbm: float
    tx_dbm: float
    olt_rx_dbm: float
    temperature_c: float
    voltage_v: float


class Observed(NamedTuple):
    """State of an ONU at one moment. `optics` is None while it is down; times that never were are None."""

    up: bool
    # Up, but still being configured.
    syncing: bool
    # Cause of the last outage.
    cause: Down
    last_up: float | None
    last_down: float | None
    distance_m: int | None
    optics: Optics | None
    in_octets: int
    out_octets: int
    # Time of the observation.
    at: float

    @property
    def up_ticks(self) -> int:
        """Return its uptime in hundredths of a second. TimeTicks restart after 497 days."""
        return int(100 * (self.at - self.last_up)) % 2**32 if self.up and self.last_up is not None else 0


def observe(onu: Onu, now: float) -> Observed:
    """Return the state of the ONU at a time."""
    if not onu.enabled:
        return Observed(False, False, Down.DEACTIVATED, None, None, None, None, 0, 0, now)
    up, last_up, last_down, cause = _fate(onu, now)
    ended = now if up else last_down
    return Observed(
        up=up,
        syncing=up and now - last_up < SYNC_SECONDS,
        cause=cause,
        last_up=last_up,
        last_down=last_down,
        distance_m=onu.distance_m if up else None,
        optics=_optics(onu, now) if up else None,
        # Counters of an ONU restart when it registers.
        in_octets=_octets(onu.in_rate, last_up, ended),
        out_octets=_octets(onu.out_rate, last_up, ended),
        at=now,
    )


def _fate(onu: Onu, now: float) -> tuple[bool, float, float, Down]:
    """Return whether an ONU is up, the last times up and down, and the cause of the last outage."""
    up, last_up, last_down = onu.cycle.at(now)
    cause = onu.cause
    for each in onu.incidents:
        if each.cause is None or each.start > now:
            continue
        if now < each.end:
            # One that was already down stays so.
            if up or last_down > each.start:
                up, last_up, last_down, cause = False, min(last_up, each.start), each.start, each.cause
        elif up and last_up < each.end:
            last_up, last_down, cause = each.end, each.start, each.cause
        elif last_up < each.end <= last_down:
            last_up = each.end
    return up, last_up, last_down, cause


def _optics(onu: Onu, now: float) -> Optics:
    drift = DRIFT_DB * sin(2 * pi * (now / DRIFT_SECONDS + onu.phase))
    for each in onu.incidents:
        if each.start <= now < each.end:
            drift -= each.loss_db
    fade = onu.fade_per_hour * max(now - onu.fade_from, 0.0) / 3600
    return Optics(
        rx_dbm=onu.rx_dbm + drift + fade,
        tx_dbm=onu.tx_dbm + drift / 8,
        olt_rx_dbm=onu.olt_rx_dbm + drift + fade,
        temperature_c=onu.temperature_c + 3 * sin(2 * pi * (now / DAY + onu.phase)),
        voltage_v=onu.voltage_v,
    )


def _octets(rate: float, begin: float, end: float) -> int:
    """Return the traffic between two times at a rate that varies with the hour but is never 0."""
    swing = DAILY_SWING * DAY / (2 * pi)
    return int(rate * (end - begin + swing * (sin(2 * pi * begin / DAY) - sin(2 * pi * end / DAY))))
