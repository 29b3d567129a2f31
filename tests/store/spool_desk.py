"""The ports of a runner with a spool behind them, and a store that goes away when a test says so."""

import psycopg
from builders import SEC, T0, make_node
from django.db import OperationalError
from worlds import Inline

from facho.engine.events import Event
from facho.engine.model import Claim, Collected, Completeness, Lease, Outcome, Reading, Recovery, Status, Traffic
from facho.store.forwarder import Forwarder
from facho.store.spool import LIMIT, Spool
from facho.store.spooling import SpoolingLedger, SpoolingSink

NODE = make_node(1, olt_id=7)
LEASE = Lease(7, "noc/3", 200)
HARVEST = Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {"rx_dbm": -21.53, "last_up": T0}),))
DONE = Outcome(Status.SUCCESS, readings=1, completeness=Completeness.COMPLETE, traffic=Traffic(pdus=9))
AWAY = OperationalError("could not connect to server")


class Store:
    """A sink and a ledger that note down what they are told. `errors` are by what they befall."""

    def __init__(self):
        self.heard = []
        # Of harvests, those that may have been heard before.
        self.again = []
        self.errors = {}
        self.is_away = False
        self.pings = 0

    def _hear(self, what, execution_id, *more):
        if self.is_away:
            raise AWAY
        if (what, execution_id) in self.errors:
            raise self.errors[what, execution_id]
        self.heard.append((what, execution_id, *more))

    def ping(self):
        self.pings += 1
        if self.is_away:
            raise AWAY

    async def write(self, node, execution_id, collected, *, lease, now):
        self._hear("harvest", execution_id, node, collected, lease, now)

    async def write_again(self, node, execution_id, collected, *, lease, now):
        self.again.append(execution_id)
        self._hear("harvest", execution_id, node, collected, lease, now)

    async def identified(self, node, execution_id, brand, seen, *, lease):
        self._hear("identification", execution_id, node, brand, seen, lease)

    async def known(self, olt_id):
        return ()

    async def close(self, execution_ids, outcome, *, lease, now):
        self._hear("end", execution_ids[0], execution_ids, outcome, lease, now)

    async def put_off(self, execution_ids, outcome, *, retry_at, lease, now):
        self._hear("postponement", execution_ids[0], execution_ids, outcome, retry_at, lease, now)

    async def claim(self, composite, *, poller_id, now, waits):
        self._hear("claim", composite.id)
        return Claim(composite, (1,), poller_id, None)

    async def reclaim(self, claim, *, poller_id, now):
        self._hear("reclaim", claim.execution_ids[0])
        return True

    async def start(self, execution_id, *, lease, now, poller_id=None):
        self._hear("start", execution_id, poller_id)
        return True

    async def recover(self, now):
        self._hear("recover", 0)
        return Recovery(3)

    @property
    def told(self):
        return [(what, execution_id) for what, execution_id, *_ in self.heard]


class Desk:
    """Both ports of a runner, in front of such a store."""

    def __init__(self, folder, limit_bytes=LIMIT):
        self.store = Store()
        self.folder = folder
        self.open(limit_bytes)

    def open(self, limit_bytes=LIMIT):
        self.spool = Spool(self.folder, limit_bytes)
        self.forwarder = Forwarder(
            sink=self.store,
            ledger=self.store,
            spool=self.spool,
            thread=Inline(),
            ping=self.store.ping,
        )
        self.sink = SpoolingSink(self.store, self.forwarder)
        self.ledger = SpoolingLedger(self.store, self.forwarder)

    async def write(self, execution_id=1, collected=HARVEST):
        await self.sink.write(NODE, execution_id, collected, lease=LEASE, now=T0)

    async def close(self, execution_id=1, outcome=DONE):
        await self.ledger.close([execution_id], outcome, lease=LEASE, now=T0 + SEC)

    async def start(self, execution_id=9):
        return await self.ledger.start(execution_id, lease=LEASE, now=T0, poller_id=3)


def caused(kind, cause):
    error = kind("no")
    error.__cause__ = cause
    return error


def of_sqlite(kind, cause, code):
    error = cause("no")
    error.sqlite_errorcode = code
    return caused(kind, error)


def of_postgres(kind, state):
    return caused(kind, psycopg.errors.lookup(state)("no"))


def events_in(caplog):
    """Return which events have been told, in order."""
    return [record.event for record in caplog.records if isinstance(getattr(record, "event", None), Event)]
