"""Outside plant of a simulated OLT: PON ports and ONUs, from one seed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import ceil
from random import Random

from facho.engine.brand import Position
from facho.simulator.life import DAY, Cycle, Down, Onu

# An outage without an end lasts longer than any test.
LONG = 3000 * DAY

ONUS_PER_PORT = 45
PORTS_PER_CARD = 16
# Share of the ports of a card with customers.
PORTS_IN_USE = 0.85
MAX_ONUS_PER_PORT = 128
# The last ids of a port are for the one ONU that is far from the others.
FAR_IDS = 9

# Causes of ONUs that are down, per thousand.
LONG_DOWN = ((Down.LOS, 35), (Down.DYING_GASP, 25), (Down.OFFLINE, 15), (Down.DEACTIVATED, 10))
WEAK_SHARE = 0.02
WEAK_DBM = -28.0
# One in this many ONUs has a bad connector: down for minutes, many times a day.
FLAPPING_ONE_IN = 150
# Share of texts from an old operator tool, in its own charset.
OLD_TEXTS_SHARE = 0.05

OLT_TX_DBM = 4.0
FIBRE_DB_PER_KM = 0.35

FIRST_NAMES = ("Rosa", "José", "Carmen", "Luis", "María", "Julio", "Ana", "Víctor", "Elena", "Raúl", "Lucía", "Óscar")
LAST_NAMES = ("Quispe", "Núñez", "Flores", "Rojas", "Huamán", "Peña", "Vargas", "Ibáñez", "Castillo", "Mamani", "Ríos")
STREETS = ("Av. Los Álamos", "Jr. Lima", "Calle Unión", "Psje. San Martín", "Av. Grau", "Jr. Ayacucho", "Calle Nueve")
LINE_PROFILES = ("LINE-100M", "LINE-200M", "LINE-300M", "LINE-600M")
SERVICE_PROFILES = ("RESIDENCIAL", "RESIDENCIAL-TV", "NEGOCIO")

# Ends of serials that break text parsers: printable, with a blank or a zero at the end.
TRICKY_SERIALS = (b"PW:y", b"&BY ", b"\x01\x02\x03\x00", b"7 \x00 ", b'"A1"')


@dataclass(frozen=True, slots=True)
class Model:
    """A model of ONU."""

    vendor: bytes
    name: str
    software: str


@dataclass(frozen=True, slots=True)
class Chassis:
    """Numbering, PON slots and capacity of a vendor's chassis."""

    models: Sequence[Model]
    shelf: int = 0
    slots: Sequence[int] = (0,)
    first_port: int = 1
    first_onu: int = 1
    # Its name, if the vendor has several.
    name: str = ""
    ports_per_card: int = PORTS_PER_CARD
    onus_per_port: int = MAX_ONUS_PER_PORT
    old_charset: str = "latin-1"

    @property
    def ports(self) -> int:
        return len(self.slots) * self.ports_per_card

    @property
    def holds(self) -> int:
        """Return the number of ONUs with all ports full."""
        return self.ports * self.onus_per_port


@dataclass(frozen=True, slots=True)
class Plant:
    """PON ports and ONUs of an OLT, in order. Some ports have no ONU."""

    chassis: Chassis
    ports: tuple[Position, ...]
    onus: tuple[Onu, ...]
    # Number of registrations so far, including deleted ONUs.
    registrations: int = 0


# Plant of an unknown device.
NOTHING = Plant(Chassis((), slots=()), (), ())


def grow(chassis: Chassis, onus: int, seed: int, dark_ports: int = 0, dark_since: float | None = None) -> Plant:
    """Return a plant with exactly this many ONUs.

    `dark_ports` of its ports have a cut fibre: since a time, or for nearly all of each 30 days.
    """
    random = Random(f"plant {seed}")
    if onus > chassis.holds:
        raise ValueError(f"{len(chassis.slots)} slots for PON cards hold {chassis.holds} ONUs, not {onus}")
    # More ports and cards than needed, unless all are needed.
    used = max(1, ceil(onus / min(ONUS_PER_PORT, chassis.onus_per_port)))
    cards = ceil(ceil(used / PORTS_IN_USE) / chassis.ports_per_card)
    used = min(used, chassis.ports)
    ports = tuple(
        Position(chassis.shelf, slot, port)
        for slot in chassis.slots[:cards]
        for port in range(chassis.first_port, chassis.first_port + chassis.ports_per_card)
    )
    lit = sorted(random.sample(range(len(ports)), used))
    # If space is tight, ports are filled evenly.
    spread = 0.4 if onus <= used * chassis.onus_per_port / 2 else 0.0
    sizes = share(onus, [random.uniform(1 - spread, 1 + spread) for _ in lit])
    dark = set(random.sample(lit, min(dark_ports, used)))
    grown: list[Onu] = []
    for number, size in zip(lit, sizes, strict=True):
        cut = Cycle(30 * DAY, 29.9 * DAY, random.uniform(0, 30 * DAY)) if number in dark else None
        if cut and dark_since is not None:
            cut = Cycle(2 * LONG, LONG, -dark_since)
        for onu_id in _onu_ids(random, size, chassis):
            grown.append(install(random, replace(ports[number], onu=onu_id), chassis, len(grown), cut))
    # The order of registration differs from that of the places.
    numbers = list(range(len(grown)))
    Random(f"registration {seed}").shuffle(numbers)
    registered = (replace(onu, number=number) for onu, number in zip(grown, numbers, strict=True))
    return Plant(chassis, ports, tuple(registered), len(grown))


