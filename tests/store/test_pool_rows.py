"""The pollers of all workers as rows: numbers that nobody shares, and no trace of who is gone."""

import asyncio
from datetime import timedelta

import pytest
from builders import SEC, T0

from facho.apps.polling.models import Poller, PollerStats
from facho.store import events
from facho.store.events import GONE_AFTER, Pool, enlist


def described(number, worker="noc-1", **more):
    return {
        "id": number,
        "worker": worker,
        "host": "noc",
        "status": "FREE",
        "olt_id": None,
        "node_id": None,
        "link": None,
        "links": None,
        "busy_since": None,
        "busy_time": 0.0,
        "total_time": 1.0,
        "tasks_completed": 0,
        "tasks_delayed": 0,
        "created_at": T0.isoformat(),
    } | more


@pytest.mark.django_db
def test_workers_get_the_lowest_numbers_that_are_free():
    assert enlist("noc-1", "a", 2, T0) == [1, 2]
    assert enlist("noc-2", "b", 3, T0) == [3, 4, 5]

    events.strike_out("noc-1", [1, 2])

    assert enlist("noc-3", "c", 3, T0) == [1, 2, 6]


@pytest.mark.django_db
def test_numbers_of_a_worker_that_is_gone_are_free_after_a_while():
    enlist("noc-1", "a", 2, T0)

    assert enlist("noc-2", "b", 1, T0 + GONE_AFTER) == [3]
    assert enlist("noc-3", "c", 2, T0 + GONE_AFTER + SEC) == [1, 2]


@pytest.mark.django_db
def test_a_worker_that_comes_again_under_its_name_has_no_more_pollers_than_before():
    enlist("noc-1", "a", 3, T0)

    assert enlist("noc-1", "a", 2, T0 + SEC) == [1, 2]
    assert Poller.objects.count() == 2


@pytest.mark.django_db
def test_a_worker_that_was_cut_off_finds_its_numbers_taken_and_leaves_them_alone():
    enlist("noc-1", "a", 2, T0)
    assert events.keep_pollers([described(1), described(2)], T0 + SEC)

    late = T0 + GONE_AFTER + 2 * SEC
    enlist("noc-2", "b", 1, late)
    is_kept = events.keep_pollers([described(1), described(2)], late)

    assert not is_kept
    assert list(Poller.objects.values_list("poller_id", "worker")) == [(1, "noc-2")]
    assert enlist("noc-1", "a", 2, late) == [2, 3]


@pytest.mark.django_db
def test_a_worker_that_was_struck_out_and_comes_back_has_its_numbers_if_nobody_took_them():
    events.keep_pollers([described(1), described(2)], T0)

    assert list(Poller.objects.values_list("poller_id", "worker")) == [(1, "noc-1"), (2, "noc-1")]


async def test_workers_that_start_together_share_no_number(make_thread):
    threads = [make_thread(f"worker-{number}") for number in range(3)]

    numbers = await asyncio.gather(
        *(thread.run(lambda name=f"noc-{number}": enlist(name, "host", 4, T0)) for number, thread in enumerate(threads))
    )

    assert sorted(number for each in numbers for number in each) == list(range(1, 13))


@pytest.mark.django_db
def test_the_scheduler_strikes_out_the_dead_and_leaves_the_rest_to_their_workers():
    enlist("noc-1", "a", 1, T0)
    enlist("noc-2", "b", 1, T0)
    events.write_pollers([described(2, "noc-2", status="BUSY", olt_id=7)], T0 + GONE_AFTER)

    at = T0 + GONE_AFTER + timedelta(seconds=1)
    stats = dict.fromkeys(events.STATS, 0) | {"is_saturated": False}
    Pool(owns_pollers=False).write({"at": at.isoformat(), "pollers": [described(9)], "stats": stats})

    (left,) = Poller.objects.all()
    assert (left.poller_id, left.worker, left.status, left.current_olt_id) == (2, "noc-2", "BUSY", 7)
    assert PollerStats.objects.count() == 1
