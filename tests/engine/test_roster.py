"""Which workers are counted on: those that were heard of lately and take work."""

import logging

import pytest

from facho.engine.scheduling.workers import SILENT_AFTER, Roster


def report(worker="noc-1", numbers=(1, 2), draining=False):
    return {"worker": worker, "draining": draining, "pollers": [{"id": number} for number in numbers]}


@pytest.fixture
def roster():
    return Roster()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "facho.engine.scheduling.workers")
    return lambda: [record.event.name for record in caplog.records]


def test_nobody_has_been_heard_of_at_first(roster):
    assert (roster.seats, roster.pollers) == (0, [])


def test_the_pollers_of_all_workers_are_counted_and_listed_by_number(roster):
    roster.heard(report("noc-2", (3, 4, 5)), 0.0)
    roster.heard(report("noc-1", (1, 2)), 0.0)

    assert roster.seats == 5
    assert [poller["id"] for poller in roster.pollers] == [1, 2, 3, 4, 5]


def test_the_last_report_of_a_worker_is_the_one_that_counts(roster, told):
    roster.heard(report(numbers=(1, 2)), 0.0)
    roster.heard(report(numbers=(1,)), 1.0)

    assert roster.seats == 1
    assert told() == ["WORKER_JOINED"]


def test_a_worker_that_drains_is_given_nothing_and_still_shown(roster, told):
    roster.heard(report(), 0.0)
    roster.heard(report(draining=True), 1.0)
    roster.heard(report(draining=True), 2.0)

    assert roster.seats == 0
    assert len(roster.pollers) == 2
    assert told() == ["WORKER_JOINED", "WORKER_DRAINED"]


def test_a_worker_that_cannot_reach_the_database_is_given_nothing_until_it_can(roster, told):
    cut_off = {**report(), "cut_off": True}

    seats = []
    for number, said in enumerate([report(), cut_off, cut_off, report()]):
        roster.heard(said, float(number))
        seats.append(roster.seats)

    assert seats == [2, 0, 0, 2]
    assert len(roster.pollers) == 2
    assert told() == ["WORKER_JOINED", "WORKER_CUT_OFF", "WORKER_BACK"]


def test_workers_are_cut_off_when_none_reaches_the_database(roster):
    is_cut_off = [roster.is_cut_off]
    for worker, flag in (("noc-1", True), ("noc-2", False), ("noc-2", True)):
        roster.heard({**report(worker), "cut_off": flag}, 0.0)
        is_cut_off.append(roster.is_cut_off)

    assert is_cut_off == [False, True, False, True]


def test_a_worker_that_comes_while_it_is_cut_off_is_told_of_too(roster, told):
    roster.heard({**report(), "cut_off": True}, 0.0)

    assert roster.seats == 0
    assert told() == ["WORKER_JOINED", "WORKER_CUT_OFF"]


def test_who_is_silent_for_some_seconds_leaves_the_list(roster, told):
    roster.heard(report("noc-1"), 0.0)
    roster.heard(report("noc-2", (3,)), 1.0)

    roster.forget_silent(SILENT_AFTER)
    assert roster.seats == 3

    roster.forget_silent(SILENT_AFTER + 0.001)
    assert [poller["id"] for poller in roster.pollers] == [3]
    assert told()[-1] == "WORKER_LEFT"


def test_a_worker_that_had_said_it_would_go_is_not_missed(roster, told):
    roster.heard(report(draining=True), 0.0)

    roster.forget_silent(60.0)

    assert roster.pollers == []
    assert "WORKER_LEFT" not in told()


def test_one_that_comes_back_is_counted_again(roster, told):
    roster.heard(report(), 0.0)
    roster.forget_silent(60.0)
    roster.heard(report(), 61.0)

    assert roster.seats == 2
    assert told() == ["WORKER_JOINED", "WORKER_LEFT", "WORKER_JOINED"]
