"""What an hour owes and got, row by row: kept by the same steps that claim, end, skip and disable."""

import logging

import pytest
from builders import HOUR, MIN, SEC, T0
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts.worlds import PRESENT, DbWorld, by_hand, done, scheduled
from facho.apps.coordinator.models import QuotaTracker
from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.engine.model import Cause, Outcome, Skipped, Status, Traffic
from facho.store.quotas import open_hour

pytestmark = pytest.mark.django_db

SUCCESS = Outcome(Status.SUCCESS, traffic=Traffic(pdus=3, rtt_p50=0.02))
SILENT = Outcome(Status.FAILED, Cause.UNREACHABLE, "no answer", "OltUnreachable")


@pytest.fixture
def world(db):
    return DbWorld()


@pytest.fixture
def power(world):
    """Optical power, every five minutes from the hour on."""
    return world.add("Optical power", next_check=T0)


def numbers(task="Optical power", hour=T0):
    """Return what was required, completed, failed, skipped and is pending; None where there is no row."""
    row = QuotaTracker.objects.filter(task_type=task, period_start=hour).first()
    if row is None:
        return None
    return row.quota_required, row.quota_completed, row.quota_failed, row.quota_skipped, row.quota_pending


def quota(task="Optical power", hour=T0):
    return QuotaTracker.objects.get(task_type=task, period_start=hour)


def run(world, node, slot, outcome, *, chain=(), took=9 * SEC):
    ids = world.claim(scheduled(node, *chain, slot=slot)).execution_ids
    for id_ in ids:
        world.start(id_, now=slot)
        world.close([id_], outcome, now=slot + took)


def test_an_hour_begins_with_all_its_slots_pending(world, power):
    world.add("Names", master_id=power.id)
    world.add("Discovery", interval=HOUR, next_check=T0 + 20 * MIN)
    world.add("Daily", interval=24 * HOUR, next_check=T0 + 5 * HOUR)
    world.add("Nobody put it on the grid")

    open_hour(T0)

    assert {row.task_type: row.quota_pending for row in QuotaTracker.objects.all()} == {
        "Optical power": 12,
        "Names": 12,
        "Discovery": 1,
    }
    row = quota()
    assert (row.olt_id, row.node_id, row.status) == (world.olt_id, power.id, "IN_PROGRESS")
    assert (row.period_start, row.period_end, row.quota_required) == (T0, T0 + HOUR, 12)


def test_opening_an_hour_again_changes_nothing(world, power):
    open_hour(T0)
    run(world, power, T0, SUCCESS)
    before = list(QuotaTracker.objects.values())

    with CaptureQueriesContext(connection) as queries:
        open_hour(T0 + 7 * MIN)

    assert list(QuotaTracker.objects.values()) == before
    assert not [each for each in queries if each["sql"].startswith("INSERT")]


def test_an_hour_that_is_opened_late_owes_what_was_and_what_is_to_come(world, power):
    run(world, power, T0, SUCCESS)
    world.claim(scheduled(power, slot=T0 + 5 * MIN))

    open_hour(T0 + 6 * MIN)

    assert numbers() == (12, 1, 0, 0, 11)


def test_a_slot_that_waits_since_the_hour_before_is_not_owed_to_this_one(world):
    world.add("Discovery", interval=2 * HOUR, next_check=T0 - 10 * MIN)
    world.add("State", interval=5 * MIN, next_check=T0 - 10 * MIN)

    open_hour(T0)

    assert numbers("Discovery") is None
    assert numbers("State") == (12, 0, 0, 0, 12)


