"""Whatever happens, in whatever order: every quota balances after every step, and says what the executions say."""

from collections import Counter
from datetime import timedelta

import pytest
from builders import HOUR, MIN, T0
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contracts.worlds import DbWorld, by_hand, done, scheduled
from examples import examples
from facho.apps.coordinator.models import QuotaTracker
from facho.apps.jobs.models import WorkflowNode
from facho.apps.maintenance.models import Maintenance
from facho.apps.polling.models import Execution
from facho.engine.errors import OltBusy
from facho.engine.model import Cause, Outcome, Skipped, Status
from facho.engine.quota.quota import SHARES, Count, by_hour, hour_of, slots_between
from facho.engine.scheduling.grid import first_check, missed_slots, next_check
from facho.store.quotas import open_hour, settle

pytestmark = pytest.mark.django_db

ENDS = [Status.SUCCESS, Status.PARTIAL, Status.FAILED, Status.INTERRUPTED, Status.SKIPPED]
CAUSES = [Cause.OLT_BUSY, Cause.NO_FREE_POLLER, Cause.BREAKER_OPEN, Cause.UNREACHABLE, Cause.MAINTENANCE]


class Story:
    """One OLT with two masters, one of which has a chain, and slots and runs to which anything may be done."""

    def __init__(self):
        self.world = DbWorld()
        self.now = T0 + 7 * MIN
        power = self.world.add("Optical power", interval=5 * MIN)
        names = self.world.add("Names", interval=5 * MIN, master_id=power.id)
        discovery = self.world.add("Discovery", interval=40 * MIN)
        self.chains = {power.id: (names,), discovery.id: ()}
        self.claims = []
        # The interval at which slots lay that were lost together, by the first of them.
        self.lost = {}
        self._token = 1000
        self.reschedule(dict.fromkeys(self.chains, self.now + 1 * MIN))
        open_hour(self.now)

    def masters(self):
        return [node for node in self.world.polled() if node.id in self.chains]

    def master(self, number):
        masters = self.masters()
        return masters[number % len(masters)] if masters else None

    def reschedule(self, checks, *skipped):
        self.world.reschedule(checks, *skipped, now=self.now)

    def wait(self, minutes):
        before = hour_of(self.now)
        self.now += minutes * MIN
        if hour_of(self.now) != before:
            open_hour(self.now)

    def claim(self, number, cause):
        node = self.master(number)
        if node is not None and node.next_check is not None and node.next_check <= self.now:
            composite = scheduled(node, *self.chains[node.id], slot=node.next_check)
            self.lost[node.id, node.next_check + node.interval] = node.interval
            self.claims.append(self.world.claim(composite, now=self.now, waits={cause: 9.0}))

    def run_by_hand(self, number):
        node = self.master(number)
        if node is not None and node.run_requested_at is None:
            # As by `request_run`: never at a whole second.
            requested = self.now + timedelta(microseconds=1)
            self.world.wish(node, requested)
            self.claims.append(self.world.claim(by_hand(node, slot=requested), now=self.now))

    def execution(self, number):
        ids = [id_ for claim in self.claims if claim for id_ in claim.execution_ids]
        return ids[number % len(ids)] if ids else None

    def start(self, number):
        id_ = self.execution(number)
        if id_ is not None:
            self._token += number % 2
            try:
                self.world.start(id_, token=self._token, now=self.now)
            except OltBusy:
                return

    def close(self, number, status, cause):
        id_ = self.execution(number)
        if id_ is not None:
            self.world.close([id_], Outcome(status, cause), token=self._token, now=self.now)

    def put_off(self, number):
        id_ = self.execution(number)
        if id_ is not None:
            silent = Outcome(Status.FAILED, Cause.UNREACHABLE)
            later = self.now + 2 * MIN
            self.world.put_off([id_], silent, retry_at=later, token=self._token, now=self.now)

    def reclaim(self, number):
        claims = [claim for claim in self.claims if claim]
        if claims:
            self.world.reclaim(claims[number % len(claims)], now=self.now)

    def lose(self, number, cause):
        """Let slots expire that have waited until the next one came."""
        node = self.master(number)
        if node is not None and node.next_check is not None:
            missed = missed_slots(node.next_check, node.interval, self.now)
            lost = Skipped(node, node.next_check, missed, cause, self.chains[node.id])
            self.lost[node.id, node.next_check] = node.interval
            self.reschedule({node.id: node.next_check + missed * node.interval}, lost)

    def change_interval(self, number, minutes):
        node = self.master(number)
        if node is not None:
            row = WorkflowNode.objects.get(pk=node.id)
            row.own_interval_seconds = minutes * 60
            row.save()
            self.reschedule({node.id: next_check(self.now, minutes * MIN, self.now)})

    def disable_node(self, number):
        node = self.master(number)
        if node is not None:
            self.world.disable_node(node)
            self.world.abort(nodes=[node], now=self.now)
            self.reschedule({node.id: None})

    def disable_olt(self):
        self.world.disable()
        self.world.abort(olts=[self.world.olt_id], now=self.now)
        self.reschedule(dict.fromkeys(self.chains))

    def enable_all(self):
        self.world.enable()
        WorkflowNode.objects.update(own_enabled=None)
        self.reschedule({node.id: first_check(node, self.now) for node in self.masters() if node.next_check is None})

    def recover(self):
        done(self.world.slots.recover(self.now))

    def maintain(self, minutes):
        """Plan a maintenance that begins now. Failures in it are excused."""
        Maintenance.objects.create(
            olt_id=self.world.olt_id, starts_at=self.now, ends_at=self.now + minutes * MIN
        ).settle(self.now)

    def settle(self):
        settle(self.now)

    def turn_of_hour(self):
        """Let the hour be judged with what is still pending then."""
        self.now = hour_of(self.now) + HOUR + 5 * MIN
        open_hour(self.now)
        settle(self.now)

    def end(self):
        """Let nothing be open, and nothing be due, and all hours be over."""
        self.recover()
        self.disable_olt()
        self.now += 2 * HOUR
        settle(self.now)


