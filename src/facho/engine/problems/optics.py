"""Ports with low power, and sudden drops of power."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median

from facho.engine.problems.model import (
    Confidence,
    FoundProblem,
    OltState,
    OpenProblem,
    PortState,
    PowerDrop,
    ProbableCause,
    ProblemKind,
    ProblemSeverity,
)

# Weak ONUs that are a matter of the port: a number, and a share of those that are up. An open problem needs less,
# because powers around the limit drift by some tenths of a dB.
FEWEST_WEAK, SHARE_WEAK = 3, 0.25
FEWEST_STILL_WEAK, SHARE_STILL_WEAK = 2, 0.15

# Share of a port's ONUs from which on the loss is before the first splitter.
NEARLY_ALL = 0.8

# A drop is news for a day. Then the power is the new normal, and low power is a problem of its own.
DROP_LASTS = timedelta(hours=24)
# Part of a drop in dB that must remain; a power drifts by some tenths of a dB.
STILL_DROPPED = 1.5
# ONUs behind one splitter lose the same power: their steps differ by no more than this, in dB.
SAME_STEP = 2.0
FEWEST_TOGETHER, FEWEST_PROBABLE = 3, 4
# A drop of a single ONU matters if little margin is left: class B+ optics need -27 dBm.
LITTLE_MARGIN = -25.0


def low_power(olt: OltState, open_: Mapping[str, OpenProblem], now: datetime) -> list[FoundProblem]:
    """Return the ports many of whose ONUs have low power."""
    if not olt.is_known:
        return []
    found = []
    for port in olt.ports:
        key = f"low_power/{olt.id}/{port.name}"
        fewest, share = (FEWEST_STILL_WEAK, SHARE_STILL_WEAK) if key in open_ else (FEWEST_WEAK, SHARE_WEAK)
        if port.weak >= max(fewest, share * port.up):
            found.append(_low_power(olt, port, key, now))
    return found


def _low_power(olt: OltState, port: PortState, key: str, now: datetime) -> FoundProblem:
    is_all = port.weak >= NEARLY_ALL * port.up
    return FoundProblem(
        ProblemKind.LOW_POWER,
        key,
        ProblemSeverity.MINOR,
        # When it began is not known.
        now,
        ProbableCause.FEEDER if is_all else ProbableCause.SPLITTER,
        Confidence.POSSIBLE,
        affected=port.weak,
        evidence={"weak": port.weak, "up": port.up},
        olt=olt.id,
        slot=port.slot,
        port=port.port,
    )


def power_drops(olt: OltState, now: datetime) -> list[FoundProblem]:
    """Return drops of power that have not recovered: of several ONUs of a port by the same step, or of one."""
    if not olt.is_known:
        return []
    lasting = [
        drop
        for drop in olt.drops
        if now - drop.at <= DROP_LASTS and drop.now is not None and drop.now <= drop.before - STILL_DROPPED
    ]
    ports: dict[tuple[int, int], list[PowerDrop]] = defaultdict(list)
    for drop in lasting:
        ports[drop.slot, drop.port].append(drop)
    found = []
    together: set[int] = set()
    for (slot, port), drops in ports.items():
        group = _same_step(drops)
        if len(group) >= FEWEST_TOGETHER:
            together |= {drop.onu for drop in group}
            found.append(_drop_of_port(olt, slot, port, group))
    latest = {drop.onu: drop for drop in sorted(lasting, key=lambda drop: drop.at)}
    for drop in latest.values():
        if drop.onu not in together and drop.now is not None and drop.now < LITTLE_MARGIN:
            found.append(_drop_of_onu(olt, drop))
    return found


def _same_step(drops: Sequence[PowerDrop]) -> list[PowerDrop]:
    """Return the largest group that dropped by the same step, all found by one reading."""
    readings: dict[datetime, list[PowerDrop]] = defaultdict(list)
    for drop in sorted(drops, key=lambda drop: drop.step):
        readings[drop.at].append(drop)
    groups = (
        [drop for drop in some if 0 <= drop.step - first.step <= SAME_STEP]
        for some in readings.values()
        for first in some
    )
    return max(groups, key=len)


def _drop_of_port(olt: OltState, slot: int, port: int, group: Sequence[PowerDrop]) -> FoundProblem:
    up = sum(each.up for each in olt.ports if (each.slot, each.port) == (slot, port))
    is_all = len(group) >= NEARLY_ALL * up
    return FoundProblem(
        ProblemKind.POWER_DROP,
        f"power_drop/{olt.id}/{slot}/{port}",
        ProblemSeverity.MAJOR,
        group[0].at,
        ProbableCause.FEEDER if is_all else ProbableCause.SPLITTER,
        Confidence.PROBABLE if len(group) >= FEWEST_PROBABLE else Confidence.POSSIBLE,
        affected=len(group),
        evidence={"dropped": len(group), "up": up, "step": round(median(drop.step for drop in group), 2)},
        onus=tuple(drop.onu for drop in group),
        olt=olt.id,
        slot=slot,
        port=port,
    )


def _drop_of_onu(olt: OltState, drop: PowerDrop) -> FoundProblem:
    return FoundProblem(
        ProblemKind.POWER_DROP,
        f"power_drop/onu/{drop.onu}",
        ProblemSeverity.MINOR,
        drop.at,
        ProbableCause.DROP_CABLE,
        Confidence.PROBABLE,
        affected=1,
        evidence={"before": round(drop.before, 2), "after": round(drop.after, 2), "step": round(drop.step, 2)},
        olt=olt.id,
        slot=drop.slot,
        port=drop.port,
        onu=drop.onu,
        onus=(drop.onu,),
    )