@pytest.mark.parametrize(
    ("outcome", "expected", "causes"),
    [
        pytest.param(SUCCESS, (12, 1, 0, 0, 11), {}, id="success"),
        pytest.param(Outcome(Status.PARTIAL, error="cut"), (12, 1, 0, 0, 11), {}, id="partial brought readings"),
        pytest.param(SILENT, (12, 0, 1, 0, 11), {"unreachable": 1}, id="silence"),
        pytest.param(
            Outcome(Status.FAILED, None, "no", "Refused"), (12, 0, 1, 0, 11), {"Refused": 1}, id="an error by its kind"
        ),
        pytest.param(Outcome(Status.FAILED), (12, 0, 1, 0, 11), {"failed": 1}, id="a failure without a kind"),
        pytest.param(Outcome(Status.INTERRUPTED, Cause.STOPPED), (12, 0, 1, 0, 11), {"stopped": 1}, id="being stopped"),
        pytest.param(
            Outcome(Status.SKIPPED, Cause.OLT_BUSY), (12, 0, 0, 1, 11), {"olt_busy": 1}, id="skipped by the runner"
        ),
    ],
)
def test_each_end_is_counted_where_it_belongs(world, power, outcome, expected, causes):
    open_hour(T0)

    run(world, power, T0, outcome)

    assert (numbers(), quota().causes) == (expected, causes)


def test_a_claim_and_a_start_are_still_pending(world, power):
    open_hour(T0)

    (id_,) = world.claim(scheduled(power)).execution_ids
    claimed = numbers()
    world.start(id_)

    assert claimed == numbers() == (12, 0, 0, 0, 12)


def test_an_end_that_is_not_written_is_not_counted(world, power):
    open_hour(T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)

    world.close([id_], SUCCESS, token=PRESENT - 1)
    foreign = numbers()
    world.close([id_], SUCCESS)
    world.close([id_], SUCCESS)

    assert foreign == (12, 0, 0, 0, 12)
    assert numbers() == (12, 1, 0, 0, 11)


def test_a_slot_that_no_row_knows_raises_what_was_required(world, power):
    run(world, power, T0, SUCCESS)

    assert numbers() == (1, 1, 0, 0, 0)


def test_a_slot_belongs_to_its_own_hour_whenever_it_ends(world, power):
    open_hour(T0)
    world.reschedule({power.id: T0 + 55 * MIN}, now=T0 + 50 * MIN)

    run(world, power, T0 + 55 * MIN, SUCCESS, took=8 * MIN)

    assert numbers() == (1, 1, 0, 0, 0)
    assert numbers(hour=T0 + HOUR) is None


def test_what_a_person_asked_for_is_no_slot(world, power):
    open_hour(T0)
    world.wish(power, T0 + 1 * SEC)
    (id_,) = world.claim(by_hand(power, slot=T0 + 1 * SEC)).execution_ids
    world.start(id_)
    open_hour(T0 + 1 * MIN)
    asked = numbers()

    world.close([id_], SILENT)

    assert asked == numbers() == (12, 0, 0, 0, 12)


def test_the_time_of_all_attempts_is_kept_and_that_between_them_is_not(world, power):
    open_hour(T0)
    claim = world.claim(scheduled(power))
    (id_,) = claim.execution_ids
    world.start(id_, now=T0)
    world.put_off([id_], SILENT, retry_at=T0 + 2 * MIN, now=T0 + 15 * SEC)
    waiting = numbers()
    world.reclaim(claim, now=T0 + 2 * MIN)
    world.start(id_, token=PRESENT + 1, now=T0 + 2 * MIN)

    world.close([id_], SUCCESS, token=PRESENT + 1, now=T0 + 2 * MIN + 2.5 * SEC)

    assert waiting == (12, 0, 0, 0, 12)
    assert numbers() == (12, 1, 0, 0, 11)
    assert (quota().total_duration_ms, quota().avg_duration_ms) == (17_500, 17_500)


def test_the_mean_time_of_a_run_follows_with_each_end_and_leaves_skipped_slots_out(world, power):
    open_hour(T0)
    before = quota().avg_duration_ms
    run(world, power, T0, SUCCESS, took=9 * SEC)
    run(world, power, T0 + 5 * MIN, SILENT, took=15 * SEC)
    run(world, power, T0 + 10 * MIN, Outcome(Status.SKIPPED, Cause.OLT_BUSY), took=0 * SEC)

    assert (before, quota().avg_duration_ms) == (None, 12_000)
    assert list(QuotaTracker.objects.filter(avg_duration_ms__gt=10_000)) == [quota()]


