"""Many simulated OLTs in one event loop, and the fleet of the demo."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from facho.adapters.snmp.snmprec import read_records
from facho.simulator.agent import SimulatedAgent
from facho.simulator.bdcom import BDCOM_GPON
from facho.simulator.calix import CALIX_AXOS
from facho.simulator.cdata import CDATA_EPON, CDATA_FD11, CDATA_GPON
from facho.simulator.device import Device, Maker
from facho.simulator.endpoint import open_endpoint
from facho.simulator.faults import WELL, Faults
from facho.simulator.fiberhome import FIBERHOME_AN5516
from facho.simulator.huawei import HUAWEI
from facho.simulator.nokia import NOKIA_ISAM
from facho.simulator.pdulog import PduLog
from facho.simulator.plant import NOTHING, share
from facho.simulator.recorded import RecordedMib
from facho.simulator.request_handler import RequestHandler
from facho.simulator.ubiquiti import UBIQUITI
from facho.simulator.vsol import VSOL_EPON
from facho.simulator.zte import ZTE_C300
from facho.simulator.zte_c600 import ZTE_C600

HOST = "127.0.0.1"

MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        maker.brand: maker
        for maker in (
            HUAWEI,
            ZTE_C300,
            ZTE_C600,
            UBIQUITI,
            BDCOM_GPON,
            VSOL_EPON,
            FIBERHOME_AN5516,
            NOKIA_ISAM,
            CALIX_AXOS,
            CDATA_EPON,
            CDATA_GPON,
            CDATA_FD11,
        )
    }
)

# An OLT with an old control card behind a slow link. It reads the optics of each ONU one by one.
SLOW = Faults(
    latency=0.02, jitter=0.02, per_pdu=0.004, per_varbind=0.0003, per_optical_row=0.015, zero_repetitions_hang=45.0
)
MUTE = Faults(mute=True)
# The demo repeats these six kinds.
DEMO_KINDS = (
    ("huawei", WELL),
    ("zte_c300", SLOW),
    ("huawei", MUTE),
    ("huawei", WELL),
    ("zte_c300", WELL),
    ("huawei", WELL),
)
DEMO_NAMES = (
    "CENTRAL",
    "NORTE",
    "SUR",
    "ESTE",
    "OESTE",
    "PUERTO",
    "LOMAS",
    "VALLE",
    "RIBERA",
    "LAGUNA",
    "MOLINO",
    "ALAMEDA",
    "MIRADOR",
    "PRADERA",
    "SIERRA",
    "COSTA",
)
# OLT of the demo with a cut fibre.
DEMO_DARK = 3
GOLDEN_RATIO = 0.6180339887


@dataclass(frozen=True, slots=True)
class OltSpec:
    """Parameters of a simulated OLT. The same seed gives the same ONUs; port 0 is any free one.

    With a `recording` it replays that `.snmprec` file, sorted or in file order; its brand is then only a name.
    """

    name: str
    brand: str = "huawei"
    onus: int = 64
    seed: int = 1
    community: str = "public"
    faults: Faults = WELL
    port: int = 0
    # PON ports with a cut fibre.
    dark_ports: int = 0
    dark_since: float | None = None
    recording: Path | None = None
    keep_order: bool = False


class SimulatedOlt:
    """An OLT of a fleet, listening."""

    def __init__(
        self, spec: OltSpec, agent: SimulatedAgent, transport: asyncio.DatagramTransport, host: str, port: int
    ) -> None:
        self.spec = spec
        self.agent = agent
        self.host = host
        self.port = port
        self._transport = transport

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def device(self) -> Device:
        return self.agent.device

    def change(self, faults: Faults) -> None:
        """Change the faults from the next request on."""
        self.agent.faults = faults

    def close(self) -> None:
        self._transport.close()


class SimulatedFleet:
    """Simulated OLTs that live as long as the `async with` they are opened by."""

    def __init__(self, specs: Sequence[OltSpec], *, host: str = HOST, log: PduLog | None = None) -> None:
        names = [spec.name for spec in specs]
        if len(set(names)) < len(names):
            raise ValueError("each OLT of a fleet needs a name of its own")
        self.log = PduLog() if log is None else log
        self._specs = specs
        self._host = host
        self._olts: dict[str, SimulatedOlt] = {}

    async def __aenter__(self) -> Self:
        try:
            for spec in self._specs:
                agent = SimulatedAgent(build(spec), spec.community, spec.faults, spec.seed)
                transport, port = await open_endpoint(RequestHandler(agent, self.log, spec.seed), self._host, spec.port)
                self._olts[spec.name] = SimulatedOlt(spec, agent, transport, self._host, port)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    def __getitem__(self, name: str) -> SimulatedOlt:
        return self._olts[name]

    def __iter__(self) -> Iterator[SimulatedOlt]:
        return iter(self._olts.values())

    def __len__(self) -> int:
        return len(self._olts)

    async def _close(self) -> None:
        for olt in self:
            olt.close()
        self._olts.clear()
        # A transport lets go of its socket in the next round of the loop.
        await asyncio.sleep(0)


def build(spec: OltSpec) -> Device:
    """Return the device of a specification."""
    if spec.recording is not None:
        mib = RecordedMib(read_records(spec.recording), keep_order=spec.keep_order)
        return Device(spec.name, spec.brand, NOTHING, mib)
    maker = MAKERS.get(spec.brand)
    if maker is None:
        raise ValueError(f"there is no simulated {spec.brand!r}; there are {', '.join(sorted(MAKERS))}")
    return maker.build(spec.name, spec.onus, spec.seed, spec.dark_ports, spec.dark_since)


def demo_fleet(
    olts: int = 6, onus: int = 2100, seed: int = 1, ports: Sequence[int] = (), dark_since: float | None = None
) -> list[OltSpec]:
    """Return the fleet of the demonstration: the OLTs that answer have this many ONUs together, unevenly shared."""
    kinds = [DEMO_KINDS[number % len(DEMO_KINDS)] for number in range(olts)]
    weights = [0.0 if faults.mute else 0.6 + GOLDEN_RATIO * number % 1 for number, (_, faults) in enumerate(kinds)]
    sizes = share(onus, weights)
    return [
        OltSpec(
            name=f"OLT-{DEMO_NAMES[number % len(DEMO_NAMES)]}-{number + 1:02d}",
            brand=brand,
            # An OLT that does not answer has ONUs too, because its faults can be removed later.
            onus=64 if faults.mute else sizes[number],
            seed=seed * 1000 + number,
            faults=faults,
            port=ports[number] if number < len(ports) else 0,
            dark_ports=int(number == DEMO_DARK),
            dark_since=dark_since,
        )
        for number, (brand, faults) in enumerate(kinds)
    ]
