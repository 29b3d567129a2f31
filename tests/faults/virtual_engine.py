"""The engine as it is, collecting from simulated OLTs in virtual time; what they saw is in their own logs."""

from dataclasses import replace

from virtual_olt import T0, VirtualOlt

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import VirtualClock
from facho.adapters.leases.local import LocalLeases
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.scheduling.prober import Prober
from facho.engine.scheduling.runner import Runner
from facho.engine.scheduling.scheduler import Scheduler
from facho.engine.snmp import SendByTask
from in_memory import MemoryNodes, MemoryRuns, MemorySlots


class VirtualNetwork(SendByTask, MemoryNodes):
    """OLTs by address. Each request is recorded with the holder of the lease."""

    def __init__(self, nodes, olts: dict[int, VirtualOlt]):
        super().__init__(nodes)
        self.olts = olts
        self.leases = LocalLeases(first_token=1)
        self.holders: dict[int, list] = {olt_id: [] for olt_id in olts}
        for olt_id, olt in olts.items():
            olt.on_request = self._note(olt_id)

    def _note(self, olt_id):
        return lambda count: self.holders[olt_id].append(self.leases._held.get(f"127.0.0.{olt_id}:161"))

    def _of(self, agent):
        return self.olts[int(agent.target.rpartition(".")[2])]

    async def olt(self, olt_id):
        plain = await super().olt(olt_id)
        return replace(plain, brand=self._of(plain.agent).maker)

    def known(self, olt_id):
        return self._of(self._agent(olt_id)).known()

    async def get(self, agent, oids, **how):
        return await self._of(agent).get(agent, oids, **how)

    async def get_next(self, agent, oids, **how):
        return await self._of(agent).get_next(agent, oids, **how)

    async def get_bulk(self, agent, oids, **how):
        return await self._of(agent).get_bulk(agent, oids, **how)


class VirtualEngine:
    """Scheduler, runner and prober on such a network."""

    def __init__(self, nodes, olts, pollers=4):
        self.clock = VirtualClock(T0)
        self.network = network = VirtualNetwork(nodes, olts)
        self.slots = MemorySlots(network)
        self.runs = MemoryRuns(self.slots, network.known)
        shared = {"nodes": network, "runs": self.runs, "leases": network.leases, "snmp": network}
        shared |= {"clock": self.clock, "bus": LocalBus()}
        runner = Runner(
            name="noc",
            brand=brand,
            brands=BRANDS.values,
            candidates=candidates,
            raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
            **shared,
        )
        self.prober = Prober(name="noc", slots=self.slots, **shared)
        self.scheduler = Scheduler(
            pollers=pollers,
            nodes=network,
            slots=self.slots,
            runner=runner,
            clock=self.clock,
            prober=self.prober,
        )

    async def run_for(self, span):
        """Tick once a second for so long."""
        end = self.clock.now() + span
        while self.clock.now() < end:
            await self.scheduler.step()
            await self.clock.sleep(1)

    async def stop(self):
        await self.prober.stop()
        await self.scheduler.manager.stop()

    def arrivals(self, olt_id):
        """Return when each request came, in seconds."""
        return [pdu.arrived - T0.timestamp() for pdu in self.network.olts[olt_id].log.pdus()]