def test_slots_slept_through_are_skipped_for_the_whole_chain(world, power):
    names = world.add("Names", master_id=power.id)
    open_hour(T0)

    world.claim(scheduled(power, names), now=T0 + 17 * MIN, waits={Cause.OLT_BUSY: 900.0})

    assert numbers() == numbers("Names") == (12, 0, 0, 3, 9)
    assert quota("Names").causes == {"olt_busy": 3}


def test_lost_slots_are_counted_in_their_hours_and_once(world, power):
    names = world.add("Names", master_id=power.id)
    open_hour(T0)
    lost = Skipped(power, T0 + 30 * MIN, 6 + 12 + 2, Cause.ENGINE_DOWN, (names,))
    world.reschedule({power.id: T0 + 30 * MIN}, now=T0 + 26 * MIN)

    for _ in range(2):
        world.reschedule({power.id: T0 + 2 * HOUR + 10 * MIN}, lost, now=T0 + 2 * HOUR + 7 * MIN)

    for task in ("Optical power", "Names"):
        assert numbers(task) == (6, 0, 0, 6, 0)
        assert numbers(task, T0 + HOUR) == (12, 0, 0, 12, 0)
        assert numbers(task, T0 + 2 * HOUR) == (12, 0, 0, 2, 10)
        assert quota(task, T0 + HOUR).causes == {"engine_down": 12}


def test_a_link_that_was_deleted_has_no_slots_to_lose(world, power):
    names = world.add("Names", master_id=power.id)
    world.delete(names)

    world.reschedule({}, Skipped(power, T0, 1, Cause.OLT_BUSY, (names,)), now=T0 + 5 * MIN)

    assert numbers()[3] == 1
    assert numbers("Names") is None


def test_slots_lost_while_waiting_are_counted_as_they_pass(world, power):
    open_hour(T0)

    world.reschedule({power.id: T0 + 5 * MIN}, Skipped(power, T0, 1, Cause.BREAKER_OPEN), now=T0 + 5 * MIN)

    assert (numbers(), quota().causes) == ((12, 0, 0, 1, 11), {"breaker_open": 1})


def test_a_new_interval_is_owed_from_now_on(world, power):
    open_hour(T0)
    run(world, power, T0, SUCCESS)
    SnmpJob.objects.update(interval_seconds=600)

    world.reschedule({power.id: T0 + 10 * MIN}, now=T0 + 3 * MIN)

    assert numbers() == (6, 1, 0, 0, 5)


def test_a_node_enabled_within_the_hour_owes_the_rest_of_it(world):
    names = world.add("Names", next_check=None)
    open_hour(T0)

    world.reschedule({names.id: T0 + 41 * MIN}, now=T0 + 40 * MIN)

    assert numbers("Names") == (4, 0, 0, 0, 4)


def test_a_disabled_node_owes_only_what_came(world, power, caplog):
    caplog.set_level(logging.INFO)
    names = world.add("Names", master_id=power.id)
    open_hour(T0)
    run(world, power, T0, SUCCESS, chain=[names])
    waiting = world.claim(scheduled(power, names, slot=T0 + 5 * MIN))
    world.disable_node(power)

    world.abort(nodes=[power], now=T0 + 6 * MIN)
    world.reschedule({power.id: None}, now=T0 + 6 * MIN)

    assert len(waiting.execution_ids) == 2
    for task in ("Optical power", "Names"):
        assert numbers(task) == (2, 1, 1, 0, 0)
        assert (quota(task).status, quota(task).causes) == ("INTERRUPTED", {"disabled": 1})
    assert [record.event.name for record in caplog.records if hasattr(record, "event")] == ["QUOTA_INTERRUPTED"]


