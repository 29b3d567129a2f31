"""What slots and runs report to their observer: each execution once, when its end is in the database."""

from collections import Counter

import pytest
from builders import MIN, SEC, T0
from django.db import DataError
from worlds import DbWorld, InSavepoint, by_hand, done, scheduled

from facho.engine.errors import LeaseLost
from facho.engine.model import Cause, Collected, Completeness, Outcome, Reading, RunResult, Skipped, Status
from facho.engine.observer import Observer
from facho.store import runs
from facho.store.runs import DbResults, DbRuns
from facho.store.slots import DbSlots

pytestmark = pytest.mark.django_db

SUCCESS = Outcome(Status.SUCCESS, readings=1)
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


class Noted(Observer):
    """Keeps what is reported to it."""

    def __init__(self):
        self.slots, self.manual, self.retries = Counter(), Counter(), 0
        self.stored, self.failed = [], []

    def slots_ended(self, status, cause, count):
        self.slots[status.value, cause.value if cause else ""] += count

    def manual_runs_ended(self, status, count):
        self.manual[status.value] += count

    def retries_planned(self, count):
        self.retries += count

    def result_stored(self, result, seconds):
        self.stored.append(result.execution_ids)

    def result_failed(self, error):
        self.failed.append(type(error).__name__)


@pytest.fixture
def noted():
    return Noted()


@pytest.fixture
def world(noted):
    world = DbWorld()
    world.slots = DbSlots(InSavepoint(), observer=noted)
    world.runs = DbRuns(InSavepoint(), InSavepoint(), DbResults(InSavepoint(), observer=noted))
    return world


@pytest.fixture
def power(world):
    return world.add("Optical power", next_check=T0)


@pytest.fixture
def running(world, power):
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    return id_


def result(world, power, id_, outcome=SUCCESS):
    collected = Collected(Completeness.COMPLETE, (Reading("1.7", 0, 1, 7, {"rx_dbm": -21.53}),))
    return RunResult((id_,), outcome, world.lease(), T0 + 1 * SEC, power, collected)


def test_a_result_that_is_delivered_three_times_is_counted_once(world, power, running, noted):
    for _ in range(3):
        done(world.runs.finish(result(world, power, running)))

    assert (noted.slots, noted.stored, noted.failed) == ({("SUCCESS", ""): 1}, [(running,)], [])


def test_a_retry_is_no_end_of_the_slot(world, running, noted):
    world.put_off([running], SILENT, retry_at=T0 + 2 * MIN)

    assert (noted.retries, noted.slots) == (1, {})


def test_a_manual_run_is_no_slot(world, power, noted):
    world.wish(power, T0)
    (id_,) = world.claim(by_hand(power)).execution_ids
    world.start(id_)
    world.close([id_], SILENT)

    assert (noted.manual, noted.slots) == ({"FAILED": 1}, {})


def test_skipped_slots_count_with_those_of_their_chain(world, power, noted):
    names = world.add("Names", master_id=power.id)

    world.reschedule({}, Skipped(power, T0, 4, Cause.ENGINE_DOWN, (names,)))
    world.reschedule({}, Skipped(power, T0, 4, Cause.ENGINE_DOWN, (names,)))

    assert noted.slots == {("SKIPPED", "engine_down"): 8}


def test_slots_that_passed_while_one_waited_are_put_down_to_the_longest_wait(world, power, noted):
    waits = {Cause.OLT_BUSY: 600.0, Cause.NO_FREE_POLLER: 60.0}

    world.claim(scheduled(power), now=T0 + 11 * MIN, waits=waits)

    assert noted.slots == {("SKIPPED", "olt_busy"): 2}


def test_executions_that_are_stopped_by_disabling_their_olt_are_counted_once(world, power, running, noted):
    assert world.abort(olts=[world.olt_id]) == 1
    # What the runner that was stopped reports then.
    world.close([running], Outcome(Status.INTERRUPTED, Cause.STOPPED))

    assert noted.slots == {("INTERRUPTED", "disabled"): 1}


def test_executions_of_a_dead_engine_are_counted(world, running, noted):
    done(world.slots.recover(T0 + 1 * MIN))

    assert noted.slots == {("INTERRUPTED", "engine_down"): 1}


def test_executions_that_never_started_are_counted_when_they_are_closed(world, power, noted):
    claim = world.claim(scheduled(power))

    done(world.slots.close(claim.execution_ids, Outcome(Status.SKIPPED, Cause.NO_FREE_POLLER), now=T0))
    done(world.slots.close(claim.execution_ids, Outcome(Status.SKIPPED, Cause.NO_FREE_POLLER), now=T0))

    assert noted.slots == {("SKIPPED", "no_free_poller"): 1}


def test_a_result_that_could_not_be_stored_counts_as_that_and_nothing_else(world, power, running, noted, monkeypatch):
    def fail(*_, **_more):
        raise DataError("value out of range")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_columns", fail)
        with pytest.raises(DataError):
            done(world.runs.finish(result(world, power, running)))
    world.abort(olts=[world.olt_id])
    with pytest.raises(LeaseLost):
        done(world.runs.finish(result(world, power, running)))

    assert noted.failed == ["DataError", "LeaseLost"]
    assert (noted.slots, noted.stored) == ({("INTERRUPTED", "disabled"): 1}, [])
