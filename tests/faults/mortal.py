"""A process that can be killed at any step, with a database that goes away and a disk that stays.

A step is whatever the world can see of it: a transaction, a file that is synced,
renamed or removed. The process dies before one or behind one, and from then on
nothing that its code still does has any effect.
"""

import os
from contextlib import contextmanager
from pathlib import Path

from coordinator_world import BesideTheLoop
from django.db import OperationalError

from facho.store.forwarder import Forwarder
from facho.store.ledger import DbLedger
from facho.store.spool import LIMIT, Spool
from facho.store.spooling import SpoolingLedger, SpoolingSink
from facho.store.writer import DbReadingSink


class Killed(BaseException):
    """The process is dead. No code of it may catch this."""


class Machine:
    """What a process and its database do: `kill_at` is the step at which it dies."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.kill_at = kill_at
        self.steps = 0
        self.is_dead = False
        self.is_away = False
        # So many transactions are committed whose answer never comes.
        self.lost_answers = 0

    def step(self) -> None:
        self.steps += 1
        self.is_dead = self.is_dead or self.steps == self.kill_at
        if self.is_dead:
            raise Killed

    def ask(self) -> None:
        """Ask the database for anything."""
        if self.is_away:
            raise OperationalError("could not connect to server")

    @contextmanager
    def disk(self, monkeypatch):
        """Let each thing that is done to a disk be a step."""
        with monkeypatch.context() as patch:
            for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
                patch.setattr(owner, name, self._stepping(getattr(owner, name)))
            yield

    def _stepping(self, work):
        def stepping(*args, **kwargs):
            self.step()
            result = work(*args, **kwargs)
            self.step()
            return result

        return stepping


class DatabaseSide(BesideTheLoop):
    """Stands in for the thread of the database."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def run(self, work):
        self._machine.step()
        self._machine.ask()
        result = await super().run(work)
        if self._machine.lost_answers:
            self._machine.lost_answers -= 1
            raise OperationalError("server closed the connection unexpectedly")
        self._machine.step()
        return result


class DiskSide(BesideTheLoop):
    """Stands in for the thread of the spool, as far as it is about its files."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def run(self, work):
        if self._machine.is_dead:
            raise Killed
        return await super().run(work)


class Process:
    """The store of one process, from its start to its death."""

    def __init__(self, machine: Machine, folder: Path, limit_bytes: int = LIMIT, **more) -> None:
        self.machine = machine
        self.thread = DatabaseSide(machine)
        self.spool = Spool(folder, limit_bytes)
        self.db_ledger, self.db_sink = DbLedger(self.thread), DbReadingSink(self.thread, self.thread)
        self.forwarder = Forwarder(
            sink=self.db_sink,
            ledger=self.db_ledger,
            spool=self.spool,
            thread=DiskSide(machine),
            ping=machine.ask,
            **more,
        )
        self.ledger = SpoolingLedger(self.db_ledger, self.forwarder)
        self.sink = SpoolingSink(self.db_sink, self.forwarder)

    def die(self) -> None:
        """Do what the system does for a process that is dead."""
        self.machine.is_dead = True
        self.spool.close()
