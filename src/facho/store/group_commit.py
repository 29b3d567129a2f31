"""Group commit: work of several runs that is ready together shares one transaction."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction

from facho.store.database import DbThread, is_away, is_conflict

# Maximum pieces of work per commit, to limit the time under the write lock.
LARGEST_GROUP = 16
# Seconds that the first piece waits for others.
GATHERING = 0.05

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Job:
    """Work that is ready to be committed, and the future of its caller."""

    work: Callable[[], Any]
    done: "asyncio.Future[Any]"


class GroupCommit:
    """Runs work in a `DbThread`; work that is ready together shares one commit.

    The first piece waits up to `gathering` seconds for others. Work that arrives during a commit is collected for the
    next one. If a piece fails, the group is rolled back and each piece is repeated in its own transaction, so it must
    be able to run twice. This is rare; savepoints would cost as much as the commits that they save. If the database
    is unavailable, all pieces of the group have failed.
    """

    def __init__(self, thread: DbThread, gathering: float = 0.0) -> None:
        self._thread = thread
        self._gathering = gathering
        self._ready: list[_Job] = []
        # Whether a commit is planned or in progress.
        self._is_active = False
        self._task: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        job = _Job(work, asyncio.get_running_loop().create_future())
        self._ready.append(job)
        if not self._is_active:
            self._is_active = True
            asyncio.get_running_loop().call_later(self._gathering, self._start)
        # Submitted work is done, even if its caller is cancelled.
        done: T = await asyncio.shield(job.done)
        return done

    def _start(self) -> None:
        self._task = asyncio.create_task(self._commit_all(), name="group-commit")

    async def _commit_all(self) -> None:
        try:
            while self._ready:
                jobs, self._ready = self._ready[:LARGEST_GROUP], self._ready[LARGEST_GROUP:]
                await self._commit(jobs)
        finally:
            self._is_active, self._task = False, None

    async def _commit(self, jobs: Sequence[_Job]) -> None:
        try:
            outcomes = await self._thread.run(lambda: _together([job.work for job in jobs]))
        except BaseException as error:
            if len(jobs) > 1 and isinstance(error, Exception) and (is_conflict(error) or not is_away(error)):
                for job in jobs:
                    await self._commit([job])
                return
            for job in jobs:
                _resolve(job.done, error)
            if not isinstance(error, Exception):
                raise
        else:
            for job, outcome in zip(jobs, outcomes, strict=True):
                _resolve(job.done, outcome)


def _resolve(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
        # Its caller may have been cancelled.
        future.exception()
    else:
        future.set_result(outcome)


class GroupRolledBack(Exception):
    """A piece of work caught a database error, so the shared transaction cannot be committed."""


def _together(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run several pieces of work in one transaction, and return their results. Raises the first error."""
    if len(works) == 1:
        return [works[0]()]
    with transaction.atomic():
        outcomes = [work() for work in works]
        if transaction.get_rollback():
            raise GroupRolledBack
    return outcomes
