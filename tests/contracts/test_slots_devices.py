"""What slots and runs promise of OLTs that are one device: only one of their executions runs."""

from dataclasses import replace

import pytest
from builders import T0
from worlds import PRESENT, WORLDS, done, scheduled

from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Outcome, Status


@pytest.fixture(params=WORLDS)
def world(request, db):
    return request.param()


@pytest.fixture
def other_id(world):
    return world.add_olt("OLT-CENTRAL-TWIN", host="127.0.0.1")


@pytest.fixture
def ids(world, other_id):
    """One execution of each OLT."""
    nodes = [world.add("Power", next_check=T0), world.add("Power 2", olt_id=other_id, next_check=T0)]
    return [world.claim(scheduled(node)).execution_ids[0] for node in nodes]


def lease_of(world, olt_id, token=PRESENT):
    return replace(world.lease(token), olt_id=olt_id)


def test_the_second_one_is_refused_while_the_first_one_runs(world, other_id, ids):
    world.start(ids[0])

    with pytest.raises(OltBusy):
        done(world.runs.start(ids[1], lease=lease_of(world, other_id), now=T0))

    world.close([ids[0]], Outcome(Status.SUCCESS))
    assert done(world.runs.start(ids[1], lease=lease_of(world, other_id), now=T0))


def test_a_later_holder_of_the_device_ends_what_an_earlier_one_left_running(world, other_id, ids):
    world.start(ids[0])

    assert done(world.runs.start(ids[1], lease=lease_of(world, other_id, PRESENT + 1), now=T0))

    left = world.row(ids[0])
    assert (left.status, left.cause) == (Status.INTERRUPTED, Cause.LEASE_LOST)


def test_another_device_is_not_touched(world, other_id, ids):
    world.start(ids[0])

    elsewhere = replace(lease_of(world, other_id, PRESENT + 1), device="127.0.0.9:161")

    assert done(world.runs.start(ids[1], lease=elsewhere, now=T0))
    assert [world.row(id_).status for id_ in ids] == [Status.RUNNING] * 2


def test_an_attempt_that_is_put_off_leaves_the_device_to_others(world, other_id, ids):
    world.start(ids[0])
    world.put_off([ids[0]], Outcome(Status.FAILED), retry_at=T0)

    assert done(world.runs.start(ids[1], lease=lease_of(world, other_id), now=T0))


def test_olts_say_which_device_they_are(world, other_id):
    world.add("Power", next_check=T0)
    world.add("Power 2", olt_id=other_id, next_check=T0)

    standings = done(world.nodes.standings())

    assert standings[other_id].device == "127.0.0.1:161"
    assert done(world.nodes.olt(other_id)).agent.device == "127.0.0.1:161"