def test_a_disabled_link_owes_nothing_while_its_master_goes_on(world, power):
    names = world.add("Names", master_id=power.id)
    open_hour(T0)
    world.disable_node(names)

    world.abort(nodes=[names], now=T0 + 1 * MIN)

    assert (numbers("Names"), quota("Names").status) == ((0, 0, 0, 0, 0), "INTERRUPTED")
    assert (numbers(), quota().status) == ((12, 0, 0, 0, 12), "IN_PROGRESS")


def test_what_runs_of_a_disabled_node_is_still_owed(world, power):
    open_hour(T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    world.disable_node(power)
    world.abort(nodes=[power])
    world.reschedule({power.id: None})
    running = numbers()

    world.close([id_], SUCCESS)

    assert running == (1, 0, 0, 0, 1)
    assert (numbers(), quota().status) == ((1, 1, 0, 0, 0), "INTERRUPTED")


def test_disabling_an_olt_interrupts_its_hour_and_enabling_it_goes_on(world, power, caplog):
    caplog.set_level(logging.INFO)
    open_hour(T0)
    (id_,) = world.claim(scheduled(power)).execution_ids
    world.start(id_)
    world.disable()
    world.abort(olts=[world.olt_id], now=T0 + 3 * MIN)
    world.reschedule({power.id: None}, now=T0 + 3 * MIN)
    off = numbers(), quota().status
    world.enable()

    world.reschedule({power.id: T0 + 31 * MIN}, now=T0 + 30 * MIN)

    assert off == ((1, 0, 1, 0, 0), "INTERRUPTED")
    assert (numbers(), quota().status) == ((7, 0, 1, 0, 6), "IN_PROGRESS")
    told = [(each.event.name, each.getMessage()) for each in caplog.records if hasattr(each, "event")]
    assert told == [("QUOTA_INTERRUPTED", "OLT-CENTRAL-01: the quotas of this hour were interrupted")]


def test_a_deleted_node_owes_nothing_any_more(world, power):
    names = world.add("Names", next_check=T0 + 1 * MIN)
    open_hour(T0)
    waiting = world.claim(scheduled(power)).execution_ids
    world.start(waiting[0])
    world.put_off(waiting, SILENT, retry_at=T0 + 2 * MIN)
    world.delete(power)

    aborted = world.abort(nodes=[power], now=T0 + 1 * MIN)

    assert aborted == 1
    assert (numbers(), quota().status) == ((1, 0, 1, 0, 0), "INTERRUPTED")
    assert numbers(names.name) == (12, 0, 0, 0, 12)


def test_recovering_counts_what_a_dead_engine_left_open(world, power):
    open_hour(T0)
    world.start(world.claim(scheduled(power)).execution_ids[0])

    done(world.slots.recover(T0 + 1 * MIN))

    assert (numbers(), quota().causes) == ((12, 0, 1, 0, 11), {"engine_down": 1})


def test_pushing_an_older_holder_aside_counts_its_slot(world, power):
    names = world.add("Names", next_check=T0)
    open_hour(T0)
    world.start(world.claim(scheduled(power)).execution_ids[0], token=PRESENT - 1)

    world.start(world.claim(scheduled(names)).execution_ids[0], token=PRESENT)

    assert (numbers(), quota().causes) == ((12, 0, 1, 0, 11), {"lease_lost": 1})


def test_two_jobs_of_one_name_share_a_row(world, power):
    olt = Olt.objects.get()
    other = SnmpJob.objects.create(name=power.name, brand="", kind="identify", interval_seconds=1200)
    WorkflowNode.objects.create(olt=olt, job=other, next_run_at=T0)

    open_hour(T0)
    both = numbers()
    world.disable_node(power)
    open_hour(T0)

    assert both == (15, 0, 0, 0, 15)
    assert (numbers(), quota().status) == ((3, 0, 0, 0, 3), "IN_PROGRESS")


def test_a_row_that_went_wrong_is_set_right(world, power):
    open_hour(T0)
    QuotaTracker.objects.update(quota_pending=3, quota_required=3)

    open_hour(T0 + 1 * MIN)

    assert numbers() == (12, 0, 0, 0, 12)
