"""The waiting room."""

from builders import MIN, SEC, T0, make_composite
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.model import Cause, Trigger
from facho.engine.scheduling.queue import NodeQueue, in_order


def test_a_busy_olt_is_passed_over_not_waited_for():
    queue = NodeQueue()
    queue.offer(make_composite(1, olt_id=7, priority=90), T0)
    queue.offer(make_composite(2, olt_id=8, priority=10), T0)

    queue.block(7, T0)

    assert queue.take(T0).composite.id == 2
    assert queue.take(T0) is None
    assert len(queue) == 1


def test_the_nodes_of_an_olt_are_in_the_line_again_when_it_is_free():
    queue = NodeQueue()
    queue.block(7, T0)
    queue.offer(make_composite(1, olt_id=7), T0)
    passed_over = queue.take(T0)

    queue.release(7, T0 + 3 * SEC)

    assert passed_over is None
    assert queue.take(T0 + 3 * SEC).composite.id == 1


def test_olts_with_one_device_are_busy_together():
    queue = NodeQueue()
    queue.follow_devices({7: "10.0.0.7:161", 8: "10.0.0.7:161", 9: "10.0.0.9:161"}, T0)
    for olt_id in (8, 9):
        queue.offer(make_composite(olt_id, olt_id=olt_id), T0)

    queue.block(7, T0)
    while_busy = [queue.take(T0), queue.take(T0)]
    queue.release(7, T0 + 3 * SEC)
    after = queue.take(T0 + 3 * SEC)

    assert [waiting and waiting.composite.olt_id for waiting in while_busy] == [9, None]
    assert (after.composite.olt_id, after.waits) == (8, {Cause.OLT_BUSY: 3.0})


def test_an_olt_that_moves_to_a_busy_device_waits_for_it():
    queue = NodeQueue()
    queue.follow_devices({7: "10.0.0.7:161", 8: "10.0.0.8:161"}, T0)
    queue.offer(make_composite(8, olt_id=8), T0)
    queue.block(7, T0)

    # The one that is being asked moves away, but it is asked where it was until that ends.
    queue.follow_devices({7: "10.0.0.9:161", 8: "10.0.0.7:161"}, T0)
    is_blocked, taken = queue.is_blocked(8), queue.take(T0)
    queue.release(7, T0 + SEC)

    assert (is_blocked, taken) == (True, None)
    assert queue.take(T0 + SEC).composite.olt_id == 8


def test_an_olt_that_is_held_before_its_device_is_known_keeps_it_busy():
    queue = NodeQueue()
    queue.block(7, T0)

    queue.follow_devices({7: "10.0.0.7:161", 8: "10.0.0.7:161"}, T0)

    assert queue.is_blocked(8)


def test_an_open_breaker_is_passed_over_but_for_what_a_person_waits_for():
    queue = NodeQueue()
    queue.offer(make_composite(1, olt_id=7), T0)
    queue.offer(make_composite(2, olt_id=7, trigger=Trigger.MANUAL, urgent=True), T0)
    queue.follow_breakers({7}, T0)

    taken = [queue.take(T0), queue.take(T0)]
    queue.follow_breakers((), T0 + 40 * SEC)
    after = queue.take(T0 + 45 * SEC)

    assert [waiting and waiting.composite.id for waiting in taken] == [2, None]
    assert after.waits == {Cause.BREAKER_OPEN: 40.0, Cause.NO_FREE_POLLER: 5.0}


def test_what_becomes_delayed_while_it_waits_goes_before_what_is_in_time():
    queue = NodeQueue()
    queue.offer(make_composite(1, olt_id=1, slot=T0, priority=10), T0)
    queue.offer(make_composite(2, olt_id=2, slot=T0 + 4 * SEC, priority=90), T0 + 4 * SEC)

    in_time = in_order(queue, T0 + 4 * SEC)[0].composite.id
    late = queue.take(T0 + 6 * SEC).composite.id

    assert (in_time, late) == (2, 1)