def check(story):
    """Compare every row with the executions, and the present hour with the grid as well."""
    rows = {(row.task_type, row.period_start): row for row in QuotaTracker.objects.all()}
    counted = counted_from_executions(story)
    for key in rows.keys() | {key for key, _ in counted}:
        row = rows[key]
        shares = {
            "completed": row.quota_completed,
            "failed": row.quota_failed,
            "skipped": row.quota_skipped,
        }
        assert shares == {share: counted[key, share] for share in shares}, key
        assert row.quota_required == sum(shares.values()) + row.quota_pending
        assert sum(row.causes.values()) == row.quota_failed + row.quota_skipped
        count = Count(**shares, pending=row.quota_pending, causes=row.causes)
        assert row.quota_completed <= count.wanted <= row.quota_required
        assert row.quota_pending == 0 or row.status in ("IN_PROGRESS", "INTERRUPTED"), key
    hour = hour_of(story.now)
    for task, pending in owed(story, hour).items():
        row = rows.get((task, hour))
        assert (row.quota_pending if row else 0) == pending, task


def counted_from_executions(story):
    counted = Counter()
    for row in Execution.objects.exclude(status__in=["PENDING", "RUNNING"]).filter(trigger="schedule"):
        was_claimed = row.claimed_at is not None
        interval = MIN if was_claimed else story.lost[row.node_id, row.slot]
        # A slot that was lost has one row, its master's, and is missing in its chain as well.
        names = [row.node_name, *(link.name for link in story.chains.get(row.node_id, ()) if not was_claimed)]
        for hour, slots in by_hour(row.slot, interval, row.slots):
            for name in names:
                counted[(name, hour), SHARES[Status(row.status)].value] += slots
    return counted


def owed(story, hour):
    """Return what is open or still to come in the hour, by job."""
    is_open = Execution.objects.filter(status__in=["PENDING", "RUNNING"], trigger="schedule")
    pending = Counter({"Optical power": 0, "Names": 0, "Discovery": 0})
    pending.update(name for name, slot in is_open.values_list("node_name", "slot") if hour_of(slot) == hour)
    for node in story.masters():
        if node.next_check is not None:
            slots = slots_between(node.next_check, node.interval, hour, hour + HOUR)
            for name in (node.name, *(link.name for link in story.chains[node.id])):
                pending[name] += slots
    return pending


numbers = st.integers(0, 7)
STEPS = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 25)),
    st.tuples(st.just("claim"), numbers, st.sampled_from(CAUSES)),
    st.tuples(st.just("claim"), numbers, st.sampled_from(CAUSES)),
    st.tuples(st.just("start"), numbers),
    st.tuples(st.just("start"), numbers),
    st.tuples(st.just("close"), numbers, st.sampled_from(ENDS), st.sampled_from(CAUSES)),
    st.tuples(st.just("put_off"), numbers),
    st.tuples(st.just("reclaim"), numbers),
    st.tuples(st.just("lose"), numbers, st.sampled_from(CAUSES)),
    st.tuples(st.just("maintain"), st.integers(1, 90)),
    st.tuples(st.just("change_interval"), numbers, st.sampled_from([3, 10, 90])),
    st.tuples(st.just("disable_node"), numbers),
    st.tuples(st.sampled_from(["disable_olt", "enable_all", "recover", "settle", "turn_of_hour"])),
    st.tuples(st.just("run_by_hand"), numbers),
)


# A run is requested at the very second of a slot, which is lost later.
REQUEST_AT_A_SLOT = [("wait", 41), ("run_by_hand", 1), ("wait", 4), ("claim", 1, Cause.OLT_BUSY)]


@example(steps=REQUEST_AT_A_SLOT)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=5, max_size=30))
def test_every_quota_balances_after_every_step_and_nothing_is_pending_in_the_end(db, steps):
    with transaction.atomic():
        story = Story()
        for name, *arguments in steps:
            getattr(story, name)(*arguments)
            check(story)
        story.end()
        rows = list(QuotaTracker.objects.values_list("quota_pending", "status"))
        transaction.set_rollback(True)

    assert rows
    assert {pending for pending, _ in rows} == {0}
    assert "IN_PROGRESS" not in {status for _, status in rows}
