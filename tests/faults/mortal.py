"""A process that can be killed at any step, with a database that may be unavailable and a disk that stays.

A step is a transaction of the database or an operation of the spool. The process
dies before one or after one, and from then on nothing that its code still does
has any effect.
"""

from pathlib import Path

from coordinator_world import BesideTheLoop
from django.db import OperationalError

from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots
from facho.store.spool import LIMIT, ResultDelivery, Spool


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
    """Stands in for the thread of the spool. What happens inside one of its commits is SQLite's promise."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def run(self, work):
        self._machine.step()
        result = await super().run(work)
        self._machine.step()
        return result


class Process:
    """The store of one process, from its start to its death."""

    def __init__(self, machine: Machine, folder: Path, limit_bytes: int = LIMIT, **more) -> None:
        self.machine = machine
        self.thread = DatabaseSide(machine)
        self.spool = Spool(folder / "1.sqlite3", limit_bytes)
        results = DbResults(self.thread)
        self.delivery = ResultDelivery(
            results.finish, spool=self.spool, thread=DiskSide(machine), ping=machine.ask, **more
        )
        self.slots = DbSlots(self.thread, settle=self.delivery.flush)
        self.runs = DbRuns(self.thread, self.thread, self.delivery)
        # The same without a spool, as another process has them.
        self.other_slots, self.other_runs = DbSlots(self.thread), DbRuns(self.thread, self.thread, results)

    def die(self) -> None:
        """Do what the system does for a process that is dead."""
        self.machine.is_dead = True
        self.spool.close()
