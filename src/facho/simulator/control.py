"""Commands for a running fleet, as lines: `OLT-NORTE-02 loss=0.05 latency=0.2`, `* well`, `OLT-SUR-03 mute`.

The first word names an OLT, or `*` for all. What follows is one of these:

    NAME=VALUE ...        set faults; a flag needs no value, and `none` takes a fault away
    well [NAME=VALUE ...] take all faults away first
    faults                tell what is wrong
    log                   tell what it was asked: counts, rate, requests at once
    forget                begin a new log
    come PORT [HOW_MANY]  new ONUs on a port, like: come 1/3 2
    go ONU                an ONU is deleted, like: go 1/3/7
    move ONU PORT         an ONU goes to another port
    down ONU [CAUSE]      an ONU goes down: los, dying_gasp, offline or deactivated
    up ONU                it comes back
    fade ONU|* DB         its light changes by so many dB an hour
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from facho.engine.brand import Position
from facho.simulator import changes
from facho.simulator.changes import Change
from facho.simulator.faults import WELL, count, factor, faults_from, place, to_options
from facho.simulator.fleet import SimulatedFleet, SimulatedOlt
from facho.simulator.life import Down

Result = Mapping[str, Any]

# How each command that changes a plant is called, for those who got it wrong.
USAGE = {
    "come": "come PORT [HOW_MANY]",
    "go": "go ONU",
    "move": "move ONU PORT",
    "down": "down ONU [CAUSE]",
    "up": "up ONU",
    "fade": "fade ONU|* DB",
}


class Control:
    """Does what lines say, and answers each with a mapping that goes into a line of JSON. No line stops it."""

    def __init__(self, fleet: SimulatedFleet, now: Callable[[], float] = time.time) -> None:
        self._fleet = fleet
        self._now = now

    def run(self, line: str) -> dict[str, Any]:
        """Return {"ok": true, "olts": {name: what came of it}}, or {"ok": false, "error": why not}."""
        try:
            name, *words = line.split() or [""]
            if not words:
                raise ValueError("write the name of an OLT (or * for all) and a command, like: * loss=0.05")
            olts = [olt for olt in self._fleet if name in ("*", olt.name)]
            if not olts:
                names = ", ".join(olt.name for olt in self._fleet)
                raise ValueError(f"there is no OLT {name!r}; there are {names}, or * for all")
            # All of them before any of them: a line is done as a whole or not at all.
            actions = [self._action(olt, words) for olt in olts]
            return {"ok": True, "olts": {olt.name: dict(act()) for olt, act in zip(olts, actions, strict=True)}}
        except ValueError as error:
            return {"ok": False, "error": str(error)}

    def _action(self, olt: SimulatedOlt, words: Sequence[str]) -> Callable[[], Result]:
        """Return what to do to one OLT; ValueError if it cannot be done."""
        first, *rest = words
        if first in USAGE:
            device = olt.device.replanted(_change(first, rest, self._now())(olt.device.plant))

            def replant() -> Result:
                olt.agent.install(device)
                return {"onus": len(device.plant.onus)}

            return replant
        if first in ("faults", "log", "forget"):
            if rest:
                raise ValueError(f"{first} takes no arguments")
            return partial(self._tell, olt, first)
        base, options = (WELL, rest) if first == "well" else (olt.agent.faults, list(words))
        pairs = (word.partition("=") for word in options)
        faults = faults_from({name: value for name, _, value in pairs}, base)

        def change() -> Result:
            olt.change(faults)
            return {"faults": to_options(faults)}

        return change

    def _tell(self, olt: SimulatedOlt, what: str) -> Result:
        if what == "log":
            return self._fleet.log.report(olt.name)
        if what == "forget":
            self._fleet.log.clear(olt.name)
            return {}
        return {"faults": to_options(olt.agent.faults)}


def _change(word: str, arguments: Sequence[str], now: float) -> Change:
    """Return the change of a plant that these words mean."""
    match word, *arguments:
        case "come", port:
            return partial(changes.come, port=port_place(port), now=now)
        case "come", port, onus:
            return partial(changes.come, port=port_place(port), now=now, onus=count(onus))
        case "go", onu:
            return partial(changes.go, position=place(onu))
        case "move", onu, port:
            return partial(changes.move, position=place(onu), port=port_place(port), now=now)
        case "down", onu:
            return partial(changes.fall, position=place(onu), cause=Down.LOS, now=now)
        case "down", onu, cause:
            return partial(changes.fall, position=place(onu), cause=_cause(cause), now=now)
        case "up", onu:
            return partial(changes.come_back, position=place(onu), now=now)
        case "fade", onu, db:
            position = None if onu == "*" else place(onu)
            return partial(changes.fade, position=position, db_per_hour=factor(db), now=now)
    raise ValueError(f"write {USAGE[word]}, with places like 1/3/7 and ports like 1/3")


def port_place(written: str) -> Position:
    """Return a port from slot/port."""
    parts = written.split("/")
    if len(parts) != 2:
        raise ValueError("write a port as slot/port, like 1/3")
    return Position(0, count(parts[0]), count(parts[1]))


def _cause(written: str) -> Down:
    causes = {each.value: each for each in Down}
    if written not in causes:
        raise ValueError(f"the cause must be one of {', '.join(causes)}")
    return causes[written]