def share(total: int, weights: Sequence[float]) -> list[int]:
    """Distribute a whole number by weights. The parts add up to it."""
    sums = [0.0, *accumulate(weights)]
    bounds = [round(total * part / sums[-1]) for part in sums]
    return [high - low for low, high in pairwise(bounds)]


def _onu_ids(random: Random, size: int, chassis: Chassis) -> list[int]:
    """Return ids as after years of changes: with gaps, and one far from the others. 7 always exists."""
    if not size:
        return []
    first, far = chassis.first_onu, chassis.onus_per_port - FAR_IDS
    if size >= far:
        return list(range(first, first + size))
    near = [number for number in range(first, first + min(size + size // 5 + 8, far)) if number != 7]
    ids = {7, *random.sample(near, size - 1)}
    if size > 20:
        ids.remove(max(ids))
        ids.add(first + random.randrange(far, chassis.onus_per_port))
    return sorted(ids)


def install(random: Random, position: Position, chassis: Chassis, number: int, cut: Cycle | None = None) -> Onu:
    """Return a new ONU. `number` is its registration; `cut` is the fate of a port with a cut fibre."""
    model = random.choice(chassis.models)
    cause, cycle = _fate(random, number)
    if cut:
        cause, cycle = Down.LOS, cut
    kilometres = random.uniform(0.3, 12)
    loss = FIBRE_DB_PER_KM * kilometres + random.gauss(20, 1.1)
    if random.random() < WEAK_SHARE:
        loss = OLT_TX_DBM - WEAK_DBM + random.gauss(0, 0.4)
    tx_dbm = random.uniform(1.8, 3.2)
    out_rate = 10 ** random.uniform(3.7, 6.3)
    return Onu(
        position=position,
        serial=model.vendor + (TRICKY_SERIALS[number] if number < len(TRICKY_SERIALS) else random.randbytes(4)),
        mac=b"\x00\x25\x9e" + random.randbytes(3),
        name=f"{random.choice(FIRST_NAMES)} {random.choice(LAST_NAMES)}",
        description=f"{random.choice(STREETS)} {random.randrange(100, 999)}",
        charset=chassis.old_charset if random.random() < OLD_TEXTS_SHARE else "utf-8",
        model=model.name,
        software=model.software,
        line_profile=random.choice(LINE_PROFILES),
        service_profile=random.choice(SERVICE_PROFILES),
        distance_m=round(1000 * kilometres),
        enabled=cause is not Down.DEACTIVATED,
        cycle=cycle,
        cause=cause,
        rx_dbm=OLT_TX_DBM - loss,
        tx_dbm=tx_dbm,
        # 1310 nm has a little more loss upstream.
        olt_rx_dbm=tx_dbm - loss - 1,
        temperature_c=random.uniform(36, 58),
        voltage_v=random.uniform(3.22, 3.36),
        in_rate=out_rate * random.uniform(0.04, 0.2),
        out_rate=out_rate,
        phase=random.random(),
    )


def _fate(random: Random, number: int) -> tuple[Down, Cycle]:
    """Return the cause, frequency and duration of this ONU's outages."""
    if number % FLAPPING_ONE_IN == FLAPPING_ONE_IN // 3:
        period, down = random.uniform(360, 1200), random.uniform(60, 200)
        return random.choice((Down.LOS, Down.DYING_GASP)), Cycle(period, down, random.uniform(0, period))
    draw = random.randrange(1000)
    for cause, share_of_1000 in LONG_DOWN:
        if draw < share_of_1000:
            return cause, Cycle(90 * DAY, 89 * DAY, random.uniform(0, 90 * DAY))
        draw -= share_of_1000
    period = random.uniform(5, 40) * DAY
    return Down.DYING_GASP, Cycle(period, random.uniform(90, 600), random.uniform(0, period))
