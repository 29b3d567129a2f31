"""What every node source promises: what an operator wants, and a number that says when that changed."""

from datetime import UTC, datetime

import pytest
from builders import HOUR, MIN, SEC, T0
from worlds import WORLDS, done, scheduled

from facho.engine.errors import OltGone
from facho.engine.maintenance import Window
from facho.engine.model import JobKind, Outcome, Status


@pytest.fixture(params=WORLDS)
def world(request, db):
    return request.param()


@pytest.fixture
def power(world):
    return world.add("Optical power", interval=7 * MIN, next_check=T0, priority=55)


def revision(world):
    standing = done(world.nodes.standings()).get(world.olt_id)
    return standing.revision if standing else None


def fingerprint(world):
    return done(world.nodes.fingerprints()).get(world.olt_id)


def test_a_node_says_what_to_ask_and_when(world, power):
    names = world.add("Names", master_id=power.id)

    master, chained = world.polled()

    assert (master.id, master.olt_id, master.name, master.olt_name) == (
        power.id,
        world.olt_id,
        "Optical power",
        "OLT-CENTRAL-01",
    )
    assert (master.kind, master.interval, master.priority) == (JobKind.TABLE, 7 * MIN, 55)
    assert (master.master_id, master.next_check, master.run_requested_at) == (None, T0, None)
    assert (chained.id, chained.master_id, chained.next_check) == (names.id, power.id, None)


def test_only_the_olts_asked_for_are_read(world, power):
    assert done(world.nodes.states([world.olt_id + 1])) == {}
    assert done(world.nodes.states([])) == {}
    assert list(done(world.nodes.states([world.olt_id, world.olt_id + 1]))) == [world.olt_id]


def test_a_disabled_olt_has_no_revision_no_nodes_and_may_not_be_asked(world, power):
    world.disable()

    assert revision(world) is None
    assert fingerprint(world) is None
    assert done(world.nodes.states([world.olt_id])) == {}
    with pytest.raises(OltGone):
        done(world.nodes.olt(world.olt_id))


def test_an_olt_that_never_was_may_not_be_asked(world):
    with pytest.raises(OltGone):
        done(world.nodes.olt(999_999))


def test_an_olt_comes_with_whom_to_ask(world, power):
    olt = done(world.nodes.olt(world.olt_id))

    assert (olt.id, olt.brand, olt.max_in_flight) == (world.olt_id, "huawei", None)
    assert (olt.agent.host, olt.agent.port, olt.agent.credentials.name) == ("127.0.0.1", 161, "public")


def test_every_change_by_a_person_raises_the_revision(world, power):
    seen = [revision(world)]

    names = world.add("Names", master_id=power.id)
    seen.append(revision(world))
    world.wish(power, T0)
    seen.append(revision(world))
    world.delete(names)
    seen.append(revision(world))

    assert seen == sorted(set(seen))


def test_a_wish_that_was_made_already_changes_nothing(world, power):
    world.wish(power, T0)
    before = revision(world)

    world.wish(power, T0 + 1 * SEC)

    assert revision(world) == before
    assert world.now_of(power)[1] == T0


def test_what_the_engine_writes_is_not_read_back_as_a_change(world, power):
    before = revision(world), fingerprint(world)

    world.reschedule({power.id: T0 + 1 * SEC})
    (id_,) = world.claim(scheduled(power, slot=T0 + 1 * SEC)).execution_ids
    world.start(id_)
    world.close([id_], Outcome(Status.SUCCESS))
    done(world.slots.recover(T0))
    done(world.slots.answered(world.olt_id, now=T0))

    assert (revision(world), fingerprint(world)) == before


def test_an_olt_without_nodes_is_polled_and_has_a_fingerprint(world, power):
    world.delete(power)

    assert world.polled() == []
    assert list(done(world.nodes.states([world.olt_id]))) == [world.olt_id]
    assert fingerprint(world) is not None


def test_a_node_that_is_disabled_is_not_polled_and_leaves_another_fingerprint(world, power):
    world.add("Names", master_id=power.id)
    before = fingerprint(world)

    world.disable_node(power)

    assert [node.name for node in world.polled()] == ["Names"]
    assert fingerprint(world) != before


def test_an_olt_that_comes_back_is_as_it_was(world, power):
    before = world.polled()
    world.disable()

    world.enable()

    assert world.polled() == before != []


@pytest.mark.parametrize("polling", [True, False])
def test_a_standing_has_the_maintenance_of_the_olt_and_no_other_change(world, power, polling):
    now = datetime.now(UTC)
    before, seen = revision(world), fingerprint(world)

    world.maintain(now, now + 2 * HOUR, polling=polling)

    assert done(world.nodes.standings())[world.olt_id].windows == (Window(now, now + 2 * HOUR, polling),)
    assert (revision(world), fingerprint(world)) == (before, seen)
