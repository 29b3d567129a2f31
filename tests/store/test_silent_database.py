"""A database that accepts a statement and never answers blocks no caller forever."""

import asyncio
import threading
from contextlib import closing

import pytest
from django.db import OperationalError, connection

from facho.store import database
from facho.store.database import DbThread, is_away

SLEEP = "SELECT pg_sleep(3600)"


def sleep_for_an_hour():
    with connection.cursor() as cursor:
        cursor.execute(SLEEP)


def say_seven():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        return cursor.fetchone()[0]


@pytest.fixture
def thread(transactional_db):
    """A thread that is patient for a moment only."""
    if connection.vendor != "postgresql":
        pytest.skip("there is nobody to hang up on")
    with closing(DbThread("impatient", longest_silence=0.3)) as thread:
        yield thread
    # A server finds out that somebody hung up when it has something to say.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = %s", [SLEEP])


async def test_a_statement_that_is_never_answered_ends_as_if_the_server_had_gone(thread):
    with pytest.raises(OperationalError) as caught:
        await thread.run(sleep_for_an_hour)

    assert is_away(caught.value)
    assert await thread.run(say_seven) == 7


async def test_as_long_as_an_answer_is_owed_there_is_silence(make_thread):
    thread, begun, answer = make_thread("asked"), threading.Event(), threading.Event()
    before = thread.silence
    asking = asyncio.create_task(thread.run(lambda: (begun.set(), answer.wait(60))))
    await asyncio.to_thread(begun.wait, 60)
    meanwhile = thread.silence
    answer.set()
    await asking

    assert (before, thread.silence) == (0.0, 0.0)
    assert meanwhile > 0


async def test_what_waited_behind_it_gets_its_turn(thread):
    stuck = asyncio.create_task(thread.run(sleep_for_an_hour))
    behind = asyncio.create_task(thread.run(say_seven))

    assert await behind == 7
    assert isinstance(stuck.exception(), OperationalError)


async def test_it_is_broken_off_although_nobody_waits_for_it_any_more(thread):
    stuck = asyncio.create_task(thread.run(sleep_for_an_hour))
    await asyncio.sleep(0)

    stuck.cancel()

    assert await thread.run(say_seven) == 7


async def test_closing_waits_for_no_server_that_hangs(thread):
    stuck = asyncio.create_task(thread.run(sleep_for_an_hour))
    await asyncio.sleep(0)

    # In a thread, so that nobody but the close itself can break it off.
    await asyncio.to_thread(thread.close)

    assert isinstance((await asyncio.gather(stuck, return_exceptions=True))[0], OperationalError)


async def test_long_work_is_not_silence_as_long_as_its_statements_are_answered(make_thread, monkeypatch):
    thread, now = make_thread("patient"), [0.0]
    monkeypatch.setattr(database, "monotonic", lambda: now[0])
    silences = []

    def work():
        for _ in range(3):
            now[0] += 50.0
            silences.append(thread._call.silence)
            say_seven()
            silences.append(thread._call.silence)

    await thread.run(work)

    assert silences == [50.0, 0.0] * 3


async def test_work_that_waits_for_its_turn_is_not_silent():
    thread = DbThread("busy", longest_silence=0.01)
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        go_on.wait()
        return 7

    first = asyncio.create_task(thread.run(work))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(thread.run(lambda: 8))
    await asyncio.sleep(0.05)
    go_on.set()

    assert (await first, await second) == (7, 8)
    thread.close()


async def test_work_that_nobody_waits_for_any_more_before_it_began_is_not_watched_forever():
    thread = DbThread("busy", longest_silence=0.01)
    begun, go_on, done = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        go_on.wait()

    first = asyncio.create_task(thread.run(work))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(thread.run(lambda: done.append(8)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go_on.set()
    await first
    looks = []
    thread._look = lambda *_: looks.append(_)
    await asyncio.sleep(0.05)

    assert (done, looks) == ([], [])
    thread.close()
