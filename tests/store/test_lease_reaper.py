"""What a dead worker held ends by itself, and what anybody may still bring in does not."""

import pytest
from builders import SEC, T0
from clocks import HandClock

from facho.apps.inventory.models import Olt
from facho.apps.jobs.models import SnmpJob, WorkflowNode
from facho.apps.polling.models import Execution
from facho.apps.polling.models import Lease as LeaseRow
from facho.engine.model import Cause, Status
from facho.store import leases
from facho.store.recovery import GRACE, LONG_GRACE, LeaseReaper

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock():
    return HandClock(T0)


@pytest.fixture
def answered_for():
    return set()


@pytest.fixture
def spooling():
    return set()


@pytest.fixture
def reap(clock, answered_for, spooling):
    """Let one reaper look again, with what it is told then."""
    reaper = LeaseReaper(clock)
    return lambda: reaper.reap(clock.now(), answered_for=answered_for, spooling=spooling)


@pytest.fixture
def olt():
    return Olt.objects.create(name="OLT-CENTRAL-01", brand="huawei", host="127.0.0.1", community="public")


@pytest.fixture
def node(olt):
    job = SnmpJob.objects.create(name="Optical power", brand="huawei", kind="table", columns=["rx_dbm"])
    job.apply_to([olt])
    return WorkflowNode.objects.get()


@pytest.fixture
def running(olt, node):
    return Execution.objects.create(
        olt=olt, node=node, node_name="Optical power", slot=T0, status=Status.RUNNING, started_at=T0, lease_token=5
    )


def hold(olt, token=5):
    key = leases.key_of(olt.host_address.device)
    LeaseRow.objects.filter(key=key).delete()
    token_before = token - 1
    LeaseRow.objects.create(key=key, holder="noc-1/1", token=token_before, expires_at=leases.NEVER)
    assert leases.acquire(key, "noc-1/1", leases.OLT_TERMS.ttl) == token


def look(reap, clock, seconds):
    """Look every 5 s for so long, as the chore does, and return how many were ended."""
    ended = 0
    for _ in range(int(seconds // 5) + 1):
        ended += reap()
        clock.pass_by(5 * SEC)
    return ended


def test_what_a_living_holder_runs_is_left_alone(reap, clock, olt, running):
    hold(olt)

    assert look(reap, clock, 25) == 0


def test_what_a_dead_holder_ran_ends_after_some_grace_with_the_links_behind_it(reap, clock, olt, node, running):
    link = Execution.objects.create(
        olt=olt, node_name="Names", slot=T0, status=Status.PENDING, master_execution=running, claimed_at=T0
    )

    assert look(reap, clock, GRACE - 5) == 0
    assert reap() == 2
    for row in (running, link):
        row.refresh_from_db()
        assert (row.status, row.cause) == (Status.INTERRUPTED, Cause.LEASE_LOST)


def test_what_ran_under_an_earlier_lease_ends_although_the_olt_is_held_again(reap, clock, olt, running):
    hold(olt, token=6)

    assert look(reap, clock, GRACE) == 1


def test_a_link_that_waits_behind_a_running_one_is_left_alone(reap, clock, olt, running):
    hold(olt)
    Execution.objects.create(olt=olt, node_name="Names", slot=T0, status=Status.PENDING, master_execution=running)

    assert look(reap, clock, 25) == 0


def test_what_the_scheduler_has_in_hand_is_its_own_to_end(reap, clock, olt, node, answered_for):
    waiting = Execution.objects.create(olt=olt, node=node, node_name="Optical power", slot=T0, status=Status.PENDING)
    answered_for.add(waiting.pk)

    assert look(reap, clock, 60) == 0


def test_what_nobody_has_in_hand_ends(reap, clock, olt, node):
    Execution.objects.create(olt=olt, node=node, node_name="Optical power", slot=T0, status=Status.PENDING)

    assert look(reap, clock, GRACE) == 1


def test_after_a_database_outage_every_lease_has_a_new_grace(reap, clock, olt, running):
    assert look(reap, clock, 5) == 0

    clock.pass_by(600 * SEC)

    assert reap() == 0


def test_a_lease_that_is_held_again_starts_a_new_grace(reap, clock, olt, running):
    assert look(reap, clock, 5) == 0
    hold(olt)
    assert look(reap, clock, 5) == 0
    LeaseRow.objects.update(expires_at=leases.NEVER)

    assert look(reap, clock, 5) == 0


@pytest.mark.parametrize(
    ("says_so", "grace"),
    [("noc-1", LONG_GRACE), ("noc-2", GRACE)],
    ids=["its own worker", "another worker"],
)
def test_who_says_that_it_has_readings_has_longer_to_bring_them_in(reap, clock, olt, running, spooling, says_so, grace):
    hold(olt)
    LeaseRow.objects.update(expires_at=leases.NEVER)
    spooling.add(says_so)

    assert look(reap, clock, grace - 5) == 0
    assert reap() == 1
