"""The waiting room."""

from builders import MIN, SEC, T0, busy, make_composite
from hypothesis import given
from hypothesis import strategies as st

from facho.engine.model import Cause, Trigger
from facho.engine.queue import NodeQueue


def test_a_busy_olt_is_passed_over_not_waited_for():
    queue = NodeQueue()
    queue.offer(make_composite(1, olt_id=7, priority=90), T0)
    queue.offer(make_composite(2, olt_id=8, priority=10), T0)

    taken = queue.take(busy(7), T0)

    assert taken.composite.id == 2
    assert queue.take(busy(7, 8), T0) is None
    assert len(queue) == 1


def test_a_composite_is_held_once_however_often_it_is_offered():
    queue = NodeQueue()

    for _ in range(3):
        queue.offer(make_composite(1), T0)

    assert len(queue) == 1


def test_a_run_asked_for_while_the_slot_waits_makes_that_run_urgent():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0), T0)

    queue.offer(make_composite(1, slot=T0 + SEC, trigger=Trigger.MANUAL, urgent=True), T0 + SEC)

    taken = queue.take(busy(), T0 + SEC).composite
    assert (taken.slot, taken.trigger, taken.urgent) == (T0, Trigger.SCHEDULE, True)


def test_a_slot_that_comes_due_while_a_manual_run_waits_is_served_by_it():
    queue = NodeQueue()
    queue.offer(make_composite(1, slot=T0, trigger=Trigger.MANUAL, urgent=True), T0)

    queue.offer(make_composite(1, slot=T0 + SEC), T0 + SEC)

    taken = queue.take(busy(), T0 + SEC).composite
    assert (taken.slot, taken.trigger, taken.urgent) == (T0 + SEC, Trigger.SCHEDULE, True)


def test_what_a_composite_waited_for_adds_up_to_its_lateness():
    queue = NodeQueue()
    queue.offer(make_composite(1, olt_id=7, slot=T0), T0 + 2 * SEC)

    queue.mark(busy(7), T0 + 10 * SEC)
    queue.mark(busy(), T0 + 15 * SEC)

    waits = queue.take(busy(), T0 + 15 * SEC).waits
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
    while (waiting := queue.take(busy(*busy_olts), T0 + MIN)) is not None:
        out.append(waiting.composite.id)

    assert sorted(out) == sorted(id for id, olt_id in olt_of.items() if olt_id not in busy_olts)
    assert len(queue) == len(olt_of) - len(out)
