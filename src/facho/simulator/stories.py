"""Stories of the demo: failures of its outside plant, one after the other.

A fibre cut, a power cut, a splitter that loses power. Everything follows from the time of the first start, as in
`life.py`: after a restart the story of that moment goes on.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from facho.engine.brand import Position
from facho.simulator.life import DAY, Down, Incident, Onu
from facho.simulator.plant import Plant

# Seconds: the first story after the first start, from one to the next, and their length.
FIRST = 45.0
PERIOD = 240.0
LENGTH = 150.0

# Fibre cuts before the first start: one that was repaired, and one that is open.
CUT, REPAIRED = 9.2 * DAY, 9.2 * DAY - 6700
DARK = 8100.0

# The ONUs of a fibre or a house fail within this time, in seconds.
SPREAD = 3.0
# ONUs of a port that are usually up, so that its failure can be told from that of one house.
FEWEST = 8
# Share of the ONUs without power in a power cut, and its ports.
DARK_SHARE, POWER_PORTS = 0.6, 3
# The splitter has 8 outputs, and loses this much power in dB. Not more than a quarter of the port.
SPLIT, SPLITTER_LOSS = 8, 6.0

# Incidents that an ONU keeps: its last times up and down follow from them.
KEPT = 3
# Stories that are told again after a restart: two weeks.
REMEMBERED = 5000


class Kind(Enum):
    """Kinds of stories, in their order."""

    FIBRE_CUT = "fibre cut"
    POWER_CUT = "power cut"
    SPLITTER = "splitter"


KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Story:
    """A failure on one OLT: the incident of each ONU concerned, by place."""

    olt: str
    kind: Kind
    start: float
    incidents: Mapping[Position, Incident]


class Stories:
    """The stories of OLTs that answer, counted from the first start of the demo. At least one of them has an ONU."""

    def __init__(self, plants: Mapping[str, Plant], began: float) -> None:
        self._began = began
        # Ports of each OLT in the order of their stories.
        self._ports = {name: _ports(name, plant) for name, plant in plants.items() if plant.onus}
        self._names = list(self._ports)
        self._incidents: dict[str, defaultdict[Position, deque[Incident]]] = {
            name: defaultdict(lambda: deque(maxlen=KEPT)) for name in self._names
        }
        self._told = 0
        self._add(self._earlier_cut())

    def next_at(self, now: float) -> float:
        """Return when the next story starts."""
        return self._began + FIRST + max(self._last(now) + 1, 0) * PERIOD

    def advance(self, now: float) -> set[str]:
        """Tell the stories that started by now, and return their OLTs."""
        last = self._last(now)
        stories = [self.story(number) for number in range(max(self._told, last - REMEMBERED), last + 1)]
        self._told = max(self._told, last + 1)
        for story in stories:
            self._add(story)
        return {story.olt for story in stories}

    def applied(self, name: str, plant: Plant) -> Plant:
        """Return the plant of an OLT with the incidents of its stories so far."""
        if name not in self._incidents:
            return plant
        incidents = self._incidents[name]
        onus = (replace(onu, incidents=tuple(incidents.get(onu.position, ()))) for onu in plant.onus)
        return replace(plant, onus=tuple(onus))

    def story(self, number: int) -> Story:
        """Return a story by its number."""
        kind, turn = KINDS[number % len(KINDS)], number // len(KINDS)
        # Not the same OLT for each kind, if their numbers have a common factor.
        name = self._names[(number + turn) % len(self._names)]
        ports, start = self._ports[name], self._began + FIRST + number * PERIOD
        random = Random(f"story {number}")
        port = ports[turn % len(ports)]
        if kind is Kind.FIBRE_CUT:
            incidents = _down(random, port, Down.LOS, start, start + LENGTH)
        elif kind is Kind.POWER_CUT:
            beside = {(turn + step) % len(ports) for step in range(POWER_PORTS)}
            onus = [onu for number in sorted(beside) for onu in ports[number] if random.random() < DARK_SHARE]
            incidents = _down(random, onus, Down.DYING_GASP, start, start + LENGTH)
        else:
            incident = Incident(start, start + LENGTH, loss_db=SPLITTER_LOSS)
            up = [onu for onu in port if _is_usually_up(onu)]
            incidents = {onu.position: incident for onu in up[: min(SPLIT, max(len(up) // 4, 1))]}
        return Story(name, kind, start, incidents)

    def _last(self, now: float) -> int:
        return int((now - self._began - FIRST) // PERIOD)

    def _earlier_cut(self) -> Story:
        name = self._names[0]
        start = self._began - CUT
        onus = self._ports[name][-1]
        incidents = _down(Random(f"earlier {name}"), onus, Down.LOS, start, self._began - REPAIRED)
        return Story(name, Kind.FIBRE_CUT, start, incidents)

    def _add(self, story: Story) -> None:
        for position, incident in story.incidents.items():
            self._incidents[story.olt][position].append(incident)


def _ports(name: str, plant: Plant) -> list[Sequence[Onu]]:
    by_port = defaultdict(list)
    for onu in plant.onus:
        by_port[replace(onu.position, onu=None)].append(onu)
    large = [onus for onus in by_port.values() if sum(map(_is_usually_up, onus)) >= FEWEST]
    ports = large or list(by_port.values())
    Random(f"stories {name}").shuffle(ports)
    return list(ports)


def _is_usually_up(onu: Onu) -> bool:
    return onu.enabled and onu.cycle.down < onu.cycle.period / 2


def _down(random: Random, onus: Iterable[Onu], cause: Down, start: float, end: float) -> dict[Position, Incident]:
    """Return incidents that start and end nearly together."""
    return {
        onu.position: Incident(start + random.uniform(0, SPREAD), end + random.uniform(0, SPREAD), cause)
        for onu in onus
    }
