"""Puts an engine together from its parts, for the embedded mode."""

import logging
import socket
from dataclasses import dataclass

from facho.adapters.bus.local import LocalBus
from facho.adapters.clock import SystemClock
from facho.adapters.leases.local import LocalLeases
from facho.adapters.snmp.dispatch import SnmpByVersion
from facho.brands import BRANDS, brand, candidates
from facho.brands.decode import RAW_DECODERS
from facho.engine.census import Rules
from facho.engine.runner import Runner
from facho.engine.scheduler import Scheduler
from facho.engine.snapshot import snapshot
from facho.runtime.config import Config
from facho.store.journal import EventRows, Journal
from facho.store.ledger import DbLedger
from facho.store.nodes import DbNodeSource
from facho.store.threads import DbThread
from facho.store.writer import DbReadingSink


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that have a life of their own."""

    scheduler: Scheduler
    journal: Journal
    bus: LocalBus
    snmp: SnmpByVersion
    threads: tuple[DbThread, ...]

    async def close(self) -> None:
        """Stop in the order in which nothing is lost: first the work, then what it is written down with."""
        await self.scheduler.manager.stop()
        self.bus.close()
        await self.snmp.close()
        await self.journal.step()
        for thread in self.threads:
            thread.close()


def engine(config: Config) -> Engine:
    """Build the embedded engine: everything in this process."""
    clock, bus, snmp = SystemClock(), LocalBus(), SnmpByVersion()
    reader, writer = DbThread("store-read"), DbThread("store-write")
    nodes, ledger = DbNodeSource(reader), DbLedger(writer)
    worker = socket.gethostname()
    events = EventRows()
    logging.getLogger("facho").addHandler(events)
    runner = Runner(
        name=worker,
        nodes=nodes,
        ledger=ledger,
        sink=DbReadingSink(reader, writer, Rules(config.misses, config.mass_vanishing)),
        snmp=snmp,
        leases=LocalLeases(),
        bus=bus,
        clock=clock,
        brand=brand,
        brands=BRANDS.values,
        candidates=candidates,
        raw_decoders={name: decoder.decode for name, decoder in RAW_DECODERS.items()},
    )
    scheduler = Scheduler(
        pollers=config.pollers,
        nodes=nodes,
        ledger=ledger,
        runner=runner,
        clock=clock,
        on_tick=lambda manager: bus.publish("snapshot", snapshot(manager, clock.now())),
    )
    journal = Journal(bus=bus, clock=clock, thread=writer, events=events, worker=worker)
    return Engine(scheduler, journal, bus, snmp, (reader, writer))
