"""With the database away for minutes nothing is lost, nothing is doubled, and every slot is accounted for."""

import logging
from datetime import timedelta
from random import Random

import pytest
from coordinator_world import START, balance
from spooling_office import MIN, ONUS, Office, doubled, gaps, unread

from facho.apps.coordinator.models import QuotaTracker
from facho.apps.polling.models import Execution, ExecutionAttempt
from facho.apps.telemetry.models import Onu

# No transaction around it all: a server ends one that is idle for as long as an outage.
pytestmark = pytest.mark.django_db(transaction=True)

SEC = timedelta(seconds=1)


@pytest.fixture
def make_office(tmp_path, caplog):
    """Open an office at some time of the day."""
    # An outage is a traceback a tick, and to write them all down takes longer than the outage.
    caplog.set_level(logging.CRITICAL, "facho")
    made = []

    def make(**how):
        made.append(Office(tmp_path / "spool", **how))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def office(make_office):
    return make_office()


def check(office):
    """Whatever happened: every reading is there once, every slot has its row, and the sums hold."""
    assert office.process.delivery.waiting == 0
    assert office.process.spool.refused() == []
    assert doubled() == []
    assert unread() == []
    assert gaps() == []
    assert balance() == []
    old = Execution.objects.filter(status__in=["PENDING", "RUNNING"], claimed_at__lt=office.now - 6 * MIN)
    # A retry that waits for its OLT to answer waits as long as its slot lasts: a quarter of an hour for a discovery.
    assert list(old.exclude(retry_at__isnull=False, slot__gt=office.now - 15 * MIN).values()) == []
    assert not ExecutionAttempt.objects.filter(ended_at=None).exclude(execution__status="RUNNING").exists()
    # The OLTs that answer have answered: an outage is nobody's failure.
    assert list(runs(status="FAILED").exclude(olt__name="OLT-SUR-03")) == []
    # No ONU has gone anywhere, whatever the engine has missed.
    assert not Onu.objects.exclude(missing_since=None).exists()


def runs(**which):
    return Execution.objects.filter(**which).exclude(status="SKIPPED")


def go_until_something_runs(office, name):
    """Tick until this OLT is in the middle of a run."""
    for _ in range(600):
        office.run_for(2 * SEC)
        if Execution.objects.filter(olt__name=name, status="RUNNING").exists():
            return
    raise AssertionError(f"nothing ran on {name}")


def test_ten_minutes_without_a_database(office):
    office.run_for(12 * MIN)
    go_until_something_runs(office, "OLT-NORTE-02")
    before = runs().count()
    away = office.now
    office.machine.is_away = True
    office.run_for(2 * MIN)
    asked, waiting = office.network.asked(), office.process.delivery.waiting
    office.run_for(8 * MIN)
    nothing_new = office.network.asked() == asked
    office.machine.is_away = False
    back = office.now

    office.run_for(8 * MIN)

    # Runs that were under way ended on the disk, and nothing new was asked of any OLT.
    assert waiting >= 1
    assert nothing_new
    ended_meanwhile = runs(ended_at__gt=away, ended_at__lt=back)
    assert {run.status for run in ended_meanwhile.filter(olt__name="OLT-NORTE-02", started_at__lt=away)} == {"SUCCESS"}
    assert runs(started_at__gt=away, started_at__lt=back).count() == 0
    assert runs().count() > before
    assert runs(started_at__gte=back, status="SUCCESS", olt__name="OLT-CENTRAL-01").exists()
    check(office)
    # Two slots of five minutes went by, on each OLT that is polled at all.
    lost = Execution.objects.filter(
        status="SKIPPED", node_name="Optical power", olt__name="OLT-CENTRAL-01", slot__gt=away, slot__lt=back
    )
    assert sum(row.slots for row in lost) in (1, 2)


def test_an_outage_over_the_turn_of_the_hour_leaves_quotas_that_balance(make_office):
    office = make_office(start=START + 42 * MIN)
    office.run_for(10 * MIN)
    go_until_something_runs(office, "OLT-NORTE-02")
    office.machine.is_away = True
    office.run_for(14 * MIN)
    office.machine.is_away = False

    office.run_for(12 * MIN)

    check(office)
    rows = QuotaTracker.objects.filter(task_type="Optical power", olt__name="OLT-CENTRAL-01").order_by("period_start")
    first, second = rows
    assert (first.quota_pending, first.status != "IN_PROGRESS") == (0, True)
    # The slots of the outage are in the hours in which they were.
    assert first.quota_skipped >= 1
    assert second.quota_required == 12


def test_killed_in_the_middle_of_the_outage_what_was_collected_lands_at_the_next_start(office):
    office.run_for(12 * MIN)
    go_until_something_runs(office, "OLT-NORTE-02")
    office.machine.is_away = True
    office.run_for(2 * MIN)
    waiting = office.process.delivery.waiting
    running = set(runs(status="RUNNING").values_list("pk", flat=True))

    office.killed_for(3 * MIN)
    landed = set(runs(pk__in=running).values_list("status", flat=True))
    office.run_for(12 * MIN)

    assert waiting >= 1
    assert landed <= {"SUCCESS", "PARTIAL"}
    check(office)


@pytest.mark.parametrize("seed", range(3))
def test_outages_and_kills_at_random_points_lose_and_double_nothing(office, seed):
    random = Random(seed)
    office.run_for(5 * MIN)
    for _ in range(5):
        office.run_for(random.randint(1, 200) * SEC)
        if random.random() < 0.7:
            office.machine.is_away = True
            office.run_for(random.randint(1, 240) * SEC)
        if random.random() < 0.6:
            office.killed_for(random.randint(1, 120) * SEC)
        office.machine.is_away = False

    office.run_for(8 * MIN)

    check(office)
    assert runs(status="SUCCESS").count() > 8
    assert Onu.objects.filter(olt__name="OLT-CENTRAL-01").count() == ONUS
