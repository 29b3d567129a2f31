"""ONUs that go down again and again."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from facho.engine.problems.model import (
    Confidence,
    Falls,
    FoundProblem,
    OltState,
    OpenProblem,
    ProbableCause,
    ProblemKind,
    ProblemSeverity,
)
from facho.engine.problems.optics import NEARLY_ALL

# Falls within this time. A customer who restarts a router twice is not flapping; with states read every 5 minutes,
# at most 12 falls can be seen. An open problem needs less, so that it lasts until the ONU is quiet.
WITHIN = timedelta(hours=2)
FEWEST_FALLS, FEWEST_STILL = 4, 2

# So many ONUs of one port have a common cause.
FEWEST_OF_PORT = 4


def flapping(olt: OltState, open_: Mapping[str, OpenProblem], now: datetime) -> list[FoundProblem]:
    """Return the flapping ONUs of an OLT. Many on one port are one problem."""
    if not olt.is_known:
        return []
    ports: dict[tuple[int, int], list[Falls]] = defaultdict(list)
    for falls in olt.falls:
        recent = tuple(at for at in falls.times if now - at <= WITHIN)
        is_open = _key(falls) in open_ or _port_key(olt, falls.slot, falls.port) in open_
        if len(recent) >= (FEWEST_STILL if is_open else FEWEST_FALLS):
            ports[falls.slot, falls.port].append(Falls(falls.onu, falls.slot, falls.port, recent))
    found = []
    for (slot, port), several in ports.items():
        key = _port_key(olt, slot, port)
        if len(several) >= (2 if key in open_ else FEWEST_OF_PORT):
            found.append(_of_port(olt, key, several))
        else:
            found += [_of_onu(olt, each) for each in several]
    return found


def _key(falls: Falls) -> str:
    return f"flapping/onu/{falls.onu}"


def _port_key(olt: OltState, slot: int, port: int) -> str:
    return f"flapping/{olt.id}/{slot}/{port}"


def _of_onu(olt: OltState, falls: Falls) -> FoundProblem:
    return FoundProblem(
        ProblemKind.FLAPPING,
        _key(falls),
        ProblemSeverity.MINOR,
        min(falls.times),
        ProbableCause.DROP_CABLE,
        Confidence.POSSIBLE,
        affected=1,
        evidence={"falls": len(falls.times), "hours": WITHIN.total_seconds() / 3600},
        olt=olt.id,
        slot=falls.slot,
        port=falls.port,
        onu=falls.onu,
        onus=(falls.onu,),
    )


def _of_port(olt: OltState, key: str, several: list[Falls]) -> FoundProblem:
    times = [at for falls in several for at in falls.times]
    total = sum(port.total for port in olt.ports if (port.slot, port.port) == (several[0].slot, several[0].port))
    return FoundProblem(
        ProblemKind.FLAPPING,
        key,
        ProblemSeverity.MAJOR,
        min(times),
        ProbableCause.FEEDER if len(several) >= NEARLY_ALL * total else ProbableCause.SPLITTER,
        Confidence.POSSIBLE,
        affected=len(several),
        evidence={"falls": len(times), "onus": len(several), "hours": WITHIN.total_seconds() / 3600},
        olt=olt.id,
        slot=several[0].slot,
        port=several[0].port,
        onus=tuple(falls.onu for falls in several),
    )
