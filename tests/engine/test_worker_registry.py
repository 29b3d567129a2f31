"""Which workers are counted on: those that were heard of lately and take work."""

import logging
from collections import Counter

import pytest

from facho.engine.scheduling.workers import SILENT_AFTER, WorkerRegistry

OLTS = range(1, 1001)


def report(worker="noc-1", numbers=(1, 2), draining=False, **more):
    return {"worker": worker, "draining": draining, "pollers": [{"id": number} for number in numbers], **more}


def with_queues(**pollers):
    """Return a registry of workers with this many pollers and a queue of the same name."""
    workers = WorkerRegistry()
    for queue, count in pollers.items():
        workers.update(report(f"{queue}/1", range(count), queue=queue), 0.0)
    return workers


def choices(workers):
    return {olt_id: workers.choose(olt_id, {}) for olt_id in OLTS}


@pytest.fixture
def workers():
    return WorkerRegistry()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "facho.engine.scheduling.workers")
    return lambda: [record.event.name for record in caplog.records]


def test_nobody_has_been_heard_of_at_first(workers):
    assert (workers.capacity, workers.pollers) == (0, [])


def test_the_pollers_of_all_workers_are_counted_and_listed_by_number(workers):
    workers.update(report("noc-2", (3, 4, 5)), 0.0)
    workers.update(report("noc-1", (1, 2)), 0.0)

    assert workers.capacity == 5
    assert [poller["id"] for poller in workers.pollers] == [1, 2, 3, 4, 5]


def test_the_last_report_of_a_worker_is_the_one_that_counts(workers, told):
    workers.update(report(numbers=(1, 2)), 0.0)
    workers.update(report(numbers=(1,)), 1.0)

    assert workers.capacity == 1
    assert told() == ["WORKER_JOINED"]


def test_a_worker_that_drains_is_given_nothing_and_still_shown(workers, told):
    workers.update(report(), 0.0)
    workers.update(report(draining=True), 1.0)
    workers.update(report(draining=True), 2.0)

    assert workers.capacity == 0
    assert len(workers.pollers) == 2
    assert told() == ["WORKER_JOINED", "WORKER_DRAINED"]


def test_a_worker_that_cannot_reach_the_database_is_given_nothing_until_it_can(workers, told):
    cut_off = {**report(), "cut_off": True}

    capacity = []
    for number, said in enumerate([report(), cut_off, cut_off, report()]):
        workers.update(said, float(number))
        capacity.append(workers.capacity)

    assert capacity == [2, 0, 0, 2]
    assert len(workers.pollers) == 2
    assert told() == ["WORKER_JOINED", "WORKER_CUT_OFF", "WORKER_BACK"]


def test_workers_are_cut_off_when_none_reaches_the_database(workers):
    is_cut_off = [workers.is_cut_off]
    for worker, flag in (("noc-1", True), ("noc-2", False), ("noc-2", True)):
        workers.update({**report(worker), "cut_off": flag}, 0.0)
        is_cut_off.append(workers.is_cut_off)

    assert is_cut_off == [False, True, False, True]


def test_a_worker_that_comes_while_it_is_cut_off_is_told_of_too(workers, told):
    workers.update({**report(), "cut_off": True}, 0.0)

    assert workers.capacity == 0
    assert told() == ["WORKER_JOINED", "WORKER_CUT_OFF"]


def test_who_is_silent_for_some_seconds_leaves_the_list(workers, told):
    workers.update(report("noc-1"), 0.0)
    workers.update(report("noc-2", (3,)), 1.0)

    workers.drop_silent(SILENT_AFTER)
    assert workers.capacity == 3

    workers.drop_silent(SILENT_AFTER + 0.001)
    assert [poller["id"] for poller in workers.pollers] == [3]
    assert told()[-1] == "WORKER_LEFT"


def test_a_worker_that_had_said_it_would_go_is_not_missed(workers, told):
    workers.update(report(draining=True), 0.0)

    workers.drop_silent(60.0)

    assert workers.pollers == []
    assert "WORKER_LEFT" not in told()


def test_one_that_comes_back_is_counted_again(workers, told):
    workers.update(report(), 0.0)
    workers.drop_silent(60.0)
    workers.update(report(), 61.0)

    assert workers.capacity == 2
    assert told() == ["WORKER_JOINED", "WORKER_LEFT", "WORKER_JOINED"]


def test_an_olt_has_the_same_worker_each_time_and_with_each_scheduler():
    assert choices(with_queues(a=10, b=10)) == choices(with_queues(b=10, a=10))


@pytest.mark.parametrize(
    ("pollers", "shares"),
    [
        pytest.param({"a": 10, "b": 10}, {"a": 500, "b": 500}, id="equal workers"),
        pytest.param({"a": 10, "b": 30}, {"a": 250, "b": 750}, id="by their pollers"),
        pytest.param({"a": 8, "b": 8, "c": 8, "d": 8}, dict.fromkeys("abcd", 250), id="four"),
        pytest.param({"a": 1}, {"a": 1000}, id="one"),
    ],
)
def test_olts_are_shared_out_by_pollers(pollers, shares):
    found = Counter(choices(with_queues(**pollers)).values())

    assert found.keys() == shares.keys()
    assert all(abs(found[queue] - share) < 50 for queue, share in shares.items())


def test_a_worker_that_joins_takes_its_share_and_moves_no_other_olt():
    before, after = choices(with_queues(a=10, b=10)), choices(with_queues(a=10, b=10, c=10))

    moved = {olt_id for olt_id in OLTS if before[olt_id] != after[olt_id]}
    assert {after[olt_id] for olt_id in moved} == {"c"}
    assert 250 < len(moved) < 420


def test_the_olts_of_a_worker_that_is_gone_are_shared_out_among_all_others():
    workers = with_queues(a=10, b=10, c=10)
    before = choices(workers)
    for worker in ("a", "b"):
        workers.update(report(f"{worker}/1", range(10), queue=worker), 60.0)
    workers.drop_silent(60.0)
    after = choices(workers)

    moved = {olt_id for olt_id in OLTS if before[olt_id] != after[olt_id]}
    assert {before[olt_id] for olt_id in moved} == {"c"}
    assert {after[olt_id] for olt_id in moved} == {"a", "b"}


def test_a_worker_that_restarts_has_the_olts_that_it_had():
    workers = with_queues(a=10, b=10)
    before = choices(workers)
    workers.update(report("a/1", (), draining=True, queue="a"), 1.0)
    workers.update(report("a/2", range(10), queue="a"), 2.0)

    assert choices(workers) == before


def test_an_olt_moves_while_its_worker_has_more_than_it_can_begin_soon():
    workers = with_queues(a=4, b=4)
    first = workers.choose(7, {})
    second = "b" if first == "a" else "a"

    found = [workers.choose(7, {first: taken, second: 0}) for taken in (3, 4, 5, 6, 7)]

    assert found == [first, first, first, second, second]
    assert workers.choose(7, {"a": 6, "b": 6}) is None


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({"draining": True}, id="it stops"),
        pytest.param({"cut_off": True}, id="it cannot reach the database"),
        pytest.param({"queue": ""}, id="it has no queue"),
        pytest.param({"numbers": ()}, id="it has no pollers"),
    ],
)
def test_a_worker_that_takes_no_work_is_not_chosen(workers, state):
    workers.update(report(**{"queue": "a", **state}), 0.0)

    assert workers.choose(7, {}) is None