def test_one_that_makes_way_is_looked_at_again_in_time():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0), T0)

    away = queue.take(T0 + 6 * SEC, lambda waiting: T0 + 20 * SEC)
    too_early = queue.take(T0 + 19 * SEC)
    back = queue.take(T0 + 21 * SEC)

    assert (away, too_early) == (None, None)
    assert back.waits[Cause.OLT_BUSY] == 15.0


def test_what_has_waited_until_its_next_slot_expires_and_keeps_its_place():
    queue = NodeQueue()
    queue.block(1, T0)
    queue.offer(make_composite(1, slot=T0, interval=5 * MIN), T0)
    queue.offer(make_composite(2, slot=T0, trigger=Trigger.MANUAL, interval=5 * MIN), T0)

    early = queue.expire(T0 + 5 * MIN - SEC)
    (expired,) = queue.expire(T0 + 11 * MIN)
    renewed = expired.renewed(T0 + 11 * MIN)

    assert early == []
    assert (expired.composite.id, expired.lost_slots(T0 + 11 * MIN), expired.main_cause) == (1, 2, Cause.OLT_BUSY)
    assert (renewed.composite.slot, renewed.since, renewed.waits) == (T0 + 10 * MIN, T0, {})
    assert len(queue) == 1


def test_a_longer_interval_gives_a_waiting_slot_more_time():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0, interval=5 * MIN), T0)

    queue.renew(1, make_composite(1, interval=10 * MIN).master, (), T0 + 1 * MIN)

    assert queue.expire(T0 + 5 * MIN) == []
    assert len(queue.expire(T0 + 10 * MIN)) == 1


def test_a_composite_is_held_once_however_often_it_is_offered():
    queue = NodeQueue()

    for _ in range(3):
        queue.offer(make_composite(1), T0)

    assert len(queue) == 1


def test_a_run_asked_for_while_the_slot_waits_makes_that_run_urgent():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0), T0)

    queue.offer(make_composite(1, slot=T0 + SEC, trigger=Trigger.MANUAL, urgent=True), T0 + SEC)

    taken = queue.take(T0 + SEC).composite
    assert (taken.slot, taken.trigger, taken.urgent) == (T0, Trigger.SCHEDULE, True)


def test_a_slot_that_comes_due_while_a_manual_run_waits_is_served_by_it():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0, trigger=Trigger.MANUAL, urgent=True), T0)

    queue.offer(make_composite(1, slot=T0 + SEC), T0 + SEC)

    taken = queue.take(T0 + SEC).composite
    assert (taken.slot, taken.trigger, taken.urgent) == (T0 + SEC, Trigger.SCHEDULE, True)


def test_what_a_composite_waited_for_adds_up_to_its_lateness():
    queue = NodeQueue()
    queue.block(7, T0)
    queue.offer(make_composite(1, olt_id=7, slot=T0), T0 + 2 * SEC)

    queue.release(7, T0 + 10 * SEC)

    waits = queue.take(T0 + 15 * SEC).waits
    assert waits == {Cause.SCHEDULER_LATE: 2.0, Cause.OLT_BUSY: 8.0, Cause.NO_FREE_POLLER: 5.0}


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(1, 5), st.integers(0, 20), st.integers(0, 100), st.booleans()),
        max_size=60,
    ),
    st.sets(st.integers(1, 5)),
)
def test_everything_offered_comes_out_once_and_never_for_a_busy_olt(offers, busy_olts):
    queue = NodeQueue()
    olt_of = {}
    for id, olt_id, late, priority, urgent in offers:
        olt_id = olt_of.setdefault(id, olt_id)
        queue.offer(make_composite(id, olt_id=olt_id, slot=T0 - late * SEC, priority=priority, urgent=urgent), T0 + MIN)

    out = []
    for olt_id in busy_olts:
        queue.block(olt_id, T0 + MIN)
    while (waiting := queue.take(T0 + MIN)) is not None:
        out.append(waiting.composite.id)

    assert sorted(out) == sorted(id for id, olt_id in olt_of.items() if olt_id not in busy_olts)
    assert len(queue) == len(olt_of) - len(out)
