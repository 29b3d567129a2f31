"""Results that are ready together share a commit, and one that fails does not undo the others."""

import asyncio

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from facho.apps.inventory.models import Olt
from facho.apps.telemetry.models import PonPort
from facho.store.group_commit import LARGEST_GROUP, GroupCommit


def add(name):
    def work():
        return Olt.objects.create(name=name, brand="huawei", host=f"127.0.0.{len(name)}", community="public").name

    return work


@pytest.fixture
def thread(make_thread):
    return make_thread("store-write")


class Counting:
    """A thread that counts how much work it is handed at a time."""

    def __init__(self, thread):
        self._thread = thread
        self.calls = 0
        self.is_asked = asyncio.Event()

    async def run(self, work):
        self.calls += 1
        self.is_asked.set()
        return await self._thread.run(work)


def names():
    return sorted(Olt.objects.values_list("name", flat=True))


async def test_work_that_is_ready_together_shares_one_commit(thread):
    counting = Counting(thread)
    group = GroupCommit(counting)

    results = await asyncio.gather(*(group.run(add("a" * size)) for size in range(1, 9)))

    assert results == ["a" * size for size in range(1, 9)]
    assert counting.calls == 1
    assert await thread.run(names) == results


async def test_work_that_comes_during_a_commit_shares_the_next_one(thread):
    counting = Counting(thread)
    group = GroupCommit(counting)
    first = asyncio.create_task(group.run(add("a")))
    await counting.is_asked.wait()

    await asyncio.gather(first, *(group.run(add("a" * size)) for size in range(2, 6)))

    assert counting.calls == 2


async def test_a_group_is_bounded(thread):
    counting = Counting(thread)
    group = GroupCommit(counting)

    await asyncio.gather(*(group.run(lambda: None) for _ in range(2 * LARGEST_GROUP + 1)))

    assert counting.calls == 3


async def test_one_that_fails_does_not_undo_the_others(thread):
    group = GroupCommit(thread)

    @transaction.atomic
    def fail():
        add("bb")()
        add("bb")()

    results = await asyncio.gather(group.run(add("a")), group.run(fail), group.run(add("ccc")), return_exceptions=True)

    assert (results[0], type(results[1]), results[2]) == ("a", IntegrityError, "ccc")
    assert await thread.run(names) == ["a", "ccc"]


async def test_when_the_database_fails_all_of_a_group_have_failed_and_nothing_is_there(thread):
    group = GroupCommit(thread)

    def lose():
        raise OperationalError("server closed the connection unexpectedly")

    results = await asyncio.gather(group.run(add("a")), group.run(lose), group.run(add("ccc")), return_exceptions=True)

    assert {type(result) for result in results} == {OperationalError}
    assert await thread.run(names) == []
    assert await group.run(add("again")) == "again"


async def test_work_whose_caller_is_stopped_is_done_all_the_same(thread):
    group = GroupCommit(thread)
    stopped = asyncio.create_task(group.run(add("a")))
    await asyncio.sleep(0)
    stopped.cancel()

    await group.run(add("bb"))

    assert stopped.cancelled() or stopped.done()
    assert await thread.run(names) == ["a", "bb"]


async def test_a_result_alone_has_a_transaction_of_its_own(thread):
    assert await GroupCommit(thread).run(lambda: connection.in_atomic_block) is False


async def test_a_group_that_met_a_deadlock_is_tried_again_one_by_one(thread):
    counting = Counting(thread)
    group = GroupCommit(counting)
    met = []

    def meets_a_deadlock_once():
        if not met:
            met.append(True)
            error = OperationalError("deadlock detected")
            error.__cause__ = psycopg.errors.DeadlockDetected("deadlock detected")
            raise error
        return add("bb")()

    results = await asyncio.gather(group.run(add("a")), group.run(meets_a_deadlock_once), group.run(add("ccc")))

    assert results == ["a", "bb", "ccc"]
    assert counting.calls == 4
    assert await thread.run(names) == results


async def test_one_that_catches_its_own_error_does_not_undo_the_others(thread):
    group = GroupCommit(thread)

    def is_new(name):
        def work():
            try:
                with transaction.atomic(savepoint=False):
                    add(name)()
            except IntegrityError:
                return False
            return True

        return work

    results = await asyncio.gather(*(group.run(is_new(name)) for name in ("a", "bb", "bb", "ccc")))

    assert results == [True, True, False, True]
    assert await thread.run(names) == ["a", "bb", "ccc"]


async def test_an_error_that_shows_at_the_commit_does_not_undo_the_others(thread):
    group = GroupCommit(thread)

    def refers_to_nothing():
        PonPort.objects.create(olt_id=10**6, slot=0, port=1)

    results = await asyncio.gather(group.run(add("a")), group.run(refers_to_nothing), return_exceptions=True)

    assert (results[0], type(results[1])) == ("a", IntegrityError)
    assert await thread.run(names) == ["a"]


async def test_work_that_is_ready_soon_shares_the_commit(thread):
    counting = Counting(thread)
    group = GroupCommit(counting, gathering=0.05)
    first = asyncio.create_task(group.run(add("a")))
    # It has begun to wait.
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    await asyncio.gather(first, group.run(add("bb")))

    assert counting.calls == 1
